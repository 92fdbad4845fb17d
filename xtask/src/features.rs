//! Builds with fewer components: they compile without a warning.
//!
//! The build of all components is checked by the lints of the workspace. Here are the collector without any
//! component and what the images hold; in long runs also each feature alone.

use std::fs;

use anyhow::Context;

use crate::{
    image,
    steps::{TimedSteps, cargo, run as run_command},
    workspace_root,
};

/// The features of components begin with their kind. The others are what components share.
const KINDS: [&str; 5] = ["receiver-", "processor-", "exporter-", "extension-", "connector-"];

/// Checks the collector without any component, and the programs of the images.
pub(crate) fn check_images() -> anyhow::Result<()> {
    check_collector("")?;
    for (package, features) in image::feature_sets() {
        check(&["--package", package, "--no-default-features", "--features", features])?;
    }
    Ok(())
}

/// Checks each feature of the collector alone.
pub(crate) fn check_each(steps: &mut TimedSteps) -> anyhow::Result<()> {
    let manifest = workspace_root().join("crates/collector/Cargo.toml");
    let text = fs::read_to_string(&manifest).with_context(|| format!("failed to read {}", manifest.display()))?;
    for feature in component_features(&text) {
        steps.step(&format!("feature {feature}"), || check_collector(feature))?;
    }
    Ok(())
}

fn check_collector(features: &str) -> anyhow::Result<()> {
    check(&["--package", "kubewake-collector", "--no-default-features", "--features", features])
}

/// Clippy, because its lints can be denied without another build of all dependencies.
fn check(selection: &[&str]) -> anyhow::Result<()> {
    run_command(cargo().args(["clippy", "--locked"]).args(selection).args(["--", "-D", "warnings"]))
}

/// The features in this manifest that bring a component.
fn component_features(manifest: &str) -> Vec<&str> {
    let features = manifest.lines().skip_while(|line| *line != "[features]").skip(1);
    let names = features.take_while(|line| !line.starts_with('[')).filter_map(|line| line.split_once(" = ["));
    names.map(|(name, _)| name).filter(|name| KINDS.iter().any(|kind| name.starts_with(kind))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn features_of_a_manifest_are_those_of_components() {
        let manifest = "[package]\nname = [\"x\"]\n\n[features]\ndefault = [\"full\"]\nfull = [\"exporter-a\"]\n\
                        # A comment.\nexporter-a = [\"client\"]\nclient = []\nreceiver-c = [\"dep:b\"]\n\n[dependencies]\nb = [1]\n";
        assert_eq!(component_features(manifest), ["exporter-a", "receiver-c"]);
    }
}
