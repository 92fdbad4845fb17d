//! An operator whose runs are traces of their own.

use super::{anywhere, head, is, is_real, operator, parts, stop, wait_ready, webhook};

/// What hangs together by parents: the request, and how long everything took.
const CHANGE: &str = "
POST DEMO/heads [apiserver] server x1
  stamp Head [kubewake-webhook] server x1
    converge Head [head-operator] internal x1
";

/// What each run does, in a trace of its own. One that a child led to is linked to what was done to that child, too.
const RUNS: &str = "
reconcile Head [head-operator] consumer ~> stamp Head
  <run of Head>
reconcile Head [head-operator] consumer ~> apply ChildA ~> stamp Head
  <run of Head>
reconcile ChildA [head-operator] consumer ~> apply ChildA
  <run of ChildA>
reconcile ChildA [head-operator] consumer ~> apply ChildA ~> apply Deployment
  <run of ChildA>
";

#[test]
fn with_links_each_run_is_a_trace_that_leads_back_to_the_change() {
    let Some(traced) = anywhere() else { return };
    let webhook = webhook(&traced);
    let operator = operator(&traced, &["--mode", "links"]);
    traced.kubectl.run_ok_with("apply -f -", &head("one", "first"));
    wait_ready(&traced, "one");
    stop(operator);
    stop(webhook);
    let traces = traced.stop();
    let change = traces.wait_for_span("stamp Head", is_real).id.trace;
    is(&traces, &change, CHANGE);
    let runs = traces.assert_all_match("head-operator", &[&change], &parts::whole(traces.callers(), RUNS));
    assert!(runs >= 4, "each controller does something twice");
}
