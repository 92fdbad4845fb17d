//! The preparation of a run: the image of the container, and its configuration.

use std::time::Duration;

use k8s_openapi::api::core::v1::Container;
use rustix::process::{getegid, geteuid};

use super::{
    PodWorker,
    backoff::ContainerBackoff,
    sandbox::{PodSandbox, wait_for_change},
    security,
    stop_signal::StopSignal,
};
use crate::{
    images::ImageEntrypoint,
    kubelet::env::{self, ConfigError, ContainerInputs, ProcessSpec},
};

/// The interval at which a configuration is checked again: the kubelet's period.
const CONFIG_RETRY_INTERVAL: Duration = Duration::from_secs(10);

impl PodWorker {
    /// Waits until everything for the next run is available. None if the pod stops first.
    pub(super) async fn prepare_container(
        &self,
        name: &str,
        ground: &PodSandbox,
        orders: &mut StopSignal,
    ) -> Option<(Container, ProcessSpec)> {
        let mut pulls = ContainerBackoff::new(self.node.options.backoff);
        loop {
            let container = self.container_spec(name)?;
            let image = match self.find_image(&container) {
                Ok(image) => image,
                Err(problem) => {
                    self.wait_for_image(&container, problem, &mut pulls, orders).await?;
                    continue;
                }
            };
            let changes = self.node.sources.subscribe();
            if let Err(why) = self.verify_user(&container) {
                self.report_config_error(name, &why);
                wait_for_change(changes, None, CONFIG_RETRY_INTERVAL, orders).await?;
                continue;
            }
            let error = match self.resolve_process(&container, &image.entrypoint, ground).await {
                Ok(launch) => return Some((container, launch)),
                Err(error) => error,
            };
            self.report_config_error(name, &error.to_string());
            wait_for_change(changes, error.missing_source().cloned(), CONFIG_RETRY_INTERVAL, orders).await?;
        }
    }

    fn report_config_error(&self, name: &str, why: &str) {
        self.record_warning(name, "Failed", format!("Error: {why}"));
        self.status.set_waiting(name, "CreateContainerConfigError", Some(why.to_owned()));
    }

    /// Whether the container may run as the user of its process.
    fn verify_user(&self, container: &Container) -> Result<(), String> {
        let pod = self.current_pod();
        security::verify_non_root(&pod, container, geteuid().as_raw())?;
        if let Some(note) = security::unenforced_identity(&pod, container, (geteuid().as_raw(), getegid().as_raw())) {
            self.record_warning(&container.name, "SecurityContextNotEnforced", note);
        }
        Ok(())
    }

    async fn resolve_process(
        &self,
        container: &Container,
        program: &ImageEntrypoint,
        ground: &PodSandbox,
    ) -> Result<ProcessSpec, ConfigError> {
        let inputs = ContainerInputs {
            pod: &self.current_pod(),
            container,
            program,
            node: &self.node.facts,
            pod_ip: self.ip().into(),
            volumes: &ground.volumes,
            services: &self.node.informers.services.in_namespace(&self.key.namespace),
            sources: &self.node.sources,
        };
        env::resolve_process_spec(&inputs).await
    }
}
