use serde_json::json;

use super::*;

fn rule(resources: &[&str], operations: &[&str], scope: &str) -> RuleWithOperations {
    RuleWithOperations::from_value(&json!({
        "apiGroups": [""], "apiVersions": ["v1"], "resources": resources, "operations": operations, "scope": scope,
    }))
}

fn place<'a>(resource: &'a str, subresource: &'a str) -> RuleTarget<'a> {
    RuleTarget { operation: AdmissionOperation::Create, resource, subresource, name: "x", namespaced: true }
}

#[test]
fn resources_and_their_parts_are_wanted_as_they_are_written() {
    for (written, wanted, others) in [
        ("pods", vec![("pods", "")], vec![("pods", "status"), ("secrets", "")]),
        ("pods/status", vec![("pods", "status")], vec![("pods", ""), ("pods", "log")]),
        ("pods/*", vec![("pods", ""), ("pods", "status")], vec![("secrets", "")]),
        ("*", vec![("pods", ""), ("secrets", "")], vec![("pods", "status")]),
        ("*/*", vec![("pods", ""), ("pods", "status")], vec![]),
        ("*/scale", vec![("deployments", "scale")], vec![("deployments", ""), ("deployments", "status")]),
    ] {
        let rule = rule(&[written], &["CREATE"], "*");
        for (resource, part) in wanted {
            assert!(rule.matches_target(&place(resource, part)), "{written} wants {resource}/{part}");
        }
        for (resource, part) in others {
            assert!(!rule.matches_target(&place(resource, part)), "{written} does not want {resource}/{part}");
        }
    }
}

#[test]
fn operations_are_named_or_all() {
    let update = RuleTarget { operation: AdmissionOperation::Update, ..place("pods", "") };
    assert!(rule(&["pods"], &["CREATE", "UPDATE"], "*").matches_target(&update));
    assert!(rule(&["pods"], &["*"], "*").matches_target(&update));
    assert!(!rule(&["pods"], &["CREATE", "DELETE"], "*").matches_target(&update));
}

#[test]
fn scope_tells_namespaced_objects_from_others() {
    let cluster = RuleTarget { namespaced: false, ..place("nodes", "") };
    for (scope, namespaced, others) in [("*", true, true), ("Namespaced", true, false), ("Cluster", false, true)] {
        assert_eq!(rule(&["*"], &["*"], scope).matches_target(&place("pods", "")), namespaced, "{scope}");
        assert_eq!(rule(&["*"], &["*"], scope).matches_target(&cluster), others, "{scope}");
    }
}

#[test]
fn groups_and_versions_are_named_or_all() {
    let any = RuleWithOperations::from_value(&json!({ "apiGroups": ["*"], "apiVersions": ["*"] }));
    let apps = RuleWithOperations::from_value(&json!({ "apiGroups": ["apps"], "apiVersions": ["v1", "v1beta1"] }));
    for (group, version, wanted) in [("apps", "v1", true), ("apps", "v2", false), ("", "v1", false)] {
        assert!(any.matches_version(&GroupVersion::new(group, version)));
        assert_eq!(apps.matches_version(&GroupVersion::new(group, version)), wanted);
    }
}

#[test]
fn names_narrow_a_rule_of_a_policy() {
    let rule =
        RuleWithOperations::from_value(&json!({ "resources": ["pods"], "operations": ["*"], "resourceNames": ["x"] }));
    assert!(rule.matches_target(&place("pods", "")));
    assert!(!rule.matches_target(&RuleTarget { name: "y", ..place("pods", "") }));
    assert!(!rule.matches_target(&RuleTarget { name: "", ..place("pods", "") }));
}

#[test]
fn a_rule_that_makes_no_sense_wants_nothing() {
    for rule in [json!(null), json!([]), json!({ "resources": [1, {}], "operations": "CREATE" })] {
        assert!(!RuleWithOperations::from_value(&rule).matches_target(&place("pods", "")));
    }
}
