use serde_json::{Value, json};

use super::*;

fn pod(spec: Value) -> Pod {
    serde_json::from_value(json!({ "metadata": { "name": "web", "generation": 1 }, "spec": spec })).unwrap()
}

fn one(policy: &str) -> Pod {
    pod(json!({ "restartPolicy": policy, "containers": [{ "name": "main" }] }))
}

fn with_init(policy: &str) -> Pod {
    pod(json!({
        "restartPolicy": policy,
        "initContainers": [{ "name": "init" }, { "name": "side", "restartPolicy": "Always" }],
        "containers": [{ "name": "main" }],
    }))
}

fn container(name: &str, state: Value) -> ContainerStatus {
    let mut status = json!({
        "name": name, "image": "x", "imageID": "x", "ready": false, "restartCount": 0, "started": false, "state": state,
    });
    if state.get("running").is_some() {
        status["ready"] = true.into();
        status["started"] = true.into();
    }
    if state["terminated"]["exitCode"] == 0 && name == "init" {
        status["ready"] = true.into();
    }
    if state["waiting"]["reason"] == "CrashLoopBackOff" {
        status["lastState"] = json!({ "terminated": { "exitCode": 1 } });
    }
    serde_json::from_value(status).unwrap()
}

fn facts(containers: &[(&str, Value)]) -> PodRuntimeState {
    let containers =
        containers.iter().map(|(name, state)| ((*name).to_owned(), container(name, state.clone()))).collect();
    PodRuntimeState {
        containers,
        host_ip: "127.20.0.1".into(),
        ip: Some("127.20.0.2".into()),
        prepared: true,
        ..PodRuntimeState::default()
    }
}

fn running() -> Value {
    json!({ "running": {} })
}

fn ended(code: i32) -> Value {
    json!({ "terminated": { "exitCode": code } })
}

fn waiting_for(reason: &str) -> Value {
    json!({ "waiting": { "reason": reason } })
}

fn now() -> Timestamp {
    "2026-01-02T03:04:05.5Z".parse().unwrap()
}

/// Status and message of a condition.
fn condition(status: &PodStatus, kind: &str) -> (String, String) {
    let found = status.conditions.iter().flatten().find(|condition| condition.type_ == kind).unwrap();
    (found.status.clone(), found.reason.clone().unwrap_or_default())
}

#[test]
fn the_phase_follows_from_the_containers() {
    let crash = waiting_for("CrashLoopBackOff");
    for (policy, state, finished, phase) in [
        ("Always", waiting_for("ContainerCreating"), false, "Pending"),
        ("Always", waiting_for("ContainerCreating"), true, "Failed"),
        ("Always", running(), false, "Running"),
        ("Always", crash.clone(), false, "Running"),
        ("Always", ended(1), false, "Running"),
        ("Always", ended(0), true, "Succeeded"),
        ("Always", ended(143), true, "Failed"),
        ("OnFailure", ended(1), false, "Running"),
        ("OnFailure", crash, false, "Running"),
        ("OnFailure", ended(0), false, "Succeeded"),
        ("Never", ended(0), false, "Succeeded"),
        ("Never", ended(1), false, "Failed"),
    ] {
        let facts = PodRuntimeState { finished, ..facts(&[("main", state.clone())]) };
        let status = generate_status(&one(policy), &facts, now());
        assert_eq!(status.phase.as_deref(), Some(phase), "{policy} {state} {finished}");
    }
}

