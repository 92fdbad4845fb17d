//! What happened to an object, drawn in the terminal; and spans as they arrive.

use std::time::{Duration, Instant};

use kubewake_e2e::{Kubectl, ViewerProcess, free_address, viewer::TraceBuilder, wait_for, wait_until};
use serde_json::{Value, json};

use super::{run, start};

/// The attributes of a span about an object.
fn of(kind: &str, namespace: &str, name: &str) -> Value {
    let text = |key: &str, value: &str| json!({"key": key, "value": {"stringValue": value}});
    json!({"attributes": [
        text("k8s.object.kind", kind), text("k8s.object.name", name), text("k8s.namespace.name", namespace),
    ]})
}

/// The kubeconfig of a cluster at this address.
fn away(address: std::net::SocketAddr) -> String {
    let cluster = json!({"name": "c", "cluster": {"server": format!("http://{address}")}});
    let context = json!({"name": "c", "context": {"cluster": "c", "user": ""}});
    json!({"apiVersion": "v1", "kind": "Config", "current-context": "c", "clusters": [cluster], "contexts": [context]})
        .to_string()
}

fn failed(message: &str) -> Value {
    json!({"status": {"code": 2, "message": message}})
}

/// Sends a span with this number, in a trace of its own.
pub(super) fn send_one(viewer: &ViewerProcess, number: u64, service: &str, name: &str, more: Value) -> String {
    let mut told = TraceBuilder::new(number);
    told.span(service, name, None, 0.0, 3.0);
    told.with_fields(more);
    viewer.send_and_wait(&told);
    told.id().to_owned()
}

/// The operator of a Deployment `web` says that a generation of it is as it should be.
fn converged(viewer: &ViewerProcess, namespace: &str, generation: u64, uid: &str) -> String {
    let text = |key: &str, value: &str| json!({"key": key, "value": {"stringValue": value}});
    let about = json!({"attributes": [
        text("k8s.object.api_version", "apps/v1"), text("k8s.object.kind", "Deployment"), text("k8s.object.name", "web"),
        text("k8s.namespace.name", namespace), text("k8s.object.uid", uid),
        {"key": "k8s.object.generation", "value": {"intValue": generation.to_string()}},
    ]});
    format!("{}\n", send_one(viewer, generation, "operator", "converge Deployment", about))
}

#[test]
fn an_object_has_its_latest_trace_drawn() {
    let viewer = ViewerProcess::start();
    let home = tempfile::tempdir().unwrap();
    let ask = |command: &str| run(home.path(), &format!("{command} --viewer {}", viewer.url("")));
    let nothing = ask("trace head/demo");
    assert!(nothing.code == 1 && nothing.stderr.contains("no trace of head/demo"), "{nothing:?}");

    let mut told = TraceBuilder::new(1);
    let root = told.span("kube-apiserver", "PATCH /heads/demo", None, 0.0, 12.0);
    let reconcile = told.span("head-operator", "reconcile Head", Some(&root), 20.0, 380.0);
    told.with_fields(of("Head", "shop", "demo"));
    told.span("head-operator", "apply ChildA", Some(&reconcile), 30.0, 60.0);
    told.with_fields(failed("no\u{1b}[2J rights"));
    told.span("head-operator", "converge Head", Some(&root), 1500.0, 500.0);
    told.with_fields(of("Head", "shop", "demo"));
    viewer.send_and_wait(&told);
    let drawn = ask("trace head/demo").stdout;
    let expected = [
        "4 spans of 2 services in 2 s, 1 error",
        "head-operator · reconcile Head",
        "✗ apply ChildA",
        "no\\u{1b}[2J rights",
        "⋯ 1.1 s",
        "█",
    ];
    for words in expected {
        assert!(drawn.contains(words), "{words} is not in\n{drawn}");
    }
    assert!(!drawn.contains('\u{1b}'), "{drawn}");
    assert_eq!(ask("trace heads demo -n shop -o name").stdout, format!("{}\n", told.id()));
    assert_eq!(ask(&format!("trace --id {} -o json", told.id())).json()["traceId"], told.id());
    let yaml = ask(&format!("trace --id {} -o yaml", told.id())).stdout;
    assert!(yaml.contains("spans:\n") && yaml.contains(told.id()), "{yaml}");
    let elsewhere = ask("trace head/demo -n other");
    assert!(elsewhere.code == 1 && elsewhere.stderr.contains("the viewer has Head/demo -n shop"), "{elsewhere:?}");

    // The same name in another namespace: somebody has to say which.
    let other = send_one(&viewer, 2, "x", "reconcile Head", of("Head", "till", "demo"));
    let several = ask("trace head/demo");
    assert!(several.code == 1 && several.stderr.contains("-n shop"), "{several:?}");
    assert!(several.stderr.contains("-n till"), "{several:?}");
    assert_eq!(ask("trace head/demo -n till -o name").stdout, format!("{other}\n"));
}

