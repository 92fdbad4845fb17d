//! Dependencies: crates that deny.toml bans are not built, licences are among those that it allows, and all
//! other crates come from crates.io.
//!
//! `cargo deny` checks the same and more, but takes minutes to compile; `.github/workflows/security.yml` runs
//! it. This check takes a second. *Not done*: advisories, duplicates, and platforms other than Linux.

mod licence;

use std::{collections::BTreeSet, fs};

use anyhow::{Context, ensure};
use serde::Deserialize;

use super::crate_rules;
use crate::{steps::cargo, workspace_root};

/// The only allowed source of external crates.
const CRATES_IO: &str = "registry+https://github.com/rust-lang/crates.io-index";
const TARGET_PLATFORM: &str = "x86_64-unknown-linux-gnu";

#[derive(Deserialize)]
struct CargoMetadata {
    packages: Vec<CargoPackage>,
}

/// A package as `cargo metadata` describes it. Packages of the workspace have no source.
#[derive(Deserialize)]
pub(super) struct CargoPackage {
    pub(super) name: String,
    pub(super) license: Option<String>,
    pub(super) source: Option<String>,
    pub(super) dependencies: Vec<CargoDependency>,
}

#[derive(Deserialize)]
pub(super) struct CargoDependency {
    pub(super) name: String,
    /// `dev` or `build`; `None` for the others.
    pub(super) kind: Option<String>,
    pub(super) path: Option<String>,
}

pub(super) fn check() -> anyhow::Result<Vec<String>> {
    let file = workspace_root().join("deny.toml");
    let rules = fs::read_to_string(&file).with_context(|| format!("failed to read {}", file.display()))?;
    let allowed: BTreeSet<&str> = list(&rules, "licenses", "allow").collect();
    let banned: Vec<&str> = list(&rules, "bans", "deny").collect();
    ensure!(!allowed.is_empty() && !banned.is_empty(), "deny.toml allows no licence, or bans no crate");
    let packages = packages()?;
    let mut wrong = packages.iter().flat_map(|package| package_problems(package, &allowed)).collect::<Vec<_>>();
    wrong.extend(crate_rules::check(&packages));
    let built = built_packages()?;
    let banned = banned.into_iter().filter(|name| built.contains(*name));
    wrong.extend(banned.map(|name| {
        format!("deny.toml bans {name}, which the build uses: `cargo tree --invert {name}` shows the dependants")
    }));
    Ok(wrong)
}

fn packages() -> anyhow::Result<Vec<CargoPackage>> {
    let mut command = cargo();
    command.args([
        "metadata",
        "--locked",
        "--format-version",
        "1",
        "--all-features",
        "--filter-platform",
        TARGET_PLATFORM,
    ]);
    let output = command.current_dir(workspace_root()).output().context("failed to run cargo metadata")?;
    ensure!(output.status.success(), "cargo metadata: {}", String::from_utf8_lossy(&output.stderr));
    Ok(serde_json::from_slice::<CargoMetadata>(&output.stdout)?.packages)
}

fn package_problems(package: &CargoPackage, allowed: &BTreeSet<&str>) -> Vec<String> {
    let mut wrong = Vec::new();
    let CargoPackage { name, license, source, .. } = package;
    if let Some(source) = source.as_ref().filter(|source| *source != CRATES_IO) {
        wrong.push(format!("the source of {name} is {source}, not crates.io"));
    }
    match license {
        Some(text) if licence::is_allowed(text, allowed) => {}
        Some(text) => wrong.push(format!("{name} has the licence {text}, which deny.toml does not allow")),
        None => wrong.push(format!("{name} declares no licence")),
    }
    wrong
}

/// All crates that are built. Cargo.lock also lists crates that no feature enables.
fn built_packages() -> anyhow::Result<BTreeSet<String>> {
    let mut command = cargo();
    command.args([
        "tree",
        "--locked",
        "--workspace",
        "--all-features",
        "--target",
        TARGET_PLATFORM,
        "--prefix",
        "none",
    ]);
    let output = command.current_dir(workspace_root()).output().context("failed to run cargo tree")?;
    ensure!(output.status.success(), "cargo tree: {}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8_lossy(&output.stdout);
    Ok(text.lines().filter_map(|line| line.split(' ').next()).map(str::to_owned).collect())
}

/// The first quoted text of each line of a list in a section.
fn list<'a>(text: &'a str, section: &str, key: &str) -> impl Iterator<Item = &'a str> {
    let header = format!("[{section}]");
    let opening = format!("{key} = [");
    let lines = text.lines().map(str::trim).skip_while(move |line| *line != header).skip(1);
    let lines = lines.take_while(|line| !line.starts_with('[')).skip_while(move |line| *line != opening).skip(1);
    let lines = lines.take_while(|line| *line != "]").filter(|line| !line.starts_with('#'));
    lines.filter_map(|line| line.split('"').nth(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    const RULES: &str = "[licenses]\nallow = [\n  # why\n  \"MIT\",\n  \"ISC\",\n]\n\n[bans]\ndeny = [\n  { crate = \"ring\", wrappers = [\"a\"] },\n]\n";

    #[test]
    fn lists_are_those_of_their_section() {
        assert_eq!(list(RULES, "licenses", "allow").collect::<Vec<_>>(), ["MIT", "ISC"]);
        assert_eq!(list(RULES, "bans", "deny").collect::<Vec<_>>(), ["ring"]);
        assert_eq!(list(RULES, "bans", "allow").count(), 0);
    }

    #[test]
    fn foreign_source_and_licence_are_found() {
        let package = |license: Option<&str>, source: Option<&str>| CargoPackage {
            name: "a".to_owned(),
            license: license.map(str::to_owned),
            source: source.map(str::to_owned),
            dependencies: Vec::new(),
        };
        let count = |package: &CargoPackage| package_problems(package, &BTreeSet::from(["MIT"])).len();
        assert_eq!(count(&package(Some("MIT"), Some(CRATES_IO))), 0);
        assert_eq!(count(&package(Some("MIT"), None)), 0);
        assert_eq!(count(&package(Some("MIT"), Some("git+https://example.com/a"))), 1);
        assert_eq!(count(&package(Some("GPL-3.0"), Some(CRATES_IO))), 1);
        assert_eq!(count(&package(None, None)), 1);
    }
}