#[test]
fn initialization_comes_first() {
    let pending = waiting_for("PodInitializing");
    for (policy, init, side, main, phase, initialized) in [
        ("Always", running(), pending.clone(), pending.clone(), "Pending", ("False", "ContainersNotInitialized")),
        ("Always", ended(1), pending.clone(), pending.clone(), "Pending", ("False", "ContainersNotInitialized")),
        ("Never", ended(1), pending.clone(), pending.clone(), "Failed", ("False", "ContainersNotInitialized")),
        ("Always", ended(0), pending.clone(), pending.clone(), "Pending", ("False", "ContainersNotInitialized")),
        ("Always", ended(0), running(), pending, "Pending", ("True", "")),
        ("Always", ended(0), running(), running(), "Running", ("True", "")),
        // A later failure of a sidecar does not reset initialization.
        ("Always", ended(0), waiting_for("CrashLoopBackOff"), running(), "Running", ("True", "")),
    ] {
        let facts = facts(&[("init", init.clone()), ("side", side.clone()), ("main", main)]);
        let status = generate_status(&with_init(policy), &facts, now());
        assert_eq!(status.phase.as_deref(), Some(phase), "{policy} {init} {side}");
        let (holds, reason) = condition(&status, "Initialized");
        assert_eq!((holds.as_str(), reason.as_str()), initialized, "{policy} {init} {side}");
    }
}

#[test]
fn ready_are_all_containers_and_gates() {
    let mut gated = one("Always");
    gated.spec.as_mut().unwrap().readiness_gates =
        serde_json::from_value(json!([{ "conditionType": "example.com/ready" }])).unwrap();
    let up = facts(&[("main", running())]);
    let status = generate_status(&gated, &up, now());
    assert_eq!(condition(&status, "ContainersReady").0, "True");
    assert_eq!(condition(&status, "Ready"), ("False".into(), "ReadinessGatesNotReady".into()));
    gated.status = serde_json::from_value(json!({
        "conditions": [{ "type": "example.com/ready", "status": "True" }],
    }))
    .unwrap();
    let status = generate_status(&gated, &up, now());
    assert_eq!(condition(&status, "Ready").0, "True");
    assert_eq!(condition(&status, "example.com/ready").0, "True");
    let down = facts(&[("main", waiting_for("ContainerCreating"))]);
    let status = generate_status(&one("Always"), &down, now());
    let ready = status.conditions.as_ref().unwrap().iter().find(|condition| condition.type_ == "Ready").unwrap();
    assert_eq!(ready.reason.as_deref(), Some("ContainersNotReady"));
    assert_eq!(ready.message.as_deref(), Some("containers with unready status: [main]"));
}

#[test]
fn a_condition_keeps_the_time_at_which_it_last_became_another() {
    let mut pod = one("Always");
    let up = facts(&[("main", running())]);
    pod.status = Some(generate_status(&pod, &up, now()));
    let later = "2026-01-02T04:00:00Z".parse().unwrap();
    assert_eq!(generate_status(&pod, &up, later), pod.status.clone().unwrap());
    let down = generate_status(&pod, &facts(&[("main", ended(1))]), later);
    let since = |status: &PodStatus, kind: &str| {
        let found = status.conditions.as_ref().unwrap().iter().find(|condition| condition.type_ == kind).unwrap();
        found.last_transition_time.clone().unwrap().0.to_string()
    };
    assert_eq!(since(&down, "Ready"), "2026-01-02T04:00:00Z");
    assert_eq!(since(&down, "PodScheduled"), "2026-01-02T03:04:05Z");
}

#[test]
fn who_is_ended_by_the_node_has_failed_and_says_why() {
    let verdict = PodFailure { reason: "DeadlineExceeded".into(), message: "too long".into(), grace: None };
    let ending = PodRuntimeState { failure: Some(verdict), ..facts(&[("main", running())]) };
    let mut pod = one("Always");
    pod.status = Some(PodStatus { phase: Some("Running".into()), ..PodStatus::default() });
    let status = generate_status(&pod, &ending, now());
    assert_eq!((status.phase.as_deref(), status.reason.as_deref()), (Some("Running"), None));
    assert_eq!(condition(&status, "Ready"), ("False".into(), "PodFailed".into()));
    let ended = PodRuntimeState { containers: facts(&[("main", ended(143))]).containers, finished: true, ..ending };
    let status = generate_status(&pod, &ended, now());
    assert_eq!((status.phase.as_deref(), status.reason.as_deref()), (Some("Failed"), Some("DeadlineExceeded")));
    assert_eq!(condition(&status, "Ready"), ("False".into(), "PodFailed".into()));
}
