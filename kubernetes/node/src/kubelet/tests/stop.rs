//! The termination of pods.

use super::*;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_does_not_end_is_made_to() {
    let fixture = Fixture::start().await;
    let mut stubborn = pod("stubborn", "trap '' TERM; echo up; while :; do sleep 1000; done");
    stubborn["spec"]["terminationGracePeriodSeconds"] = 1.into();
    fixture.create(stubborn).await;
    fixture.until_said("stubborn", "up").await;
    fixture.delete("stubborn").await;
    fixture.nothing_is_left().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_grace_period_may_be_cut_short() {
    let fixture = Fixture::start().await;
    let mut stubborn = pod("stubborn", "trap '' TERM; echo up; while :; do sleep 1000; done");
    stubborn["spec"]["terminationGracePeriodSeconds"] = 3600.into();
    fixture.create(stubborn).await;
    fixture.until_said("stubborn", "up").await;
    fixture.pods.delete("stubborn", &DeleteParams::default()).await.unwrap();
    fixture.until("stubborn", |pod| pod.metadata.deletion_timestamp.is_some()).await;
    fixture.pods.delete("stubborn", &DeleteParams::default().grace_period(1)).await.unwrap();
    fixture.until_gone("stubborn").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_got_away_from_its_group_ends_with_its_container() {
    let fixture = Fixture::start().await;
    let script = "setsid sh -c 'trap \"\" TERM; echo $$$$; while :; do sleep 1000; done' & trap 'exit 0' TERM; wait";
    fixture.run("daemon", script).await;
    let said = fixture.until_said("daemon", "\n").await;
    let id: u32 = said.trim().parse().unwrap();
    assert!(std::path::Path::new(&format!("/proc/{id}/stat")).exists());
    fixture.delete("daemon").await;
    fixture.until_ended(id).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_keeps_nothing_of_its_container_ends_with_it() {
    let fixture = Fixture::start().await;
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("id");
    // No session, no environment, no open file, another directory, and soon no parent.
    let hide = format!("echo $$$$ > {}; cd /; exec sleep 1000 </dev/null >/dev/null 2>&1", file.display());
    fixture.run("daemon", &format!("(setsid env -i sh -c '{hide}' &); trap 'exit 0' TERM; sleep 1000 & wait")).await;
    fixture.until("daemon", is_ready).await;
    let id = || std::fs::read_to_string(&file).ok()?.trim().parse::<u32>().ok();
    crate::testing::until("it runs", || id().is_some()).await;
    fixture.delete("daemon").await;
    fixture.until_ended(id().unwrap()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hook_runs_before_the_end_and_one_after_the_start() {
    let fixture = Fixture::start().await;
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("order");
    let write =
        |word: &str| json!({ "exec": { "command": ["sh", "-c", format!("echo {word} >> {}", file.display())] } });
    let mut hooked = pod("hooked", &format!("trap 'echo ended >> {}; exit 0' TERM; sleep 1000 & wait", file.display()));
    hooked["spec"]["containers"][0]["lifecycle"] = json!({ "postStart": write("begun"), "preStop": write("ending") });
    fixture.create(hooked).await;
    fixture.until("hooked", is_ready).await;
    fixture.delete("hooked").await;
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "begun\nending\nended\n");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hook_that_fails_after_the_start_ends_the_container() {
    let fixture = Fixture::start().await;
    let mut hooked = pod("hooked", SERVE);
    hooked["spec"]["containers"][0]["lifecycle"] = json!({ "postStart": { "exec": { "command": ["false"] } } });
    fixture.create(hooked).await;
    let pod = fixture.until("hooked", |pod| main_status(pod).restart_count > 0).await;
    assert!(!is_ready(&pod));
    fixture.events("hooked", |events| events.iter().any(|(reason, _)| reason == "FailedPostStartHook")).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_pod_whose_time_is_over_has_failed() {
    let fixture = Fixture::start().await;
    let mut limited = pod("limited", SERVE);
    limited["spec"]["activeDeadlineSeconds"] = 1.into();
    fixture.create(limited).await;
    let pod = fixture.until("limited", |pod| phase(pod) == "Failed").await;
    assert_eq!(pod.status.as_ref().unwrap().reason.as_deref(), Some("DeadlineExceeded"));
    // The process may not have started.
    assert!(main_status(&pod).state.unwrap().running.is_none());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_pod_that_is_removed_by_force_leaves_nothing_and_its_name_is_free() {
    let fixture = Fixture::start().await;
    fixture.run("web", "echo $$$$; trap 'exit 0' TERM; sleep 1000 & wait").await;
    let id: u32 = fixture.until_said("web", "\n").await.trim().parse().unwrap();
    fixture.pods.delete("web", &DeleteParams::default().grace_period(0)).await.unwrap();
    fixture.until_gone("web").await;
    fixture.run("web", SERVE).await;
    fixture.until("web", is_ready).await;
    fixture.until_ended(id).await;
    fixture.delete("web").await;
    fixture.nothing_is_left().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_pod_that_somebody_still_needs_is_not_run_again() {
    let fixture = Fixture::start().await;
    let mut held = pod("held", SERVE);
    held["metadata"]["finalizers"] = json!(["example.com/hold"]);
    fixture.create(held).await;
    fixture.until("held", is_ready).await;
    fixture.pods.delete("held", &DeleteParams::default()).await.unwrap();
    let pod = fixture.until("held", |pod| phase(pod) == "Succeeded").await;
    assert!(main_status(&pod).state.unwrap().terminated.is_some());
    let patch = Patch::Merge(json!({ "metadata": { "finalizers": null } }));
    fixture.pods.patch("held", &PatchParams::default(), &patch).await.unwrap();
    fixture.until_gone("held").await;
    fixture.nothing_is_left().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_that_starts_again_runs_its_pods_again() {
    let mut fixture = Fixture::start().await;
    fixture.run("web", SERVE).await;
    let before = fixture.until("web", is_ready).await;
    let mut job = pod("job", "echo done");
    job["spec"]["restartPolicy"] = "Never".into();
    fixture.create(job).await;
    fixture.until("job", |pod| phase(pod) == "Succeeded").await;
    fixture.restart().await;
    let pod = fixture.until("web", |pod| is_ready(pod) && main_status(pod).restart_count == 1).await;
    assert_ne!(main_status(&pod).container_id, main_status(&before).container_id);
    // It trapped the signal and exited with 0.
    let last = main_status(&pod).last_state.unwrap().terminated.unwrap();
    assert_eq!((last.exit_code, last.reason.as_deref()), (0, Some("Completed")));
    // Finished containers stay finished, and their logs are readable.
    assert_eq!(main_status(&fixture.pods.get("job").await.unwrap()).restart_count, 0);
    assert_eq!(fixture.log("job", &LogOptions::default()).await, "done\n");
    let previous = LogOptions { previous: true, ..LogOptions::default() };
    assert_eq!(fixture.log("web", &previous).await, "up\n");
    fixture.delete("job").await;
    fixture.delete("web").await;
    fixture.nothing_is_left().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_pod_whose_volume_holds_too_much_is_evicted() {
    let fixture = Fixture::start().await;
    let mut large =
        pod("large", "head -c 100000 /dev/zero > $KUBEWAKE_ROOT/data/file; trap 'exit 0' TERM; sleep 1000 & wait");
    large["spec"]["volumes"] = json!([{ "name": "data", "emptyDir": { "sizeLimit": "10Ki" } }]);
    large["spec"]["containers"][0]["volumeMounts"] = json!([{ "name": "data", "mountPath": "/data" }]);
    fixture.create(large).await;
    let pod = fixture.until("large", |pod| phase(pod) == "Failed").await;
    let status = pod.status.as_ref().unwrap();
    assert_eq!(status.reason.as_deref(), Some("Evicted"));
    let message = status.message.as_deref().unwrap();
    assert!(message.contains("\"data\" exceeds the limit \"10Ki\""), "{message}");
    fixture.delete("large").await;
    fixture.nothing_is_left().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_pod_that_was_bound_to_a_full_node_has_failed() {
    let fixture = Fixture::start().await;
    let asks = |name: &str, cpu: &str| {
        let mut pod = pod(name, SERVE);
        pod["spec"]["containers"][0]["resources"] = json!({ "requests": { "cpu": cpu } });
        pod
    };
    fixture.create(asks("first", "1500m")).await;
    fixture.until("first", is_ready).await;
    fixture.create(asks("second", "600m")).await;
    let failed = |pod: Option<&Pod>| pod.is_some_and(|pod| phase(pod) == "Failed");
    let waited = tokio::time::timeout(WAIT_TIMEOUT, await_condition(fixture.pods.clone(), "second", failed));
    let status = waited.await.unwrap().unwrap().unwrap().status.unwrap();
    assert_eq!(status.reason.as_deref(), Some("OutOfcpu"));
    assert_eq!(status.container_statuses, None);
    let wanted = "Pod was rejected: Node didn't have enough resource: cpu, requested: 600, used: 1500, capacity: 2000";
    assert_eq!(status.message.as_deref(), Some(wanted));
    fixture.events("second", |events| events.iter().any(|(reason, _)| reason == "OutOfcpu")).await;
    // A deleted pod releases its resources.
    fixture.delete("first").await;
    fixture.create(asks("third", "2")).await;
    fixture.until("third", is_ready).await;
    for name in ["second", "third"] {
        fixture.delete(name).await;
    }
    fixture.nothing_is_left().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_that_stops_gives_a_pod_no_more_than_its_own_grace_period() {
    let fixture = Fixture::start().await;
    let mut stubborn = pod("stubborn", "trap '' TERM; echo up; while :; do sleep 1000; done");
    stubborn["spec"]["terminationGracePeriodSeconds"] = 1.into();
    fixture.create(stubborn).await;
    fixture.until_said("stubborn", "up").await;
    tokio::time::timeout(WAIT_TIMEOUT, fixture.kubelet.stop(Duration::from_secs(3600))).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_that_stops_gives_a_pod_no_more_than_its_limit() {
    let fixture = Fixture::start().await;
    let mut stubborn = pod("stubborn", "trap '' TERM; echo up; while :; do sleep 1000; done");
    stubborn["spec"]["terminationGracePeriodSeconds"] = i64::MAX.into();
    fixture.create(stubborn).await;
    fixture.until_said("stubborn", "up").await;
    tokio::time::timeout(WAIT_TIMEOUT, fixture.kubelet.stop(Duration::from_secs(1))).await.unwrap();
}
