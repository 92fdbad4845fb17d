//! A Deployment is refused, and later it is not.

use super::{OURS, TRUSTED, cluster, head, is_real, operator, parts, stop, wait_ready, webhook};

/// The rules of a cluster that take no such Deployment.
const POLICY: &str = r#"
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: no-words}
spec:
  failurePolicy: Fail
  matchConstraints:
    resourceRules:
    - {apiGroups: [apps], apiVersions: [v1], operations: [CREATE, UPDATE], resources: [deployments]}
  validations:
  - expression: "object.spec.template.spec.containers.all(c, !has(c.command) || !('unwanted' in c.command))"
    message: this word is unwanted here
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: no-words}
spec: {policyName: no-words, validationActions: [Deny]}
"#;

/// The refusal, and what came after it.
const TRACE: &str = "
POST DEMO/heads [apiserver] server x1
  stamp Head [kubewake-webhook] server x1
    converge Head [head-operator] internal x1
    reconcile Head [head-operator] consumer
      apply ChildA [head-operator] producer
        PATCH DEMO/childas/{:name} [head-operator] client
          PATCH DEMO/childas/{:name} [apiserver] server
            stamp ChildA [kubewake-webhook] server
        reconcile ChildA [head-operator] consumer error
          apply Deployment [head-operator] producer error
            PATCH APPS/deployments/{:name} [head-operator] client error
              PATCH APPS/deployments/{:name} [apiserver] server
          <status of ChildA>
          <events>
        converge ChildA [head-operator] internal x1
        reconcile ChildA [head-operator] consumer
          apply Deployment [head-operator] producer
            PATCH APPS/deployments/{:name} [head-operator] client
              # What is refused again and again is recorded there ever more seldom, and so is the time when it is not.
              ? PATCH APPS/deployments/{:name} [apiserver] server
          <status of ChildA>
          <events>
      <list>
      <status of Head>
      <events>
";

#[test]
fn a_deployment_that_is_refused_is_an_error_in_the_trace_until_it_is_taken() {
    let Some(traced) = cluster(&TRUSTED) else { return };
    let kubectl = &traced.kubectl;
    let webhook = webhook(&traced);
    kubectl.ok_with("apply -f -", POLICY);
    kubewake_e2e::eventually("the policy is in force", || {
        kubectl.run("create deployment x --image busybox --dry-run=server -- unwanted", "").code != 0
    });
    let operator = operator(&traced, &[]);
    kubectl.ok_with("apply -f -", &head("one", "unwanted"));
    kubectl.ok("wait --for=jsonpath={.status.conditions[0].reason}=ChildRefused head/one --timeout=60s");
    let message = kubectl.field("head one", ".status.conditions[0].message");
    assert!(message.contains("this word is unwanted here"), "{message}");
    let warned = kubectl.field("events", ".items[?(@.reason==\"DeploymentRefused\")].type");
    assert_eq!(warned, "Warning");
    kubectl.ok("delete validatingadmissionpolicybinding no-words");
    wait_ready(&traced, "one");
    stop(operator);
    stop(webhook);
    let traces = traced.end();
    let trace = traces.span("stamp Head", is_real).id.trace;
    traces.is(&trace, &parts::whole(TRACE));
    traces.tell_only(&OURS, &[&trace]);
    let failed = traces.span("reconcile ChildA", |span| span.error.is_some());
    let words = failed.error.unwrap();
    assert!(words.starts_with("the Deployment cannot be made: ") && !words.contains("Status {"), "{words}");
    assert!(words.contains("this word is unwanted here"), "{words}");
}
