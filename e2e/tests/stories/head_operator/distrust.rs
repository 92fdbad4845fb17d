//! An operator that does not believe a namespace.

use super::{KINDS, TRUSTED, cluster, head, operator, stop, wait_ready};

/// Another tenant's trace.
const FOREIGN: &str = "0af7651916cd43dd8448eb211c80319c";

#[test]
fn a_context_of_a_namespace_that_is_not_trusted_is_not_followed() {
    let Some(traced) = cluster(&TRUSTED) else { return };
    let kubectl = &traced.kubectl;
    let webhook = traced.webhook(&KINDS, &[]);
    let operator = operator(&traced, &["--distrust", kubectl.namespace()]);
    let annotation =
        format!("metadata: {{annotations: {{tracing.k8s.io/traceparent: 00-{FOREIGN}-b7ad6b7169203331-01}}, name");
    kubectl.ok_with("apply -f -", &head("one", "first").replace("metadata: {name", &annotation));
    wait_ready(&traced, "one");
    stop(operator);
    stop(webhook);
    let traces = traced.end();
    assert_eq!(traces.spans().in_trace(FOREIGN).count(), 0, "{}", traces.show(FOREIGN));
    let stamp = traces.span("stamp Head", |_| true);
    traces.is(
        &stamp.id.trace,
        "
        POST /apis/demo.kubewake.io/v1alpha1/namespaces/{:namespace}/heads [apiserver] server
          stamp Head [kubewake-webhook] server ~> somewhere
    ",
    );
}
