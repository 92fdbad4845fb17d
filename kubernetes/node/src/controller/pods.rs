//! Conditions and phases of pods, and pods from templates.

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Pod, PodCondition, PodTemplateSpec};
use kube::{Resource, ResourceExt, api::ObjectMeta};

use super::owner_reference;

/// The condition of a pod with this type.
pub fn condition<'a>(pod: &'a Pod, kind: &str) -> Option<&'a PodCondition> {
    pod.status.as_ref()?.conditions.as_ref()?.iter().find(|condition| condition.type_ == kind)
}

/// The phase of a pod; empty before it is first written.
pub fn phase(pod: &Pod) -> &str {
    pod.status.as_ref().and_then(|status| status.phase.as_deref()).unwrap_or_default()
}

/// Whether the pod has neither ended nor is being deleted.
pub fn is_active(pod: &Pod) -> bool {
    !matches!(phase(pod), "Succeeded" | "Failed") && pod.meta().deletion_timestamp.is_none()
}

/// Whether the pod is ready.
pub fn is_ready(pod: &Pod) -> bool {
    condition(pod, "Ready").is_some_and(|ready| ready.status == "True")
}

/// Whether the pod has been ready for `min_ready_seconds`; if only time is missing, the remaining time.
pub fn is_available(pod: &Pod, min_ready_seconds: i32, now: Timestamp) -> Result<(), Option<Duration>> {
    let ready = condition(pod, "Ready").filter(|ready| ready.status == "True").ok_or(None)?;
    if min_ready_seconds <= 0 {
        return Ok(());
    }
    let since = ready.last_transition_time.as_ref().ok_or(None)?.0;
    let needed = Duration::from_secs(min_ready_seconds.unsigned_abs().into());
    match Duration::try_from(now.duration_since(since)) {
        Ok(passed) if passed >= needed => Ok(()),
        Ok(passed) => Err(Some(needed - passed)),
        Err(_) => Err(Some(needed)),
    }
}

/// A pod from a template, controlled by `owner`. The caller sets its name or `generateName`.
pub fn from_template<K: Resource<DynamicType = ()>>(template: &PodTemplateSpec, owner: &K) -> Pod {
    let given = template.metadata.clone().unwrap_or_default();
    let metadata = ObjectMeta {
        namespace: owner.namespace(),
        labels: given.labels,
        annotations: given.annotations,
        finalizers: given.finalizers,
        owner_references: Some(vec![owner_reference::controller_reference(owner)]),
        ..ObjectMeta::default()
    };
    Pod { metadata, spec: template.spec.clone(), status: None }
}