#[test]
fn a_generation_is_followed_until_it_has_converged() {
    let viewer = ViewerProcess::start();
    let home = tempfile::tempdir().unwrap();
    let at = format!("--viewer {}", viewer.url(""));
    let generation = |number: u64, name: &str| {
        let mut told = TraceBuilder::new(number);
        told.span("operator", name, None, 0.0, 5.0);
        told.object("Head", "demo", number);
        viewer.send_and_wait(&told);
        told.id().to_owned()
    };
    let first = generation(1, "reconcile Head");
    let mut following = start(home.path(), &format!("trace head/demo --follow -o name {at}"));
    let second = generation(2, "reconcile Head");
    assert!(following.is_running(), "it is not over: {}", following.stderr());
    let mut told = TraceBuilder::new(3);
    told.span("operator", "converge Head", None, 0.0, 900.0);
    told.object("Head", "demo", 2);
    viewer.send_and_wait(&told);
    assert!(following.wait_for_exit().success(), "{}", following.stderr());
    assert_eq!(following.stdout(), format!("{}\n", told.id()));

    let ask = |command: &str| run(home.path(), &format!("{command} {at}"));
    assert_eq!(ask("trace head/demo --generation 1 -o name").stdout, format!("{first}\n"));
    let of_second = ask("trace head/demo --generation 2 -o name").stdout;
    assert!([told.id(), &second].contains(&of_second.trim()), "{of_second}");
    let never = ask("trace head/demo --generation 7");
    assert!(never.code == 1 && never.stderr.contains("known generations: 2, 1"), "{never:?}");
}

#[test]
fn a_change_is_waited_for_though_the_viewer_knows_only_the_one_before() {
    let Some(kubectl) = Kubectl::start() else { return };
    let viewer = ViewerProcess::start();
    let home = tempfile::tempdir().unwrap();
    let alone = format!("--viewer {}", viewer.url(""));
    let at = format!("{alone} --kubeconfig {}", kubectl.cluster().kubeconfig().display());
    let ask = |command: &str| run(home.path(), &format!("trace deploy/web -o name {command}"));
    kubectl.run_ok("create deployment web --image web --replicas 0");
    let converged = |generation: u64, uid: &str| converged(&viewer, kubectl.namespace(), generation, uid);
    let uid = || kubectl.field("deployment/web", ".metadata.uid");
    let following = |newer: &str| {
        let following = start(home.path(), &format!("trace deployment/web -o name --follow {at}"));
        wait_until("the command reports that it waits", || {
            following.stderr().contains(&format!("waiting for spans of {newer} of Deployment/web"))
        });
        following
    };
    let first = converged(1, &uid());
    let both = [ask(&at), ask(&format!("--follow {at}"))];
    assert!(both.iter().all(|said| (said.stdout.as_str(), said.stderr.as_str()) == (&first, "")), "{both:?}");

    kubectl.run_ok("scale deployment web --replicas 1");
    let said = ask(&at);
    assert_eq!((said.code, &said.stdout), (0, &first), "{said:?}");
    assert!(said.stderr.starts_with("no spans of generation 2 of Deployment/web"), "{said:?}");
    let mut waiting = following("generation 2");
    let second = converged(2, &uid());
    assert!(waiting.wait_for_exit().success(), "{}", waiting.stderr());
    assert_eq!(waiting.stdout(), second);

    // Made again, it begins anew.
    kubectl.run_ok("delete deployment web");
    kubectl.run_ok("create deployment web --image web --replicas 0");
    let mut waiting = following("generation 1");
    kubectl.run_ok("scale deployment web --replicas 3");
    let third = converged(3, &uid());
    assert!(waiting.wait_for_exit().success(), "{}", waiting.stderr());
    assert_eq!(waiting.stdout(), third);

    // Who has no cluster, or one that is away, has the viewer's word.
    kubectl.run_ok("scale deployment web --replicas 4");
    let file = home.path().join("away");
    std::fs::write(&file, away(free_address())).unwrap();
    for place in [alone.clone(), format!("{alone} --kubeconfig {}", file.display())] {
        let said = ask(&format!("--follow {place}"));
        assert_eq!((said.stdout.as_str(), said.stderr.as_str()), (third.as_str(), ""), "{said:?}");
    }
    let nowhere = ask(&format!("{alone} --kubeconfig nowhere"));
    assert!(nowhere.code == 1 && nowhere.stderr.contains("nowhere"), "{nowhere:?}");
}

