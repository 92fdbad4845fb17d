use std::time::Duration;

use serde_json::json;

use super::*;

const BACKOFF: Backoff = Backoff { first: Duration::from_secs(1), most: Duration::from_secs(10) };

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

/// A state that knows these.
fn state(nodes: Vec<Node>, pods: Vec<Pod>, now: Instant) -> State {
    let mut state = State::new("demo");
    state.see_node(Event::Init, now);
    nodes.into_iter().for_each(|node| state.see_node(Event::InitApply(node), now));
    state.see_node(Event::InitDone, now);
    state.see_pod(Event::Init, now);
    pods.into_iter().for_each(|pod| state.see_pod(Event::InitApply(pod), now));
    state.see_pod(Event::InitDone, now);
    state
}

#[test]
fn nobody_is_tried_before_everything_is_known() {
    let (mut state, now) = (State::new("demo"), Instant::now());
    state.see_pod(Event::Init, now);
    state.see_pod(Event::InitApply(pod("web", None)), now);
    assert!(state.next(now).is_none());
    state.see_pod(Event::InitDone, now);
    assert!(state.next(now).is_none() && state.due().is_none());
    state.see_node(Event::Init, now);
    state.see_node(Event::InitDone, now);
    assert_eq!(state.next(now).unwrap().pod.name_any(), "web");
}

#[test]
fn a_node_that_changes_and_a_pod_that_goes_help_who_fits_nowhere() {
    let start = Instant::now();
    let later = start + Duration::from_secs(60);
    let mut state = state(vec![node("one", true)], vec![pod("web", None), pod("old", Some("one"))], start);
    let fails = |state: &mut State, now: Instant| {
        let turn = state.next(now).expect("its turn has come");
        state.nowhere(&turn.pod, "why", BACKOFF, now);
        assert!(state.next(now + Duration::from_secs(30)).is_none());
    };
    fails(&mut state, start);
    state.see_node(Event::Apply(node("one", true)), later);
    assert!(state.next(later).is_none(), "the node is as it was");
    state.see_node(Event::Apply(node("one", false)), later);
    fails(&mut state, later);
    let later = later + Duration::from_secs(60);
    state.see_pod(Event::Delete(pod("old", Some("one"))), later);
    fails(&mut state, later);
    let later = later + Duration::from_secs(60);
    state.wake(later);
    fails(&mut state, later);
}

#[test]
fn a_bound_pod_waits_no_more_even_if_the_watch_is_behind() {
    let now = Instant::now();
    let mut state = state(vec![node("one", false)], vec![pod("web", None)], now);
    let turn = state.next(now).unwrap();
    state.assume(&turn.pod, "one");
    state.bound(&turn.pod);
    state.see_pod(Event::Apply(pod("web", None)), now);
    assert!(state.next(now).is_none());
    state.see_pod(Event::Apply(pod("web", Some("one"))), now);
    assert_eq!(state.cluster.places()[0].holdings.len(), 1);
}

#[test]
fn what_could_not_be_bound_is_tried_again() {
    let now = Instant::now();
    let mut state = state(vec![node("one", false)], vec![pod("web", None)], now);
    let turn = state.next(now).unwrap();
    state.assume(&turn.pod, "one");
    state.not_bound(&turn.pod, BACKOFF, now);
    assert!(state.cluster.places()[0].holdings.is_empty());
    assert_eq!(state.next(now + Duration::from_secs(1)).unwrap().attempt, 2);
}

#[test]
fn what_a_new_list_does_not_have_is_gone() {
    let now = Instant::now();
    let pods = vec![pod("web", None), pod("old", Some("one"))];
    let mut state = state(vec![node("one", false), node("two", false)], pods, now);
    state.see_node(Event::Init, now);
    state.see_node(Event::InitApply(node("two", false)), now);
    state.see_node(Event::InitDone, now);
    state.see_pod(Event::Init, now);
    state.see_pod(Event::InitDone, now);
    assert_eq!(state.cluster.places().len(), 1);
    assert!(state.next(now).is_none());
}
