//! What is stamped, and with what.

use kubewake_e2e::traces::SpanReference;

use super::*;

const WRITERS: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

#[test]
fn a_new_object_has_the_context_of_the_request_that_made_it() {
    let Some(stage) = Stage::start(&[]) else { return };
    stage.kubectl.run_ok("create configmap shop --from-literal=colour=red");
    let context = stage.context("configmap shop");
    stage.traces.wait_until_matches(
        trace_of(&context),
        "POST /api/v1/namespaces/{:namespace}/configmaps [apiserver] server
           stamp ConfigMap [kubewake-webhook] server x1",
    );
    let span = stage.stamp("configmap shop");
    let namespace = span.attribute("k8s.namespace.name");
    let name = span.attribute("k8s.object.name");
    assert_eq!((namespace, name, span.attribute("trail.outcome")), (stage.kubectl.namespace(), "shop", "stamped"));
    if stage.kubectl.cluster().is_embedded() {
        let chain = ["HTTP POST", "Call mutating webhook", "Create"];
        chain.iter().fold(span, |child, name| {
            let parent = child.parent_reference().expect("it is no root");
            let parent = stage.traces.wait_for(name, |spans| spans.get(&parent).cloned());
            assert_eq!(parent.name, *name);
            parent
        });
    }
}

#[test]
fn only_another_spec_is_stamped_anew_and_the_old_context_is_linked() {
    let Some(stage) = Stage::start(&[]) else { return };
    stage.kubectl.run_ok_with("apply -f -", &stage.manifest("shop", "red"));
    let first = stage.stamp("configmap shop");
    let all = stage.annotations("configmap shop");
    assert_eq!(all[PREVIOUS], Value::Null);

    stage.kubectl.run_ok("label configmap shop tier=web");
    stage.kubectl.run_ok("annotate configmap shop note=mine");
    stage.kubectl.run_ok_with("apply -f -", &stage.manifest("shop", "red"));
    let mut after = stage.annotations("configmap shop");
    assert_eq!(after["note"].take(), "mine");
    assert_eq!((&after[PARENT], &after[SPEC]), (&all[PARENT], &all[SPEC]));

    stage.kubectl.run_ok_with("apply -f -", &stage.manifest("shop", "blue"));
    let second = stage.stamp("configmap shop");
    let all = stage.annotations("configmap shop");
    assert_ne!(first.id.trace, second.id.trace);
    assert_eq!(all[PREVIOUS], first.traceparent());
    assert_eq!(all["note"], "mine");
    assert_eq!(second.links, std::slice::from_ref(&first.id));
    stage.traces.wait_until_matches(
        &second.id.trace,
        "PATCH /api/v1/namespaces/{:namespace}/configmaps/{:name} [apiserver] server
           stamp ConfigMap [kubewake-webhook] server ~> stamp ConfigMap x1",
    );
}

#[test]
fn a_context_that_an_update_drops_comes_back() {
    let Some(stage) = Stage::start(&[]) else { return };
    stage.kubectl.run_ok_with("create -f -", &stage.manifest("shop", "red"));
    let before = stage.stamped("configmap shop");
    stage.kubectl.ok_despite_conflicts("replace -f -", &stage.manifest("shop", "red"));
    assert_eq!(stage.stamped("configmap shop"), before);
    stage.kubectl.run_ok(&format!("annotate configmap shop {PARENT}-"));
    assert_eq!(stage.stamped("configmap shop"), before);
    stage.traces.wait_for_span("stamp ConfigMap", |span| span.attribute("trail.outcome") == "restored");
    // With another spec there is a new one, which knows the old.
    stage.kubectl.ok_despite_conflicts("replace -f -", &stage.manifest("shop", "blue"));
    let after = stage.annotations("configmap shop");
    assert_ne!(after[PARENT], before[PARENT]);
    assert_eq!(after[PREVIOUS], before[PARENT]);
}

#[test]
fn a_context_that_the_writer_set_wins_and_links_the_api_servers_trace() {
    let Some(stage) = Stage::start(&[]) else { return };
    let manifest = stage.manifest("shop", "red");
    let own = manifest.replace("{name: shop}", &format!("{{name: shop, annotations: {{{PARENT}: {WRITERS}}}}}"));
    stage.kubectl.run_ok_with("create -f -", &own);
    assert_eq!(stage.context("configmap shop"), WRITERS);
    let kept =
        |span: &ExportedSpan| span.attribute("trail.outcome") == "kept" && span.attribute("trail.dry_run").is_empty();
    let span = stage.traces.wait_for_span("stamp ConfigMap", kept);
    let writers = SpanReference { trace: WRITERS[3..35].to_owned(), span: WRITERS[36..52].to_owned() };
    assert_eq!(span.parent_reference(), Some(writers));
    if stage.kubectl.cluster().is_embedded() {
        let [link] = &span.links[..] else { panic!("{span:?}") };
        let call = stage.traces.wait_for("the API server's call", |spans| spans.get(link).cloned());
        assert_eq!((&*call.name, &*call.service), ("HTTP POST", "apiserver"));
    }
    // It stays while nothing else is asked for, and goes with the next change.
    stage.kubectl.run_ok("label configmap shop a=b");
    assert_eq!(stage.context("configmap shop"), WRITERS);
    stage.kubectl.run_ok_with("apply -f -", &own.replace("red", "blue"));
    assert_eq!(stage.stamp("configmap shop").attribute("trail.outcome"), "stamped");
    assert_eq!(stage.annotations("configmap shop")[PREVIOUS], WRITERS);
}

