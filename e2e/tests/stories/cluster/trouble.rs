//! What goes wrong is told where people look, and mends itself when its cause does.

use kubewake_e2e::{Kubectl, wait_until};

use super::{cluster, shell};

fn waiting(kubectl: &Kubectl, pod: &str) -> String {
    kubectl.field(&format!("pod {pod}"), ".status.containerStatuses[0].state.waiting")
}

#[test]
fn what_a_pod_needs_and_is_not_there_is_named_until_it_is() {
    let Some(kubectl) = cluster(&[]) else { return };
    let env = "env: [{name: SIZE, valueFrom: {configMapKeyRef: {name: late, key: size}}}], command:";
    kubectl.run_ok_with("apply -f -", &shell("needy", "echo size $SIZE; exec sleep 600").replace("command:", env));
    wait_until("the status names the missing ConfigMap", || {
        let waiting = waiting(&kubectl, "needy");
        waiting.contains("CreateContainerConfigError") && waiting.contains("configmap \\\"late\\\" not found")
    });
    kubectl.run_ok("create configmap late --from-literal=size=9");
    kubectl.run_ok("wait --for=condition=Ready pod/needy --timeout=60s");
    assert_eq!(kubectl.run_ok("logs needy"), "size 9\n");
}

#[test]
fn an_unknown_image_lists_the_known_ones() {
    let Some(kubectl) = cluster(&[]) else { return };
    kubectl.run_ok("run stranger --image=nobody/knows:1");
    wait_until("the status names the missing image", || {
        let waiting = waiting(&kubectl, "stranger");
        let reason = waiting.contains("ErrImagePull") || waiting.contains("ImagePullBackOff");
        reason && ["nobody/knows", "example/python", "kubewake/collector"].iter().all(|name| waiting.contains(name))
    });
    assert_eq!(kubectl.field("pod stranger", ".status.phase"), "Pending");
}

#[test]
fn a_program_that_binds_the_wildcard_is_reported() {
    let Some(kubectl) = cluster(&[]) else { return };
    let pod = shell("greedy", "")
        .replace("example/shell", "example/python")
        .replace(r#"["sh", "-c", ""]"#, r#"["python3", "-m", "http.server", "--bind", "0.0.0.0", "0"]"#);
    let pod = pod.replace("command: [\"python3\", ", "args: [");
    kubectl.run_ok_with("apply -f -", &pod);
    wait_until("an Event reports the problem", || kubectl.run_ok("get events").contains("WildcardBind"));
}

#[test]
fn a_pod_that_fits_nowhere_waits() {
    let Some(kubectl) = cluster(&["--nodes", "2"]) else { return };
    let huge = "resources: {requests: {cpu: \"1000\"}}, command:";
    kubectl.run_ok_with("apply -f -", &shell("huge", "exec sleep 600").replace("command:", huge));
    wait_until("the pod is unschedulable with a reason", || {
        kubectl.run_ok("describe pod huge").contains("0/2 nodes are available: 2 Insufficient cpu")
    });
    assert_eq!(kubectl.field("pod huge", ".status.phase"), "Pending");
    let other = shell("other", "exec sleep 600").replace("spec:\n", "spec:\n  schedulerName: somebody-else\n");
    kubectl.run_ok_with("apply -f -", &other);
    kubectl.run_ok_with("apply -f -", &shell("usual", "exec sleep 600"));
    kubectl.run_ok("wait --for=condition=Ready pod/usual --timeout=60s");
    assert_eq!(kubectl.field("pod other", ".spec.nodeName"), "", "it waits for its own scheduler");
}

#[test]
fn nobody_can_look_into_a_pod_with_another_container() {
    let Some(kubectl) = cluster(&[]) else { return };
    kubectl.run_ok_with("apply -f -", &shell("web", "exec sleep 600"));
    let refused = kubectl.run_failing("debug web --image=example/shell --target=main");
    assert!(refused.contains("ephemeral containers are disabled for this cluster"), "{refused}");
}

#[test]
fn an_account_that_is_not_there_is_named() {
    let Some(kubectl) = cluster(&[]) else { return };
    let why = |name: &str| {
        let missing = "serviceaccount \"nobody\" not found";
        let namespace = kubectl.namespace();
        format!("pods \"{name}\" is forbidden: error looking up service account {namespace}/nobody: {missing}")
    };
    let pod = shell("web", "exec sleep 600").replace("  containers:", "  serviceAccountName: nobody\n  containers:");
    let refused = kubectl.run_failing_with("create -f -", &pod);
    assert!(refused.contains(&why("web")), "{refused}");
    kubectl.run_ok_with(
        "apply -f -",
        &super::WEB.replace("      containers:", "      serviceAccountName: nobody\n      containers:"),
    );
    wait_until("an Event reports the problem", || {
        let events = kubectl.run_ok("get events -o jsonpath={.items[?(@.reason==\"FailedCreate\")].message}");
        events.contains("Error creating: pods \"web-") && events.contains("serviceaccount \"nobody\" not found")
    });
    kubectl.run_ok("create serviceaccount nobody");
    kubectl.run_ok("rollout status deployment/web --timeout=120s");
    let mounts = kubectl.field("pod -l app=web", ".items[0].spec.containers[0].volumeMounts[*].name");
    assert!(mounts.contains("kube-api-access-"), "{mounts}");
}

#[test]
fn who_takes_a_port_from_all_is_named_to_the_others() {
    let Some(kubectl) = cluster(&[]) else { return };
    let python = |name: &str, address: &str, port: u16| {
        shell(name, "").replace("example/shell", "example/python").replace(
            r#"command: ["sh", "-c", ""]"#,
            &format!(r#"args: ["-m", "http.server", "--bind", "{address}", "{port}"], env: [{{name: POD_IP, valueFrom: {{fieldRef: {{fieldPath: status.podIP}}}}}}]"#),
        )
    };
    let free = std::net::TcpListener::bind("0.0.0.0:0").unwrap();
    let port = free.local_addr().unwrap().port();
    drop(free);
    kubectl.run_ok_with("apply -f -", &python("greedy", "0.0.0.0", port));
    wait_until("the condition WildcardBind is True", || {
        let conditions = kubectl.field("pod greedy", ".status.conditions[?(@.type==\"WildcardBind\")].status");
        conditions == "True"
    });
    kubectl.run_ok_with("apply -f -", &python("victim", "$(POD_IP)", port));
    let greedy = format!("{}/greedy", kubectl.namespace());
    let wanted = format!("Port {port} may be taken by pod {greedy}: Container main listens on 0.0.0.0:{port}");
    wait_until("an Event of the victim names the other pod", || {
        kubectl.run_ok("describe pod victim").contains(&wanted)
    });
}
