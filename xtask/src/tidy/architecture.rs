//! Every path that ARCHITECTURE.md names exists, in its map and in its text, and so does every complete path in the
//! other pages for developers.
//!
//! Paths of ARCHITECTURE.md leave out the folder `src`. They are relative to `crates/`, to the repository, or to the
//! folder that the section names in the sentence "The files of this section are in …".

use std::{fs, path::Path, sync::LazyLock};

use anyhow::Context;
use regex::Regex;

use crate::workspace_root;

const DOCUMENT: &str = "ARCHITECTURE.md";
/// Pages whose paths are complete if they begin with a folder of the repository.
const OTHER_PAGES: [&str; 3] = ["CONTRIBUTING.md", "fuzz/README.md", "kubernetes/README.md"];
const FOLDERS: [&str; 9] =
    ["benches/", "crates/", "deploy/", "docs/", "e2e/", "examples/", "fuzz/", "kubernetes/", "xtask/"];
/// The folders whose packages have a folder `src`, which paths leave out.
const PACKAGE_FOLDERS: [&str; 2] = ["crates", "kubernetes"];

/// A path in backticks: with a folder, or the name of a source file.
static QUOTED_PATH: LazyLock<Regex> = LazyLock::new(|| pattern(r"`([a-z][\w.-]*(?:/[\w.-]*)+|[a-z]\w*\.rs)`"));
static SECTION_FOLDER: LazyLock<Regex> = LazyLock::new(|| pattern(r"The files of this section are in `([\w./-]+?)/?`"));

#[expect(clippy::expect_used, reason = "the patterns are the constants above")]
fn pattern(text: &str) -> Regex {
    Regex::new(text).expect("a pattern of this file")
}

/// The lines with paths that do not exist.
pub(super) fn check() -> anyhow::Result<Vec<String>> {
    let root = workspace_root();
    let read = |page: &str| fs::read_to_string(root.join(page)).with_context(|| format!("failed to read {page}"));
    let describe = |page: &str, (line, path): (usize, String)| format!("{page}:{line}: {path} does not exist");
    let missing = missing_paths(&root, &read(DOCUMENT)?);
    let mut wrong: Vec<String> = missing.into_iter().map(|missing| describe(DOCUMENT, missing)).collect();
    for page in OTHER_PAGES {
        wrong.extend(missing_complete_paths(&root, &read(page)?).into_iter().map(|missing| describe(page, missing)));
    }
    Ok(wrong)
}

fn missing_complete_paths(root: &Path, text: &str) -> Vec<(usize, String)> {
    let paths = |line| QUOTED_PATH.captures_iter(line).filter_map(|found| found.get(1)).map(|found| found.as_str());
    let lines = (1..).zip(text.lines()).flat_map(|(number, line)| paths(line).map(move |path| (number, path)));
    let is_complete = |path: &str| FOLDERS.iter().any(|folder| path.starts_with(folder));
    let missing = lines.filter(|(_, path)| is_complete(path) && !root.join(path).exists());
    missing.map(|(number, path)| (number, path.to_owned())).collect()
}

fn missing_paths(root: &Path, text: &str) -> Vec<(usize, String)> {
    let mut missing = Vec::new();
    let mut in_map = false;
    let mut map_folders: Vec<(usize, String)> = Vec::new();
    let mut section_folder = String::new();
    for (number, line) in (1..).zip(text.lines()) {
        if line.starts_with("```") {
            in_map = line != "```";
            continue;
        }
        if in_map {
            let paths = map_paths(line, &mut map_folders);
            missing.extend(paths.into_iter().filter(|path| !exists(root, path)).map(|path| (number, path)));
            continue;
        }
        if line.starts_with('#') {
            section_folder.clear();
        }
        if let Some(folder) = SECTION_FOLDER.captures(line).and_then(|found| found.get(1)) {
            section_folder = folder.as_str().to_owned();
        }
        let paths = QUOTED_PATH.captures_iter(line).filter_map(|found| found.get(1)).map(|found| found.as_str());
        let is_in_section =
            |path: &str| !section_folder.is_empty() && exists(root, &format!("{section_folder}/{path}"));
        let is_missing = |path: &&str| !exists(root, path) && !is_in_section(path);
        missing.extend(paths.filter(is_missing).map(|path| (number, path.to_owned())));
    }
    missing
}

/// The complete paths in a line of the map. A column that consists of paths describes them in the next column; the
/// first path of a line is the folder of the lines below it that are indented further.
fn map_paths(line: &str, folders: &mut Vec<(usize, String)>) -> Vec<String> {
    let indent = line.len() - line.trim_start().len();
    let columns = line.trim().split("  ").map(str::trim).filter(|column| !column.is_empty());
    let is_path = |word: &str| word.ends_with('/') || word.ends_with(".rs");
    let mut paths = Vec::new();
    for (index, column) in columns.enumerate() {
        if !column.split(' ').all(is_path) {
            continue;
        }
        folders.retain(|(outer, _)| *outer < indent);
        let parent = folders.last().map(|(_, folder)| folder.clone()).unwrap_or_default();
        let complete = column.split(' ').map(|name| format!("{parent}{name}")).collect::<Vec<_>>();
        paths.extend(complete.iter().cloned());
        if let Some(first) = complete.into_iter().next().filter(|_| index == 0) {
            folders.push((indent, first));
        }
    }
    paths
}

/// Whether a file or folder exists, with `src` after the name of its package or without.
fn exists(root: &Path, path: &str) -> bool {
    let in_repository = PACKAGE_FOLDERS.iter().any(|folder| path.starts_with(folder)) || root.join(path).exists();
    let path = if in_repository { path.to_owned() } else { format!("crates/{path}") };
    let mut parts = path.trim_end_matches('/').splitn(3, '/');
    let package = parts.next().zip(parts.next()).filter(|(folder, _)| PACKAGE_FOLDERS.contains(folder));
    let in_source = package
        .zip(parts.next())
        .is_some_and(|((folder, name), rest)| root.join(folder).join(name).join("src").join(rest).exists());
    in_source || root.join(path).exists()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "```text\ncrates/\n  one/    the first\n    a.rs b/   files      c/   a folder\n  two/  another\nkubernetes/   more\n  \
        node/   a node\n    proxy.rs    a file\n```\n\nSee `one/a.rs`, `one/gone.rs`, `/status` and `kubernetes/node/proxy.rs`.\n\n\
        ## Part\n\nThe files of this section are in `one/`.\n\n`a.rs` and `proxy.rs`\n\n## Next\n\n`a.rs`\n";

    #[test]
    fn missing_path_is_found_in_map_and_text() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        for file in
            ["crates/one/src/a.rs", "crates/one/src/b/x.rs", "crates/two/Cargo.toml", "kubernetes/node/src/proxy.rs"]
        {
            fs::create_dir_all(root.join(file).parent().unwrap()).unwrap();
            fs::write(root.join(file), "").unwrap();
        }
        let found = missing_paths(root, TEXT);
        let expected = [(4, "crates/one/c/"), (11, "one/gone.rs"), (17, "proxy.rs"), (21, "a.rs")];
        assert_eq!(found, expected.map(|(line, path)| (line, path.to_owned())));
        let page = "`crates/one/src/a.rs`, `crates/one/a.rs` and `model/a.rs`\n";
        assert_eq!(missing_complete_paths(root, page), [(1, "crates/one/a.rs".to_owned())]);
    }
}
