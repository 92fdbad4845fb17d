//! `kubewake operator manifests`: the files of `deploy/`, which this program carries along.

use std::io::{self, Write as _};

use anyhow::Context;
use kubewake_release::{Image, pull_policy};

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
/// The pull policy of the Deployment's image.
const PULL_POLICY: &str = "imagePullPolicy: IfNotPresent\n";
/// The Deployment's first argument, before which others are added.
const FIRST_ARGUMENT: &str = "        - --namespace=$(POD_NAMESPACE)\n";

/// Arguments of `kubewake operator manifests`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  kubewake operator manifests | kubectl apply -f -
  kubewake operator manifests --image registry.example/kubewake/operator:1 > operator.yaml
  kubewake operator manifests --image registry.example/op:1 --collector-image registry.example/col:1 > operator.yaml

It is what `kubectl apply -k deploy` applies. Changes are best made there, by an overlay of kustomize's.")]
pub(super) struct Args {
    /// The operator's image
    #[arg(long, value_name = "IMAGE", default_value = Image::Operator.reference())]
    image: String,
    /// The collectors' image, unless a Telemetry names one [default: beside --image, with `collector` for `operator`]
    #[arg(long, value_name = "IMAGE")]
    collector_image: Option<String>,
}

impl Args {
    /// The collectors' image, if the operator is to be told.
    fn collector_image(&self) -> anyhow::Result<Option<String>> {
        match &self.collector_image {
            Some(image) => Ok(Some(image.clone())),
            None if self.image == Image::Operator.reference() => Ok(None),
            None => collector_beside(&self.image).map(Some).with_context(|| {
                format!("{} does not say where the collectors' image is: name it by --collector-image", self.image)
            }),
        }
    }
}

pub(super) fn run(args: &Args) -> anyhow::Result<()> {
    let text = text(&args.image, args.collector_image()?.as_deref());
    match io::stdout().write_all(text.as_bytes()) {
        // Who reads only the beginning wants no more.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        written => written.context("cannot print"),
    }
}

/// All files, one after the other. First the kinds, then what is in the order in which one needs the other.
pub(super) fn text(image: &str, collector_image: Option<&str>) -> String {
    let files: Vec<&str> = KINDS.iter().chain(&BASE).copied().collect();
    let text = files.join("---\n").replace(&image_line(Image::Operator.reference()), &image_line(image));
    let text = text.replace(PULL_POLICY, &format!("imagePullPolicy: {}\n", pull_policy(image)));
    match collector_image {
        Some(image) => text.replace(FIRST_ARGUMENT, &format!("{FIRST_ARGUMENT}        - --collector-image={image}\n")),
        None => text,
    }
}

fn image_line(image: &str) -> String {
    format!("image: {image}\n")
}

/// The collectors' image where an operator's is `…/operator:TAG`. A digest says nothing of other images.
fn collector_beside(operator: &str) -> Option<String> {
    let (folder, last) = operator.rsplit_once('/').map_or(("", operator), |(folder, last)| (folder, last));
    let tag = last.strip_prefix(Image::Operator.name()).filter(|tag| tag.is_empty() || tag.starts_with(':'))?;
    let name = format!("{}{tag}", Image::Collector.name());
    (!tag.contains('@')).then(|| if folder.is_empty() { name.clone() } else { format!("{folder}/{name}") })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn printed(args: &[&str]) -> anyhow::Result<String> {
        let (image, collector_image) = match args {
            [image] => ((*image).to_owned(), None),
            [image, collector] => ((*image).to_owned(), Some((*collector).to_owned())),
            _ => (Image::Operator.reference().to_owned(), None),
        };
        let args = Args { image, collector_image };
        Ok(text(&args.image, args.collector_image()?.as_deref()))
    }

    #[test]
    fn default_manifests_name_the_version_and_a_pull_policy_that_fits() {
        let text = printed(&[]).unwrap();
        let image = format!("        image: {}\n        imagePullPolicy: IfNotPresent\n", Image::Operator.reference());
        assert_eq!(text.matches(&image).count(), 1);
        assert!(text.contains(FIRST_ARGUMENT) && !text.contains("--collector-image"));
    }

    #[test]
    fn image_of_collectors_follows_the_image_of_the_operator() {
        let text = printed(&["registry.example/team/operator:1"]).unwrap();
        assert!(text.contains("image: registry.example/team/operator:1\n        imagePullPolicy: IfNotPresent\n"));
        assert!(text.contains("        - --collector-image=registry.example/team/collector:1\n"));
        assert!(!text.contains(Image::Operator.reference()));
        let latest = printed(&["operator"]).unwrap();
        assert!(latest.contains("image: operator\n        imagePullPolicy: Always\n"));
        assert!(latest.contains("--collector-image=collector\n"));
    }

    #[test]
    fn image_of_collectors_must_be_named_where_it_does_not_follow() {
        for image in ["registry.example/op:1", "registry.example/operator@sha256:0a", "operator:1@sha256:0a"] {
            assert!(printed(&[image]).unwrap_err().to_string().contains("--collector-image"), "{image}");
            let text = printed(&[image, "registry.example/col:2"]).unwrap();
            assert!(text.contains("--collector-image=registry.example/col:2\n"), "{image}");
        }
    }
}
