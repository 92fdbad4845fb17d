//! Contexts that are not to be believed.

use kubewake_e2e::traces::CallerVisibility;

use super::{
    anywhere, head, is, is_real, operator,
    parts::{self, CONVERGENCE},
    stop, tell_only, wait_ready, webhook,
};

const FOREIGN: &str = "0af7651916cd43dd8448eb211c80319c";

/// What each run does, in a trace of its own, and how long everything took.
const RUNS: &str = "
reconcile Head [head-operator] consumer
  <run of Head>
reconcile ChildA [head-operator] consumer
  <run of ChildA>
converge Head [head-operator] internal ~> reconcile Head
converge ChildA [head-operator] internal ~> reconcile ChildA
";

#[test]
fn a_context_of_a_namespace_that_is_not_trusted_is_not_followed() {
    let Some(traced) = anywhere() else { return };
    let kubectl = &traced.kubectl;
    let webhook = webhook(&traced);
    let operator = operator(&traced, &["--distrust", kubectl.namespace()]);
    let parent = format!("tracing.k8s.io/traceparent: 00-{FOREIGN}-b7ad6b7169203331-01");
    let metadata = format!("metadata: {{annotations: {{{parent}}}, name");
    kubectl.run_ok_with("apply -f -", &head("one", "first").replace("metadata: {name", &metadata));
    wait_ready(&traced, "one");
    stop(operator);
    stop(webhook);
    let traces = traced.stop();
    // Only the webhook, which does believe it, is in that trace. It links the API server's call.
    let stamp = match traces.callers() {
        CallerVisibility::Hidden => "stamp Head [kubewake-webhook] server",
        CallerVisibility::Trusted | CallerVisibility::Linked => {
            "ORPHAN stamp Head [kubewake-webhook] server ~> HTTP POST"
        }
    };
    traces.assert_matches(FOREIGN, stamp);
    let runs = traces.assert_all_match("head-operator", &[FOREIGN], &parts::whole(traces.callers(), RUNS));
    assert!(runs >= 4, "each controller does something twice");
}

#[test]
fn garbage_in_the_place_of_a_context_is_as_if_there_were_none() {
    let Some(traced) = anywhere() else { return };
    let webhook = webhook(&traced);
    let operator = operator(&traced, &[]);
    let long = "a".repeat(50_000);
    let annotations = [
        format!("tracing.k8s.io/traceparent: 00-{long}-01"),
        format!("tracing.k8s.io/tracestate: {long}"),
        "trail.kubewake.io/changed: yesterday".to_owned(),
        "trail.kubewake.io/generation: many".to_owned(),
        r#"tekton.dev/pipelinerunSpanContext: "{""#.to_owned(),
    ];
    let metadata = format!("metadata: {{annotations: {{{}}}, name", annotations.join(", "));
    traced.kubectl.run_ok_with("apply -f -", &head("one", "first").replace("metadata: {name", &metadata));
    wait_ready(&traced, "one");
    stop(operator);
    stop(webhook);
    let traces = traced.stop();
    let trace = traces.wait_for_span("stamp Head", is_real).id.trace;
    is(&traces, &trace, CONVERGENCE);
    tell_only(&traces, &[&trace]);
}
