use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use serde_json::json;

use super::*;

const NEW: &str = "web-new";
const OLD: &str = "web-old";

/// A pod and its state.
#[derive(Clone, Copy)]
enum Is {
    Well,
    Sick,
    Going,
    Failed,
    /// Ready for one second.
    Fresh,
}

fn now() -> Timestamp {
    "2026-01-01T00:01:00Z".parse().unwrap()
}

fn pod(ordinal: i32, revision: &str, is: Is) -> Arc<Pod> {
    let since = if matches!(is, Is::Fresh) { "2026-01-01T00:00:59Z" } else { "2026-01-01T00:00:00Z" };
    let ready = if matches!(is, Is::Sick | Is::Failed) { "False" } else { "True" };
    let mut pod = json!({
        "metadata": {"name": format!("web-{ordinal}"), "labels": {(revision::POD_REVISION_HASH_LABEL): revision}},
        "status": {
            "phase": if matches!(is, Is::Failed) { "Failed" } else { "Running" },
            "conditions": [{"type": "Ready", "status": ready, "lastTransitionTime": since}],
        },
    });
    if matches!(is, Is::Going) {
        pod["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:30Z".into();
    }
    Arc::new(serde_json::from_value(pod).unwrap())
}

fn set(replicas: i32, policy: &str) -> StatefulSet {
    let set = json!({
        "metadata": {"name": "web"},
        "spec": {
            "replicas": replicas,
            "podManagementPolicy": policy,
            "selector": {},
            "template": {},
            "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": 0}},
        },
    });
    serde_json::from_value(set).unwrap()
}

/// The actions that change something, as text.
fn steps(set: &StatefulSet, pods: &[Arc<Pod>]) -> Vec<String> {
    let word = |step| match step {
        PodAction::Create(ordinal) => Some(format!("make {ordinal}")),
        PodAction::Delete(pod) => Some(format!("delete {}", pod.name_any())),
        PodAction::Repair(..) => None,
    };
    plan(set, pods, NEW, now()).stages.into_iter().flatten().filter_map(word).collect()
}

#[test]
fn in_order_one_pod_is_made_when_those_before_are_well() {
    let set = set(3, "OrderedReady");
    assert_eq!(steps(&set, &[]), ["make 0"]);
    assert_eq!(steps(&set, &[pod(0, NEW, Is::Sick)]), [""; 0]);
    assert_eq!(steps(&set, &[pod(0, NEW, Is::Well)]), ["make 1"]);
    assert_eq!(steps(&set, &[pod(0, NEW, Is::Well), pod(2, NEW, Is::Well)]), ["make 1"]);
    assert_eq!(steps(&set, &[pod(0, NEW, Is::Going), pod(1, NEW, Is::Well)]), [""; 0]);
    assert_eq!(steps(&set, &[pod(0, NEW, Is::Well), pod(1, NEW, Is::Failed)]), ["delete web-1"]);
}

#[test]
fn in_parallel_all_are_made() {
    let set = set(3, "Parallel");
    assert_eq!(steps(&set, &[pod(1, NEW, Is::Sick)]), ["make 0", "make 2"]);
    assert_eq!(steps(&set, &[pod(1, NEW, Is::Failed)]), ["make 0", "delete web-1", "make 2"]);
}

#[test]
fn any_number_of_replicas_is_made_in_parts() {
    assert_eq!(steps(&set(i32::MAX, "Parallel"), &[]).len(), MAX_PODS_PER_SYNC);
    assert_eq!(steps(&set(i32::MAX, "OrderedReady"), &[]), ["make 0"]);
}

#[test]
fn ordinals_begin_where_the_set_says() {
    let mut set = set(2, "Parallel");
    set.spec.as_mut().unwrap().ordinals.get_or_insert_default().start = Some(5);
    assert_eq!(steps(&set, &[pod(0, NEW, Is::Well)]), ["make 5", "make 6", "delete web-0"]);
}

