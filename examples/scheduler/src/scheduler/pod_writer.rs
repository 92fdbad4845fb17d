//! Writes of the scheduler to pods: bindings, conditions and Events.

use std::collections::BTreeMap;

use k8s_openapi::{
    api::core::v1::{Pod, PodCondition},
    apimachinery::pkg::apis::meta::v1::Time,
    jiff::Timestamp,
};
use kube::{
    Api, Client, Resource, ResourceExt,
    api::{Patch, PatchParams, PostParams},
    core::Status,
    runtime::events::{Event, EventType, Reporter},
};
use kubewake_trail::{Trail, error_chain, events::EventPublisher};
use serde_json::json;

use super::FIELD_MANAGER;

#[derive(Clone)]
pub struct PodWriter {
    client: Client,
    events: EventPublisher,
}

impl PodWriter {
    /// Creates a writer for a scheduler of this name that runs in this pod.
    pub fn new(client: Client, trail: &Trail, name: &str, pod: &str) -> Self {
        let reporter = Reporter { controller: name.to_owned(), instance: Some(pod.to_owned()) };
        Self { events: trail.events(client.clone(), reporter), client }
    }

    /// Binds a pod to a node. The annotations are added to the pod.
    pub async fn bind(&self, pod: &Pod, node: &str, annotations: &BTreeMap<String, String>) -> kube::Result<()> {
        let namespace = pod.namespace().unwrap_or_default();
        let name = pod.name_any();
        let binding = json!({
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": { "namespace": namespace, "name": name, "uid": pod.uid(), "annotations": annotations },
            "target": { "apiVersion": "v1", "kind": "Node", "name": node },
        });
        let params = PostParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PostParams::default() };
        let _: Status = self.api(pod).create_subresource("binding", &name, &params, &binding).await?;
        Ok(())
    }

    /// Writes the condition `PodScheduled` with the reason, if it differs.
    pub async fn patch_unschedulable(&self, pod: &Pod, why: &str, now: Timestamp) -> kube::Result<()> {
        let before = scheduled_condition(pod).filter(|before| before.status == "False");
        if before.is_some_and(|before| before.message.as_deref() == Some(why)) {
            return Ok(());
        }
        let since = before.and_then(|before| before.last_transition_time.clone());
        let condition = json!({
            "type": "PodScheduled",
            "status": "False",
            "reason": "Unschedulable",
            "message": why,
            "lastProbeTime": null,
            "lastTransitionTime": since.unwrap_or(Time(now)),
        });
        let patch = json!({ "metadata": { "uid": pod.uid() }, "status": { "conditions": [condition] } });
        let params = PatchParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PatchParams::default() };
        self.api(pod).patch_status(&pod.name_any(), &params, &Patch::Strategic(patch)).await?;
        Ok(())
    }

    /// Publishes an Event that the pod has its node, or why it has none. Nothing depends on it. The Event names
    /// the current trace.
    pub async fn publish_event(&self, pod: &Pod, what: Result<&str, &str>) {
        let (type_, reason, note) = match what {
            Ok(node) => {
                let note = format!(
                    "Successfully assigned {}/{} to {node}",
                    pod.namespace().unwrap_or_default(),
                    pod.name_any()
                );
                (EventType::Normal, "Scheduled", note)
            }
            Err(why) => (EventType::Warning, "FailedScheduling", why.to_owned()),
        };
        let note = Some(note);
        let event = Event { type_, reason: reason.to_owned(), note, action: "Scheduling".to_owned(), secondary: None };
        if let Err(error) = self.events.publish(&event, &pod.object_ref(&())).await {
            tracing::debug!(
                kind = "Pod",
                namespace = pod.namespace(),
                name = pod.name_any(),
                error = error_chain(&error),
                "failed to publish an Event"
            );
        }
    }

    fn api(&self, pod: &Pod) -> Api<Pod> {
        Api::namespaced(self.client.clone(), &pod.namespace().unwrap_or_default())
    }
}

fn scheduled_condition(pod: &Pod) -> Option<&PodCondition> {
    let conditions = pod.status.as_ref()?.conditions.as_ref()?;
    conditions.iter().find(|condition| condition.type_ == "PodScheduled")
}
