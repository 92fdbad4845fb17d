//! The rules for the metadata of every object: names, labels, owners, finalizers.

use serde_json::json;

use super::{create, patch};

const SUBDOMAIN: &str = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must \
start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is \
'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
const KEY: &str = "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character \
(e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";

fn refused(metadata: serde_json::Value) -> Vec<String> {
    create("v1", "ConfigMap", json!({"metadata": metadata})).unwrap_err()
}

#[test]
fn names_are_dns_subdomains() {
    for name in ["Upper_Case", "a..b", "-a"] {
        assert_eq!(refused(json!({"name": name})), [format!("metadata.name: Invalid value: {name:?}: {SUBDOMAIN}")]);
    }
    let long = "x".repeat(254);
    let words = format!("metadata.name: Invalid value: {long:?}: must be no more than 253 characters");
    assert_eq!(refused(json!({"name": long})), [words]);
    assert_eq!(refused(json!({})), ["metadata.name: Required value: name or generateName is required"]);
}

#[test]
fn some_kinds_have_other_rules_for_names() {
    let dotted = create("v1", "Namespace", json!({"metadata": {"name": "a.b"}}));
    assert_eq!(dotted, Err(vec!["metadata.name: Invalid value: \"a.b\": must not contain dots".to_owned()]));
    let role = |name: &str| create("rbac.authorization.k8s.io/v1", "ClusterRole", json!({"metadata": {"name": name}}));
    assert_eq!(role("a/b").unwrap_err(), ["metadata.name: Invalid value: \"a/b\": may not contain '/'"]);
    assert_eq!(role("a%b").unwrap_err(), ["metadata.name: Invalid value: \"a%b\": may not contain '%'"]);
    assert!(role("system:Something").is_ok());
    let service = json!({"metadata": {"name": "1.x"}, "spec": {"clusterIP": "None", "ports": [{"port": 1}]}});
    let words = "metadata.name: Invalid value: \"1.x\": a DNS-1035 label must consist of lower case alphanumeric characters or '-', \
                 start with an alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex \
                 used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')";
    assert_eq!(create("v1", "Service", service).unwrap_err(), [words]);
}

#[test]
fn a_prefix_may_end_in_a_dash() {
    assert!(create("v1", "ConfigMap", json!({"metadata": {"name": "g-abcde", "generateName": "g-"}})).is_ok());
    let bad = refused(json!({"name": "Bad_abcde", "generateName": "Bad_"}));
    assert_eq!(bad.len(), 2, "{bad:?}");
}

#[test]
fn labels_and_annotations_have_qualified_keys() {
    let key = |key: &str, words: String| {
        let one = refused(json!({"name": "a", "labels": {key: "x"}}));
        assert_eq!(one, [format!("metadata.labels: Invalid value: {key:?}: {words}")]);
    };
    key("-bad", format!("name part {KEY}"));
    key("UPPER.example.com/x", format!("prefix part {SUBDOMAIN}"));
    let rest = "with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')";
    key("a/b/c", format!("a valid label key {KEY} {rest}"));
    let long = "x".repeat(64);
    let words = format!("metadata.labels: Invalid value: {long:?}: must be no more than 63 bytes");
    assert_eq!(refused(json!({"name": "a", "labels": {"ok": long}})), [words]);
    let annotation = refused(json!({"name": "a", "annotations": {"a b": "x"}}));
    assert_eq!(annotation, [format!("metadata.annotations: Invalid value: \"a b\": name part {KEY}")]);
    let large = refused(json!({"name": "a", "annotations": {"a": "x".repeat(256 * 1024)}}));
    assert_eq!(large, ["metadata.annotations: Too long: may not be more than 262144 bytes"]);
}

#[test]
fn owners_are_whole_and_at_most_one_controls() {
    let owners = |owners| refused(json!({"name": "a", "ownerReferences": owners}));
    let empty = owners(json!([{"apiVersion": "v1", "kind": "ConfigMap", "name": "", "uid": ""}]));
    let words = |field| format!("metadata.ownerReferences[0].{field}: Required value: must not be empty");
    assert_eq!(empty, [words("name"), words("uid")]);
    let owner =
        |name: &str| json!({"apiVersion": "v1", "kind": "Secret", "name": name, "uid": name, "controller": true});
    let shown = |name: &str| {
        format!("{{\"apiVersion\":\"v1\",\"kind\":\"Secret\",\"name\":{name:?},\"uid\":{name:?},\"controller\":true}}")
    };
    let words = format!(
        "metadata.ownerReferences: Invalid value: [{},{}]: Only one reference can have Controller set to true. Found \"true\" in \
         references for Secret/a and Secret/b",
        shown("a"),
        shown("b")
    );
    assert_eq!(owners(json!([owner("a"), owner("b")])), [words]);
    let event = owners(json!([{"apiVersion": "v1", "kind": "Event", "name": "a", "uid": "u1"}]));
    let shown = "{\"apiVersion\":\"v1\",\"kind\":\"Event\",\"name\":\"a\",\"uid\":\"u1\"}";
    let words = format!(
        "metadata.ownerReferences[0]: Invalid value: {shown}: /v1, Kind=Event is disallowed from being an owner"
    );
    assert_eq!(event, [words]);
}

#[test]
fn finalizers_have_a_domain() {
    let plain = refused(json!({"name": "a", "finalizers": ["plain"]}));
    let words = "name is neither a standard finalizer name nor is it fully qualified";
    assert_eq!(plain, [format!("metadata.finalizers[0]: Invalid value: \"plain\": {words}")]);
    let bad = refused(json!({"name": "a", "finalizers": ["bad name/x"]}));
    assert_eq!(bad, [format!("metadata.finalizers: Invalid value: \"bad name/x\": prefix part {SUBDOMAIN}")]);
}

#[test]
fn an_update_keeps_what_the_server_set() {
    let old =
        json!({"metadata": {"name": "a", "namespace": "ns", "uid": "U", "creationTimestamp": "2020-01-01T00:00:00Z"}});
    let same = patch(
        "v1",
        "ConfigMap",
        &old,
        &json!({"metadata": {"creationTimestamp": "2001-01-01T00:00:00Z", "generation": 9}}),
    );
    assert_eq!(same, Ok(old.clone()));
    let gone = patch("v1", "ConfigMap", &old, &json!({"metadata": {"deletionTimestamp": "2001-01-01T00:00:00Z"}}));
    let words = "metadata.deletionTimestamp: Invalid value: \"2001-01-01T00:00:00Z\": field is immutable";
    assert_eq!(gone.unwrap_err(), [words]);
}

#[test]
fn while_an_object_goes_no_finalizer_comes() {
    let old = json!({"metadata": {
        "name": "a", "namespace": "ns", "uid": "U", "finalizers": ["example.com/x"],
        "deletionTimestamp": "2020-01-01T00:00:00Z", "deletionGracePeriodSeconds": 0,
    }});
    let more = json!({"metadata": {"finalizers": ["example.com/x", "example.com/z"]}});
    let words = "metadata.finalizers: Forbidden: no new finalizers can be added if the object is being deleted, found new \
                 finalizers []string{\"example.com/z\"}";
    assert_eq!(patch("v1", "ConfigMap", &old, &more).unwrap_err(), [words]);
    let back = patch("v1", "ConfigMap", &old, &json!({"metadata": {"deletionTimestamp": null}}));
    assert_eq!(back, Ok(old));
}
