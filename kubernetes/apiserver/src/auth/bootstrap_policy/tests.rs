use super::*;
use crate::auth::{AuthorizationAttributes, RbacAuthorizer, UserInfo};

fn rbac() -> RbacAuthorizer {
    let objects = bootstrap_objects();
    RbacAuthorizer::new(objects.iter().map(|(resource, object)| (resource, object)))
}

#[test]
fn everyone_may_discover_and_the_anonymous_only_see_health_and_version() {
    let rbac = rbac();
    let jane = UserInfo::new("jane", []).with_authenticated_group();
    let nobody = UserInfo::anonymous();
    for (path, authenticated, anonymous) in [
        ("/version", true, true),
        ("/healthz", true, true),
        ("/api", true, false),
        ("/openapi/v3", true, false),
        ("/metrics", false, false),
    ] {
        assert_eq!(
            rbac.decide(&AuthorizationAttributes::for_path(&jane, "get", path)).is_allowed(),
            authenticated,
            "{path}"
        );
        assert_eq!(
            rbac.decide(&AuthorizationAttributes::for_path(&nobody, "get", path)).is_allowed(),
            anonymous,
            "{path}"
        );
    }
    let reason = r#"RBAC: allowed by ClusterRoleBinding "system:discovery" of ClusterRole "system:discovery" to Group "system:authenticated""#;
    assert_eq!(&*rbac.decide(&AuthorizationAttributes::for_path(&jane, "get", "/openapi/v3")).reason, reason);
}

#[test]
fn an_administrator_of_a_namespace_may_what_editors_and_viewers_may() {
    let rbac = rbac();
    let bind = |name: &str| {
        let role = json!({"apiGroup": RBAC_GROUP, "kind": "ClusterRole", "name": name});
        let subjects = json!([{"kind": "User", "name": name}]);
        let binding = json!({"metadata": {"name": name, "namespace": "n"}, "roleRef": role, "subjects": subjects});
        rbac.apply(&GroupResource::new(RBAC_GROUP, "rolebindings"), &binding);
        UserInfo::new(name, [])
    };
    let [admin, edit, view] = ["admin", "edit", "view"].map(bind);
    let may = |user, verb, group, resource| {
        rbac.decide(&AuthorizationAttributes::for_resource(user, verb, group, resource).namespace("n")).is_allowed()
    };
    assert!([&admin, &edit, &view].iter().all(|user| may(user, "get", "apps", "deployments")));
    assert!(may(&admin, "create", "", "pods") && may(&edit, "create", "", "pods") && !may(&view, "create", "", "pods"));
    assert!(may(&admin, "create", RBAC_GROUP, "roles") && !may(&edit, "create", RBAC_GROUP, "roles"));
    assert!(may(&edit, "get", "", "secrets") && !may(&view, "get", "", "secrets"));
}

#[test]
fn objects_look_as_kube_apiserver_makes_them() {
    let objects = bootstrap_objects();
    let find = |name: &str, kind: &str| {
        let found = objects.iter().find(|(_, object)| object["metadata"]["name"] == name && object["kind"] == kind);
        found.map(|(_, object)| object.clone()).unwrap()
    };
    let labels =
        json!({"kubernetes.io/bootstrapping": "rbac-defaults", "rbac.authorization.k8s.io/aggregate-to-admin": "true"});
    assert_eq!(find("edit", "ClusterRole")["metadata"]["labels"], labels);
    let basic = json!([
        {"apiGroups": ["authorization.k8s.io"], "resources": ["selfsubjectaccessreviews", "selfsubjectrulesreviews"], "verbs": ["create"]},
        {"apiGroups": ["authentication.k8s.io"], "resources": ["selfsubjectreviews"], "verbs": ["create"]},
    ]);
    assert_eq!(find("system:basic-user", "ClusterRole")["rules"], basic);
    let subjects = json!([{"apiGroup": RBAC_GROUP, "kind": "Group", "name": "system:masters"}]);
    assert_eq!(find("cluster-admin", "ClusterRoleBinding")["subjects"], subjects);
}

#[test]
fn controllers_may_what_their_work_needs_under_their_own_accounts() {
    let rbac = rbac();
    let account = |name: &str| UserInfo::new(&format!("system:serviceaccount:kube-system:{name}"), []);
    let may = |user: &UserInfo, verb, group, resource, namespace| {
        rbac.decide(&AuthorizationAttributes::for_resource(user, verb, group, resource).namespace(namespace))
            .is_allowed()
    };
    let deployments = account("deployment-controller");
    assert!(may(&deployments, "create", "apps", "replicasets", "any"));
    assert!(!may(&deployments, "delete", "", "secrets", "any"));
    let garbage = account("generic-garbage-collector");
    assert!(may(&garbage, "delete", "example.com", "widgets", "any"));
    let cleaner = account("token-cleaner");
    assert!(may(&cleaner, "delete", "", "secrets", "kube-system"));
    assert!(!may(&cleaner, "delete", "", "secrets", "default"));
    let signer = account("bootstrap-signer");
    let info = AuthorizationAttributes::for_resource(&signer, "update", "", "configmaps").namespace("kube-public");
    assert!(rbac.decide(&info.name("cluster-info")).is_allowed());
    assert!(!may(&account("somebody-else"), "create", "apps", "replicasets", "any"));
}

#[test]
fn roles_of_controllers_are_each_bound_to_one_account() {
    let objects = bootstrap_objects();
    let named = |resource: &str| {
        let of = |(found, object): &(GroupResource, Value)| {
            let name = object.pointer("/metadata/name").and_then(Value::as_str)?;
            let ours = &*found.resource == resource && name.starts_with(controller_roles::CONTROLLER_ROLE_PREFIX);
            ours.then(|| (object.pointer("/metadata/namespace").cloned(), name.to_owned()))
        };
        objects.iter().filter_map(of).collect::<Vec<_>>()
    };
    assert_eq!(named("clusterroles"), named("clusterrolebindings"));
    assert_eq!(named("roles"), named("rolebindings"));
    assert!(named("clusterroles").len() > 30 && named("roles").len() == 4);
}
