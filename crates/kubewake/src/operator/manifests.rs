//! `kubewake operator manifests`: the files of `deploy/`, which this program carries along.

use std::io::{self, Write as _};

use anyhow::Context;

/// The kinds.
const KINDS: [&str; 4] = [
    include_str!("../../../../deploy/crds/tracepipelines.yaml"),
    include_str!("../../../../deploy/crds/logpipelines.yaml"),
    include_str!("../../../../deploy/crds/metricpipelines.yaml"),
    include_str!("../../../../deploy/crds/telemetries.yaml"),
];
/// The operator.
const BASE: [&str; 8] = [
    include_str!("../../../../deploy/base/namespace.yaml"),
    include_str!("../../../../deploy/base/account.yaml"),
    include_str!("../../../../deploy/base/references.yaml"),
    include_str!("../../../../deploy/base/users.yaml"),
    include_str!("../../../../deploy/base/service.yaml"),
    include_str!("../../../../deploy/base/deployment.yaml"),
    include_str!("../../../../deploy/base/budget.yaml"),
    include_str!("../../../../deploy/base/network.yaml"),
];
/// How the Deployment names its image.
const IMAGE: &str = "image: kubewake/operator\n";

/// Arguments of `kubewake operator manifests`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  kubewake operator manifests | kubectl apply -f -
  kubewake operator manifests --image registry.example/kubewake/operator:0.1.0 > operator.yaml

It is what `kubectl apply -k deploy` applies. Changes are best made there, by an overlay of kustomize's.")]
pub(super) struct Args {
    /// The operator's image
    #[arg(long, value_name = "NAME", default_value = "kubewake/operator")]
    image: String,
}

pub(super) fn run(args: &Args) -> anyhow::Result<()> {
    match io::stdout().write_all(text(&args.image).as_bytes()) {
        // Who reads only the beginning wants no more.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        written => written.context("cannot print"),
    }
}

/// All files, one after the other. First the kinds, then what is in the order in which one needs the other.
pub(super) fn text(image: &str) -> String {
    let files: Vec<&str> = KINDS.iter().chain(&BASE).copied().collect();
    files.join("---\n").replace(IMAGE, &format!("image: {image}\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_image_can_be_another() {
        assert!(text("kubewake/operator").contains(IMAGE));
        let text = text("registry.example/operator:1");
        assert!(text.contains("image: registry.example/operator:1\n") && !text.contains(IMAGE));
    }
}