#[test]
fn managers_that_apply_own_none_of_it_and_do_not_conflict() {
    let Some(stage) = Stage::start(&[]) else { return };
    let apply = |manager: &str, data: &str| {
        let manifest = format!("apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: shop}}\ndata: {{{data}}}\n");
        stage.kubectl.run_ok_with(&format!("apply --server-side --field-manager={manager} -f -"), &manifest);
        stage.context("configmap shop")
    };
    let first = apply("one", "one: red");
    assert_eq!(apply("one", "one: red"), first, "the same again changes nothing");
    let version = stage.kubectl.field("configmap shop", ".metadata.resourceVersion");
    assert_eq!(apply("one", "one: red"), first);
    if stage.kubectl.cluster().is_embedded() {
        assert_eq!(stage.kubectl.field("configmap shop", ".metadata.resourceVersion"), version, "nothing was written");
    }
    let second = apply("two", "two: blue");
    assert_ne!(second, first);
    let third = apply("one", "one: green");
    assert_ne!(third, second);
    let managed = stage.kubectl.run_ok("get configmap shop -o json --show-managed-fields");
    let managed: Value = serde_json::from_str(&managed).unwrap();
    assert!(!managed["metadata"]["managedFields"].to_string().contains("traceparent"));
}

#[test]
fn a_deployment_is_stamped_by_its_spec_and_not_by_its_status_or_in_its_template() {
    let Some(stage) = Stage::start(&[]) else { return };
    let deployment = "apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 0
  selector: {matchLabels: {app: web}}
  template: {metadata: {labels: {app: web}}, spec: {containers: [{name: c, image: example}]}}
";
    stage.kubectl.run_ok_with("apply -f -", deployment);
    let context = stage.context("deployment web");
    let before = stage.kubectl.json("deployment web");
    let generation = before["metadata"]["generation"].to_string();
    assert_eq!(before["metadata"]["annotations"]["trail.kubewake.io/generation"], generation);
    assert_eq!(before["spec"]["template"]["metadata"].get("annotations"), None);
    if stage.kubectl.is_at_least(24, "--subresource") {
        let status = "patch deployment web --subresource=status --type=merge -p";
        stage.kubectl.run_ok(&format!(r#"{status} {{"status":{{"observedGeneration":1}}}}"#));
    }
    assert_eq!(stage.context("deployment web"), context);
    stage.kubectl.run_ok_with("apply -f -", &deployment.replace("image: example", "image: example:2"));
    let after = stage.kubectl.json("deployment web");
    let generation = after["metadata"]["generation"].to_string();
    assert_eq!(after["metadata"]["annotations"]["trail.kubewake.io/generation"], generation);
    assert_ne!(stage.context("deployment web"), context);
}

#[test]
fn a_dry_run_shows_what_would_be_and_leaves_nothing() {
    let Some(stage) = Stage::start(&[]) else { return };
    let shown = stage.kubectl.run_ok("create configmap shop --dry-run=server -o json");
    assert!(shown.contains(PARENT), "{shown}");
    assert!(!stage.kubectl.exists("configmap shop"));
    stage.traces.wait_for_span("stamp ConfigMap", |span| span.attribute("trail.dry_run") == "true");
}

#[test]
fn who_is_not_believed_gets_the_context_of_the_request() {
    let Some(mut stage) = Stage::start(&[]) else { return };
    stage.webhook = None;
    stage.args = vec!["--distrust-namespace".to_owned(), stage.kubectl.namespace().to_owned()];
    stage.begin();
    let manifest = stage.manifest("shop", "red");
    let own = manifest.replace("{name: shop}", &format!("{{name: shop, annotations: {{{PARENT}: {WRITERS}}}}}"));
    stage.kubectl.run_ok_with("create -f -", &own);
    assert_eq!(stage.stamp("configmap shop").attribute("trail.outcome"), "stamped");
    assert_ne!(trace_of(&stage.context("configmap shop")), trace_of(WRITERS));
}
