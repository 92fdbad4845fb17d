use serde_json::json;

use super::*;

#[test]
fn a_refused_list_names_the_collection() {
    let user = UserInfo::anonymous();
    let status = AuthorizationAttributes::for_resource(&user, "list", "", "configmaps")
        .namespace("test-ns")
        .forbidden_status("");
    let message = r#"configmaps is forbidden: User "system:anonymous" cannot list resource "configmaps" in API group "" in the namespace "test-ns""#;
    assert_eq!(status.message, message);
    assert_eq!(status.to_value().get("details"), Some(&json!({"kind": "configmaps"})));
}

#[test]
fn a_refused_get_names_the_object() {
    let user = UserInfo::service_account("test-ns", "sa", "");
    let attributes =
        AuthorizationAttributes::for_resource(&user, "get", "apps", "deployments").namespace("test-ns").name("web");
    let status = attributes.forbidden_status("");
    let message = r#"deployments.apps "web" is forbidden: User "system:serviceaccount:test-ns:sa" cannot get resource "deployments" in API group "apps" in the namespace "test-ns""#;
    assert_eq!(status.message, message);
    let details = json!({"name": "web", "group": "apps", "kind": "deployments"});
    assert_eq!(status.to_value().get("details"), Some(&details));
}

#[test]
fn a_refused_path_has_empty_details() {
    let user = UserInfo::anonymous();
    let status = AuthorizationAttributes::for_path(&user, "get", "/metrics").forbidden_status("");
    assert_eq!(status.message, r#"forbidden: User "system:anonymous" cannot get path "/metrics""#);
    assert_eq!(status.to_value().get("details"), Some(&json!({})));
}

#[test]
fn subresource_scope_and_reason_are_in_the_message() {
    let user = UserInfo::new("jane", []);
    let status = AuthorizationAttributes::for_resource(&user, "get", "", "nodes")
        .with_subresource("log")
        .forbidden_status("RBAC: why");
    let message = r#"nodes is forbidden: User "jane" cannot get resource "nodes/log" in API group "" at the cluster scope: RBAC: why"#;
    assert_eq!(status.message, message);
}

#[test]
fn a_field_selector_may_name_one_object() {
    for (selector, name) in [
        ("metadata.name=a", Some("a")),
        ("status.phase=Running,metadata.name==a", Some("a")),
        ("metadata.name!=a", None),
        ("metadata.namespace=a", None),
        ("metadata.name=", None),
        ("metadata.name=a/b", None),
        ("", None),
    ] {
        assert_eq!(selected_name(selector), name, "{selector}");
    }
}
