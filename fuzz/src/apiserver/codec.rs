//! Bodies in JSON, YAML and protobuf.

use kubewake_apiserver::{
    api::GroupVersion,
    codec::{json as our_json, protobuf as our_protobuf, yaml as our_yaml},
    schema::{builtin, decode, defaults},
};
use serde_json::Value;

use crate::{choice, memory::bounded};

/// What is JSON for serde_json is JSON here, with the same value; what was read can be written and read again.
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
        // Depth is bounded more tightly, and Go's numbers are those of float64.
        (Err(our_json::Error::Depth | our_json::Error::Number(_)), _) => {}
        (Err(error), Ok(_)) => panic!("serde_json reads what is refused with {error}"),
        (Err(_), Err(_)) => {}
    }
}

/// Numbers to six digits: the last bit of one that is no integer may differ between two readers.
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

/// Memory is within what aliases may add, and what was read can be written as YAML and read again.
pub(super) fn yaml(data: &[u8]) {
    let decoded = bounded("yaml::decode", data.len(), 512, 8 * our_yaml::MAX_ALIASED, || our_yaml::decode(data));
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

/// What was read can be written, and is the same when it is read again.
pub(super) fn protobuf(data: &[u8]) {
    let (choice, bytes) = choice(data);
    let (version, kind) = kind(choice);
    // The table of messages is made once, and is not the input's.
    assert!(our_protobuf::knows(&version, kind));
    let decoded =
        bounded("protobuf::decode", bytes.len(), 512, 64 << 10, || our_protobuf::decode(bytes, &version, kind));
    let Ok(value) = decoded else { return };
    let Some(written) = our_protobuf::encode(&value) else { return };
    // An empty field has no bytes in JSON's form and a name in it; that is the constant.
    let again = our_protobuf::decode(&written, &version, kind).expect("what was written can be read");
    let rewritten = our_protobuf::encode(&again).expect("what was written has a kind");
    assert_eq!(rewritten, written, "{value}\n{again}");
}

/// A body of a built-in kind is checked and defaulted, and both change nothing the second time.
pub(super) fn typed_body(data: &[u8]) {
    let (choice, text) = choice(data);
    let (version, kind) = kind(choice);
    let Some(schema) = builtin::of_kind(&version, kind) else { return };
    let Ok(decoded) = our_json::decode(text) else { return };
    let mut object = decoded.value;
    if decode::check(&mut object, schema).is_err() {
        return;
    }
    let mut again = object.clone();
    let unknown = decode::check(&mut again, schema).expect("what was checked is right");
    assert_eq!((&again, unknown), (&object, Vec::new()));
    defaults::apply_defaults(&mut object, schema);
    let mut again = object.clone();
    defaults::apply_defaults(&mut again, schema);
    assert_eq!(again, object);
}
