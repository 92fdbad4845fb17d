//! The version of a release, the names of its images, and the versions of Kubernetes that it supports.
//!
//! This is the only place that defines them. The version is that of the workspace. `cargo xtask tidy` checks
//! manifests and documents against these names, so that after a change of the version it lists every line that
//! has to follow.

/// The version of everything in the workspace.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The registry of released images. Names are always complete: a node that has an image under a shorter name
/// does not find it.
pub const IMAGE_REGISTRY: &str = "docker.io/kubewake";

/// The oldest supported Kubernetes is 1.30: the collectors' `preStop.sleep` is enabled by default since then.
pub const OLDEST_KUBERNETES_MINOR: u32 = 30;

/// The newest Kubernetes whose schemas the manifests are validated against.
pub const NEWEST_KUBERNETES_MINOR: u32 = 37;

/// A program that has an image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReleaseImage {
    /// The data plane.
    Collector,
    /// The control plane.
    Operator,
    /// The admission webhook that puts trace context on objects.
    Webhook,
    /// The example of two controllers.
    HeadOperator,
    /// The example of a scheduler and its operator.
    DemoScheduler,
}

impl ReleaseImage {
    /// All images of a release.
    pub const ALL: [Self; 5] =
        [Self::Collector, Self::Operator, Self::Webhook, Self::HeadOperator, Self::DemoScheduler];

    /// The last part of the name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Collector => "collector",
            Self::Operator => "operator",
            Self::Webhook => "webhook",
            Self::HeadOperator => "head-operator",
            Self::DemoScheduler => "demo-scheduler",
        }
    }

    /// The complete name, with registry and tag.
    pub const fn reference(self) -> &'static str {
        macro_rules! reference {
            ($name:literal) => {
                concat!("docker.io/kubewake/", $name, ":", env!("CARGO_PKG_VERSION"))
            };
        }
        match self {
            Self::Collector => reference!("collector"),
            Self::Operator => reference!("operator"),
            Self::Webhook => reference!("webhook"),
            Self::HeadOperator => reference!("head-operator"),
            Self::DemoScheduler => reference!("demo-scheduler"),
        }
    }
}

/// The pull policy for an image: the one that an API server would choose when a container is created with it.
///
/// Manifests set it explicitly, since that choice stays when the image is changed later: a container that began
/// without a tag would always be pulled, even if its new image is on the node and in no registry.
pub fn pull_policy(image: &str) -> &'static str {
    let last = image.rsplit('/').next().unwrap_or(image);
    match last.split_once(':') {
        _ if image.contains('@') => "IfNotPresent",
        Some((_, tag)) if tag != "latest" => "IfNotPresent",
        _ => "Always",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_consist_of_registry_name_and_version() {
        for image in ReleaseImage::ALL {
            assert_eq!(image.reference(), format!("{IMAGE_REGISTRY}/{}:{VERSION}", image.name()));
            assert_eq!(pull_policy(image.reference()), "IfNotPresent");
        }
    }

    #[test]
    fn mutable_images_are_always_pulled() {
        for (image, policy) in [
            ("web", "Always"),
            ("localhost:5000/web", "Always"),
            ("web:latest", "Always"),
            ("web:1", "IfNotPresent"),
            ("localhost:5000/web:1", "IfNotPresent"),
            ("web:latest@sha256:0a", "IfNotPresent"),
        ] {
            assert_eq!(pull_policy(image), policy, "{image}");
        }
    }
}
