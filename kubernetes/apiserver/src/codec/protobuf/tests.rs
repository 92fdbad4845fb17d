use base64::{Engine as _, engine::general_purpose::STANDARD};
use proptest::prelude::*;
use serde_json::json;

use super::*;

#[test]
fn every_built_in_kind_but_one_has_a_message() {
    let catalog = crate::kinds::catalog();
    let without = catalog.all().filter(|resource| !has_message(&resource.gv, &resource.kind));
    assert_eq!(without.map(|resource| &*resource.kind).collect::<Vec<_>>(), ["APIService"]);
}

/// Bodies as kubectl sends them, with their content.
fn bodies() -> Vec<(&'static str, Value)> {
    vec![
        (
            "azhzAAoPCgJ2MRIJQ29uZmlnTWFwEi4KHAoFcGItY20SABoHZGVmYXVsdCIAKgAyADgAQgASBgoBYRIBYhIGCgFjEgFkGgAiAA==",
            json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "pb-cm", "namespace": "default"}, "data": {"a": "b", "c": "d"}}),
        ),
        (
            "azhzAAoMCgJ2MRIGU2VjcmV0EiwKIAoJcGItc2VjcmV0EgAaB2RlZmF1bHQiACoAMgA4AEIAEgYKAWESAWIaABoAIgA=",
            json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "pb-secret", "namespace": "default"}, "data": {"a": "Yg=="}}),
        ),
        (
            "azhzAAoVCgdhcHBzL3YxEgpEZXBsb3ltZW50EskBCiwKBnBiLWRlcBIAGgdkZWZhdWx0IgAqADIAOABCAFoNCgNhcHASBnBiLWRlcBKKAQgCEg\
             8KDQoDYXBwEgZwYi1kZXAabQofCgASABoAIgAqADIAOABCAFoNCgNhcHASBnBiLWRlcBJKEiwKA2ltZxIFaW1nOjEqADIKCgAQABhQIgAqAEIA\
             agByAIABAIgBAJABAKIBABoAMgBCAEoAUgBYAGAAaACCAQCKAQCaAQDCAQAiAgoAKAA4ABoMCAAQABgAIAAoADgAGgAiAA==",
            json!({
                "apiVersion": "apps/v1", "kind": "Deployment",
                "metadata": {"name": "pb-dep", "namespace": "default", "labels": {"app": "pb-dep"}},
                "spec": {
                    "replicas": 2, "selector": {"matchLabels": {"app": "pb-dep"}}, "strategy": {},
                    "template": {
                        "metadata": {"labels": {"app": "pb-dep"}},
                        "spec": {
                            "containers": [{"name": "img", "image": "img:1", "ports": [{"containerPort": 80}], "resources": {}}],
                        },
                    },
                },
                "status": {},
            }),
        ),
        (
            "azhzAAoNCgJ2MRIHU2VydmljZRJ9CiwKBnBiLXN2YxIAGgdkZWZhdWx0IgAqADIAOABCAFoNCgNhcHASBnBiLXN2YxJJChsKBzgwLTgwODASA1\
             RDUBhQIgcIABCQPxoAKAASDQoDYXBwEgZwYi1zdmMaBE5vbmUiCUNsdXN0ZXJJUDoAQgBSAFoAYABoABoCCgAaACIA",
            json!({
                "apiVersion": "v1", "kind": "Service",
                "metadata": {"name": "pb-svc", "namespace": "default", "labels": {"app": "pb-svc"}},
                "spec": {
                    "ports": [{"name": "80-8080", "protocol": "TCP", "port": 80, "targetPort": 8080}],
                    "selector": {"app": "pb-svc"}, "clusterIP": "None", "type": "ClusterIP",
                },
                "status": {"loadBalancer": {}},
            }),
        ),
        (
            "azhzAAokChxyYmFjLmF1dGhvcml6YXRpb24uazhzLmlvL3YxEgRSb2xlEjsKHgoHcGItcm9sZRIAGgdkZWZhdWx0IgAqADIAOABCABIZCgNnZX\
             QKBGxpc3QSABoKY29uZmlnbWFwcxoAIgA=",
            json!({
                "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role",
                "metadata": {"name": "pb-role", "namespace": "default"},
                "rules": [{"verbs": ["get", "list"], "apiGroups": [""], "resources": ["configmaps"]}],
            }),
        ),
        (
            "azhzAAoPCghiYXRjaC92MRIDSm9iEocBCh0KBnBiLWpvYhIAGgdkZWZhdWx0IgAqADIAOABCABJcMloKEAoAEgAaACIAKgAyADgAQgASRhIjCg\
             ZwYi1qb2ISBWltZzoxKgBCAGoAcgCAAQCIAQCQAQCiAQAaBU5ldmVyMgBCAEoAUgBYAGAAaACCAQCKAQCaAQDCAQAaCCAAKAAwADoAGgAiAA==",
            json!({
                "apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "pb-job", "namespace": "default"},
                "spec": {"template": {
                    "metadata": {},
                    "spec": {"containers": [{"name": "pb-job", "image": "img:1", "resources": {}}], "restartPolicy": "Never"},
                }},
                "status": {},
            }),
        ),
        (
            "azhzAAoyChdhdXRob3JpemF0aW9uLms4cy5pby92MRIXU2VsZlN1YmplY3RBY2Nlc3NSZXZpZXcSPAoQCgASABoAIgAqADIAOABCABIeChwKB2\
             RlZmF1bHQSA2dldBoAIgAqBHBvZHMyADoAGggIABIAGgAgABoAIgA=",
            json!({
                "apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview", "metadata": {},
                "spec": {"resourceAttributes": {"namespace": "default", "verb": "get", "resource": "pods"}},
                "status": {"allowed": false},
            }),
        ),
    ]
}