#[test]
fn an_object_that_may_be_new_is_waited_for() {
    let Some(kubectl) = Kubectl::start() else { return };
    let viewer = ViewerProcess::start();
    let home = tempfile::tempdir().unwrap();
    let at = format!("--viewer {} --kubeconfig {}", viewer.url(""), kubectl.cluster().kubeconfig().display());
    let began = Instant::now();
    let mut asking = start(home.path(), &format!("trace deployment/web -o name {at}"));
    let first = converged(&viewer, kubectl.namespace(), 1, "a uid");
    // On a machine that is too slow for that it says, at the end of its patience, that there is none.
    if asking.wait_for_exit().success() {
        assert_eq!(asking.stdout(), first)
    } else {
        assert!(began.elapsed() >= Duration::from_secs(3), "{}", asking.stderr())
    }
    let began = Instant::now();
    let nobody = run(home.path(), &format!("trace deployment/nobody {at}"));
    assert!(nobody.code == 1 && nobody.stderr.contains("no trace of"), "{nobody:?}");
    assert!(began.elapsed() >= Duration::from_secs(3), "it might have been new: {nobody:?}");
}

#[test]
fn a_change_that_only_the_viewers_cluster_tells_of_is_waited_for() {
    let Some(kubectl) = Kubectl::start() else { return };
    let kubeconfig = kubectl.cluster().kubeconfig().display().to_string();
    let viewer = ViewerProcess::start_with(&["--kubeconfig", &kubeconfig]);
    let home = tempfile::tempdir().unwrap();
    let command = format!("trace deploy/web -o name --viewer {}", viewer.url(""));
    let ask = || run(home.path(), &command);
    kubectl.run_ok("create deployment web --image web --replicas 0");
    let uid = kubectl.field("deployment/web", ".metadata.uid");
    let first = converged(&viewer, kubectl.namespace(), 1, &uid);
    assert_eq!(ask().stdout, first);

    // The webhook has put the context of a trace on it, of which nothing has come yet.
    let mut next = TraceBuilder::new(7);
    let span = next.span("kube-apiserver", "PATCH /deployments/web", None, 0.0, 5.0);
    kubectl.run_ok("scale deployment web --replicas 1");
    let context = format!("tracing.k8s.io/traceparent=00-{}-{span}-01", next.id());
    kubectl.run_ok(&format!("annotate deployment web {context} trail.kubewake.io/generation=2"));
    wait_for("the viewer knows the change", || {
        let said = ask();
        assert_eq!(said.stdout, first, "{said:?}");
        said.stderr.starts_with("no spans of generation 2 of Deployment/web (the viewer's cluster)").then_some(())
    });
    let mut following = start(home.path(), &format!("{command} --follow"));
    wait_until("the command reports that it waits", || {
        following.stderr().contains("waiting for spans of generation 2 of Deployment/web")
    });
    // The API server's spans name no object.
    viewer.send_and_wait(&next);
    let said = ask();
    assert_eq!((said.stdout, said.stderr), (format!("{}\n", next.id()), String::new()));
    let second = converged(&viewer, kubectl.namespace(), 2, &uid);
    assert!(following.wait_for_exit().success(), "{}", following.stderr());
    assert_eq!(following.stdout(), second);

    // A pod gets its name after the webhook has seen it: only it itself names its trace.
    kubectl.run_ok("run lonely --image web");
    kubectl.run_ok(&format!("annotate pod lonely {context}"));
    wait_for("the viewer knows the change", || {
        let said = run(home.path(), &format!("trace po/lonely -o name --viewer {}", viewer.url("")));
        (said.stdout == format!("{}\n", next.id())).then_some(())
    });
}

