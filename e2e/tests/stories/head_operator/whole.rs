//! From `kubectl apply` to Ready.

use super::{TRUSTED, cluster, head, operator, stop, wait_ready};

#[test]
fn one_apply_is_one_trace_until_everything_is_ready() {
    let Some(traced) = cluster(&TRUSTED) else { return };
    let operator = operator(&traced, &[]);
    traced.kubectl.ok_with("apply -f -", &head("one", "first"));
    wait_ready(&traced, "one");
    stop(operator);
    let span = traced.traces.span("POST /apis/demo.kubewake.io/v1alpha1/namespaces/{:namespace}/heads", |_| true);
    panic!("{}\n{}", traced.traces.show(&span.id.trace), traced.kubectl.ok("get heads,childas,deployments,events -o wide"));
}