fn core() -> GroupVersion {
    GroupVersion::new("", "v1")
}

fn read(bytes: &[u8]) -> Result<Value, ProtobufRefusal> {
    decode(bytes, &core(), "ConfigMap")
}

#[test]
fn what_kubectl_sends_is_read_and_written_byte_by_byte() {
    for (body, object) in bodies() {
        let bytes = STANDARD.decode(body).expect("base64");
        assert_eq!(read(&bytes), Ok(object.clone()));
        assert_eq!(STANDARD.encode(encode(&object).expect("a built-in kind")), body);
    }
}

#[track_caller]
fn same_after_a_trip(object: Value) {
    let bytes = encode(&object).expect("a built-in kind");
    assert_eq!(read(&bytes), Ok(object));
}

#[test]
fn special_types_survive() {
    same_after_a_trip(json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {
            "name": "p", "creationTimestamp": "2024-02-03T04:05:06Z", "deletionGracePeriodSeconds": 0, "generation": 3,
            "managedFields": [{"manager": "m", "time": "2024-02-03T04:05:06Z", "fieldsType": "FieldsV1", "fieldsV1": {"f:spec": {".": {}}}}],
        },
        "spec": {
            "terminationGracePeriodSeconds": 0, "enableServiceLinks": false,
            "volumes": [{"name": "v", "emptyDir": {"sizeLimit": "1Gi"}}, {"name": "c", "configMap": {"name": "c", "optional": true}}],
            "containers": [{
                "name": "c", "resources": {"limits": {"cpu": "500m"}},
                "livenessProbe": {"httpGet": {"path": "/", "port": "http"}, "periodSeconds": 5},
                "env": [{"name": "A", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}}],
            }],
        },
        "status": {},
    }));
    same_after_a_trip(json!({
        "apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "l"},
        "spec": {"holderIdentity": "me", "leaseDurationSeconds": 0, "renewTime": "2024-02-03T04:05:06.000789Z"},
    }));
    same_after_a_trip(json!({
        "apiVersion": "apps/v1", "kind": "ControllerRevision", "metadata": {"name": "r"}, "revision": 0,
        "data": {"spec": {"a": [1, 2.5, null]}},
    }));
    same_after_a_trip(json!({
        "apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "metadata": {}, "spec": {"token": "t"},
        "status": {"user": {"username": "u", "extra": {"k": ["a", "b"], "none": []}}},
    }));
    same_after_a_trip(json!({
        "apiVersion": "v1", "kind": "DeleteOptions", "gracePeriodSeconds": 0, "preconditions": {"uid": "u"},
        "propagationPolicy": "Foreground", "dryRun": ["All"],
    }));
    same_after_a_trip(json!({
        "apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": {"name": "s"}, "spec": {"replicas": 3}, "status": {"replicas": 0},
    }));
    same_after_a_trip(json!({
        "apiVersion": "v1", "kind": "Status", "metadata": {}, "status": "Failure", "code": 404,
        "details": {"name": "a", "causes": [{"reason": "r"}]},
    }));
}

