use std::sync::Arc;

use futures_util::FutureExt;
use proptest::{collection::vec, prelude::*, sample::select};
use serde_json::json;

use super::*;

fn resource(name: &str) -> GroupResource {
    GroupResource::new(RBAC_GROUP, name)
}

/// RBAC in which `jane` holds these rules in `n`.
fn holding(rules: &Value) -> RbacAuthorizer {
    let rbac = RbacAuthorizer::default();
    rbac.apply(&resource("clusterroles"), &json!({"metadata": {"name": "held"}, "rules": rules}));
    let subjects = json!([{"kind": "User", "name": "jane"}]);
    let role = json!({"apiGroup": RBAC_GROUP, "kind": "ClusterRole", "name": "held"});
    rbac.apply(
        &resource("rolebindings"),
        &json!({"metadata": {"name": "b", "namespace": "n"}, "roleRef": role, "subjects": subjects}),
    );
    rbac
}

fn write(rbac: RbacAuthorizer, kind: &str, new: &Value, old: Option<&Value>) -> Result<(), StatusError> {
    let user = UserInfo::new("jane", ["devs"]).with_authenticated_group();
    let rbac = Arc::new(rbac);
    let authorizers = UnionAuthorizer::new(vec![Arc::clone(&rbac) as Arc<dyn crate::auth::Authorizer>]);
    let write = RbacWrite { user: &user, resource: &resource(kind), namespace: "n", path_name: "", new, old };
    check_escalation(&write, &rbac, &authorizers).now_or_never().unwrap()
}

fn role(rules: Value) -> Value {
    json!({"metadata": {"name": "r", "namespace": "n"}, "rules": rules})
}

fn pods(verbs: Value) -> Value {
    json!([{"apiGroups": [""], "resources": ["pods"], "verbs": verbs}])
}

#[test]
fn what_one_holds_one_may_grant() {
    assert_eq!(write(holding(&pods(json!(["get", "list"]))), "roles", &role(pods(json!(["list"]))), None), Ok(()));
}

#[test]
fn what_is_missing_is_told_as_kube_apiserver_does() {
    let rules = json!([
        {"apiGroups": [""], "resources": ["pods", "secrets"], "verbs": ["get", "delete"]},
        {"apiGroups": [""], "resources": ["configmaps"], "resourceNames": ["a"], "verbs": ["get"]},
    ]);
    let status = write(holding(&pods(json!(["get"]))), "roles", &role(rules), None).unwrap_err();
    let message = concat!(
        r#"roles.rbac.authorization.k8s.io "r" is forbidden: user "jane" (groups=["devs" "system:authenticated"]) is attempting to grant RBAC permissions not currently held:"#,
        "\n",
        r#"{APIGroups:[""], Resources:["configmaps"], ResourceNames:["a"], Verbs:["get"]}"#,
        "\n",
        r#"{APIGroups:[""], Resources:["pods"], Verbs:["delete"]}"#,
        "\n",
        r#"{APIGroups:[""], Resources:["secrets"], Verbs:["get" "delete"]}"#,
    );
    assert_eq!((status.code, &*status.message), (403, message));
}

#[test]
fn who_may_escalate_may_grant_anything() {
    let rules = json!([{"apiGroups": [RBAC_GROUP], "resources": ["roles"], "verbs": ["escalate"]}]);
    assert_eq!(write(holding(&rules), "roles", &role(pods(json!(["*"]))), None), Ok(()));
}

#[test]
fn only_who_may_everything_may_aggregate() {
    let everything =
        json!([{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}, {"nonResourceURLs": ["*"], "verbs": ["*"]}]);
    let aggregated = json!({"metadata": {"name": "r"}, "aggregationRule": {"clusterRoleSelectors": []}});
    assert_eq!(write(holding(&everything), "clusterroles", &aggregated, None), Ok(()));
    let status = write(holding(&pods(json!(["*"]))), "clusterroles", &aggregated, None).unwrap_err();
    let message = r#"clusterroles.rbac.authorization.k8s.io "r" is forbidden: must have cluster-admin privileges to use the aggregationRule"#;
    assert_eq!(status.message, message);
}