#[test]
fn in_order_the_last_goes_first_and_waits_for_the_sick() {
    let set = set(1, "OrderedReady");
    let well = [pod(0, NEW, Is::Well), pod(1, NEW, Is::Well), pod(2, NEW, Is::Well)];
    assert_eq!(steps(&set, &well), ["delete web-2"]);
    let one_goes = [pod(0, NEW, Is::Well), pod(1, NEW, Is::Well), pod(2, NEW, Is::Going)];
    assert_eq!(steps(&set, &one_goes), [""; 0]);
    let last_sick = [pod(0, NEW, Is::Well), pod(1, NEW, Is::Well), pod(2, NEW, Is::Sick)];
    assert_eq!(steps(&set, &last_sick), ["delete web-2"], "it is the first that is sick");
    let both_sick = [pod(0, NEW, Is::Well), pod(1, NEW, Is::Sick), pod(2, NEW, Is::Sick)];
    assert_eq!(steps(&set, &both_sick), [""; 0]);
    let wanted_sick = [pod(0, NEW, Is::Sick), pod(1, NEW, Is::Well)];
    assert_eq!(steps(&set, &wanted_sick), [""; 0]);
}

#[test]
fn in_parallel_all_that_are_too_many_go() {
    let set = set(1, "Parallel");
    let pods = [pod(0, NEW, Is::Sick), pod(1, NEW, Is::Well), pod(2, NEW, Is::Going), pod(3, NEW, Is::Sick)];
    assert_eq!(steps(&set, &pods), ["delete web-3", "delete web-1"]);
}

#[test]
fn an_update_goes_from_the_last_down_to_the_partition() {
    let mut set = set(3, "OrderedReady");
    let old = |ordinal| pod(ordinal, OLD, Is::Well);
    assert_eq!(steps(&set, &[old(0), old(1), old(2)]), ["delete web-2"]);
    assert_eq!(steps(&set, &[old(0), old(1), pod(2, NEW, Is::Sick)]), [""; 0]);
    assert_eq!(steps(&set, &[old(0), old(1), pod(2, NEW, Is::Well)]), ["delete web-1"]);
    set.spec.as_mut().unwrap().update_strategy.as_mut().unwrap().rolling_update.as_mut().unwrap().partition = Some(2);
    assert_eq!(steps(&set, &[old(0), old(1), pod(2, NEW, Is::Well)]), [""; 0]);
}

#[test]
fn as_many_are_updated_at_once_as_may_be_unavailable() {
    let mut set = set(5, "Parallel");
    let max = |set: &mut StatefulSet, max| {
        let strategy = set.spec.as_mut().unwrap().update_strategy.as_mut().unwrap();
        strategy.rolling_update.as_mut().unwrap().max_unavailable = Some(max);
    };
    let pods: Vec<_> = (0..5).map(|ordinal| pod(ordinal, OLD, Is::Well)).collect();
    max(&mut set, IntOrString::String("50%".to_owned()));
    assert_eq!(steps(&set, &pods), ["delete web-4", "delete web-3"]);
    max(&mut set, IntOrString::String("1%".to_owned()));
    assert_eq!(steps(&set, &pods), ["delete web-4"], "at least one");
    let mut some_sick = pods.clone();
    some_sick[0] = pod(0, OLD, Is::Sick);
    assert_eq!(steps(&set, &some_sick), ["delete web-0"], "what is sick anyway costs nothing");
    some_sick[1] = pod(1, NEW, Is::Going);
    max(&mut set, IntOrString::Int(3));
    assert_eq!(steps(&set, &some_sick), ["delete web-4", "delete web-0"]);
}

#[test]
fn on_delete_nothing_is_updated() {
    let mut set = set(1, "OrderedReady");
    set.spec.as_mut().unwrap().update_strategy.as_mut().unwrap().type_ = Some("OnDelete".to_owned());
    assert_eq!(steps(&set, &[pod(0, OLD, Is::Well)]), [""; 0]);
}

#[test]
fn a_pod_counts_when_it_has_been_ready_for_long_enough() {
    let mut set = set(2, "OrderedReady");
    set.spec.as_mut().unwrap().min_ready_seconds = Some(10);
    let plan = plan(&set, &[pod(0, NEW, Is::Fresh)], NEW, now());
    assert_eq!(plan.requeue_after, Some(Duration::from_secs(9)));
    assert_eq!(steps(&set, &[pod(0, NEW, Is::Fresh)]), [""; 0]);
    assert_eq!(steps(&set, &[pod(0, NEW, Is::Well)]), ["make 1"]);
}

#[test]
fn only_whole_names_have_an_ordinal() {
    let set = set(1, "Parallel");
    assert_eq!(ordinal_of(&set, "web-0"), Some(0));
    assert_eq!(ordinal_of(&set, "web-12"), Some(12));
    for other in ["web-00", "web-+1", "web--1", "web-", "web", "web-0-0", "other-0", "web-99999999999"] {
        assert_eq!(ordinal_of(&set, other), None, "{other}");
    }
}
