//! The operator ends in the middle of its work.

use super::{
    anywhere, head, is, is_real, operator, parts::CONVERGENCE, rule::Rule, stop, tell_only, wait_ready, webhook,
};

#[test]
fn a_new_operator_goes_on_with_the_trace() {
    let Some(traced) = anywhere() else { return };
    let kubectl = &traced.kubectl;
    let webhook = webhook(&traced);
    let rule = Rule::no_pods(&traced);
    let first = operator(&traced, &[]);
    kubectl.run_ok_with("apply -f -", &head("one", "first"));
    kubectl.run_ok("wait --for=jsonpath={.status.conditions[0].reason}=ChildrenNotReady head/one --timeout=60s");
    kubectl
        .run_ok("wait --for=jsonpath={.status.conditions[0].reason}=DeploymentProgressing childa/one-a --timeout=60s");
    stop(first);
    rule.lift();
    kubectl.run_ok("rollout status deployment/one-a --timeout=60s");
    let second = operator(&traced, &[]);
    wait_ready(&traced, "one");
    stop(second);
    stop(webhook);
    let traces = traced.stop();
    let trace = traces.wait_for_span("stamp Head", is_real).id.trace;
    is(&traces, &trace, CONVERGENCE);
    tell_only(&traces, &[&trace]);
}
