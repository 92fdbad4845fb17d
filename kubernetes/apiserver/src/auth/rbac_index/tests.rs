use proptest::prelude::*;
use serde_json::json;

use super::*;

mod naive;

fn resource(name: &str) -> GroupResource {
    GroupResource::new(RBAC_GROUP, name)
}

fn with(objects: &[(&str, Value)]) -> RbacAuthorizer {
    let rbac = RbacAuthorizer::default();
    for (name, object) in objects {
        rbac.apply(&resource(name), object);
    }
    rbac
}

fn role(name: &str, rules: Value) -> Value {
    json!({"metadata": {"name": name, "namespace": "test-ns"}, "rules": rules})
}

fn cluster_role(name: &str, labels: Value, rules: Value) -> Value {
    json!({"metadata": {"name": name, "labels": labels}, "rules": rules})
}

fn aggregated(name: &str, labels: Value, selected: &str) -> Value {
    let selectors = json!([{"matchLabels": {"to": selected}}]);
    json!({"metadata": {"name": name, "labels": labels}, "aggregationRule": {"clusterRoleSelectors": selectors}})
}

fn binding(name: &str, kind: &str, role: &str, subjects: Value) -> Value {
    json!({"metadata": {"name": name, "namespace": "test-ns"}, "roleRef": {"apiGroup": RBAC_GROUP, "kind": kind, "name": role}, "subjects": subjects})
}

fn account() -> UserInfo {
    UserInfo::service_account("test-ns", "sa", "u1").with_authenticated_group()
}

fn bound(rules: Value) -> RbacAuthorizer {
    let subjects = json!([{"kind": "ServiceAccount", "name": "sa", "namespace": "test-ns"}]);
    with(&[("roles", role("r", rules)), ("rolebindings", binding("r", "Role", "r", subjects))])
}

