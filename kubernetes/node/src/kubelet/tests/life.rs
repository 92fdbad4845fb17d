use super::*;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_says_what_it_is() {
    let fixture = Fixture::start().await;
    let node = Api::<NodeObject>::all(fixture.client.clone()).get("node-0").await.unwrap();
    assert_eq!(node.metadata.labels.unwrap()["kubernetes.io/hostname"], "node-0");
    let status = node.status.unwrap();
    assert_eq!(status.allocatable.unwrap()["cpu"].0, "2");
    let ready = status.conditions.unwrap().into_iter().find(|one| one.type_ == "Ready").unwrap();
    assert_eq!(ready.status, "True");
    let leases = Api::<Lease>::namespaced(fixture.client.clone(), "kube-node-lease");
    let held = |lease: Option<&Lease>| {
        lease.is_some_and(|lease| lease.spec.as_ref().unwrap().holder_identity.as_deref() == Some("node-0"))
    };
    await_condition(leases, "node-0", held).await.unwrap();
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
    let reasons = fixture.events("web", |events| events.len() >= 3).await;
    let told: Vec<(&str, &str)> = reasons.iter().map(|(reason, note)| (reason.as_str(), note.as_str())).collect();
    assert_eq!(
        told,
        [
            ("Pulled", "Container image \"shell:1\" already present on machine and can be accessed by the pod"),
            ("Created", "Container created"),
            ("Started", "Container started"),
        ]
    );
    fixture.delete("web").await;
    fixture.nothing_is_left().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_ends_well_has_succeeded_and_its_words_stay() {
    let fixture = Fixture::start().await;
    let mut job = pod("job", "echo one; echo two >&2");
    job["spec"]["restartPolicy"] = "Never".into();
    fixture.create(job).await;
    let pod = fixture.until("job", |pod| phase(pod) == "Succeeded").await;
    let ended = main_status(&pod).state.unwrap().terminated.unwrap();
    assert_eq!((ended.exit_code, ended.reason.as_deref(), ended.message), (0, Some("Completed"), None));
    let mut lines: Vec<_> = fixture.log("job", &LogOptions::default()).await.lines().map(str::to_owned).collect();
    lines.sort();
    assert_eq!(lines, ["one", "two"]);
    fixture.delete("job").await;
    fixture.nothing_is_left().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_ends_badly_is_restarted_and_its_last_words_are_seen() {
    let fixture = Fixture::start().await;
    fixture.run("bad", "echo the disk is on fire >&2; exit 3").await;
    let pod = fixture.until("bad", |pod| waits_for(pod, "CrashLoopBackOff")).await;
    assert_eq!(phase(&pod), "Running");
    let last = main_status(&pod).last_state.unwrap().terminated.unwrap();
    assert_eq!((last.exit_code, last.reason.as_deref()), (3, Some("Error")));
    assert_eq!(last.message.as_deref(), Some("the disk is on fire\n"));
    fixture.until("bad", |pod| main_status(pod).restart_count > 1).await;
    let previous = LogOptions { previous: true, ..LogOptions::default() };
    assert_eq!(fixture.log("bad", &previous).await, "the disk is on fire\n");
    fixture.delete("bad").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_program_wrote_for_its_end_is_its_message() {
    let fixture = Fixture::start().await;
    let mut told = pod("told", "echo noise; printf 'out of luck' > $KUBEWAKE_ROOT/dev/termination-log; exit 1");
    told["spec"]["restartPolicy"] = "Never".into();
    fixture.create(told).await;
    let pod = fixture.until("told", |pod| phase(pod) == "Failed").await;
    let ended = main_status(&pod).state.unwrap().terminated.unwrap();
    assert_eq!(ended.message.as_deref(), Some("out of luck"));
    assert_eq!(pod.status.unwrap().conditions.unwrap().iter().filter(|one| one.status == "True").count(), 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn init_containers_come_one_after_another_and_sidecars_stay() {
    let fixture = Fixture::start().await;
    let mut ordered = pod("ordered", "cat $KUBEWAKE_ROOT/data/order; echo main");
    ordered["spec"]["restartPolicy"] = "Never".into();
    ordered["spec"]["volumes"] = json!([{ "name": "data", "emptyDir": {} }]);
    let mounts = json!([{ "name": "data", "mountPath": "/data" }]);
    ordered["spec"]["containers"][0]["volumeMounts"] = mounts.clone();
    let init = |name: &str, script: &str| json!({ "name": name, "image": "shell:1", "args": [script], "volumeMounts": mounts });
    let mut side = init("side", "echo side >> $KUBEWAKE_ROOT/data/order; trap 'exit 0' TERM; sleep 1000 & wait");
    side["restartPolicy"] = "Always".into();
    side["startupProbe"] = json!({ "exec": { "command": ["sh", "-c", "grep side $KUBEWAKE_ROOT/data/order"] } });
    let first = init("first", "echo first > $KUBEWAKE_ROOT/data/order");
    let last = init("last", "echo last >> $KUBEWAKE_ROOT/data/order");
    ordered["spec"]["initContainers"] = json!([first, side, last]);
    fixture.create(ordered).await;
    let pod = fixture.until("ordered", |pod| phase(pod) == "Succeeded").await;
    assert_eq!(fixture.log("ordered", &LogOptions::default()).await, "first\nside\nlast\nmain\n");
    let init = pod.status.unwrap().init_container_statuses.unwrap();
    let codes = init.iter().map(|one| one.state.as_ref().unwrap().terminated.as_ref().unwrap().exit_code);
    assert_eq!(codes.collect::<Vec<_>>(), [0, 0, 0]);
    fixture.delete("ordered").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_init_container_that_fails_for_good_ends_the_pod() {
    let fixture = Fixture::start().await;
    let mut failing = pod("failing", "echo never");
    failing["spec"]["restartPolicy"] = "Never".into();
    failing["spec"]["initContainers"] = json!([{ "name": "init", "image": "shell:1", "args": ["exit 7"] }]);
    fixture.create(failing).await;
    let pod = fixture.until("failing", |pod| phase(pod) == "Failed").await;
    assert!(waits_for(&pod, "PodInitializing"));
    assert_eq!(condition(&pod, "Initialized"), "False");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_never_stops_talking_does_not_keep_others_waiting() {
    let fixture = Fixture::start().await;
    for name in ["one", "two", "three"] {
        fixture.run(name, "exec yes").await;
        fixture.until(name, is_ready).await;
    }
    fixture.run("web", SERVE).await;
    fixture.until("web", is_ready).await;
    let tail = LogOptions { tail_lines: Some(2), ..LogOptions::default() };
    assert_eq!(fixture.log("one", &tail).await, "y\ny\n");
    for name in ["one", "two", "three", "web"] {
        fixture.delete(name).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn logs_of_all_containers_are_where_agents_look_for_them() {
    let fixture = Fixture::start().await;
    let mut logged = pod("logged", "echo main; printf half; exit 1");
    logged["spec"]["initContainers"] = json!([{ "name": "init", "image": "shell:1", "args": ["echo init"] }]);
    let uid = fixture.create(logged).await.uid().unwrap();
    let pod = fixture.until("logged", |pod| main_status(pod).restart_count == 1).await;
    let host = fixture.dir.path().join("host/var/log");
    let dir = host.join(format!("pods/default_logged_{uid}"));
    let texts = |path: &str| -> Vec<String> {
        let text = std::fs::read_to_string(dir.join(path)).unwrap();
        text.lines().map(|entry| entry.split_once(' ').unwrap().1.to_owned()).collect()
    };
    assert_eq!(texts("main/0.log"), ["stdout F main", "stdout P half"]);
    assert_eq!(texts("init/0.log"), ["stdout F init"]);
    let id = pod.status.unwrap().init_container_statuses.unwrap()[0].container_id.clone().unwrap();
    let id = id.strip_prefix("kubewake://").unwrap();
    assert!(id.len() == 64 && id.bytes().all(|byte| byte.is_ascii_hexdigit()), "{id}");
    let link = host.join(format!("containers/logged_default_init-{id}.log"));
    assert_eq!(std::fs::read_link(link).unwrap(), dir.join("init/0.log"));
    let mut request = fixture.log_request("logged", &LogOptions::default());
    request.container = "init".into();
    let mut output = fixture.kubelet.open_log(request).await.unwrap();
    assert_eq!(output.recv().await.unwrap(), "init\n");
    fixture.delete("logged").await;
    fixture.nothing_is_left().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn container_that_waits_for_its_restart_has_its_last_log_as_its_previous_one() {
    let mut fixture = Fixture::start().await;
    fixture.options.backoff = BackoffRules { first: WAIT_TIMEOUT * 2, longest: WAIT_TIMEOUT * 2, reset: WAIT_TIMEOUT };
    fixture.restart().await;
    fixture.run("bad", "echo $$; exit 3").await;
    // The first restart is immediate.
    fixture.until("bad", |pod| waits_for(pod, "CrashLoopBackOff") && main_status(pod).restart_count == 1).await;
    let previous = LogOptions { previous: true, ..LogOptions::default() };
    let last = fixture.log("bad", &LogOptions::default()).await;
    assert!(!last.is_empty());
    assert_eq!(fixture.log("bad", &previous).await, last);
    fixture.delete("bad").await;
}
