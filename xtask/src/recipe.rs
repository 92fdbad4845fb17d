//! `cargo xtask recipe`: follows docs/adding-a-component.md in a copy of the crates, and runs the tests of the
//! component that comes of it.
//!
//! An HTML comment before a code block says what to do with the block:
//!
//! * `<!-- recipe: create PATH -->` writes it to a new file;
//! * `<!-- recipe: insert in PATH before LINE -->` inserts it before the first line with this text.
//!
//! Blocks without such a comment are for readers only.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, bail, ensure};

use crate::{
    steps::{TimedSteps, cargo},
    target_dir, workspace_root,
};

const PAGE: &str = "docs/adding-a-component.md";
/// The crate that holds the work of components.
const COLLECTOR: &str = "kubewake-collector";
/// The packages with tests of the page's component, and the features that these need.
const TESTED_PACKAGES: [(&str, &str); 2] = [("kubewake-config", ""), (COLLECTOR, "exporter-count")];
const TESTED_MODULE: &str = "exporter::count";

pub(crate) fn run(steps: &mut TimedSteps) -> anyhow::Result<()> {
    let copy = target_dir().join("recipe");
    steps.step("copy for the recipe", || {
        let page = read(&workspace_root().join(PAGE))?;
        let mut files = copied_files()?;
        for step in recipe_steps(&page)? {
            step.apply(&mut files)?;
        }
        write_files(&copy, &files)
    })?;
    for (package, features) in TESTED_PACKAGES {
        steps.step(&format!("the recipe's tests in {package}"), || run_tests(&copy, package, features))?;
    }
    Ok(())
}

/// Builds in a folder of its own: in the usual one, cargo would take the packages of the copy for those of the
/// workspace, which have the same names and the same paths.
fn run_tests(copy: &Path, package: &str, features: &str) -> anyhow::Result<()> {
    let mut test = cargo();
    test.args(["test", "--offline", "--package", package, "--features", features, "--lib", TESTED_MODULE]);
    test.current_dir(copy).env("CARGO_TARGET_DIR", target_dir().join("recipe-build"));
    let output = test.output().context("failed to run cargo")?;
    let text = String::from_utf8_lossy(&output.stdout);
    print!("{text}");
    ensure!(output.status.success(), "the tests failed: {}", String::from_utf8_lossy(&output.stderr));
    // libtest is content with a filter that matches nothing.
    ensure!(!text.contains("running 0 tests"), "there is no test in {TESTED_MODULE}");
    Ok(())
}

/// The files of a workspace, by their paths in it.
type Files = std::collections::BTreeMap<PathBuf, Vec<u8>>;

/// The crate of the collector and those that it needs, as a workspace.
fn copied_files() -> anyhow::Result<Files> {
    let root = workspace_root();
    let manifest = read(&root.join("Cargo.toml"))?;
    let mut files = Files::new();
    let mut waiting = vec![COLLECTOR.to_owned()];
    let mut members = BTreeSet::new();
    while let Some(name) = waiting.pop() {
        let folder = package_folder(&manifest, &name).with_context(|| format!("{name} is not in Cargo.toml"))?;
        if members.insert(folder.to_owned()) {
            add_folder(&root, Path::new(folder), &mut files)?;
            waiting.extend(needed_packages(&read(&root.join(folder).join("Cargo.toml"))?));
        }
    }
    let members: Vec<_> = members.into_iter().collect();
    // The list of members replaces the one of the whole workspace, at its beginning.
    let rest = manifest.lines().filter(|line| {
        *line != "[workspace]" && !line.starts_with("members = ") && !line.starts_with("default-members = ")
    });
    let head = format!("[workspace]\nmembers = {members:?}");
    let manifest = std::iter::once(head.as_str()).chain(rest).collect::<Vec<_>>().join("\n");
    files.insert("Cargo.toml".into(), manifest.into_bytes());
    files.insert("Cargo.lock".into(), fs::read(root.join("Cargo.lock"))?);
    Ok(files)
}

/// The folder of a package of the workspace.
fn package_folder<'m>(manifest: &'m str, name: &str) -> Option<&'m str> {
    let line = manifest.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(" = { path = \""))?;
    line.split('"').next()
}

/// The packages of the workspace that a manifest names.
fn needed_packages(manifest: &str) -> Vec<String> {
    let lines = manifest.lines().filter(|line| line.starts_with("kubewake-"));
    lines.filter_map(|line| line.split(['.', ' ']).next()).map(str::to_owned).collect()
}

