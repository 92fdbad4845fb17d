use std::sync::Arc;

use futures_util::FutureExt;

use super::*;
use crate::{
    api::GroupResource,
    auth::{bootstrap_policy, rbac::RBAC_GROUP, static_tokens::StaticTokens},
};

/// The default roles; `sa` in `test-ns` may get ConfigMaps.
fn rbac() -> Arc<RbacAuthorizer> {
    let objects = bootstrap_policy::bootstrap_objects();
    let rbac = RbacAuthorizer::new(objects.iter().map(|(resource, object)| (resource, object)));
    let rules = json!([{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get"]}]);
    rbac.apply(
        &GroupResource::new(RBAC_GROUP, "roles"),
        &json!({"metadata": {"name": "r", "namespace": "test-ns"}, "rules": rules}),
    );
    let subjects = json!([{"kind": "ServiceAccount", "name": "sa", "namespace": "test-ns"}]);
    let binding = json!({"metadata": {"name": "r", "namespace": "test-ns"}, "roleRef": {"kind": "Role", "name": "r"}, "subjects": subjects});
    rbac.apply(&GroupResource::new(RBAC_GROUP, "rolebindings"), &binding);
    Arc::new(rbac)
}

fn authorizers() -> UnionAuthorizer {
    UnionAuthorizer::new(vec![rbac()])
}

fn admin() -> UserInfo {
    UserInfo::new("admin", ["system:masters"]).with_uid("admin-uid").with_authenticated_group()
}

fn account() -> UserInfo {
    UserInfo::service_account("test-ns", "sa", "u1").with_authenticated_group()
}

fn review(kind: &str, spec: Value) -> Value {
    json!({"kind": kind, "apiVersion": "authorization.k8s.io/v1", "metadata": {"managedFields": [{}]}, "spec": spec})
}

fn asks(user: &UserInfo, spec: Value) -> Result<Value, StatusError> {
    let review = review("SelfSubjectAccessReview", spec);
    review_self_subject_access(review, user, &authorizers()).now_or_never().unwrap()
}

fn about(spec: Value) -> Result<Value, StatusError> {
    review_subject_access(review("SubjectAccessReview", spec), &authorizers()).now_or_never().unwrap()
}

#[test]
fn self_access_is_told_with_its_reason() {
    let configmaps =
        |verb| json!({"resourceAttributes": {"namespace": "test-ns", "verb": verb, "resource": "configmaps"}});
    let answer = asks(&admin(), configmaps("get")).unwrap();
    let mut expected = review("SelfSubjectAccessReview", configmaps("get"));
    expected["status"] = json!({"allowed": true});
    assert_eq!(answer, expected);
    let reason = r#"RBAC: allowed by RoleBinding "r/test-ns" of Role "r" to ServiceAccount "sa/test-ns""#;
    assert_eq!(asks(&account(), configmaps("get")).unwrap()["status"], json!({"allowed": true, "reason": reason}));
    assert_eq!(asks(&account(), configmaps("delete")).unwrap()["status"], json!({"allowed": false}));
    let path = json!({"nonResourceAttributes": {"path": "/openapi/v3", "verb": "get"}});
    let reason = r#"RBAC: allowed by ClusterRoleBinding "system:discovery" of ClusterRole "system:discovery" to Group "system:authenticated""#;
    assert_eq!(asks(&account(), path).unwrap()["status"], json!({"allowed": true, "reason": reason}));
}

#[test]
fn an_empty_question_is_refused() {
    let status = asks(&admin(), json!({})).unwrap_err();
    let message = r#".authorization.k8s.io "" is invalid: spec: Invalid value: null: exactly one of nonResourceAttributes or resourceAttributes must be specified"#;
    assert_eq!((status.code, &*status.message), (422, message));
    let detail = "Invalid value: null: exactly one of nonResourceAttributes or resourceAttributes must be specified";
    let causes = json!([{"reason": "FieldValueInvalid", "message": detail, "field": "spec"}]);
    assert_eq!(status.to_value()["details"], json!({"group": "authorization.k8s.io", "causes": causes}));
    let status = about(json!({})).unwrap_err();
    let message = r#".authorization.k8s.io "" is invalid: [spec: Invalid value: null: exactly one of nonResourceAttributes or resourceAttributes must be specified, spec.user: Invalid value: "": at least one of user or group must be specified]"#;
    assert_eq!(status.message, message);
}

#[test]
fn other_users_are_asked_about() {
    let pods = json!({"verb": "get", "resource": "pods"});
    let masters = about(json!({"user": "jane", "groups": ["system:masters"], "resourceAttributes": pods})).unwrap();
    assert_eq!(masters["status"], json!({"allowed": true}));
    assert_eq!(
        about(json!({"user": "jane", "resourceAttributes": pods})).unwrap()["status"],
        json!({"allowed": false})
    );
}

#[test]
fn a_local_review_stays_in_its_namespace() {
    let ask = |namespace: &str, spec: Value| {
        let mut review = review("LocalSubjectAccessReview", spec);
        review["metadata"]["namespace"] = namespace.into();
        review_local_subject_access(review, "test-ns", &authorizers()).now_or_never().unwrap()
    };
    let pods =
        json!({"user": "jane", "resourceAttributes": {"namespace": "test-ns", "verb": "get", "resource": "pods"}});
    assert_eq!(ask("test-ns", pods.clone()).unwrap()["status"], json!({"allowed": false}));
    assert_eq!(ask("", pods).unwrap()["metadata"]["namespace"], "test-ns");
    let elsewhere =
        json!({"user": "jane", "resourceAttributes": {"namespace": "other", "verb": "get", "resource": "pods"}});
    let message = r#".authorization.k8s.io "" is invalid: spec.resourceAttributes.namespace: Invalid value: "other": must match metadata.namespace"#;
    assert_eq!(ask("test-ns", elsewhere.clone()).unwrap_err().message, message);
    assert_eq!(ask("other", elsewhere).unwrap_err().code, 400);
    let path = json!({"user": "jane", "nonResourceAttributes": {"path": "/x", "verb": "get"}});
    let message = r#".authorization.k8s.io "" is invalid: spec.nonResourceAttributes: Invalid value: {"Path":"/x","Verb":"get"}: disallowed on this kind of request"#;
    assert_eq!(ask("test-ns", path).unwrap_err().message, message);
}

#[test]
fn metadata_and_selectors_are_checked() {
    let mut review = review(
        "SelfSubjectAccessReview",
        json!({"resourceAttributes": {"verb": "list", "resource": "pods", "fieldSelector": {}}}),
    );
    review["metadata"]["creationTimestamp"] = Value::Null;
    let errors =
        |review: &Value| validate::self_subject_access(review).iter().map(ToString::to_string).collect::<Vec<_>>();
    let required = "spec.resourceAttributes.fieldSelector.requirements: Required value: when spec.resourceAttributes.fieldSelector is specified, requirements or rawSelector is required";
    assert_eq!(errors(&review), [required]);
    review["metadata"]["name"] = "x".into();
    assert_eq!(errors(&review)[1], r#"metadata: Invalid value: {"name":"x"}: must be empty"#);
}

#[test]
fn all_rules_of_a_user_are_listed() {
    let ask = |namespace: &str| {
        review_self_subject_rules(
            &review("SelfSubjectRulesReview", json!({"namespace": namespace})),
            &account(),
            &rbac(),
        )
    };
    let answer = ask("test-ns").unwrap();
    assert_eq!((&answer["metadata"], &answer["spec"]), (&json!({}), &json!({})));
    let rules = answer["status"]["resourceRules"].as_array().unwrap();
    assert!(rules.contains(&json!({"verbs": ["get"], "apiGroups": [""], "resources": ["configmaps"]})));
    assert!(rules.contains(
        &json!({"verbs": ["create"], "apiGroups": ["authentication.k8s.io"], "resources": ["selfsubjectreviews"]})
    ));
    assert_eq!(answer["status"]["incomplete"], false);
    let urls = answer["status"]["nonResourceRules"].as_array().unwrap();
    assert!(urls.iter().any(|rule| rule["nonResourceURLs"][0] == "/healthz"));
    assert_eq!(ask("").unwrap_err().message, "no namespace on request");
}

#[test]
fn one_learns_who_one_is() {
    let answer = review_self_subject(&admin(), Timestamp::UNIX_EPOCH);
    let expected = json!({
        "kind": "SelfSubjectReview", "apiVersion": "authentication.k8s.io/v1",
        "metadata": {"creationTimestamp": "1970-01-01T00:00:00Z"},
        "status": {"userInfo": {"username": "admin", "uid": "admin-uid", "groups": ["system:masters", "system:authenticated"]}},
    });
    assert_eq!(answer, expected);
}

fn token_review(spec: Value) -> Result<Value, StatusError> {
    let own = ["api".to_owned()];
    let tokens = StaticTokens::parse("f", "admintoken,admin,admin-uid,system:masters", own.clone().into()).unwrap();
    let authentication =
        UnionAuthenticator { tokens: vec![Arc::new(tokens), Arc::new(Failing)], ..UnionAuthenticator::default() };
    review_token(review("TokenReview", spec), &own, &authentication).now_or_never().unwrap()
}

struct Failing;

impl crate::auth::TokenAuthenticator for Failing {
    fn authenticate<'a>(
        &'a self,
        token: &'a str,
        _audiences: Option<&'a [String]>,
    ) -> futures_util::future::BoxFuture<'a, Result<Option<crate::auth::authenticate::TokenIdentity>, String>> {
        Box::pin(std::future::ready(if token == "expired" {
            Err("service account token has expired".into())
        } else {
            Ok(None)
        }))
    }
}

#[test]
fn a_token_is_reviewed() {
    let user = json!({"username": "admin", "uid": "admin-uid", "groups": ["system:masters", "system:authenticated"]});
    let good = json!({"authenticated": true, "user": user, "audiences": ["api"]});
    let answer = token_review(json!({"token": "admintoken"})).unwrap();
    assert_eq!((&answer["status"], &answer["spec"]), (&good, &json!({"token": "admintoken"})));
    let status = |spec| token_review(spec).unwrap()["status"].clone();
    assert_eq!(status(json!({"token": "bad"})), json!({"user": {}, "error": "invalid bearer token"}));
    let expired = json!({"user": {}, "error": "[invalid bearer token, service account token has expired]"});
    assert_eq!(status(json!({"token": "expired"})), expired);
    assert_eq!(status(json!({"token": "admintoken", "audiences": ["other"]}))["authenticated"], Value::Null);
    let status = token_review(json!({})).unwrap_err();
    assert_eq!((status.code, &*status.message), (400, "token is required for TokenReview in authentication"));
}
