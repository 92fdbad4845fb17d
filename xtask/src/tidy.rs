//! `cargo xtask tidy`: checks the repository's own rules.

mod architecture;
mod crate_rules;
mod dependencies;
mod documents;
mod images;
mod module_rules;
mod style;

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, ensure};

use crate::workspace_root;

/// Limit of lines in a file, without tests. A longer file holds more than one idea.
const MAX_LINES: usize = 500;
/// Limit of lines in a `lib.rs`, which is a table of contents.
const MAX_LIB_LINES: usize = 120;
/// Words for work that nobody has planned. Concatenated, so that this file does not contain them.
const FORBIDDEN_WORDS: [&str; 2] = [concat!("TO", "DO"), concat!("FIX", "ME")];

/// Checks every source file, manifest and document, and lists all violations.
pub(crate) fn run() -> anyhow::Result<()> {
    let mut files = Vec::new();
    for directory in ["benches", "crates", "e2e", "examples", "fuzz", "kubernetes", "xtask"] {
        collect(&workspace_root().join(directory), &mut files)?;
    }
    let mut wrong = Vec::new();
    let mut style = style::StyleFigures::default();
    let mut modules = module_rules::ModuleRules::default();
    for file in &files {
        let text = fs::read_to_string(file).with_context(|| format!("failed to read {}", file.display()))?;
        let name = file.strip_prefix(workspace_root()).unwrap_or(file);
        let mut problems = if is_source(file) { check_source(name, &text) } else { check_manifest(&text) };
        problems.extend(style.count(name, &text));
        problems.extend(modules.check_file(name, &text));
        wrong.extend(problems.into_iter().map(|problem| format!("{}: {problem}", name.display())));
    }
    wrong.extend(style.problems());
    wrong.extend(modules.problems());
    wrong.extend(documents::check()?);
    wrong.extend(architecture::check()?);
    wrong.extend(images::check()?);
    wrong.extend(dependencies::check()?);
    wrong.iter().for_each(|problem| eprintln!("{problem}"));
    ensure!(wrong.is_empty(), "{} rules are broken", wrong.len());
    Ok(())
}

/// Sources and manifests below a directory, without build output.
fn collect(directory: &Path, files: &mut Vec<PathBuf>) -> anyhow::Result<()> {
    if !directory.exists() {
        return Ok(());
    }
    let entries = fs::read_dir(directory).with_context(|| format!("failed to list {}", directory.display()))?;
    for entry in entries {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default();
        if path.is_dir() && name != "target" {
            collect(&path, files)?;
        } else if name == "Cargo.toml" || is_source(&path) {
            files.push(path);
        }
    }
    Ok(())
}

/// Rust, and the sources of the viewer's page.
fn is_source(path: &Path) -> bool {
    path.extension().is_some_and(|ext| ext == "rs" || ext == "js" || ext == "css")
}

fn check_source(name: &Path, text: &str) -> Vec<String> {
    let mut problems = Vec::new();
    let limit = if name.ends_with("src/lib.rs") { MAX_LIB_LINES } else { MAX_LINES };
    let lines = lines_without_tests(name, text);
    if lines > limit {
        problems.push(format!("{lines} lines, at most {limit}"));
    }
    if name.ends_with("mod.rs") {
        problems.push("write the module as foo.rs and foo/, not foo/mod.rs".to_owned());
    }
    for (number, line) in text.lines().enumerate() {
        for promise in FORBIDDEN_WORDS.iter().filter(|promise| line.contains(*promise)) {
            problems.push(format!("line {}: {promise}; write an issue instead", number + 1));
        }
    }
    problems
}

/// Files of tests have no limit, and inline tests are at the end of a file.
fn lines_without_tests(name: &Path, text: &str) -> usize {
    let is_test = name.ends_with("tests.rs") || name.iter().any(|part| part == "tests");
    if is_test {
        return 0;
    }
    let mut before = "";
    let code = text.lines().take_while(|line| {
        let tests = before == "#[cfg(test)]" && line.starts_with("mod tests {");
        before = line;
        !tests
    });
    code.count()
}

/// Every crate uses the workspace's lints, unless it is a workspace of its own.
fn check_manifest(text: &str) -> Vec<String> {
    let inherits = text.contains("[lints]\nworkspace = true") || text.contains("[workspace]");
    if inherits { Vec::new() } else { vec!["does not inherit the workspace's lints".to_owned()] }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tests_do_not_count() {
        let text = "fn a() {}\n\n#[cfg(test)]\nmod tests {\n    fn b() {}\n}\n";
        assert_eq!(lines_without_tests(Path::new("src/a.rs"), text), 3);
        assert_eq!(lines_without_tests(Path::new("src/a/tests.rs"), text), 0);
    }

    #[test]
    fn a_promise_is_found() {
        assert_eq!(check_source(Path::new("src/a.rs"), &format!("// {} later", FORBIDDEN_WORDS[0])).len(), 1);
    }

    #[test]
    fn a_crate_without_the_lints_is_found() {
        assert_eq!(check_manifest("[package]\nname = \"a\"\n").len(), 1);
        assert!(check_manifest("[lints]\nworkspace = true\n").is_empty());
    }
}
