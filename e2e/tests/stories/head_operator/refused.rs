//! A Deployment is refused, and later it is not.

use super::{
    anywhere, head, is, is_real, operator,
    parts::{self, CONVERGENCE},
    rule::Rule,
    stop, tell_only, wait_ready, webhook,
};

const NO_SUCH_WORD: &str = "object.spec.template.spec.containers.all(c, !has(c.command) || !('unwanted' in c.command))";

/// The runs in which it is refused.
const REFUSED: &str = "        reconcile ChildA [head-operator] consumer error
          apply Deployment [head-operator] producer error
            PATCH APPS/deployments/{:name} [head-operator] client error
              PATCH APPS/deployments/{:name} [apiserver] server
          <status of ChildA>
          <events>
";

/// What is refused again and again is recorded there ever more seldom, and so is the time when it is not.
const TAKEN: &str = "          apply Deployment [head-operator] producer
            PATCH APPS/deployments/{:name} [head-operator] client
              ? PATCH APPS/deployments/{:name} [apiserver] server
";

#[test]
fn a_deployment_that_is_refused_is_an_error_in_the_trace_until_it_is_taken() {
    let Some(traced) = anywhere() else { return };
    let kubectl = &traced.kubectl;
    let webhook = webhook(&traced);
    let tries = "create deployment x --image busybox --dry-run=server -- unwanted";
    let rule = Rule::of(&traced, ("apps", "deployments"), NO_SUCH_WORD, "this word is unwanted here", tries);
    let operator = operator(&traced, &[]);
    kubectl.run_ok_with("apply -f -", &head("one", "unwanted"));
    kubectl.run_ok("wait --for=jsonpath={.status.conditions[0].reason}=ChildRefused head/one --timeout=60s");
    let message = kubectl.field("head one", ".status.conditions[0].message");
    assert!(message.contains("this word is unwanted here"), "{message}");
    let warned = kubectl.field("events", ".items[?(@.reason==\"DeploymentRefused\")].type");
    assert_eq!(warned, "Warning");
    rule.lift();
    wait_ready(&traced, "one");
    stop(operator);
    stop(webhook);
    let traces = traced.stop();
    let trace = traces.wait_for_span("stamp Head", is_real).id.trace;
    let converge = "        converge ChildA";
    let expected = [(converge, &*format!("{REFUSED}{converge}")), ("          <deployment>\n", TAKEN)];
    is(&traces, &trace, &parts::with(CONVERGENCE, &expected));
    tell_only(&traces, &[&trace]);
    let failed = traces.wait_for_span("reconcile ChildA", |span| span.error.is_some());
    let words = failed.error.unwrap();
    assert!(words.starts_with("failed to apply the Deployment: ") && !words.contains("Status {"), "{words}");
    assert!(words.contains("this word is unwanted here"), "{words}");
}
