//! Selects the pipelines that own the anchor, and with it the layer. Pure.
//!
//! The layer exists for the pipelines that hold a slot, and goes with the last of them, unless another one
//! waits for a slot: that one takes over the layer, and senders keep their address. So waiting pipelines are
//! owners too, whether an operator sees the last holder go or not.

use std::{collections::BTreeMap, sync::Arc};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;

use crate::pipeline::pipeline_cache::{PipelineKey, PipelineState};

/// The limit of waiting owners. The others are affected only if all of these are deleted while no operator
/// runs.
const MAX_WAITING_OWNERS: usize = 16;

/// The pipelines that own the anchor: those that hold a slot, and some that wait for one.
pub(super) fn select_owners(
    entries: &BTreeMap<PipelineKey, Arc<PipelineState>>,
    holders: &BTreeMap<PipelineKey, Arc<PipelineState>>,
) -> Vec<OwnerReference> {
    let waits = |(id, entry): &(&PipelineKey, &Arc<PipelineState>)| {
        !holders.contains_key(id) && entry.valid.is_some() && entry.problems.is_empty()
    };
    let waiting = entries.iter().filter(waits).take(MAX_WAITING_OWNERS).map(|(_, entry)| entry);
    holders.values().chain(waiting).map(|entry| entry.owner.clone()).collect()
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use kubewake_api::{
        ConditionReason, ResolvedReferences, Signal, SpecProblem, TelemetryPipeline, v1alpha1::TracePipeline, validate,
    };
    use serde_json::json;

    use super::*;

    fn entry(name: &str) -> (PipelineKey, PipelineState) {
        let spec = json!({"output": {"otlp": {"endpoint": {"value": "backend:4317"}}}});
        let mut object = TracePipeline::new(name, serde_json::from_value(spec).unwrap());
        (object.metadata.uid, object.metadata.generation) = (Some(name.to_owned()), Some(1));
        let valid =
            validate(&TelemetryPipeline::from(&object), &ResolvedReferences::new(), Timestamp::UNIX_EPOCH).unwrap();
        let owner = OwnerReference { uid: name.to_owned(), ..OwnerReference::default() };
        let entry =
            PipelineState { owner, valid: Some(Arc::new(valid)), problems: Vec::new(), slot: None, checked: None };
        (PipelineKey { signal: Signal::Traces, name: name.to_owned() }, entry)
    }

    fn all(
        entries: impl IntoIterator<Item = (PipelineKey, PipelineState)>,
    ) -> BTreeMap<PipelineKey, Arc<PipelineState>> {
        entries.into_iter().map(|(id, entry)| (id, Arc::new(entry))).collect()
    }

    fn uids(keepers: Vec<OwnerReference>) -> Vec<String> {
        keepers.into_iter().map(|keeper| keeper.uid).collect()
    }

    #[test]
    fn who_holds_a_slot_and_who_would_take_one_keep_the_layer() {
        let mut broken = entry("broken");
        let mut never = entry("never");
        broken.1.problems.push(SpecProblem {
            path: "spec".into(),
            reason: ConditionReason::SpecInvalid,
            message: "no".into(),
        });
        (never.1.valid, never.1.problems) = (None, broken.1.problems.clone());
        let entries = all([entry("holds"), entry("waits"), broken.clone(), never]);
        let holders = all([entry("holds")]);
        assert_eq!(uids(select_owners(&entries, &holders)), ["holds", "waits"]);
        assert_eq!(uids(select_owners(&entries, &all([broken]))), ["broken", "holds", "waits"], "it goes on as it was");
        assert_eq!(uids(select_owners(&entries, &BTreeMap::new())), ["holds", "waits"]);
    }

    #[test]
    fn not_everybody_who_waits_does() {
        let entries = all((0..1000).map(|n| entry(&format!("p{n}"))));
        assert_eq!(select_owners(&entries, &BTreeMap::new()).len(), MAX_WAITING_OWNERS);
        assert_eq!(select_owners(&entries, &entries).len(), 1000, "those who hold a slot do");
    }
}
