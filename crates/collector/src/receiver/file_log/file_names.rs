//! The attributes of records that describe their file.

use std::{
    fs,
    os::unix::fs::{MetadataExt, PermissionsExt},
    path::Path,
};

use kubewake_config::file_log::FileAttributes;

/// Names of users and groups, with a number in the third column.
const USERS: &str = "/etc/passwd";
const GROUPS: &str = "/etc/group";

/// Which attributes of its file a record gets.
#[derive(Clone, Copy, Debug)]
pub(super) struct FileNames(pub(super) FileAttributes);

impl FileNames {
    /// The attributes of a file. Links are resolved, and the file is looked at, only if one of them asks for it. What
    /// cannot be found out is left out.
    pub(super) fn attributes(self, path: &Path) -> Vec<(&'static str, String)> {
        let wanted = self.0;
        let is_resolved = wanted.name_resolved || wanted.path_resolved;
        let resolved = is_resolved.then(|| path.canonicalize().unwrap_or_else(|_| path.to_owned()));
        let resolved = resolved.as_deref();
        let is_described = wanted.owner_name || wanted.owner_group_name || wanted.permissions;
        let status = is_described.then(|| fs::metadata(path).ok()).flatten();
        let status = status.as_ref();
        let name = |path: &Path| path.file_name().map(|name| name.to_string_lossy().into_owned());
        let text = |path: &Path| path.to_string_lossy().into_owned();
        let all = [
            ("log.file.name", Some(path).filter(|_| wanted.name).and_then(name)),
            ("log.file.path", Some(path).filter(|_| wanted.path).map(text)),
            ("log.file.name_resolved", resolved.filter(|_| wanted.name_resolved).and_then(name)),
            ("log.file.path_resolved", resolved.filter(|_| wanted.path_resolved).map(text)),
            (
                "log.file.owner.name",
                status.filter(|_| wanted.owner_name).and_then(|status| name_of_number(USERS, status.uid())),
            ),
            (
                "log.file.owner.group.name",
                status.filter(|_| wanted.owner_group_name).and_then(|status| name_of_number(GROUPS, status.gid())),
            ),
            (
                "log.file.permissions",
                status
                    .filter(|_| wanted.permissions)
                    .map(|status| format!("{:o}", status.permissions().mode() & 0o777)),
            ),
        ];
        all.into_iter().filter_map(|(key, value)| Some((key, value?))).collect()
    }
}

/// The name of a user or a group.
fn name_of_number(file: &str, number: u32) -> Option<String> {
    find_name(&fs::read_to_string(file).ok()?, number)
}

fn find_name(text: &str, number: u32) -> Option<String> {
    text.lines().find_map(|line| {
        let mut columns = line.split(':');
        let name = columns.next()?;
        (columns.nth(1)?.parse() == Ok(number)).then(|| name.to_owned())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn name_is_that_of_the_line_with_the_number() {
        let text = "root:x:0:0:root:/root:/bin/sh\nbroken\nweb:x:33:33::/:\n";
        assert_eq!(find_name(text, 33).as_deref(), Some("web"));
        assert_eq!(find_name(text, 7), None);
    }

    #[test]
    fn file_is_described_as_asked_for() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("a.log");
        fs::write(&file, "x").unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o640)).unwrap();
        let wanted = FileAttributes { name: true, permissions: true, ..FileAttributes::default() };
        let expected = [("log.file.name", "a.log".to_owned()), ("log.file.permissions", "640".to_owned())];
        assert_eq!(FileNames(wanted).attributes(&file), expected);
    }
}