#[test]
fn schemas_of_definitions_survive() {
    let schema = json!({
        "type": "object", "x-kubernetes-preserve-unknown-fields": true, "required": ["a"],
        "properties": {
            "a": {"type": "integer", "default": 5, "minimum": 0.0, "maximum": 1.5, "enum": [1, "x", null]},
            "b": {"type": "array", "items": {"type": "string"}, "maxItems": 0},
            "c": {"type": "object", "additionalProperties": {"$ref": "#/x"}},
            "d": {"type": "object", "additionalProperties": false},
            "e": {"items": [{"type": "string"}, {"type": "number"}], "dependencies": {"p": ["q"], "r": {"type": "null"}}},
        },
    });
    same_after_a_trip(json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "ws.example.com"},
        "spec": {
            "group": "example.com", "scope": "Namespaced", "names": {"plural": "ws", "kind": "W"},
            "versions": [{"name": "v1", "served": true, "storage": false, "schema": {"openAPIV3Schema": schema}, "subresources": {"status": {}}}],
        },
        "status": {"conditions": null, "acceptedNames": {"plural": "", "kind": ""}, "storedVersions": null},
    }).without_nulls());
}

trait WithoutNulls {
    fn without_nulls(self) -> Self;
}

impl WithoutNulls for Value {
    /// Removes nulls of the object's own fields; those in a schema stay.
    fn without_nulls(mut self) -> Self {
        if let Some(status) = self.get_mut("status").and_then(Value::as_object_mut) {
            status.retain(|_, value| !value.is_null());
        }
        self
    }
}

#[test]
fn what_a_body_does_not_say_is_what_was_expected() {
    let body = b"k8s\0\x12\x05\x0a\x03\x0a\x01a";
    let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}});
    assert_eq!(read(body), Ok(object));
}

#[test]
fn every_kind_has_a_message() {
    let kinds = [
        ("v1", "Namespace"),
        ("v1", "Event"),
        ("v1", "Binding"),
        ("v1", "PodList"),
        ("v1", "DeleteOptions"),
        ("apps/v1", "DeleteOptions"),
        ("apps/v1", "DaemonSet"),
        ("rbac.authorization.k8s.io/v1", "ClusterRoleBinding"),
        ("events.k8s.io/v1", "Event"),
        ("discovery.k8s.io/v1", "EndpointSlice"),
        ("networking.k8s.io/v1", "NetworkPolicy"),
        ("policy/v1", "Eviction"),
        ("policy/v1", "PodDisruptionBudget"),
        ("autoscaling/v2", "HorizontalPodAutoscaler"),
        ("authentication.k8s.io/v1", "TokenRequest"),
        ("admissionregistration.k8s.io/v1", "MutatingWebhookConfiguration"),
        ("meta.k8s.io/v1", "PartialObjectMetadata"),
        ("authorization.k8s.io/v1", "SelfSubjectRulesReview"),
        ("scheduling.k8s.io/v1", "PriorityClass"),
        ("storage.k8s.io/v1", "StorageClass"),
    ];
    for (version, kind) in kinds {
        assert!(MessageTable::get().kind(version, kind).is_some(), "{version} {kind}");
    }
    assert!(MessageTable::get().kind("example.com/v1", "Widget").is_none());
}

#[test]
fn every_type_that_a_message_names_is_known() {
    for message in MessageTable::get().all() {
        for field in &message.fields {
            if let message_table::FieldType::Message(name) = field.kind {
                let known = MessageTable::get().message(name).is_some()
                    || matches!(well_known::read(name, b"", 0), Ok(Some(_)));
                assert!(known, "{} of {}", name, message.name);
            }
        }
        assert!(message.fields.is_sorted_by_key(|field| field.number), "{}", message.name);
    }
}

