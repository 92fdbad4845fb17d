//! What stands before a run: the program of the image, and the configuration of the container.

use std::time::Duration;

use k8s_openapi::api::core::v1::Container;
use rustix::process::{getegid, geteuid};

use super::{
    Worker,
    backoff::Backoff,
    ground::{Ground, changed},
    orders::Orders,
    security,
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
            let image = match self.find_image(&container) {
                Ok(image) => image,
                Err(problem) => {
                    self.wait_for_image(&container, problem, &mut pulls, orders).await?;
                    continue;
                }
            };
            let changes = self.node.sources.changes();
            if let Err(why) = self.verify_user(&container) {
                self.refuse_config(name, &why);
                changed(changes, None, LOOK_AGAIN, orders).await?;
                continue;
            }
            let error = match self.configure(&container, &image.program, ground).await {
                Ok(launch) => return Some((container, launch)),
                Err(error) => error,
            };
            self.refuse_config(name, &error.to_string());
            changed(changes, error.needs().cloned(), LOOK_AGAIN, orders).await?;
        }
    }

    fn refuse_config(&self, name: &str, why: &str) {
        self.warning(name, "Failed", format!("Error: {why}"));
        self.board.wait(name, "CreateContainerConfigError", Some(why.to_owned()));
    }

    /// Whether the container may run as the user whom its process would have.
    fn verify_user(&self, container: &Container) -> Result<(), String> {
        let pod = self.pod();
        security::verify_non_root(&pod, container, geteuid().as_raw())?;
        if let Some(note) = security::not_enforced(&pod, container, (geteuid().as_raw(), getegid().as_raw())) {
            self.warning(&container.name, "SecurityContextNotEnforced", note);
        }
        Ok(())
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
}
