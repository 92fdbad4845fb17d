//! From `kubectl apply` to Ready.

use super::{KINDS, OURS, TRUSTED, cluster, head, operator, stop, wait_ready};

/// Everything that comes of a Head with one child.
pub(super) const CONVERGENCE: &str = "";

#[test]
fn one_apply_is_one_trace_until_everything_is_ready() {
    let Some(traced) = cluster(&TRUSTED) else { return };
    let webhook = traced.webhook(&KINDS, &[]);
    let operator = operator(&traced, &[]);
    traced.kubectl.ok_with("apply -f -", &head("one", "first"));
    wait_ready(&traced, "one");
    let trace = traced.traces.span("stamp Head", |_| true).id.trace;
    traced.traces.becomes(&trace, CONVERGENCE);
    stop(operator);
    stop(webhook);
    let traces = traced.end();
    traces.is(&trace, CONVERGENCE);
    traces.tell_only(&OURS, &[&trace]);
}