#[test]
fn a_role_and_its_binding_open_exactly_their_verbs() {
    let rbac = bound(json!([{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get", "list"]}]));
    let user = account();
    let list = AuthorizationAttributes::for_resource(&user, "list", "", "configmaps").namespace("test-ns");
    let reason = r#"RBAC: allowed by RoleBinding "r/test-ns" of Role "r" to ServiceAccount "sa/test-ns""#;
    assert_eq!(rbac.decide(&list), AuthorizationDecision::allow(reason));
    assert_eq!(rbac.decide(&AuthorizationAttributes { verb: "create", ..list }), AuthorizationDecision::no_opinion(""));
    assert_eq!(rbac.decide(&list.namespace("other-ns")), AuthorizationDecision::no_opinion(""));
    assert_eq!(rbac.decide(&list.namespace("")), AuthorizationDecision::no_opinion(""));
    assert_eq!(rbac.decide(&AuthorizationAttributes { group: "apps", ..list }), AuthorizationDecision::no_opinion(""));
}

#[test]
fn resource_names_limit_to_names() {
    let rbac =
        bound(json!([{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get"], "resourceNames": ["a"]}]));
    let user = account();
    let get = AuthorizationAttributes::for_resource(&user, "get", "", "configmaps").namespace("test-ns");
    assert!(rbac.decide(&get.name("a")).is_allowed());
    assert!(!rbac.decide(&get.name("b")).is_allowed());
    assert!(!rbac.decide(&get).is_allowed());
}

#[test]
fn a_subresource_needs_its_own_rule() {
    let rule = |resource: &str| json!([{"apiGroups": ["*"], "resources": [resource], "verbs": ["get"]}]);
    let user = account();
    let get = AuthorizationAttributes::for_resource(&user, "get", "apps", "deployments").namespace("test-ns");
    for (resource, main, scale) in [
        ("deployments/scale", false, true),
        ("*/scale", false, true),
        ("deployments", true, false),
        ("*", true, true),
        ("*/cale", false, false),
        ("x/deployments/scale", false, false),
    ] {
        let rbac = bound(rule(resource));
        assert_eq!(rbac.decide(&get).is_allowed(), main, "{resource}");
        assert_eq!(rbac.decide(&get.with_subresource("scale")).is_allowed(), scale, "{resource}");
    }
}

#[test]
fn urls_may_end_with_a_star() {
    let urls = json!([{"nonResourceURLs": ["/metrics", "/openapi/*"], "verbs": ["get"]}]);
    let subjects = json!([{"kind": "Group", "name": "system:authenticated"}]);
    let rbac = with(&[
        ("clusterroles", cluster_role("c", json!({}), urls)),
        ("clusterrolebindings", binding("b", "ClusterRole", "c", subjects)),
    ]);
    let user = account();
    for (path, allowed) in
        [("/metrics", true), ("/metrics/x", false), ("/openapi/v3", true), ("/openapi", false), ("/logs", false)]
    {
        assert_eq!(rbac.decide(&AuthorizationAttributes::for_path(&user, "get", path)).is_allowed(), allowed, "{path}");
    }
    let reason = r#"RBAC: allowed by ClusterRoleBinding "b" of ClusterRole "c" to Group "system:authenticated""#;
    assert_eq!(&*rbac.decide(&AuthorizationAttributes::for_path(&user, "get", "/metrics")).reason, reason);
}

#[test]
fn a_bound_role_that_is_not_there_is_told() {
    let subjects = json!([{"kind": "User", "name": "jane"}]);
    let rbac = with(&[
        ("rolebindings", binding("a", "Role", "x", subjects.clone())),
        ("clusterrolebindings", binding("b", "ClusterRole", "y", subjects)),
    ]);
    let user = UserInfo::new("jane", []);
    let get = AuthorizationAttributes::for_resource(&user, "get", "", "pods").namespace("test-ns");
    let reason =
        r#"RBAC: [clusterrole.rbac.authorization.k8s.io "y" not found, role.rbac.authorization.k8s.io "x" not found]"#;
    assert_eq!(rbac.decide(&get), AuthorizationDecision::no_opinion(reason));
    assert_eq!(rbac.rules_for(&user, "test-ns").errors.len(), 2);
}

#[test]
fn aggregated_roles_follow_what_they_select() {
    let pods = json!([{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]);
    let rbac = with(&[
        ("clusterroles", aggregated("admin", json!({}), "admin")),
        ("clusterroles", aggregated("edit", json!({"to": "admin"}), "edit")),
        ("clusterrolebindings", binding("b", "ClusterRole", "admin", json!([{"kind": "User", "name": "jane"}]))),
    ]);
    let user = UserInfo::new("jane", []);
    let allowed = || rbac.decide(&AuthorizationAttributes::for_resource(&user, "get", "", "pods")).is_allowed();
    assert!(!allowed());
    rbac.apply(&resource("clusterroles"), &cluster_role("mine", json!({"to": "edit"}), pods.clone()));
    assert!(allowed());
    assert_eq!(rbac.aggregated().len(), 2);
    assert_eq!(rbac.aggregated().first().map(|(_, rules)| Value::from(rules.clone())), Some(pods.clone()));
    rbac.apply(&resource("clusterroles"), &cluster_role("mine", json!({"to": "nobody"}), pods.clone()));
    assert!(!allowed());
    rbac.apply(&resource("clusterroles"), &cluster_role("mine", json!({"to": "edit"}), pods));
    rbac.remove(&resource("clusterroles"), "", "mine");
    assert!(!allowed());
}

#[test]
fn circles_of_aggregation_end() {
    let pods = json!([{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]);
    let rbac = with(&[
        ("clusterroles", aggregated("a", json!({"to": "b"}), "a")),
        ("clusterroles", aggregated("b", json!({"to": "a"}), "b")),
        ("clusterroles", cluster_role("c", json!({"to": "b"}), pods)),
    ]);
    assert!(rbac.aggregated().iter().all(|(_, rules)| rules.len() == 1));
}

#[test]
fn masters_need_no_roles() {
    let user = UserInfo::new("admin", ["system:masters"]);
    assert_eq!(
        RbacAuthorizer::default().decide(&AuthorizationAttributes::for_path(&user, "delete", "/x")),
        AuthorizationDecision::allow("")
    );
}

proptest! {
    /// After any changes the index decides like code that reads all objects for every request.
    #[test]
    fn the_index_decides_as_the_objects_say(changes in naive::changes(), requests in naive::requests()) {
        let rbac = RbacAuthorizer::default();
        let mut all = naive::Objects::default();
        for change in changes {
            all.change(&change);
            match &change {
                naive::Change::Apply(kind, object) => rbac.apply(&resource(kind), object),
                naive::Change::Remove(kind, namespace, name) => rbac.remove(&resource(kind), namespace, name),
            }
        }
        for request in requests {
            let user = UserInfo::new(&request.user, request.groups.iter().map(String::as_str));
            let attributes = request.attributes(&user);
            prop_assert_eq!(rbac.decide(&attributes).is_allowed(), all.allow(&attributes), "{:?}", request);
        }
    }
}
