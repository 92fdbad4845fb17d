//! From `kubectl apply` to Ready.

use super::{
    anywhere, cluster, head, is, is_real, operator,
    parts::{self, CONVERGENCE},
    stop, tell_only, wait_ready, webhook,
};

const TRACE_ID: &str = "trail.kubewake.io/trace-id";

#[test]
fn one_apply_is_one_trace_until_everything_is_ready() {
    let Some(traced) = anywhere() else { return };
    let webhook = webhook(&traced);
    let operator = operator(&traced, &[]);
    traced.kubectl.run_ok_with("apply -f -", &head("one", "first"));
    wait_ready(&traced, "one");
    let trace = traced.traces.wait_for_span("stamp Head", is_real).id.trace;
    traced.traces.wait_until_matches(&trace, &parts::whole(traced.traces.callers(), CONVERGENCE));
    let told = traced.kubectl.json("events --field-selector involvedObject.kind=Head");
    let about = told["items"].as_array().unwrap().iter().map(|event| &event["metadata"]["annotations"][TRACE_ID]);
    assert!(about.clone().count() >= 2 && about.clone().all(|id| *id == trace), "events name the trace: {told}");
    stop(operator);
    stop(webhook);
    let traces = traced.stop();
    is(&traces, &trace, CONVERGENCE);
    tell_only(&traces, &[&trace]);
}

#[test]
fn callers_that_the_api_server_does_not_trust_are_followed_by_links() {
    let Some(traced) = cluster(&[]) else { return };
    let webhook = webhook(&traced);
    let operator = operator(&traced, &[]);
    traced.kubectl.run_ok_with("apply -f -", &head("one", "first"));
    wait_ready(&traced, "one");
    stop(operator);
    stop(webhook);
    let traces = traced.stop();
    let trace = traces.wait_for_span("stamp Head", is_real).id.trace;
    is(&traces, &trace, CONVERGENCE);
    tell_only(&traces, &[&trace]);
}
