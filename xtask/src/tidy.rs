//! `cargo xtask tidy`: the rules of the tree that no other tool knows.

mod dependencies;
mod documents;
mod images;

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, ensure};

use crate::root;

/// Lines of a file, tests excluded. What is longer holds more than one idea.
const MAX_LINES: usize = 500;
/// Lines of a `lib.rs`: it is a contents page.
const MAX_LIB_LINES: usize = 120;
/// Words that promise work nobody has planned. Put together here, so that this file has none.
const PROMISES: [&str; 2] = [concat!("TO", "DO"), concat!("FIX", "ME")];

/// Libraries for programs of others: they depend on nothing else of ours.
const ALONE: [&str; 1] = ["name = \"kubewake-trail\""];

/// Checks every source file, manifest and document, and lists all that is wrong.
pub(crate) fn run() -> anyhow::Result<()> {
    let mut files = Vec::new();
    for directory in ["benches", "crates", "e2e", "examples", "fuzz", "xtask"] {
        collect(&root().join(directory), &mut files)?;
    }
    let mut wrong = Vec::new();
    for file in &files {
        let text = fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))?;
        let name = file.strip_prefix(root()).unwrap_or(file);
        let problems = if is_source(file) { source(name, &text) } else { manifest(&text) };
        wrong.extend(problems.into_iter().map(|problem| format!("{}: {problem}", name.display())));
    }
    wrong.extend(documents::check()?);
    wrong.extend(images::check()?);
    wrong.extend(dependencies::check()?);
    wrong.iter().for_each(|problem| eprintln!("{problem}"));
    ensure!(wrong.is_empty(), "{} rules are broken", wrong.len());
    Ok(())
}

/// Sources and manifests below a directory, without what is built.
fn collect(directory: &Path, files: &mut Vec<PathBuf>) -> anyhow::Result<()> {
    if !directory.exists() {
        return Ok(());
    }
    let entries = fs::read_dir(directory).with_context(|| format!("cannot list {}", directory.display()))?;
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

/// Rust, and what the viewer's page is made of.
fn is_source(path: &Path) -> bool {
    path.extension().is_some_and(|ext| ext == "rs" || ext == "js" || ext == "css")
}

fn source(name: &Path, text: &str) -> Vec<String> {
    let mut problems = Vec::new();
    let limit = if name.ends_with("src/lib.rs") { MAX_LIB_LINES } else { MAX_LINES };
    let lines = lines_without_tests(name, text);
    if lines > limit {
        problems.push(format!("{lines} lines, at most {limit}"));
    }
    if name.ends_with("mod.rs") {
        problems.push("a module is foo.rs and foo/, not foo/mod.rs".to_owned());
    }
    for (number, line) in text.lines().enumerate() {
        for promise in PROMISES.iter().filter(|promise| line.contains(*promise)) {
            problems.push(format!("line {}: {promise}; write an issue instead", number + 1));
        }
    }
    problems
}

/// A file of tests has no limit, and tests beside the code stand at its end.
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

/// Every crate takes the workspace's lints, and a workspace of its own has none to take. Libraries for others stand alone.
fn manifest(text: &str) -> Vec<String> {
    let inherits = text.contains("[lints]\nworkspace = true");
    let own_workspace = text.contains("[workspace]");
    let mut problems = Vec::new();
    if !inherits && !own_workspace {
        problems.push("does not take the workspace's lints".to_owned());
    }
    if ALONE.iter().any(|name| text.contains(name)) {
        problems.extend(our_dependencies(text).map(|line| format!("is for others, and depends on ours: {line}")));
    }
    problems
}

/// What a crate needs of ours, tests excluded: by its name, as a section of its own, or under another name.
fn our_dependencies(text: &str) -> impl Iterator<Item = &str> {
    let mut section = "";
    let without_comments = text.lines().map(|line| line.split('#').next().unwrap_or_default().trim());
    without_comments.filter(move |line| {
        if line.starts_with('[') {
            section = line;
        }
        section.contains("dependencies") && !section.contains("dev-dependencies") && line.contains("kubewake")
    })
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
        assert_eq!(source(Path::new("src/a.rs"), &format!("// {} later", PROMISES[0])).len(), 1);
    }

    #[test]
    fn a_crate_without_the_lints_is_found() {
        assert_eq!(manifest("[package]\nname = \"a\"\n").len(), 1);
        assert!(manifest("[lints]\nworkspace = true\n").is_empty());
    }

    #[test]
    fn a_library_for_others_that_depends_on_ours_is_found() {
        let with = |section: &str| {
            format!("{}\n[lints]\nworkspace = true\n[{section}]\nkube = \"1\"\nkubewake-otlp = \"1\"\n", ALONE[0])
        };
        assert_eq!(manifest(&with("dependencies")).len(), 1);
        assert_eq!(manifest(&with("target.'cfg(unix)'.build-dependencies")).len(), 1);
        assert!(manifest(&with("dev-dependencies")).is_empty());
        for (dependency, ours) in [
            ("[dependencies.kubewake-otlp]\npath = \"../otlp\"", 1),
            ("[dependencies]\notlp = { package = \"kubewake-otlp\", version = \"1\" }", 1),
            ("[dependencies]\nkubewake.workspace = true", 1),
            ("[dependencies]\nkube = \"1\" # not kubewake", 0),
            ("[dev-dependencies.kubewake-otlp]\npath = \"../otlp\"", 0),
        ] {
            let text = format!("{}\n[lints]\nworkspace = true\n{dependency}\n", ALONE[0]);
            assert_eq!(manifest(&text).len(), ours, "{dependency}");
        }
    }
}
