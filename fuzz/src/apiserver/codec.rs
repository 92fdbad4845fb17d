//! Bodies in JSON, YAML and protobuf.

use kubewake_apiserver::{
    api::GroupVersion,
    codec::{json as our_json, protobuf as our_protobuf, yaml as our_yaml},
    schema::{builtin, decode, defaults},
};
use serde_json::Value;

use crate::{choice, memory::bounded};

/// JSON that serde_json accepts is accepted here, with the same value; decoded values survive a round trip.
pub(super) fn json(data: &[u8]) {
    let decoded = bounded("json::decode", data.len(), 256, 64 << 10, || our_json::decode(data));
    let theirs = serde_json::from_slice::<Value>(data);
    match (decoded, theirs) {
        (Ok(decoded), theirs) => {
            let value = decoded.value;
            if let Ok(theirs) = theirs {
                assert_eq!(comparable(&value), comparable(&theirs));
            }
            let compact = our_json::encode(&value);
            let pretty = our_json::encode_pretty(&value);
            for text in [compact, pretty] {
                let again = our_json::decode(&text).expect("what was written can be read").value;
                assert_eq!(comparable(&again), comparable(&value));
            }
            assert!(super::depth(&value) <= our_json::MAX_DEPTH);
        }
        // Depth is bounded more tightly, and numbers are limited to Go's float64.
        (Err(our_json::JsonDecodeError::Depth | our_json::JsonDecodeError::Number(_)), _) => {}
        (Err(error), Ok(_)) => panic!("serde_json reads what is refused with {error}"),
        (Err(_), Err(_)) => {}
    }
}

/// Numbers rounded to six digits: two readers may differ in the last bit of a fraction.
pub(super) fn comparable(value: &Value) -> Value {
    match value {
        Value::Number(number) => match number.as_f64() {
            Some(0.0) | None => 0.into(),
            Some(float) => format!("{float:.6e}").into(),
        },
        Value::Array(items) => items.iter().map(comparable).collect(),
        Value::Object(members) => members.iter().map(|(name, value)| (name.clone(), comparable(value))).collect(),
        other => other.clone(),
    }
}

/// Memory is within the limit for aliases, and decoded values survive a round trip as YAML.
pub(super) fn yaml(data: &[u8]) {
    let decoded = bounded("yaml::decode", data.len(), 512, 8 * our_yaml::MAX_ALIASED_BYTES, || our_yaml::decode(data));
    let Ok(decoded) = decoded else { return };
    assert!(super::depth(&decoded.value) <= our_json::MAX_DEPTH);
    let text = our_yaml::encode(&decoded.value);
    let again = our_yaml::decode(text.as_bytes()).unwrap_or_else(|error| panic!("{error} in\n{text}"));
    assert_eq!(comparable(&again.value), comparable(&decoded.value), "{text}");
}

const KINDS: [(&str, &str, &str); 8] = [
    ("", "v1", "Pod"),
    ("", "v1", "Secret"),
    ("apps", "v1", "Deployment"),
    ("", "v1", "Event"),
    ("apiextensions.k8s.io", "v1", "CustomResourceDefinition"),
    ("autoscaling", "v2", "HorizontalPodAutoscaler"),
    ("networking.k8s.io", "v1", "NetworkPolicy"),
    ("", "v1", "DeleteOptions"),
];

fn kind(choice: usize) -> (GroupVersion, &'static str) {
    let (group, version, kind) = KINDS[choice % KINDS.len()];
    (GroupVersion::new(group, version), kind)
}

/// Decoded values survive a round trip.
pub(super) fn protobuf(data: &[u8]) {
    let (choice, bytes) = choice(data);
    let (version, kind) = kind(choice);
    // The table of messages is built once, and must not count for the input.
    assert!(our_protobuf::has_message(&version, kind));
    let decoded =
        bounded("protobuf::decode", bytes.len(), 512, 64 << 10, || our_protobuf::decode(bytes, &version, kind));
    let Ok(value) = decoded else { return };
    let Some(written) = our_protobuf::encode(&value) else { return };
    // An empty field has no bytes in protobuf and a name in the decoded form; that is the constant.
    let again = our_protobuf::decode(&written, &version, kind).expect("what was written can be read");
    let rewritten = our_protobuf::encode(&again).expect("what was written has a kind");
    assert_eq!(rewritten, written, "{value}\n{again}");
}

/// A body of a built-in kind is validated and defaulted, and both are idempotent.
pub(super) fn typed_body(data: &[u8]) {
    let (choice, text) = choice(data);
    let (version, kind) = kind(choice);
    let Some(schema) = builtin::schema_for_kind(&version, kind) else { return };
    let Ok(decoded) = our_json::decode(text) else { return };
    let mut object = decoded.value;
    if decode::check_types(&mut object, schema).is_err() {
        return;
    }
    let mut again = object.clone();
    let unknown = decode::check_types(&mut again, schema).expect("what was checked is right");
    assert_eq!((&again, unknown), (&object, Vec::new()));
    defaults::apply_defaults(&mut object, schema);
    let mut again = object.clone();
    defaults::apply_defaults(&mut again, schema);
    assert_eq!(again, object);
}