#[test]
fn a_binding_grants_what_its_role_does() {
    let binding = |name: &str| {
        let role = json!({"apiGroup": RBAC_GROUP, "kind": "ClusterRole", "name": name});
        json!({"metadata": {"name": "b", "namespace": "n"}, "roleRef": role})
    };
    let world = |held: &Value| {
        let rbac = holding(held);
        let rules = pods(json!(["get"]));
        rbac.apply(&resource("clusterroles"), &json!({"metadata": {"name": "wanted"}, "rules": rules}));
        rbac
    };
    assert_eq!(write(world(&pods(json!(["*"]))), "rolebindings", &binding("wanted"), None), Ok(()));
    let bind = json!([{"apiGroups": [RBAC_GROUP], "resources": ["clusterroles"], "resourceNames": ["wanted"], "verbs": ["bind"]}]);
    assert_eq!(write(world(&bind), "rolebindings", &binding("wanted"), None), Ok(()));
    let status = write(world(&json!([])), "rolebindings", &binding("wanted"), None).unwrap_err();
    assert!(status.message.starts_with(r#"rolebindings.rbac.authorization.k8s.io "b" is forbidden: user "jane""#));
    let status = write(world(&json!([])), "rolebindings", &binding("none"), None).unwrap_err();
    assert_eq!(status.message, r#"clusterroles.rbac.authorization.k8s.io "none" not found"#);
}

#[test]
fn garbage_collection_may_always_go_on() {
    let old = role(pods(json!(["*"])));
    let mut new = old.clone();
    new["metadata"]["finalizers"] = json!([]);
    assert_eq!(write(holding(&json!([])), "roles", &new, Some(&old)), Ok(()));
    new["metadata"]["labels"] = json!({"a": "b"});
    assert!(write(holding(&json!([])), "roles", &new, Some(&old)).is_err());
}

#[test]
fn a_huge_product_is_refused_and_not_computed() {
    let many = |prefix: &str| (0..2000).map(|number| format!("{prefix}{number}")).collect::<Vec<_>>();
    let rules = json!([{"apiGroups": many("g"), "resources": many("r"), "verbs": many("v")}]);
    assert!(write(holding(&json!([])), "roles", &role(rules), None).unwrap_err().message.contains("too many rights"));
}

fn rule() -> impl Strategy<Value = PolicyRule> {
    let texts = |of: &'static [&'static str], size| vec(select(of).prop_map(Box::from), size);
    let resource = (
        texts(&["get", "list", "*"], 1..3),
        texts(&["", "apps", "*"], 1..3),
        texts(&["pods", "pods/log", "*/log", "*"], 1..3),
        texts(&["a", "b"], 0..3),
    );
    let url = (texts(&["get", "*"], 1..3), texts(&["/x", "/x/*", "*"], 1..3));
    prop_oneof![
        resource.prop_map(|(verbs, groups, resources, names)| PolicyRule {
            verbs,
            groups,
            resources,
            names,
            urls: vec![]
        }),
        url.prop_map(|(verbs, urls)| PolicyRule { verbs, urls, ..PolicyRule::default() }),
    ]
}

proptest! {
    /// If nothing is missing, every request that the granted rules allow is allowed by the held ones.
    #[test]
    fn nothing_is_granted_that_is_not_held(held in vec(rule(), 0..4), granted in vec(rule(), 1..3)) {
        let user = UserInfo::default();
        if uncovered_rights(&held, &granted).unwrap().is_empty() {
            for verb in ["get", "list", "delete"] {
                for path in ["/x", "/x/y", "/z"] {
                    let request = AuthorizationAttributes::for_path(&user, verb, path);
                    prop_assert!(!granted.iter().any(|rule| rule.allows(&request)) || held.iter().any(|rule| rule.allows(&request)));
                }
                for (resource, subresource, name) in [("pods", "", ""), ("pods", "log", "a"), ("jobs", "log", "b"), ("jobs", "", "c")] {
                    for group in ["", "apps", "batch"] {
                        let request = AuthorizationAttributes::for_resource(&user, verb, group, resource).with_subresource(subresource).name(name);
                        prop_assert!(!granted.iter().any(|rule| rule.allows(&request)) || held.iter().any(|rule| rule.allows(&request)));
                    }
                }
            }
        }
    }

    /// A rule covers itself, and so do its single rights together.
    #[test]
    fn everyone_holds_what_they_hold(rule in rule()) {
        let all = std::slice::from_ref(&rule);
        prop_assert!(uncovered_rights(all, all).unwrap().is_empty());
        let rights: Vec<PolicyRule> = single_rights(&rule).collect();
        prop_assert!(uncovered_rights(&rights, &[rule]).unwrap().is_empty());
    }
}