fn add_folder(root: &Path, folder: &Path, files: &mut Files) -> anyhow::Result<()> {
    for entry in fs::read_dir(root.join(folder))? {
        let entry = entry?;
        let path = folder.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            add_folder(root, &path, files)?;
        } else {
            files.insert(path, fs::read(entry.path())?);
        }
    }
    Ok(())
}

/// Writes the files that differ, so that cargo builds no more than has changed, and removes all others.
fn write_files(copy: &Path, files: &Files) -> anyhow::Result<()> {
    let mut old = Files::new();
    if copy.exists() {
        add_folder(copy, Path::new(""), &mut old)?;
    }
    for path in old.keys().filter(|path| !files.contains_key(*path)) {
        fs::remove_file(copy.join(path))?;
    }
    for (path, content) in files.iter().filter(|(path, content)| old.get(*path) != Some(*content)) {
        let path = copy.join(path);
        path.parent().map_or(Ok(()), fs::create_dir_all)?;
        fs::write(path, content)?;
    }
    Ok(())
}

/// What to do with a code block.
#[derive(Debug, PartialEq)]
enum RecipeStep {
    Create { path: PathBuf, block: String },
    Insert { path: PathBuf, before: String, block: String },
}

impl RecipeStep {
    fn apply(self, files: &mut Files) -> anyhow::Result<()> {
        match self {
            Self::Create { path, block } => {
                ensure!(!files.contains_key(&path), "{} exists already", path.display());
                files.insert(path, block.into_bytes());
            }
            Self::Insert { path, before, block } => {
                let content = files.get_mut(&path).with_context(|| format!("there is no {}", path.display()))?;
                let text = String::from_utf8(std::mem::take(content))?;
                let at =
                    line_start(&text, &before).with_context(|| format!("{} has no line `{before}`", path.display()))?;
                let (head, tail) = text.split_at(at);
                *content = [head, &block, tail].concat().into_bytes();
            }
        }
        Ok(())
    }
}

/// The offset of the first line with this text, leaving out spaces around it.
fn line_start(text: &str, wanted: &str) -> Option<usize> {
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        if line.trim() == wanted {
            return Some(at);
        }
        at += line.len();
    }
    None
}

fn recipe_steps(page: &str) -> anyhow::Result<Vec<RecipeStep>> {
    let mut steps = Vec::new();
    let mut lines = page.lines();
    while let Some(line) = lines.next() {
        let Some(what) = line.strip_prefix("<!-- recipe: ").and_then(|rest| rest.strip_suffix(" -->")) else {
            continue;
        };
        let fence = lines.by_ref().find(|line| !line.is_empty()).unwrap_or_default();
        ensure!(fence.starts_with("```"), "{PAGE}: no code block after `{what}`");
        let block = lines.by_ref().take_while(|line| *line != "```").map(|line| format!("{line}\n")).collect();
        steps.push(if let Some(path) = what.strip_prefix("create ") {
            RecipeStep::Create { path: path.into(), block }
        } else if let Some((path, before)) =
            what.strip_prefix("insert in ").and_then(|rest| rest.split_once(" before "))
        {
            RecipeStep::Insert { path: path.into(), before: before.into(), block }
        } else {
            bail!("{PAGE}: what is `{what}`?")
        });
    }
    ensure!(!steps.is_empty(), "{PAGE} has no recipe");
    Ok(steps)
}

fn read(path: &Path) -> anyhow::Result<String> {
    fs::read_to_string(path).with_context(|| format!("failed to read {}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn block_is_inserted_before_the_line_that_the_page_names() {
        let page = "text\n<!-- recipe: insert in a/b.rs before mod c; -->\n\n```rust,ignore\nmod b;\n```\n";
        let mut files = Files::from([("a/b.rs".into(), b"mod a;\n    mod c;\nmod d;\n".to_vec())]);
        recipe_steps(page).unwrap().into_iter().for_each(|step| step.apply(&mut files).unwrap());
        assert_eq!(files[Path::new("a/b.rs")], b"mod a;\nmod b;\n    mod c;\nmod d;\n");
    }

    #[test]
    fn steps_of_the_page_fit_the_sources() {
        let mut files = copied_files().unwrap();
        for step in recipe_steps(&read(&workspace_root().join(PAGE)).unwrap()).unwrap() {
            step.apply(&mut files).unwrap();
        }
    }

    #[test]
    fn copy_has_the_packages_that_the_collector_needs() {
        let files = copied_files().unwrap();
        for file in ["crates/collector/Cargo.toml", "crates/config/src/lib.rs", "crates/otlp/src/lib.rs", "Cargo.lock"]
        {
            assert!(files.contains_key(Path::new(file)), "{file}");
        }
        assert!(!files.contains_key(Path::new("crates/operator/Cargo.toml")));
    }
}
