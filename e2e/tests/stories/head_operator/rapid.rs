//! Somebody changes their mind at once.

use super::{KINDS, OURS, TRUSTED, cluster, head, operator, stop, wait_ready};

#[test]
fn two_changes_are_two_traces_that_know_each_other() {
    let Some(traced) = cluster(&TRUSTED) else { return };
    let kubectl = &traced.kubectl;
    let webhook = traced.webhook(&KINDS, &[]);
    let operator = operator(&traced, &[]);
    kubectl.ok_with("apply -f -", &head("one", "first"));
    kubectl.ok_with("apply -f -", &head("one", "second"));
    kubectl.ok("wait --for=jsonpath={.status.observedGeneration}=2 head/one --timeout=60s");
    wait_ready(&traced, "one");
    stop(operator);
    stop(webhook);
    let traces = traced.end();
    let first = traces.span("stamp Head", |span| span.links.is_empty());
    let second = traces.span("stamp Head", |span| span.links.contains(&first.id));
    assert_ne!(first.id.trace, second.id.trace);
    traces.is(&second.id.trace, "");
    traces.is(&first.id.trace, "");
    traces.tell_only(&OURS, &[&first.id.trace, &second.id.trace]);
}
