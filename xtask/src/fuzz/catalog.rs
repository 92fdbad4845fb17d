//! The catalogue of fuzz targets, read from their sources, so that listing them needs no build.

use std::{fs, path::Path};

use anyhow::Context;

use super::FuzzTarget;

/// The fuzzers, each a program.
pub(super) const FUZZERS: [&str; 5] = ["otlp", "collector", "apiserver", "viewer", "cluster"];

/// All targets, in the order of their tables.
pub(super) fn read_targets(sources: &Path) -> anyhow::Result<Vec<FuzzTarget>> {
    let mut targets = Vec::new();
    for part in FUZZERS {
        let file = sources.join(part).with_extension("rs");
        let text = fs::read_to_string(&file).with_context(|| format!("failed to read {}", file.display()))?;
        let target = |name: &str| FuzzTarget { part: part.to_owned(), name: name.to_owned() };
        targets.extend(names(&text).map(target));
    }
    Ok(targets)
}

fn names(text: &str) -> impl Iterator<Item = &str> {
    let entries = text.lines().filter_map(|line| line.trim().strip_prefix("Target { name: \""));
    entries.filter_map(|rest| rest.split('"').next())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workspace_root;

    #[test]
    fn names_of_targets_are_read_from_their_table() {
        let text = "pub const TARGETS: [Target; 2] = [\n    Target { name: \"a-b\", body: x },\n    Target { name: \"c\", body: y },\n];";
        assert_eq!(names(text).collect::<Vec<_>>(), ["a-b", "c"]);
    }

    #[test]
    fn every_target_has_seeds() {
        let targets = read_targets(&workspace_root().join("fuzz/src")).unwrap();
        assert!(targets.len() > 40, "{}", targets.len());
        for target in targets {
            let seeds = workspace_root().join("fuzz/corpus").join(&target.name);
            assert!(fs::read_dir(&seeds).is_ok_and(|mut seeds| seeds.next().is_some()), "{} has no seeds", target.name);
        }
    }
}