#[test]
fn the_viewer_is_that_of_the_cluster_unless_another_is_named() {
    let Some(kubectl) = Kubectl::start() else { return };
    let viewer = ViewerProcess::start();
    let other = ViewerProcess::start();
    let home = tempfile::tempdir().unwrap();
    let place = format!("--namespace kubewake-system --from-literal page={}", viewer.url(""));
    kubectl.run_ok("create namespace kubewake-system");
    kubectl.run_ok(&format!("create configmap kubewake-viewer {place}"));
    let here = send_one(&viewer, 11, "x", "reconcile Head", of("Head", "shop", "demo"));
    let there = send_one(&other, 12, "x", "reconcile Head", of("Head", "shop", "demo"));
    let file = kubectl.cluster().kubeconfig();
    let named = format!("--kubeconfig {}", file.display());
    let ask = |more: &str| run(home.path(), &format!("trace head/demo -o name {more}")).stdout;
    assert_eq!(ask(&named), format!("{here}\n"));
    assert_eq!(ask(&format!("{named} --viewer {}", other.url(""))), format!("{there}\n"));

    // As kubectl finds it.
    std::fs::create_dir(home.path().join(".kube")).unwrap();
    std::fs::copy(file, home.path().join(".kube/config")).unwrap();
    assert_eq!(ask(""), format!("{here}\n"));

    // What it has is newer than what its viewer has, and is no business of another one.
    kubectl.run_ok("create deployment web --image web --replicas 0");
    kubectl.run_ok("scale deployment web --replicas 1");
    let [known, stranger] = [&viewer, &other].map(|viewer| converged(viewer, kubectl.namespace(), 1, ""));
    let web = |more: &str| run(home.path(), &format!("trace deployment/web -o name {more}"));
    let said = web("");
    assert!(said.stdout == known && said.stderr.starts_with("no spans of generation 2 of Deployment/web"), "{said:?}");
    for follow in ["", "--follow"] {
        let said = web(&format!("{follow} --viewer {}", other.url("")));
        assert_eq!((said.stdout.as_str(), said.stderr.as_str()), (stranger.as_str(), ""), "{said:?}");
    }
    let mut tail = start(home.path(), "tail --limit 1 -o yaml");
    let mut sent = 12_u64;
    wait_for("a span is seen", || {
        sent += 1;
        send_one(&viewer, sent, "shop", "buy", json!({}));
        (!tail.is_running()).then_some(())
    });
    let said = tail.stdout();
    assert!(said.starts_with("---\n") && said.contains("service: shop\n"), "{said}");
}

#[test]
fn a_cluster_that_does_not_answer_is_said_where_its_viewer_is_wanted() {
    let home = tempfile::tempdir().unwrap();
    let gone = free_address();
    let file = home.path().join("away");
    std::fs::write(&file, away(gone)).unwrap();
    // Somebody may be at the usual port, or not.
    let said = run(home.path(), &format!("trace head/nobody --kubeconfig {}", file.display()));
    assert!(said.stderr.starts_with("failed to get the viewer's address from the cluster"), "{said:?}");
    let nowhere = run(home.path(), "tail --kubeconfig nowhere");
    assert!(nowhere.code == 1 && nowhere.stderr.contains("nowhere"), "{nowhere:?}");
}

#[test]
fn without_a_viewer_it_says_where_it_looked() {
    let home = tempfile::tempdir().unwrap();
    let nowhere = free_address();
    for command in ["trace head/demo", "tail", "trace --id 1"] {
        let said = run(home.path(), &format!("{command} --viewer http://{nowhere}"));
        assert!(said.code == 1 && said.stderr.contains(&nowhere.to_string()), "{said:?}");
    }
    for wrong in ["trace demo", "trace head/", "trace head a/b"] {
        let said = run(home.path(), wrong);
        assert!(said.code == 2 && said.stderr.contains("KIND/NAME"), "{said:?}");
    }
    assert_eq!(run(home.path(), "trace").code, 2);
}

#[test]
fn spans_are_shown_as_they_arrive() {
    let viewer = ViewerProcess::start();
    let home = tempfile::tempdir().unwrap();
    let at = format!("--viewer {}", viewer.url(""));
    let mut all = start(home.path(), &format!("tail {at}"));
    let mut errors = start(home.path(), &format!("tail {at} --errors --service shop --limit 1 -o json"));
    let mut sent = 0_u64;
    let mut tell = |service: &str, name: &str, more: Value| {
        sent += 1;
        send_one(&viewer, sent, service, name, more);
    };
    // Whoever has just begun to listen may have missed the first ones.
    wait_for("the first is seen", || {
        tell("shop", "buy", json!({}));
        all.stdout().contains("buy").then_some(())
    });
    tell("till", "pay", failed("sold out"));
    wait_for("the error is seen", || {
        tell("shop", "refund", failed("sold out"));
        (!errors.is_running()).then_some(())
    });
    let output = errors.output();
    let line: Value = serde_json::from_slice(&output.stdout).expect("one object in one line");
    assert_eq!((&line["service"], &line["name"], &line["status"]), (&"shop".into(), &"refund".into(), &"error".into()));
    wait_for("the rest is seen", || all.stdout().contains("✗ pay").then_some(()));
    assert!(all.stdout().contains("sold out") && !all.stdout().contains('\u{1b}'), "{}", all.stdout());
    all.signal("INT");
    assert!(all.wait_for_exit().success(), "Ctrl-C is no failure: {}", all.stderr());
}