#[test]
fn broken_messages_are_refused() {
    let refused = |bytes: &[u8]| read(bytes).expect_err("a refusal").error;
    assert_eq!(refused(b""), ProtobufDecodeError::Empty);
    assert_eq!(refused(b"k8s\0"), ProtobufDecodeError::EmptyBody);
    assert_eq!(refused(b"k8s\0\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"), ProtobufDecodeError::Length);
    assert_eq!(refused(b"k8s\0\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff"), ProtobufDecodeError::Overflow);
    assert_eq!(refused(b"k8s\0\x12\x02\x08\x01"), ProtobufDecodeError::Mismatch { found: 0, field: "metadata".into() });
    let nope = decode(b"k8s\0\x12\0", &GroupVersion::new("nope", "v1"), "Nope").expect_err("a refusal");
    let message = r#"no kind "Nope" is registered for version "nope/v1" in scheme "pkg/api/legacyscheme/scheme.go:30""#;
    assert_eq!((nope.error.to_string().as_str(), nope.kind), (message, Some(("nope/v1".into(), "Nope".into()))));
}

#[test]
fn depth_is_bounded() {
    // A chain of JSONSchemaProps.not.
    let not = MessageTable::get()
        .message("apiextensions/v1.JSONSchemaProps")
        .and_then(|m| m.fields.iter().find(|f| f.name == "not"));
    let number = not.expect("a field").number;
    let mut schema = Vec::new();
    for _ in 0..5000 {
        let mut outer = Vec::new();
        wire::put_bytes(&mut outer, number, &schema);
        schema = outer;
    }
    let mut object = Map::new();
    let message = MessageTable::get().message("apiextensions/v1.JSONSchemaProps").expect("a message");
    assert_eq!(read::fill(&mut object, message, &schema, 1), Err(ProtobufDecodeError::Depth));
    let groups = [b"k8s\0".as_slice(), &[0x7b; 100_000]].concat();
    assert_eq!(read(&groups).expect_err("a refusal").error, ProtobufDecodeError::End);
}

#[test]
fn events_are_framed() {
    let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}});
    let frame = encode_event("ADDED", &object).expect("a built-in kind");
    let (length, message) = frame.split_first_chunk::<4>().expect("a length");
    assert_eq!(u32::from_be_bytes(*length) as usize, message.len());
    assert!(message.starts_with(b"\x0a\x05ADDED\x12"));
}

#[test]
fn durations_are_gos() {
    let cases = [
        (0, "0s"),
        (1, "1ns"),
        (1_500, "1.5µs"),
        (20_000_000, "20ms"),
        (1_500_000_000, "1.5s"),
        (60_000_000_000, "1m0s"),
        (3_600_000_000_000, "1h0m0s"),
        (-90_000_000_000, "-1m30s"),
    ];
    for (nanos, text) in cases {
        assert_eq!(well_known::duration(nanos), text);
        assert_eq!(well_known::nanos(text), Some(nanos));
    }
}

proptest! {
    #[test]
    fn no_bytes_make_it_panic(bytes: Vec<u8>, which in 0..7_usize, at: prop::sample::Index, with: u8) {
        let _ = read(&bytes);
        let _ = read(&[MAGIC, &bytes].concat());
        let mut body = STANDARD.decode(bodies()[which].0).expect("base64");
        let at = at.index(body.len());
        body[at] = with;
        let _ = read(&body);
        body.truncate(at);
        let _ = read(&body);
    }

    #[test]
    fn any_message_of_any_kind_is_read_or_refused(bytes: Vec<u8>, which: prop::sample::Index) {
        let mut names: Vec<_> = MessageTable::get().all().map(|message| message.name).collect();
        names.sort_unstable();
        let _ = read::message_value(names[which.index(names.len())], &bytes, None, 1);
    }
}

#[test]
fn discovery_documents_are_encoded_with_and_without_a_version() {
    let versions = encode(&json!({"kind": "APIVersions", "versions": ["v1"]})).unwrap();
    assert_eq!(versions, b"k8s\0\x0a\x0f\x0a\0\x12\x0bAPIVersions\x12\x04\x0a\x02v1\x1a\0\"\0");
    let core = encode(&json!({"kind": "APIResourceList", "groupVersion": "v1", "resources": []})).unwrap();
    assert_eq!(core, b"k8s\0\x0a\x13\x0a\0\x12\x0fAPIResourceList\x12\x04\x0a\x02v1\x1a\0\"\0");
    let verbs = json!(["get", "list"]);
    let resource = json!({"name": "pods", "singularName": "pod", "namespaced": true, "kind": "Pod", "verbs": verbs});
    let list = json!({"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": "v1", "resources": [resource]});
    let decoded = decode(&encode(&list).unwrap(), &GroupVersion::new("", "v1"), "APIResourceList").unwrap();
    assert_eq!(decoded, list);
}
