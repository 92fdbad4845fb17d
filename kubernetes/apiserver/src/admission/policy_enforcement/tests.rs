use http::Method;
use serde_json::json;

use super::{
    super::testing::{Stage, core, object},
    *,
};
use crate::api::{GroupResource, ObjectKey};

const MAPS: &str = "/api/v1/namespaces/prod/configmaps";

fn policy(more: Value) -> Arc<AdmissionPolicy> {
    let rule =
        json!({ "apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"], "operations": ["CREATE"] });
    let mut spec = json!({ "matchConstraints": { "resourceRules": [rule] } });
    spec.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    Arc::new(AdmissionPolicy::compile(&json!({ "metadata": { "name": "p" }, "spec": spec })))
}

fn binding(more: Value) -> Arc<AdmissionPolicyBinding> {
    let mut spec = json!({ "policyName": "p", "validationActions": ["Deny"] });
    spec.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    Arc::new(AdmissionPolicyBinding::compile(&json!({ "metadata": { "name": "b" }, "spec": spec })))
}

async fn judged(
    policy: Arc<AdmissionPolicy>,
    bindings: &[Arc<AdmissionPolicyBinding>],
) -> (Result<(), StatusError>, Vec<String>) {
    let stage = Stage::new(&core().await, Method::POST, MAPS);
    let request = stage.request();
    let new = object("a", ("x", "1"));
    let subject = AdmissionAttributes { request: &request, object: Some(&new), old: None };
    (run(&[policy], bindings, subject), stage.warnings())
}

fn rules(validation: Value) -> Value {
    json!({ "validations": [validation] })
}

#[tokio::test]
async fn a_policy_refuses_what_does_not_hold_where_it_is_bound() {
    let wrong = || policy(rules(json!({ "expression": "object.metadata.name == 'b'", "message": " not b " })));
    assert_eq!(judged(wrong(), &[]).await.0, Ok(()));
    let refused = judged(wrong(), &[binding(json!({}))]).await.0.unwrap_err();
    let said = "ValidatingAdmissionPolicy 'p' with binding 'b' denied request: not b";
    assert_eq!((refused.code, refused.reason), (422, "Invalid"));
    assert_eq!(refused.message, format!("configmaps \"a\" is forbidden: {said}"));
    assert_eq!(refused.details.unwrap().causes[0].message, said);
    let right =
        policy(rules(json!({ "expression": "namespaceObject.metadata.labels.tier == 'gold' && params == null" })));
    assert_eq!(judged(right, &[binding(json!({}))]).await.0, Ok(()));
}

#[tokio::test]
async fn a_binding_may_narrow_or_only_warn() {
    let wrong = || policy(rules(json!({ "expression": "false", "reason": "Forbidden" })));
    let elsewhere = json!({ "matchResources": { "namespaceSelector": { "matchLabels": { "tier": "lead" } } } });
    assert_eq!(judged(wrong(), &[binding(elsewhere)]).await.0, Ok(()));
    let (outcome, warnings) = judged(wrong(), &[binding(json!({ "validationActions": ["Warn", "Audit"] }))]).await;
    let said = "Validation failed for ValidatingAdmissionPolicy 'p' with binding 'b': failed expression: false";
    assert_eq!((outcome, warnings), (Ok(()), vec![said.to_owned()]));
    assert_eq!(judged(wrong(), &[binding(json!({}))]).await.0.unwrap_err().code, 403);
}

#[tokio::test]
async fn variables_and_messages_are_made_from_the_request() {
    let made = policy(json!({
        "variables": [
            { "name": "x", "expression": "object.metadata.labels.x" },
            { "name": "twice", "expression": "variables.x + variables.x" },
        ],
        "validations": [{ "expression": "variables.twice == '1'", "messageExpression": "'got ' + variables.twice" }],
    }));
    let refused = judged(made, &[binding(json!({}))]).await.0.unwrap_err();
    assert!(refused.message.ends_with("denied request: got 11"), "{refused}");
}

#[tokio::test]
async fn what_cannot_be_evaluated_follows_the_failure_policy() {
    for broken in [
        rules(json!({ "expression": "object.nope == 1" })),
        rules(json!({ "expression": "object.(" })),
        json!({ "paramKind": { "apiVersion": "v1", "kind": "Nope" }, "validations": [{ "expression": "true" }] }),
    ] {
        let with = |failure: &str| {
            let mut spec = broken.clone();
            spec["failurePolicy"] = failure.into();
            policy(spec)
        };
        assert_eq!(judged(with("Fail"), &[binding(json!({}))]).await.0.unwrap_err().code, 422, "{broken}");
        assert_eq!(judged(with("Ignore"), &[binding(json!({}))]).await.0, Ok(()), "{broken}");
    }
}

#[tokio::test]
async fn conditions_and_exclusions_keep_a_policy_out() {
    let conditions = json!({
        "matchConditions": [{ "name": "c", "expression": "request.userInfo.username == 'joe'" }],
        "validations": [{ "expression": "false" }],
    });
    assert_eq!(judged(policy(conditions), &[binding(json!({}))]).await.0, Ok(()));
    let rule = json!({
        "apiGroups": ["*"], "apiVersions": ["*"], "resources": ["*"], "operations": ["*"], "resourceNames": ["a"],
    });
    let excluded =
        json!({ "matchConstraints": { "excludeResourceRules": [rule] }, "validations": [{ "expression": "false" }] });
    assert_eq!(judged(policy(excluded), &[binding(json!({}))]).await.0, Ok(()));
}

#[tokio::test]
async fn parameters_are_seen_by_conditions_rules_and_messages() {
    let core = core().await;
    let key = ObjectKey::new(GroupResource::new("", "configmaps"), "prod", "limits");
    core.store.create(key, json!({ "metadata": { "name": "limits" }, "data": { "wanted": "2" } })).await.unwrap();
    let with = |condition: &str| {
        policy(json!({
            "paramKind": { "apiVersion": "v1", "kind": "ConfigMap" },
            "matchConditions": [{ "name": "c", "expression": condition }],
            "validations": [{
                "expression": "object.metadata.labels.x == params.data.wanted",
                "messageExpression": "params.kind + ' wants ' + params.data.wanted",
            }],
        }))
    };
    let judge = |policy: Arc<AdmissionPolicy>, more: Value| {
        let stage = Stage::new(&core, Method::POST, MAPS);
        let request = stage.request();
        let new = object("a", ("x", "1"));
        run(&[policy], &[binding(more)], AdmissionAttributes { request: &request, object: Some(&new), old: None })
    };
    let named = |name: &str| json!({ "paramRef": { "name": name, "parameterNotFoundAction": "Deny" } });
    let refused = judge(with("has(params.data)"), named("limits")).unwrap_err();
    assert!(refused.message.ends_with("denied request: ConfigMap wants 2"), "{refused}");
    assert_eq!(judge(with("params.data.wanted == '3'"), named("limits")), Ok(()));
    let mut warns = named("nope");
    warns["validationActions"] = json!(["Warn"]);
    let refused = judge(with("true"), warns).unwrap_err();
    let why = "ValidatingAdmissionPolicy 'p' with binding 'b' denied request: failed to configure binding: no params found for policy \
               binding with `Deny` parameterNotFoundAction";
    assert_eq!(refused.message, format!("configmaps \"a\" is forbidden: {why}"));
}
