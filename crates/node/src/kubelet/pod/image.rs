//! The image of a container: looked for on the node, or pulled, as the pull policy asks.
//!
//! *Guaranteed*: reasons, messages and types of events are those of the kubelet. The policy is the one that the pod has; the
//! API server chose it when the pod was created, and a change of the image does not change it.

use std::time::Duration;

use k8s_openapi::api::core::v1::Container;

use super::{Worker, backoff::Backoff, orders::Orders};
use crate::images::{LocalImage, reference::Reference};

/// What is wrong with a name or a policy is looked at again after this time: the kubelet's period.
const LOOK_AGAIN: Duration = Duration::from_secs(10);

/// Why a container has no image, in the words of its status.
pub(super) enum ImageProblem {
    /// The name cannot be parsed, or the image may not be pulled. Nothing is tried before the pod is another.
    Final,
    /// It could not be pulled.
    Pull(String),
}

impl Worker {
    /// The image of a container, as the kubelet's `EnsureImageExists` finds it.
    pub(super) fn find_image(&self, container: &Container) -> Result<LocalImage, ImageProblem> {
        let (name, image) = (&container.name, container.image.as_deref().unwrap_or_default());
        let reference = Reference::parse(image).map_err(|error| {
            let message =
                format!("Failed to apply default image tag {image:?}: couldn't parse image name {image:?}: {error}");
            self.warning(name, "InspectFailed", message.clone());
            self.refuse(name, "InvalidImageName", message)
        })?;
        let (images, policy) = (&self.node.options.images, container.image_pull_policy.as_deref());
        let found = match (policy, images.find_present(&reference)) {
            (Some("Always"), _) | (Some("IfNotPresent") | None, None) => self.pull(name, image, &reference)?,
            (_, Some(present)) => {
                let note =
                    format!("Container image {image:?} already present on machine and can be accessed by the pod");
                self.normal(name, "Pulled", note);
                present.clone()
            }
            (_, None) => {
                let message = format!("Container image {image:?} is not present with pull policy of Never");
                self.warning(name, "ErrImageNeverPull", message.clone());
                return Err(self.refuse(name, "ErrImageNeverPull", message));
            }
        };
        self.board.change_container(name, |status| {
            status.image.clone_from(&found.name);
            status.image_id.clone_from(&found.id);
        });
        Ok(found)
    }

    fn pull(&self, name: &str, image: &str, reference: &Reference) -> Result<LocalImage, ImageProblem> {
        self.normal(name, "Pulling", format!("Pulling image {image:?}"));
        match self.node.options.images.pull(reference) {
            Ok(pulled) => {
                let bytes = std::fs::metadata(&pulled.program.path).map_or(0, |file| file.len());
                let note = format!(
                    "Successfully pulled image {image:?} in 0s (0s including waiting). Image size: {bytes} bytes."
                );
                self.normal(name, "Pulled", note);
                Ok(pulled.clone())
            }
            Err(error) => {
                self.warning(name, "Failed", format!("Failed to pull image {image:?}: {error}"));
                self.warning(name, "Failed", "Error: ErrImagePull");
                self.board.wait(name, "ErrImagePull", Some(error.to_string()));
                Err(ImageProblem::Pull(error.to_string()))
            }
        }
    }

    /// Says that it is not tried again as it is.
    fn refuse(&self, name: &str, reason: &str, message: String) -> ImageProblem {
        self.warning(name, "Failed", format!("Error: {reason}"));
        self.board.wait(name, reason, Some(message));
        ImageProblem::Final
    }

    /// Until another image is asked for, or it is time to look again. None if the pod stops first.
    pub(super) async fn wait_for_image(
        &self,
        container: &Container,
        problem: ImageProblem,
        pulls: &mut Backoff,
        orders: &mut Orders,
    ) -> Option<()> {
        let (name, image) = (&container.name, container.image.as_deref().unwrap_or_default());
        let ImageProblem::Pull(why) = problem else {
            return self.replaced_within(container, LOOK_AGAIN, orders).await.map(drop);
        };
        let wait = pulls.end().unwrap_or(self.node.options.backoff.first);
        // For a moment it is seen what was tried, then that it is tried again.
        if self.replaced_within(container, wait / 10, orders).await? {
            return Some(());
        }
        let message = format!("Back-off pulling image {image:?}: ErrImagePull: {why}");
        self.node.events.normal(self.refer(name), "BackOff", format!("Back-off pulling image {image:?}"));
        self.warning(name, "Failed", "Error: ImagePullBackOff");
        self.board.wait(name, "ImagePullBackOff", Some(message));
        self.replaced_within(container, wait, orders).await.map(drop)
    }

    /// Whether another image was asked for before this time was over.
    async fn replaced_within(&self, container: &Container, time: Duration, orders: &mut Orders) -> Option<bool> {
        tokio::select! {
            _ = self.replaced(container) => Some(true),
            waited = orders.pause(time) => waited.map(|()| false),
        }
    }
}
