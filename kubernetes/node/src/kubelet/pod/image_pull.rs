//! The image of a container: found on the node or pulled, by the pull policy.
//!
//! *Guaranteed*: reasons, messages and event types are the kubelet's. The policy is the one in the pod; the API
//! server defaulted it when the pod was created, and a change of the image does not change it.

use std::time::Duration;

use k8s_openapi::api::core::v1::Container;

use super::{PodWorker, backoff::ContainerBackoff, stop_signal::StopSignal};
use crate::images::{LocalImage, reference::NormalizedReference};

/// The interval at which an invalid name or policy is checked again: the kubelet's period.
const IMAGE_RETRY_INTERVAL: Duration = Duration::from_secs(10);

/// The reason why a container has no image.
pub(super) enum ImageProblem {
    /// The name is invalid, or the policy forbids to pull. Nothing is tried before the pod changes.
    Final,
    /// The pull failed.
    Pull(String),
}

impl PodWorker {
    /// The image of a container; corresponds to the kubelet's `EnsureImageExists`.
    pub(super) fn find_image(&self, container: &Container) -> Result<LocalImage, ImageProblem> {
        let name = &container.name;
        let image = container.image.as_deref().unwrap_or_default();
        let reference = NormalizedReference::parse(image).map_err(|error| {
            let message =
                format!("Failed to apply default image tag {image:?}: couldn't parse image name {image:?}: {error}");
            self.record_warning(name, "InspectFailed", message.clone());
            self.report_final_problem(name, "InvalidImageName", message)
        })?;
        let images = &self.node.options.images;
        let policy = container.image_pull_policy.as_deref();
        let found = match (policy, images.find_present(&reference)) {
            (Some("Always"), _) | (Some("IfNotPresent") | None, None) => self.pull_image(name, image, &reference)?,
            (_, Some(present)) => {
                let note =
                    format!("Container image {image:?} already present on machine and can be accessed by the pod");
                self.record_normal(name, "Pulled", note);
                present.clone()
            }
            (_, None) => {
                let message = format!("Container image {image:?} is not present with pull policy of Never");
                self.record_warning(name, "ErrImageNeverPull", message.clone());
                return Err(self.report_final_problem(name, "ErrImageNeverPull", message));
            }
        };
        self.status.update_container(name, |status| {
            status.image.clone_from(&found.name);
            status.image_id.clone_from(&found.id);
        });
        Ok(found)
    }

    fn pull_image(&self, name: &str, image: &str, reference: &NormalizedReference) -> Result<LocalImage, ImageProblem> {
        self.record_normal(name, "Pulling", format!("Pulling image {image:?}"));
        match self.node.options.images.pull(reference) {
            Ok(pulled) => {
                let bytes = std::fs::metadata(&pulled.entrypoint.path).map_or(0, |file| file.len());
                let note = format!(
                    "Successfully pulled image {image:?} in 0s (0s including waiting). Image size: {bytes} bytes."
                );
                self.record_normal(name, "Pulled", note);
                Ok(pulled.clone())
            }
            Err(error) => {
                self.record_warning(name, "Failed", format!("Failed to pull image {image:?}: {error}"));
                self.record_warning(name, "Failed", "Error: ErrImagePull");
                self.status.set_waiting(name, "ErrImagePull", Some(error.to_string()));
                Err(ImageProblem::Pull(error.to_string()))
            }
        }
    }

    /// Reports a problem that no retry solves.
    fn report_final_problem(&self, name: &str, reason: &str, message: String) -> ImageProblem {
        self.record_warning(name, "Failed", format!("Error: {reason}"));
        self.status.set_waiting(name, reason, Some(message));
        ImageProblem::Final
    }

    /// Waits for another image in the spec, or for the next retry. None if the pod stops first.
    pub(super) async fn wait_for_image(
        &self,
        container: &Container,
        problem: ImageProblem,
        pulls: &mut ContainerBackoff,
        orders: &mut StopSignal,
    ) -> Option<()> {
        let name = &container.name;
        let image = container.image.as_deref().unwrap_or_default();
        let ImageProblem::Pull(why) = problem else {
            return self.wait_for_new_image_within(container, IMAGE_RETRY_INTERVAL, orders).await.map(drop);
        };
        let wait = pulls.next_wait().unwrap_or(self.node.options.backoff.first);
        // As with the kubelet, the error is visible before the back-off.
        if self.wait_for_new_image_within(container, wait / 10, orders).await? {
            return Some(());
        }
        let message = format!("Back-off pulling image {image:?}: ErrImagePull: {why}");
        self.node.events.record_normal(
            self.container_reference(name),
            "BackOff",
            format!("Back-off pulling image {image:?}"),
        );
        self.record_warning(name, "Failed", "Error: ImagePullBackOff");
        self.status.set_waiting(name, "ImagePullBackOff", Some(message));
        self.wait_for_new_image_within(container, wait, orders).await.map(drop)
    }

    /// Returns whether the spec got another image within this time.
    async fn wait_for_new_image_within(
        &self,
        container: &Container,
        time: Duration,
        orders: &mut StopSignal,
    ) -> Option<bool> {
        tokio::select! {
            _ = self.wait_for_new_image(container) => Some(true),
            waited = orders.sleep_unless_stopped(time) => waited.map(|()| false),
        }
    }
}
