use std::sync::Arc;

use futures_util::FutureExt;
use serde_json::json;

use super::*;
use crate::{
    api::GroupResource,
    auth::{RbacAuthorizer, rbac},
};

fn headers(all: &[(&'static str, &str)]) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for (name, value) in all {
        headers.append(*name, value.parse().unwrap());
    }
    headers
}

fn act(asking: &UserInfo, rbac: RbacAuthorizer, all: &[(&'static str, &str)]) -> Result<Option<UserInfo>, StatusError> {
    impersonate(asking, &headers(all), &UnionAuthorizer::new(vec![Arc::new(rbac)])).now_or_never().unwrap()
}

fn admin_acts(all: &[(&'static str, &str)]) -> Result<Option<UserInfo>, StatusError> {
    act(&UserInfo::new("admin", ["system:masters"]), RbacAuthorizer::default(), all)
}

#[test]
fn without_headers_nobody_is_impersonated() {
    assert_eq!(admin_acts(&[("accept", "*/*")]), Ok(None));
}

#[test]
fn a_user_with_groups_and_extra() {
    let all = [
        ("impersonate-user", "jane"),
        ("impersonate-group", "devs"),
        ("impersonate-extra-scopes", "view"),
        ("impersonate-uid", "u1"),
    ];
    let info = json!({"username": "jane", "uid": "u1", "groups": ["devs", "system:authenticated"], "extra": {"scopes": ["view"]}});
    assert_eq!(admin_acts(&all).unwrap().unwrap().to_value(), info);
}

#[test]
fn groups_follow_from_who_it_is() {
    let groups = |all: &[(&'static str, &str)]| admin_acts(all).unwrap().unwrap().groups.join(" ");
    assert_eq!(groups(&[("impersonate-user", "jane")]), "system:authenticated");
    assert_eq!(groups(&[("impersonate-user", "system:anonymous")]), "system:unauthenticated");
    let account = ("impersonate-user", "system:serviceaccount:n:sa");
    assert_eq!(groups(&[account]), "system:serviceaccounts system:serviceaccounts:n system:authenticated");
    assert_eq!(groups(&[account, ("impersonate-group", "devs")]), "devs system:authenticated");
    assert_eq!(
        groups(&[("impersonate-user", "jane"), ("impersonate-group", UNAUTHENTICATED_GROUP)]),
        UNAUTHENTICATED_GROUP
    );
}

#[test]
fn who_may_not_is_told_what() {
    let asking = UserInfo::service_account("test-ns", "sa", "").with_authenticated_group();
    let status = act(&asking, RbacAuthorizer::default(), &[("impersonate-user", "jane")]).unwrap_err();
    let message = r#"users "jane" is forbidden: User "system:serviceaccount:test-ns:sa" cannot impersonate resource "users" in API group "" at the cluster scope"#;
    assert_eq!((status.code, &*status.message), (403, message));
    assert_eq!(status.to_value()["details"], json!({"name": "jane", "kind": "users"}));
}

#[test]
fn each_part_must_be_allowed() {
    let rbac = RbacAuthorizer::default();
    let rules =
        json!([{"apiGroups": [""], "resources": ["users"], "verbs": ["impersonate"], "resourceNames": ["jane"]}]);
    rbac.apply(
        &GroupResource::new(rbac::RBAC_GROUP, "clusterroles"),
        &json!({"metadata": {"name": "r"}, "rules": rules}),
    );
    let binding = json!({"metadata": {"name": "b"}, "roleRef": {"kind": "ClusterRole", "name": "r"}, "subjects": [{"kind": "User", "name": "joe"}]});
    rbac.apply(&GroupResource::new(rbac::RBAC_GROUP, "clusterrolebindings"), &binding);
    let joe = UserInfo::new("joe", []);
    let all = [("impersonate-user", "jane"), ("impersonate-extra-scopes", "view")];
    let message = r#"userextras.authentication.k8s.io "view" is forbidden: User "joe" cannot impersonate resource "userextras/scopes" in API group "authentication.k8s.io" at the cluster scope"#;
    assert_eq!(act(&joe, rbac, &all).unwrap_err().message, message);
}

#[test]
fn groups_without_a_user_make_no_sense() {
    let status = admin_acts(&[("impersonate-group", "devs")]).unwrap_err();
    assert_eq!((status.code, &*status.message), (400, "requested [{Group  devs    }] without impersonating a user"));
    assert_eq!(status.details, None);
}

#[test]
fn keys_of_extra_are_unescaped() {
    assert_eq!(unescape_key("acme.com%2fproject"), "acme.com/project");
    for malformed in ["a%2", "a%zz", "%ff"] {
        assert_eq!(unescape_key(malformed), malformed);
    }
}
