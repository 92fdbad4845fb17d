//! An operator that does not believe a namespace.

use kubewake_e2e::traces::{Callers, Tree};

use super::{TRUSTED, cluster, head, operator, stop, wait_ready, webhook};

/// Another tenant's trace.
const FOREIGN: &str = "0af7651916cd43dd8448eb211c80319c";

#[test]
fn a_context_of_a_namespace_that_is_not_trusted_is_not_followed() {
    let Some(traced) = cluster(&TRUSTED) else { return };
    let kubectl = &traced.kubectl;
    let webhook = webhook(&traced);
    let operator = operator(&traced, &["--distrust", kubectl.namespace()]);
    let parent = format!("tracing.k8s.io/traceparent: 00-{FOREIGN}-b7ad6b7169203331-01");
    let metadata = format!("metadata: {{annotations: {{{parent}}}, name");
    kubectl.ok_with("apply -f -", &head("one", "first").replace("metadata: {name", &metadata));
    wait_ready(&traced, "one");
    stop(operator);
    stop(webhook);
    let traces = traced.end();
    // Only the webhook, which does believe it, is in that trace.
    traces.is(FOREIGN, "ORPHAN stamp Head [kubewake-webhook] server ~> HTTP POST");
    let spans = traces.spans();
    let own = spans.traces_of(&["head-operator"]);
    assert!(own.len() >= 4, "each run of either controller that did something: {own:?}");
    let known = [
        "reconcile Head [head-operator] consumer",
        "reconcile ChildA [head-operator] consumer",
        "converge Head [head-operator] internal ~> reconcile Head",
        "converge ChildA [head-operator] internal ~> reconcile ChildA",
    ];
    for trace in own {
        let tree = Tree::of(&spans, &trace, Callers::Trusted);
        let roots: Vec<_> = tree.0.keys().filter(|path| path.len() == 1).map(|path| path[0].as_str()).collect();
        assert!(roots.len() == 1 && known.contains(&roots[0]), "{tree}");
    }
}
