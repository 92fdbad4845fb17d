//! Webhook configurations and policies.

use serde_json::{Value, json};

use super::{bare, create};

fn configuration(kind: &str, change: &Value) -> Result<Value, Vec<String>> {
    let mut hook = json!({
        "name": "hook.example.com", "admissionReviewVersions": ["v1"], "sideEffects": "None",
        "clientConfig": {"url": "https://127.0.0.1:1/m"},
        "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"]}],
    });
    json_patch::merge(&mut hook, change);
    let body = json!({"metadata": {"name": "h"}, "webhooks": [hook]});
    create("admissionregistration.k8s.io/v1", kind, body)
}

#[test]
fn a_webhook_has_its_defaults() {
    let made = configuration("MutatingWebhookConfiguration", &json!({})).unwrap();
    let rule = json!({
        "operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"], "scope": "*",
    });
    let hook = json!({
        "name": "hook.example.com", "clientConfig": {"url": "https://127.0.0.1:1/m"}, "rules": [rule], "failurePolicy": "Fail",
        "matchPolicy": "Equivalent", "namespaceSelector": {}, "objectSelector": {}, "sideEffects": "None",
        "timeoutSeconds": 10, "admissionReviewVersions": ["v1"], "reinvocationPolicy": "Never",
    });
    assert_eq!(bare(made), json!({"metadata": {"name": "h", "generation": 1}, "webhooks": [hook]}));
}

#[test]
fn a_wrong_webhook_is_told_all_of_it() {
    let change = json!({
        "name": "short", "clientConfig": {"url": null}, "sideEffects": "Some", "admissionReviewVersions": [], "rules": null,
    });
    let expected = [
        "webhooks[0].name: Invalid value: \"short\": should be a domain with at least three segments separated by dots",
        "webhooks[0].sideEffects: Unsupported value: \"Some\": supported values: \"None\", \"NoneOnDryRun\"",
        "webhooks[0].clientConfig: Required value: exactly one of url or service is required",
        "webhooks[0].admissionReviewVersions: Required value: must specify one of v1, v1beta1",
    ];
    assert_eq!(configuration("ValidatingWebhookConfiguration", &change).unwrap_err(), expected);
    let late = configuration("ValidatingWebhookConfiguration", &json!({"timeoutSeconds": 31})).unwrap_err();
    let words = "the timeout value must be between 1 and 30 seconds";
    assert_eq!(late, [format!("webhooks[0].timeoutSeconds: Invalid value: 31: {words}")]);
}

#[test]
fn conditions_are_expressions() {
    let condition = |expression: &str| json!({"matchConditions": [{"name": "c", "expression": expression}]});
    let wrong = configuration("ValidatingWebhookConfiguration", &condition("object.nope.(")).unwrap_err();
    let words = "webhooks[0].matchConditions[0].expression: Invalid value: \"object.nope.(\": compilation failed: ERROR: \
                 <input>:1:13: Syntax error: no viable alternative at input '.('\n | object.nope.(\n | ............^";
    assert_eq!(wrong, [words]);
    let deep = "(".repeat(100_000);
    let deep = configuration("ValidatingWebhookConfiguration", &condition(&deep)).unwrap_err();
    assert!(deep[0].contains("compilation failed: ERROR"), "and no overflow");
    assert!(configuration("ValidatingWebhookConfiguration", &condition("object.metadata.name != 'x'")).is_ok());
}

#[test]
fn urls_are_https_and_bare() {
    for bad in ["http://h/x", "https://", "https://u@h/x", "https://h/x?a=b", "https://h/x#f"] {
        let change = json!({"clientConfig": {"url": bad}});
        assert_eq!(configuration("ValidatingWebhookConfiguration", &change).unwrap_err().len(), 1, "{bad}");
    }
}

#[test]
fn a_policy_needs_something_to_check() {
    let spec = json!({"matchConstraints": {"resourceRules": []}});
    let body = json!({"metadata": {"name": "p"}, "spec": spec});
    let wrong = create("admissionregistration.k8s.io/v1", "ValidatingAdmissionPolicy", body).unwrap_err();
    let words = "Required value: validations or auditAnnotations must contain at least one item";
    let expected = [
        "spec.matchConstraints.resourceRules: Required value".to_owned(),
        format!("spec.validations: {words}"),
        format!("spec.auditAnnotations: {words}"),
    ];
    assert_eq!(wrong, expected);
}

