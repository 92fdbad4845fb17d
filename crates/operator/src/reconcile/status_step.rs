//! Writes the status of a pipeline, and publishes an event about it.

use std::sync::Arc;

use kube::{
    Api, Client,
    api::{Patch, PatchParams},
};
use kubewake_api::v1alpha1::PipelineStatus;
use kubewake_trail::{PendingWrites, Trail, events::EventPublisher};
use tokio::sync::Semaphore;

use super::{status_event::StatusEvent, status_patch::status_patch};
use crate::{model::names, pipeline::pipeline_stores::PipelineKind};

pub struct StatusStep {
    client: Client,
    trail: Trail,
    events: EventPublisher,
    /// Bounds the writes in flight, over all pipelines.
    write_permits: Arc<Semaphore>,
    pending_statuses: PendingWrites<PipelineStatus>,
}

impl StatusStep {
    pub fn new(client: Client, trail: Trail, events: EventPublisher, write_permits: Arc<Semaphore>) -> Self {
        Self { client, trail, events, write_permits, pending_statuses: PendingWrites::new() }
    }

    /// The newest known status of a pipeline.
    pub fn newest<K: PipelineKind>(&self, object: &K) -> Option<PipelineStatus> {
        self.pending_statuses.newer_than(object).or_else(|| object.status().cloned())
    }

    /// Writes a status that has changed, and publishes an event if it is worth one; `is_stuck`: whether collectors do
    /// not start by themselves.
    ///
    /// # Errors
    /// The API server's refusal. A pipeline that was deleted meanwhile is none.
    pub async fn write<K: PipelineKind>(
        &self,
        object: &K,
        before: Option<&PipelineStatus>,
        status: PipelineStatus,
        is_stuck: bool,
    ) -> Result<(), kube::Error> {
        if before == Some(&status) {
            return Ok(());
        }
        // `acquire` fails only on a closed semaphore; this one is never closed.
        let _permit = self.write_permits.acquire().await;
        let api = Api::<K>::all(self.client.clone());
        let patch = Patch::Merge(status_patch(before, &status));
        let written =
            Box::pin(self.trail.patch_status(&api, object, &PatchParams::apply(names::FIELD_MANAGER), &patch)).await;
        let written = match written {
            Err(kube::Error::Api(answer)) if answer.code == 404 => return Ok(()),
            written => written?,
        };
        self.pending_statuses.record(&written, status.clone());
        Box::pin(StatusEvent::from(&status).with_stuck(is_stuck).publish_if_changed(
            before.map(StatusEvent::from),
            &self.events,
            object,
        ))
        .await;
        Ok(())
    }
}
