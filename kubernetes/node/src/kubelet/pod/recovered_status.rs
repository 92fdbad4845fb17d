//! The initial status of containers: empty, or recovered from an earlier run of the node.
//!
//! A node that restarts finds pods whose containers it ran before. These have ended; their last known state is
//! in the pod's status.

use std::collections::BTreeMap;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{ContainerState, ContainerStateTerminated, ContainerStatus, Pod};

use crate::kubelet::status::{api_time, waiting_status};

pub(super) fn initial_statuses(pod: &Pod, now: Timestamp) -> BTreeMap<String, ContainerStatus> {
    let Some(spec) = pod.spec.as_ref() else { return BTreeMap::new() };
    let init = spec.init_containers.as_deref().unwrap_or_default();
    let reason = if init.is_empty() { "ContainerCreating" } else { "PodInitializing" };
    let known = pod.status.as_ref();
    let known = known.map(|status| {
        let init = status.init_container_statuses.iter().flatten();
        init.chain(status.container_statuses.iter().flatten())
    });
    let mut earlier: BTreeMap<&str, &ContainerStatus> = BTreeMap::new();
    earlier.extend(known.into_iter().flatten().map(|status| (status.name.as_str(), status)));
    let of = |one: &k8s_openapi::api::core::v1::Container, is_init: bool| {
        let mut status = waiting_status(one, reason);
        if let Some(earlier) = earlier.get(one.name.as_str()) {
            recover_status(&mut status, earlier, is_init, now);
        }
        (one.name.clone(), status)
    };
    let main = spec.containers.iter().map(|one| of(one, false));
    init.iter().map(|one| of(one, true)).chain(main).collect()
}

/// Containers that ran have ended in an unknown way. Ended ones stay ended, except init containers, which run
/// again.
fn recover_status(status: &mut ContainerStatus, earlier: &ContainerStatus, is_init: bool, now: Timestamp) {
    status.restart_count = earlier.restart_count;
    status.last_state = earlier.last_state.clone();
    let Some(state) = &earlier.state else { return };
    let ended = match (&state.running, &state.terminated) {
        (Some(running), _) => ContainerStateTerminated {
            container_id: earlier.container_id.clone(),
            exit_code: 137,
            reason: Some("ContainerStatusUnknown".to_owned()),
            message: Some("The container could not be located when the node started again".to_owned()),
            started_at: running.started_at.clone(),
            finished_at: Some(api_time(now)),
            signal: None,
        },
        (None, Some(ended)) => ended.clone(),
        (None, None) => return,
    };
    let ended = Some(ContainerState { terminated: Some(ended), ..ContainerState::default() });
    *(if is_init { &mut status.last_state } else { &mut status.state }) = ended;
}
