//! Waiting containers, probes and hooks.

use super::*;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_unknown_image_is_refused_until_it_is_another() {
    let fixture = Fixture::start().await;
    let mut unknown = pod("web", SERVE);
    unknown["spec"]["containers"][0]["image"] = "nginx:1.29".into();
    fixture.create(unknown).await;
    let pod = fixture.until("web", |pod| waits_for(pod, "ErrImagePull") || waits_for(pod, "ImagePullBackOff")).await;
    assert_eq!(phase(&pod), "Pending");
    let message = main_status(&pod).state.unwrap().waiting.unwrap().message.unwrap();
    assert!(message.contains("it has: docker.io/library/shell:1, docker.io/library/shell:2"), "{message}");
    fixture.until("web", |pod| waits_for(pod, "ImagePullBackOff")).await;
    let options = LogOptions::default();
    let refused = fixture.kubelet.open_log(fixture.log_request("web", &options)).await.unwrap_err();
    assert!(refused.message.contains("is waiting to start: "), "{}", refused.message);
    let patch = Patch::Strategic(json!({ "spec": { "containers": [{ "name": "main", "image": "shell:1" }] } }));
    fixture.pods.patch("web", &PatchParams::default(), &patch).await.unwrap();
    fixture.until("web", is_ready).await;
    fixture.delete("web").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_container_refers_to_is_awaited() {
    let fixture = Fixture::start().await;
    let mut waiting = pod("web", "echo $GREETING; sleep 1000");
    let reference = json!({ "configMapKeyRef": { "name": "words", "key": "greeting" } });
    waiting["spec"]["containers"][0]["env"] = json!([{ "name": "GREETING", "valueFrom": reference }]);
    fixture.create(waiting).await;
    let pod = fixture.until("web", |pod| waits_for(pod, "CreateContainerConfigError")).await;
    let message = main_status(&pod).state.unwrap().waiting.unwrap().message;
    assert_eq!(message.as_deref(), Some("configmap \"words\" not found"));
    let words = json!({ "metadata": { "name": "words" }, "data": { "greeting": "hello" } });
    let maps = Api::<ConfigMap>::namespaced(fixture.client.clone(), "default");
    maps.create(&PostParams::default(), &serde_json::from_value(words).unwrap()).await.unwrap();
    fixture.until("web", is_ready).await;
    fixture.until_said("web", "hello\n").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_volume_is_awaited_and_its_pod_can_go_before_it_comes() {
    let fixture = Fixture::start().await;
    let mut waiting = pod("web", SERVE);
    waiting["spec"]["volumes"] = json!([{ "name": "words", "configMap": { "name": "words" } }]);
    fixture.create(waiting).await;
    let events = fixture.events("web", |events| events.iter().any(|(reason, _)| reason == "FailedMount")).await;
    assert!(events[0].1.contains("configmap \"words\" not found"), "{events:?}");
    fixture.delete("web").await;
    fixture.nothing_is_left().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_cannot_start_says_why_and_is_tried_again() {
    let fixture = Fixture::start().await;
    let mut broken = pod("broken", "");
    broken["spec"]["containers"][0]["command"] = json!(["no-such-program"]);
    fixture.create(broken).await;
    let pod = fixture.until("broken", |pod| waits_for(pod, "CrashLoopBackOff")).await;
    let last = main_status(&pod).last_state.unwrap().terminated.unwrap();
    assert_eq!((last.exit_code, last.reason.as_deref()), (128, Some("StartError")));
    assert_eq!(last.message.as_deref(), Some("exec: \"no-such-program\": executable file not found in $PATH"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn readiness_follows_its_probe() {
    let fixture = Fixture::start().await;
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("ready");
    let mut probed = pod("probed", SERVE);
    let check = json!({ "command": ["test", "-e", file.to_str().unwrap()] });
    probed["spec"]["containers"][0]["readinessProbe"] =
        json!({ "exec": check, "periodSeconds": 1, "failureThreshold": 1 });
    fixture.create(probed).await;
    let pod = fixture.until("probed", |pod| main_status(pod).started == Some(true)).await;
    assert!(!is_ready(&pod));
    std::fs::write(&file, "").unwrap();
    fixture.until("probed", is_ready).await;
    std::fs::remove_file(&file).unwrap();
    fixture.until("probed", |pod| !is_ready(pod)).await;
    fixture.events("probed", |events| events.iter().any(|(reason, _)| reason == "Unhealthy")).await;
    fixture.delete("probed").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_is_not_alive_is_restarted() {
    let fixture = Fixture::start().await;
    let mut probed = pod("probed", SERVE);
    let check = json!({ "command": ["false"] });
    probed["spec"]["containers"][0]["livenessProbe"] =
        json!({ "exec": check, "periodSeconds": 1, "failureThreshold": 1 });
    fixture.create(probed).await;
    fixture.until("probed", |pod| main_status(pod).restart_count > 0).await;
    let wanted = "Container main failed liveness probe, will be restarted";
    fixture.events("probed", |events| events.iter().any(|(_, note)| note == wanted)).await;
    fixture.delete("probed").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn another_image_is_another_run() {
    let fixture = Fixture::start().await;
    fixture.run("web", SERVE).await;
    fixture.until("web", is_ready).await;
    let patch = Patch::Strategic(json!({ "spec": { "containers": [{ "name": "main", "image": "shell:2" }] } }));
    fixture.pods.patch("web", &PatchParams::default(), &patch).await.unwrap();
    let pod = fixture.until("web", |pod| is_ready(pod) && main_status(pod).restart_count == 1).await;
    assert_eq!(main_status(&pod).image, "docker.io/library/shell:2");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_listens_on_all_addresses_is_reported() {
    let fixture = Fixture::start().await;
    let script = "import signal, socket, time; s = socket.create_server(('0.0.0.0', 0)); time.sleep(1000)";
    let mut greedy = pod("greedy", "");
    greedy["spec"]["containers"][0]["command"] = json!(["python3", "-c", script]);
    greedy["spec"]["containers"][0]["args"] = json!([]);
    fixture.create(greedy).await;
    let pod = fixture.until("greedy", |pod| condition(pod, "WildcardBind") == "True").await;
    let found = crate::controller::pods::condition(&pod, "WildcardBind").unwrap();
    let message = found.message.as_deref().unwrap();
    assert!(message.starts_with("Container main listens on 0.0.0.0:"), "{message}");
    // It is ready, for now.
    assert!(is_ready(&pod));
    fixture.delete("greedy").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_probe_that_cannot_be_made_kills_nobody() {
    let fixture = Fixture::start().await;
    let mut probed = pod("probed", SERVE);
    let check = json!({ "tcpSocket": { "port": "no-such-port" }, "periodSeconds": 1, "failureThreshold": 1 });
    probed["spec"]["containers"][0]["livenessProbe"] = check;
    fixture.create(probed).await;
    let wanted =
        "Liveness probe errored and resulted in unknown state: couldn't find port \"no-such-port\" in the container";
    fixture.events("probed", |events| events.iter().any(|told| *told == ("Unhealthy".into(), wanted.into()))).await;
    let pod = fixture.until("probed", is_ready).await;
    assert_eq!(main_status(&pod).restart_count, 0);
    fixture.events("probed", |events| !events.iter().any(|(reason, _)| reason == "Killing")).await;
    fixture.delete("probed").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_program_that_is_not_there_is_called_as_the_pod_calls_it() {
    let fixture = Fixture::start().await;
    let mut lost = pod("lost", "");
    lost["spec"]["containers"][0]["command"] = json!(["/no/such/prog"]);
    fixture.create(lost).await;
    let is_told = |events: &[(String, String)]| events.iter().any(|(reason, _)| reason == "Failed");
    let events = fixture.events("lost", is_told).await;
    let (_, note) = events.iter().find(|(reason, _)| reason == "Failed").unwrap();
    assert!(note.contains("exec: \"/no/such/prog\": stat: no such file or directory"), "{note}");
}
