use std::time::Duration;

use serde_json::json;

use super::*;

const BACKOFF: PodBackoff = PodBackoff { initial: Duration::from_secs(1), max: Duration::from_secs(10) };

fn node(name: &str, cordoned: bool) -> Node {
    serde_json::from_value(json!({ "metadata": { "name": name }, "spec": { "unschedulable": cordoned } })).unwrap()
}

fn pod(name: &str, node: Option<&str>) -> Pod {
    let pod = json!({
        "metadata": { "name": name, "namespace": "default", "uid": name },
        "spec": { "schedulerName": "demo", "nodeName": node, "containers": [] },
    });
    serde_json::from_value(pod).unwrap()
}

/// A state with these nodes and pods.
fn state(nodes: Vec<Node>, pods: Vec<Pod>, now: Instant) -> SchedulingState {
    let mut state = SchedulingState::new("demo");
    state.handle_node_event(Event::Init, now);
    nodes.into_iter().for_each(|node| state.handle_node_event(Event::InitApply(node), now));
    state.handle_node_event(Event::InitDone, now);
    state.handle_pod_event(Event::Init, now);
    pods.into_iter().for_each(|pod| state.handle_pod_event(Event::InitApply(pod), now));
    state.handle_pod_event(Event::InitDone, now);
    state
}

#[test]
fn nobody_is_tried_before_everything_is_known() {
    let mut state = SchedulingState::new("demo");
    let now = Instant::now();
    state.handle_pod_event(Event::Init, now);
    state.handle_pod_event(Event::InitApply(pod("web", None)), now);
    assert!(state.pop(now).is_none());
    state.handle_pod_event(Event::InitDone, now);
    assert!(state.pop(now).is_none() && state.next_due().is_none());
    state.handle_node_event(Event::Init, now);
    state.handle_node_event(Event::InitDone, now);
    assert_eq!(state.pop(now).unwrap().pod.name_any(), "web");
}

#[test]
fn a_node_that_changes_and_a_pod_that_goes_help_who_fits_nowhere() {
    let start = Instant::now();
    let later = start + Duration::from_secs(60);
    let mut state = state(vec![node("one", true)], vec![pod("web", None), pod("old", Some("one"))], start);
    let fails = |state: &mut SchedulingState, now: Instant| {
        let turn = state.pop(now).expect("its turn has come");
        state.mark_unschedulable(&turn.pod, "why", BACKOFF, now);
        assert!(state.pop(now + Duration::from_secs(30)).is_none());
    };
    fails(&mut state, start);
    state.handle_node_event(Event::Apply(node("one", true)), later);
    assert!(state.pop(later).is_none(), "the node is as it was");
    state.handle_node_event(Event::Apply(node("one", false)), later);
    fails(&mut state, later);
    let later = later + Duration::from_secs(60);
    state.handle_pod_event(Event::Delete(pod("old", Some("one"))), later);
    fails(&mut state, later);
    let later = later + Duration::from_secs(60);
    state.move_all_to_active(later);
    fails(&mut state, later);
}

#[test]
fn a_bound_pod_waits_no_more_even_if_the_watch_is_behind() {
    let now = Instant::now();
    let mut state = state(vec![node("one", false)], vec![pod("web", None)], now);
    let turn = state.pop(now).unwrap();
    state.assume_pod(&turn.pod, "one");
    state.confirm_binding(&turn.pod);
    state.handle_pod_event(Event::Apply(pod("web", None)), now);
    assert!(state.pop(now).is_none());
    state.handle_pod_event(Event::Apply(pod("web", Some("one"))), now);
    assert_eq!(state.cluster.node_allocations()[0].pod_requests.len(), 1);
}

#[test]
fn what_could_not_be_bound_is_tried_again() {
    let now = Instant::now();
    let mut state = state(vec![node("one", false)], vec![pod("web", None)], now);
    let turn = state.pop(now).unwrap();
    state.assume_pod(&turn.pod, "one");
    state.handle_binding_failure(&turn.pod, BACKOFF, now);
    assert!(state.cluster.node_allocations()[0].pod_requests.is_empty());
    assert_eq!(state.pop(now + Duration::from_secs(1)).unwrap().attempt, 2);
}

#[test]
fn what_a_new_list_does_not_have_is_gone() {
    let now = Instant::now();
    let pods = vec![pod("web", None), pod("old", Some("one"))];
    let mut state = state(vec![node("one", false), node("two", false)], pods, now);
    state.handle_node_event(Event::Init, now);
    state.handle_node_event(Event::InitApply(node("two", false)), now);
    state.handle_node_event(Event::InitDone, now);
    state.handle_pod_event(Event::Init, now);
    state.handle_pod_event(Event::InitDone, now);
    assert_eq!(state.cluster.node_allocations().len(), 1);
    assert!(state.pop(now).is_none());
}
