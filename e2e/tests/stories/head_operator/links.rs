//! An operator whose runs are traces of their own.

use super::{TRUSTED, cluster, each_begins_with, head, is_real, operator, parts, stop, wait_ready, webhook};

/// What hangs together by parents: the request, and how long everything took.
const CHANGE: &str = "
POST DEMO/heads [apiserver] server x1
  stamp Head [kubewake-webhook] server x1
    converge Head [head-operator] internal x1
";

#[test]
fn with_links_each_run_is_a_trace_that_leads_back_to_the_change() {
    let Some(traced) = cluster(&TRUSTED) else { return };
    let webhook = webhook(&traced);
    let operator = operator(&traced, &["--mode", "links"]);
    traced.kubectl.ok_with("apply -f -", &head("one", "first"));
    wait_ready(&traced, "one");
    stop(operator);
    stop(webhook);
    let traces = traced.end();
    let change = traces.span("stamp Head", is_real).id.trace;
    traces.is(&change, &parts::whole(CHANGE));
    let runs = each_begins_with(
        &traces,
        &change,
        &[
            "reconcile Head [head-operator] consumer ~> stamp Head",
            "reconcile ChildA [head-operator] consumer ~> apply ChildA",
            // A run that a child led to is linked to what was done to that child, too.
            "reconcile Head [head-operator] consumer ~> apply ChildA ~> stamp Head",
            "reconcile ChildA [head-operator] consumer ~> apply ChildA ~> apply Deployment",
        ],
    );
    assert!(runs >= 4, "each controller does something twice");
}
