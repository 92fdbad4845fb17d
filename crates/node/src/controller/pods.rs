//! What controllers ask of a pod, and how they make one.

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Pod, PodCondition, PodTemplateSpec};
use kube::{Resource, ResourceExt, api::ObjectMeta};

use super::owner;

/// A condition of a pod by its type.
pub fn condition<'a>(pod: &'a Pod, kind: &str) -> Option<&'a PodCondition> {
    pod.status.as_ref()?.conditions.as_ref()?.iter().find(|condition| condition.type_ == kind)
}

/// Its phase; empty before anybody wrote one.
pub fn phase(pod: &Pod) -> &str {
    pod.status.as_ref().and_then(|status| status.phase.as_deref()).unwrap_or_default()
}

/// Whether it runs or will: not ended, and not on its way out.
pub fn is_active(pod: &Pod) -> bool {
    !matches!(phase(pod), "Succeeded" | "Failed") && pod.meta().deletion_timestamp.is_none()
}

/// Whether it may be sent requests.
pub fn is_ready(pod: &Pod) -> bool {
    condition(pod, "Ready").is_some_and(|ready| ready.status == "True")
}

/// Whether it is ready and has been for `min_ready_seconds`; if it only has to wait, for how long yet.
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

/// A pod of a template that `owner` controls. It has no name yet: set one, or a `generateName`.
pub fn from_template<K: Resource<DynamicType = ()>>(template: &PodTemplateSpec, owner: &K) -> Pod {
    let given = template.metadata.clone().unwrap_or_default();
    let metadata = ObjectMeta {
        namespace: owner.namespace(),
        labels: given.labels,
        annotations: given.annotations,
        finalizers: given.finalizers,
        owner_references: Some(vec![owner::reference(owner)]),
        ..ObjectMeta::default()
    };
    Pod { metadata, spec: template.spec.clone(), status: None }
}
