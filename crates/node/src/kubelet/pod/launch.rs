//! What stands before a run: the program of the image, and the configuration of the container.

use std::time::Duration;

use k8s_openapi::api::core::v1::Container;

use super::{
    Worker,
    backoff::Backoff,
    ground::{Ground, changed},
    orders::Orders,
};
use crate::{
    images::Program,
    kubelet::env::{self, ConfigError, Inputs, Launch},
};

/// A configuration is looked at again after this time, whatever happened: the kubelet's period.
const LOOK_AGAIN: Duration = Duration::from_secs(10);

impl Worker {
    /// All that the next run needs, as soon as it can be had. None if the pod stops first.
    pub(super) async fn launch(&self, name: &str, ground: &Ground, orders: &mut Orders) -> Option<(Container, Launch)> {
        let mut pulls = Backoff::new(self.node.options.backoff);
        loop {
            let container = self.spec_of(name)?;
            let Some(program) = self.program(&container) else {
                self.wait_for_image(&container, &mut pulls, orders).await?;
                continue;
            };
            let changes = self.node.sources.changes();
            let error = match self.configure(&container, &program, ground).await {
                Ok(launch) => return Some((container, launch)),
                Err(error) => error,
            };
            self.warning(name, "Failed", format!("Error: {error}"));
            self.board.wait(name, "CreateContainerConfigError", Some(error.to_string()));
            changed(changes, error.needs().cloned(), LOOK_AGAIN, orders).await?;
        }
    }

    async fn configure(
        &self,
        container: &Container,
        program: &Program,
        ground: &Ground,
    ) -> Result<Launch, ConfigError> {
        let inputs = Inputs {
            pod: &self.pod(),
            container,
            program,
            node: &self.node.facts,
            pod_ip: self.ip().into(),
            volumes: &ground.volumes,
            services: &self.node.views.services.within(&self.key.namespace),
            sources: &self.node.sources,
        };
        env::resolve(&inputs).await
    }

    fn program(&self, container: &Container) -> Option<Program> {
        let (name, image) = (&container.name, container.image.as_deref().unwrap_or_default());
        let program = match self.node.options.images.find(image) {
            Ok(program) => program.clone(),
            Err(error) => {
                self.warning(name, "Failed", format!("Failed to pull image {image:?}: {error}"));
                self.warning(name, "Failed", "Error: ErrImagePull");
                self.board.wait(name, "ErrImagePull", Some(error.to_string()));
                return None;
            }
        };
        let note = format!("Container image {image:?} already present on machine and can be accessed by the pod");
        self.normal(name, "Pulled", note);
        self.board.change_container(name, |status| {
            status.image = image.to_owned();
            status.image_id = format!("kubewake://{}", program.path.display());
        });
        Some(program)
    }

    /// Until another image is asked for, or it is time to say again that there is none.
    async fn wait_for_image(&self, container: &Container, pulls: &mut Backoff, orders: &mut Orders) -> Option<()> {
        let (name, image) = (&container.name, container.image.as_deref().unwrap_or_default());
        let wait = pulls.end().unwrap_or(self.node.options.backoff.first);
        let why = self.node.options.images.find(image).err().map(|error| error.to_string()).unwrap_or_default();
        // For a moment it is seen what was tried, then that it is tried again.
        tokio::select! {
            _ = self.replaced(container) => return Some(()),
            shown = orders.pause(wait / 10) => shown?,
        }
        let message = format!("Back-off pulling image {image:?}: ErrImagePull: {why}");
        self.node.events.normal(self.refer(name), "BackOff", format!("Back-off pulling image {image:?}"));
        self.warning(name, "Failed", "Error: ImagePullBackOff");
        self.board.wait(name, "ImagePullBackOff", Some(message));
        tokio::select! {
            _ = self.replaced(container) => Some(()),
            waited = orders.pause(wait) => waited,
        }
    }
}
