//! Directories in which components keep state across restarts.

use std::{
    fs,
    path::{Path, PathBuf},
};

use kubewake_config::ComponentId;

use super::BuildError;

/// Creates the directory of one component below `root`. Different ids have different directories.
pub(super) fn create(root: Option<&Path>, kind: &str, id: &ComponentId) -> Result<PathBuf, BuildError> {
    let root = root.ok_or_else(|| {
        BuildError("keeping state needs a state directory, and this collector was started without one".into())
    })?;
    let path = root.join(kind).join(file_name(id));
    fs::create_dir_all(&path)
        .map_err(|error| BuildError(format!("failed to create the directory {}: {error}", path.display())))?;
    Ok(path)
}

/// The id as the name of a file: all but letters, digits, `-` and `_` is written as `%` and two hexadecimal digits,
/// since a name in a document may hold any character.
fn file_name(id: &ComponentId) -> String {
    let mut name = String::new();
    for byte in id.as_str().bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' => name.push(char::from(byte)),
            other => name.push_str(&format!("%{other:02x}")),
        }
    }
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directories_of_different_ids_are_different_and_stay_below_the_root() {
        let root = tempfile::tempdir().unwrap();
        let path = |id: &str| create(Some(root.path()), "receivers", &ComponentId::new(id)).unwrap();
        let paths = [path("log/a"), path("log/a/../b"), path("log/%2f"), path("log")];
        for (at, path) in paths.iter().enumerate() {
            assert_eq!(path.parent(), Some(root.path().join("receivers").as_path()));
            assert!(path.is_dir() && !paths.get(..at).unwrap().contains(path));
        }
    }

    #[test]
    fn component_that_keeps_state_is_refused_without_a_state_directory() {
        let error = create(None, "receivers", &ComponentId::new("log")).unwrap_err();
        assert!(error.0.contains("started without one"), "{error}");
    }
}
