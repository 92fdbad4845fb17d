//! From `kubectl apply` to Ready.

use super::{KINDS, OURS, TRUSTED, cluster, head, operator, paths, stop, wait_ready};

/// Everything that comes of a Head with one child. Where something may happen once or more often, no number is said.
pub(super) const CONVERGENCE: &str = "
POST DEMO/heads [apiserver] server x1
  stamp Head [kubewake-webhook] server x1
    converge Head [head-operator] internal x1
    reconcile Head [head-operator] consumer
      apply ChildA [head-operator] producer
        PATCH DEMO/childas/{:name} [head-operator] client
          PATCH DEMO/childas/{:name} [apiserver] server
            stamp ChildA [kubewake-webhook] server
        converge ChildA [head-operator] internal x1
        reconcile ChildA [head-operator] consumer
          apply Deployment [head-operator] producer
            PATCH APPS/deployments/{:name} [head-operator] client
              PATCH APPS/deployments/{:name} [apiserver] server
          status ChildA [head-operator] internal
            PATCH DEMO/childas/{:name}/status [head-operator] client
              PATCH DEMO/childas/{:name}/status [apiserver] server
          POST EVENTS/events [head-operator] client
            POST EVENTS/events [apiserver] server
          # The same event again is counted in the old one.
          ? PATCH EVENTS/events/{:name} [head-operator] client
            ? PATCH EVENTS/events/{:name} [apiserver] server
      GET DEMO/childas [head-operator] client
        GET DEMO/childas [apiserver] server
      status Head [head-operator] internal
        PATCH DEMO/heads/{:name}/status [head-operator] client
          PATCH DEMO/heads/{:name}/status [apiserver] server
      POST EVENTS/events [head-operator] client
        POST EVENTS/events [apiserver] server
      ? PATCH EVENTS/events/{:name} [head-operator] client
        ? PATCH EVENTS/events/{:name} [apiserver] server
";

#[test]
fn one_apply_is_one_trace_until_everything_is_ready() {
    let Some(traced) = cluster(&TRUSTED) else { return };
    let webhook = traced.webhook(&KINDS, &[]);
    let operator = operator(&traced, &[]);
    traced.kubectl.ok_with("apply -f -", &head("one", "first"));
    wait_ready(&traced, "one");
    let trace = traced.traces.span("stamp Head", |_| true).id.trace;
    traced.traces.becomes(&trace, &paths(CONVERGENCE));
    stop(operator);
    stop(webhook);
    let traces = traced.end();
    traces.is(&trace, &paths(CONVERGENCE));
    traces.tell_only(&OURS, &[&trace]);
}

#[test]
fn callers_that_the_api_server_does_not_trust_are_followed_by_links() {
    let Some(traced) = cluster(&[]) else { return };
    let webhook = traced.webhook(&KINDS, &[]);
    let operator = operator(&traced, &[]);
    traced.kubectl.ok_with("apply -f -", &head("one", "first"));
    wait_ready(&traced, "one");
    stop(operator);
    stop(webhook);
    let traces = traced.end();
    let trace = traces.span("stamp Head", |_| true).id.trace;
    traces.is(&trace, &paths(CONVERGENCE));
}
