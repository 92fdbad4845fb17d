use super::*;
use crate::controller::pods::phase;

/// Ends at once when it is asked to.
const SERVE: &str = "trap 'exit 0' TERM; echo up; sleep 1000 & wait";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_says_what_it_is() {
    let fixture = Fixture::start().await;
    let node = Api::<NodeObject>::all(fixture.client.clone()).get("node-0").await.unwrap();
    let labels = node.metadata.labels.unwrap();
    assert_eq!(labels["kubernetes.io/hostname"], "node-0");
    let status = node.status.unwrap();
    assert_eq!(status.allocatable.unwrap()["cpu"].0, "2");
    let ready = status.conditions.unwrap().into_iter().find(|one| one.type_ == "Ready").unwrap();
    assert_eq!(ready.status, "True");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_pod_becomes_a_process_is_ready_and_goes() {
    let fixture = Fixture::start().await;
    fixture.run("web", SERVE).await;
    let pod = fixture.until("web", is_ready).await;
    assert_eq!(phase(&pod), "Running");
    let status = pod.status.clone().unwrap();
    assert!(status.pod_ip.unwrap().starts_with("127."));
    for kind in ["PodScheduled", "PodReadyToStartContainers", "Initialized", "ContainersReady"] {
        assert_eq!(condition(&pod, kind), "True", "{kind}");
    }
    let main = main_status(&pod);
    assert!(main.ready && main.started == Some(true) && main.restart_count == 0);
    assert!(main.container_id.unwrap().starts_with("kubewake://"));
    fixture.delete("web").await;
    let left = std::fs::read_dir(fixture.dir.path().join("node-0/pods")).unwrap().count();
    assert!(left <= 1, "directories stay");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_ends_well_has_succeeded_and_its_words_stay() {
    let fixture = Fixture::start().await;
    let mut job = pod("job", "echo one; echo two >&2");
    job["spec"]["restartPolicy"] = "Never".into();
    fixture.create(job).await;
    let pod = fixture.until("job", |pod| phase(pod) == "Succeeded").await;
    let ended = main_status(&pod).state.unwrap().terminated.unwrap();
    assert_eq!((ended.exit_code, ended.reason.as_deref()), (0, Some("Completed")));
    let mut lines: Vec<_> = fixture.log("job", &LogOptions::default()).await.lines().map(str::to_owned).collect();
    lines.sort();
    assert_eq!(lines, ["one", "two"]);
    fixture.delete("job").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_ends_badly_is_restarted_and_its_last_words_are_seen() {
    let fixture = Fixture::start().await;
    fixture.run("bad", "echo the disk is on fire >&2; exit 3").await;
    let pod = fixture
        .until("bad", |pod| {
            let status = pod.status.as_ref().and_then(|status| status.container_statuses.as_ref()?.first());
            let waiting = status.and_then(|status| status.state.as_ref()?.waiting.as_ref());
            waiting.is_some_and(|waiting| waiting.reason.as_deref() == Some("CrashLoopBackOff"))
        })
        .await;
    assert_eq!(phase(&pod), "Running");
    let main = main_status(&pod);
    let last = main.last_state.unwrap().terminated.unwrap();
    assert_eq!((last.exit_code, last.reason.as_deref()), (3, Some("Error")));
    assert_eq!(last.message.as_deref(), Some("the disk is on fire\n"));
    let previous = LogOptions { previous: true, ..LogOptions::default() };
    fixture.until("bad", |pod| main_status(pod).restart_count > 1).await;
    assert_eq!(fixture.log("bad", &previous).await, "the disk is on fire\n");
    fixture.delete("bad").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_does_not_end_is_made_to() {
    let fixture = Fixture::start().await;
    let mut stubborn = pod("stubborn", "trap '' TERM; echo up; while :; do sleep 1000; done");
    stubborn["spec"]["terminationGracePeriodSeconds"] = 1.into();
    fixture.create(stubborn).await;
    fixture.until("stubborn", is_ready).await;
    fixture.delete("stubborn").await;
}
