//! Roles and bindings.

use serde_json::{Value, json};

use super::{create, patch};

const GROUP: &str = "rbac.authorization.k8s.io/v1";

fn binding(role: Value, subjects: Value) -> Result<Value, Vec<String>> {
    create(GROUP, "RoleBinding", json!({"metadata": {"name": "r"}, "roleRef": role, "subjects": subjects}))
}

#[test]
fn a_binding_names_a_known_role_and_known_subjects() {
    let wrong = binding(json!({"apiGroup": "x", "kind": "Y", "name": ""}), json!([{"kind": "Zed", "name": "a"}]));
    let expected = [
        "roleRef.apiGroup: Unsupported value: \"x\": supported values: \"rbac.authorization.k8s.io\"",
        "roleRef.kind: Unsupported value: \"Y\": supported values: \"Role\", \"ClusterRole\"",
        "roleRef.name: Required value",
        "subjects[0].kind: Unsupported value: \"Zed\": supported values: \"ServiceAccount\", \"User\", \"Group\"",
    ];
    assert_eq!(wrong.unwrap_err(), expected);
    let good = binding(json!({"kind": "Role", "name": "r"}), json!([{"kind": "User", "name": "jane"}])).unwrap();
    assert_eq!(good.pointer("/roleRef/apiGroup"), Some(&json!("rbac.authorization.k8s.io")));
    assert_eq!(good.pointer("/subjects/0/apiGroup"), Some(&json!("rbac.authorization.k8s.io")));
}

#[test]
fn the_role_of_a_binding_stays() {
    let old = binding(json!({"kind": "Role", "name": "r"}), json!([])).unwrap();
    let wrong = patch(GROUP, "RoleBinding", &old, &json!({"roleRef": {"name": "other"}})).unwrap_err();
    let shown = "{\"APIGroup\":\"rbac.authorization.k8s.io\",\"Kind\":\"Role\",\"Name\":\"other\"}";
    assert_eq!(wrong, [format!("roleRef: Invalid value: {shown}: field is immutable")]);
}

#[test]
fn rules_say_what_they_allow() {
    let rules = json!([
        {"apiGroups": [""], "resources": ["pods"], "verbs": []}, {"nonResourceURLs": ["/x"], "verbs": ["get"]},
    ]);
    let wrong = create(GROUP, "Role", json!({"metadata": {"name": "x"}, "rules": rules})).unwrap_err();
    let expected = [
        "rules[0].verbs: Required value: verbs must contain at least one value",
        "rules[1].nonResourceURLs: Invalid value: [\"/x\"]: namespaced rules cannot apply to non-resource URLs",
    ];
    assert_eq!(wrong, expected);
}
