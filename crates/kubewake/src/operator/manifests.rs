//! `kubewake operator manifests`: the files of `deploy/`, which this program carries along.

use std::io::{self, Write as _};

use anyhow::Context;
use kubewake_api::image_name_error;
use kubewake_release::{ReleaseImage, pull_policy};

/// The kinds.
const DEFINITION_MANIFESTS: [&str; 4] = [
    include_str!("../../../../deploy/crds/tracepipelines.yaml"),
    include_str!("../../../../deploy/crds/logpipelines.yaml"),
    include_str!("../../../../deploy/crds/metricpipelines.yaml"),
    include_str!("../../../../deploy/crds/telemetries.yaml"),
];
/// The operator.
const OPERATOR_MANIFESTS: [&str; 9] = [
    include_str!("../../../../deploy/base/namespace.yaml"),
    include_str!("../../../../deploy/base/account.yaml"),
    include_str!("../../../../deploy/base/agents.yaml"),
    include_str!("../../../../deploy/base/references.yaml"),
    include_str!("../../../../deploy/base/users.yaml"),
    include_str!("../../../../deploy/base/service.yaml"),
    include_str!("../../../../deploy/base/deployment.yaml"),
    include_str!("../../../../deploy/base/budget.yaml"),
    include_str!("../../../../deploy/base/network.yaml"),
];
/// The pull policy of the Deployment's image.
const PULL_POLICY_LINE: &str = "imagePullPolicy: IfNotPresent\n";
/// The Deployment's first argument, before which others are added.
const FIRST_ARGUMENT_LINE: &str = "        - --namespace=$(POD_NAMESPACE)\n";

/// Arguments of `kubewake operator manifests`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  kubewake operator manifests | kubectl apply -f -
  kubewake operator manifests --image registry.example/kubewake/operator:1 > operator.yaml
  kubewake operator manifests --image registry.example/op:1 --collector-image registry.example/col:1 > operator.yaml

The output equals what `kubectl apply -k deploy` applies. Use a kustomize overlay of that directory for changes.")]
pub(super) struct ManifestsArgs {
    /// Image of the operator
    #[arg(long, value_name = "IMAGE", default_value = ReleaseImage::Operator.reference())]
    image: String,
    /// Image of the collectors, unless a Telemetry sets spec.image [default: --image with `collector` for `operator`]
    #[arg(long, value_name = "IMAGE")]
    collector_image: Option<String>,
}

impl ManifestsArgs {
    /// The collectors' image, if the operator is to be told.
    fn collector_image(&self) -> anyhow::Result<Option<String>> {
        check_image_name("--image", &self.image)?;
        if let Some(image) = &self.collector_image {
            check_image_name("--collector-image", image)?;
        }
        match &self.collector_image {
            Some(image) => Ok(Some(image.clone())),
            None if self.image == ReleaseImage::Operator.reference() => Ok(None),
            None => derive_collector_image(&self.image).map(Some).with_context(|| {
                format!("failed to derive the collectors' image from {}: set --collector-image", self.image)
            }),
        }
    }
}

fn check_image_name(argument: &str, image: &str) -> anyhow::Result<()> {
    match image_name_error(image) {
        Some(fault) => anyhow::bail!("{argument}: {image:?} {fault}"),
        None => Ok(()),
    }
}

pub(super) fn run(args: &ManifestsArgs) -> anyhow::Result<()> {
    let text = render_manifests(&args.image, args.collector_image()?.as_deref());
    match io::stdout().write_all(text.as_bytes()) {
        // The reader may close the pipe early, such as `head`.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        written => written.context("failed to write to standard output"),
    }
}

/// All files, one after the other. First the kinds, then what is in the order in which one needs the other.
pub(super) fn render_manifests(image: &str, collector_image: Option<&str>) -> String {
    let files: Vec<&str> = DEFINITION_MANIFESTS.iter().chain(&OPERATOR_MANIFESTS).copied().collect();
    let text = files.join("---\n").replace(&image_line(ReleaseImage::Operator.reference()), &image_line(image));
    let text = text.replace(PULL_POLICY_LINE, &format!("imagePullPolicy: {}\n", pull_policy(image)));
    match collector_image {
        Some(image) => {
            text.replace(FIRST_ARGUMENT_LINE, &format!("{FIRST_ARGUMENT_LINE}        - --collector-image={image}\n"))
        }
        None => text,
    }
}

fn image_line(image: &str) -> String {
    format!("image: {image}\n")
}

/// The collectors' image where an operator's is `…/operator:TAG`. A digest says nothing of other images.
fn derive_collector_image(operator: &str) -> Option<String> {
    let (folder, last) = operator.rsplit_once('/').map_or(("", operator), |(folder, last)| (folder, last));
    let tag = last.strip_prefix(ReleaseImage::Operator.name()).filter(|tag| tag.is_empty() || tag.starts_with(':'))?;
    let name = format!("{}{tag}", ReleaseImage::Collector.name());
    (!tag.contains('@')).then(|| if folder.is_empty() { name.clone() } else { format!("{folder}/{name}") })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn printed(args: &[&str]) -> anyhow::Result<String> {
        let (image, collector_image) = match args {
            [image] => ((*image).to_owned(), None),
            [image, collector] => ((*image).to_owned(), Some((*collector).to_owned())),
            _ => (ReleaseImage::Operator.reference().to_owned(), None),
        };
        let args = ManifestsArgs { image, collector_image };
        Ok(render_manifests(&args.image, args.collector_image()?.as_deref()))
    }

    #[test]
    fn default_manifests_name_the_version_and_a_pull_policy_that_fits() {
        let text = printed(&[]).unwrap();
        let image =
            format!("        image: {}\n        imagePullPolicy: IfNotPresent\n", ReleaseImage::Operator.reference());
        assert_eq!(text.matches(&image).count(), 1);
        assert!(text.contains(FIRST_ARGUMENT_LINE) && !text.contains("- --collector-image="));
    }

    #[test]
    fn image_of_collectors_follows_the_image_of_the_operator() {
        let text = printed(&["registry.example/team/operator:1"]).unwrap();
        assert!(text.contains("image: registry.example/team/operator:1\n        imagePullPolicy: IfNotPresent\n"));
        assert!(text.contains("        - --collector-image=registry.example/team/collector:1\n"));
        assert!(!text.contains(ReleaseImage::Operator.reference()));
        let latest = printed(&["operator"]).unwrap();
        assert!(latest.contains("image: operator\n        imagePullPolicy: Always\n"));
        assert!(latest.contains("--collector-image=collector\n"));
    }

    #[test]
    fn image_of_collectors_must_be_named_where_it_does_not_follow() {
        let digest = "0a".repeat(32);
        let by_digest = format!("registry.example/operator@sha256:{digest}");
        let tag_and_digest = format!("operator:1@sha256:{digest}");
        for image in ["registry.example/op:1", &by_digest, &tag_and_digest] {
            assert!(printed(&[image]).unwrap_err().to_string().contains("--collector-image"), "{image}");
            let text = printed(&[image, "registry.example/col:2"]).unwrap();
            assert!(text.contains("--collector-image=registry.example/col:2\n"), "{image}");
        }
    }

    #[test]
    fn argument_that_is_no_image_is_named() {
        let refused = |args: &[&str]| printed(args).unwrap_err().to_string();
        assert!(refused(&["Bad Name"]).starts_with("--image: \"Bad Name\" is not a valid image name"));
        assert!(refused(&["Bad/operator:1", "col:1"]).starts_with("--image: "));
        assert!(refused(&["op:1", "Bad Name"]).starts_with("--collector-image: \"Bad Name\""));
    }
}