fn policy(change: &Value) -> Result<Value, Vec<String>> {
    let rule = json!({"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"]});
    let mut spec = json!({"matchConstraints": {"resourceRules": [rule]}, "validations": [{"expression": "true"}]});
    json_patch::merge(&mut spec, change);
    let body = json!({"metadata": {"name": "p"}, "spec": spec});
    create("admissionregistration.k8s.io/v1", "ValidatingAdmissionPolicy", body)
}

#[test]
fn expressions_of_a_policy_are_compiled_when_it_is_written() {
    let validation = |expression: &str| policy(&json!({"validations": [{"expression": expression}]}));
    let at = "spec.validations[0].expression: Invalid value";
    assert_eq!(
        validation("object.x == nothing").unwrap_err(),
        [format!(
            "{at}: \"object.x == nothing\": compilation failed: ERROR: <input>:1:13: undeclared reference to 'nothing' (in \
             container '')\n | object.x == nothing\n | ............^"
        )]
    );
    assert_eq!(
        validation("object.spec.flag").unwrap_err(),
        [format!("{at}: \"object.spec.flag\": must evaluate to bool but got dyn")]
    );
    assert_eq!(
        validation("request.name").unwrap_err(),
        [format!("{at}: \"request.name\": must evaluate to bool but got string")]
    );
    assert!(validation("object.spec.flag == true && authorizer.path('/x').check('get').allowed()").is_ok());
    let message = json!({"validations": [{"expression": "true", "messageExpression": "1 + 1"}]});
    let wrong = "spec.validations[0].messageExpression: Invalid value: \"1 + 1\": must evaluate to string but got int";
    assert_eq!(policy(&message).unwrap_err(), [wrong]);
    let annotation = json!({"auditAnnotations": [{"key": "k", "valueExpression": "1"}]});
    let wrong = "spec.auditAnnotations[0].valueExpression: Invalid value: \"1\": must evaluate to one of [string null_type] \
                 but got int";
    assert_eq!(policy(&annotation).unwrap_err(), [wrong]);
    let reason = json!({"validations": [{"expression": "true", "reason": "Odd"}]});
    let wrong = "spec.validations[0].reason: Unsupported value: \"Odd\": supported values: \"Forbidden\", \"Invalid\", \
                 \"RequestEntityTooLarge\"";
    assert_eq!(policy(&reason).unwrap_err(), [wrong]);
}

#[test]
fn variables_of_a_policy_have_the_types_of_their_expressions() {
    let with = |name: &str, expression: &str, validation: &str| {
        let variables = json!([{"name": name, "expression": expression}]);
        policy(&json!({"variables": variables, "validations": [{"expression": validation}]}))
    };
    assert!(with("n", "size(request.name)", "variables.n > 1").is_ok());
    let wrong = with("n", "size(request.name)", "variables.n > 'a'").unwrap_err();
    assert!(wrong[0].contains("found no matching overload for '_>_' applied to '(int, string)'"), "{wrong:?}");
    let wrong = with("n", "1", "variables.m > 1").unwrap_err();
    assert!(wrong[0].contains("undefined field 'm'"), "{wrong:?}");
    let wrong = with("for", "1", "true").unwrap_err();
    assert_eq!(wrong, ["spec.variables[0].name: Invalid value: \"for\": must be a valid CEL identifier"]);
    let params = json!({"validations": [{"expression": "params.x == 1"}]});
    let wrong = policy(&params).unwrap_err();
    assert!(wrong[0].contains("undeclared reference to 'params'"), "{wrong:?}");
    let mut params = params;
    params["paramKind"] = json!({"apiVersion": "v1", "kind": "ConfigMap"});
    assert!(policy(&params).is_ok());
}

#[test]
fn condition_of_a_webhook_must_be_a_bool() {
    let condition = |expression: &str| json!({"matchConditions": [{"name": "c", "expression": expression}]});
    let wrong = configuration("ValidatingWebhookConfiguration", &condition(" object.x ")).unwrap_err();
    let words =
        "webhooks[0].matchConditions[0].expression: Invalid value: \"object.x\": must evaluate to bool but got dyn";
    assert_eq!(wrong, [words]);
}
