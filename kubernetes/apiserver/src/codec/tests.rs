use serde_json::json;

use crate::api::{GroupVersion, go_format};

use super::{
    body::{cannot_be_handled_status, strict_error, warnings},
    content_type::PatchType,
    *,
};

fn read(media: MediaType, bytes: &[u8]) -> Result<Body, crate::api::StatusError> {
    decode(media, bytes, &GroupVersion::new("", "v1"), "ConfigMap")
}

#[track_caller]
fn refused(media: MediaType, bytes: &[u8]) -> String {
    read(media, bytes).expect_err("a refusal").message
}

#[test]
fn bodies_that_are_no_object_are_refused() {
    let json = |text: &str, why: &str, shown: &str| {
        let message = format!(
            "the object provided is unrecognized (must be of type ConfigMap): couldn't get version/kind; json parse error: {why} ({shown})"
        );
        assert_eq!(refused(MediaType::Json, text.as_bytes()), message);
    };
    json("{", "unexpected end of JSON input", "{");
    json("", "unexpected end of JSON input", "<empty>");
    let array = r#"json: cannot unmarshal array into Go value of type struct { APIVersion string "json:\"apiVersion,omitempty\""; Kind string "json:\"kind,omitempty\"" }"#;
    json("[]", array, "5b5d");
    let comma = r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"},}"#;
    json(
        comma,
        "invalid character '}' looking for beginning of object key string",
        r#"{"apiVersion":"v1","kind":"Con ..."#,
    );
    json("nonsense", "invalid character 'o' in literal null (expecting 'u')", "6e6f6e73656e7365");
    json(r#"{"kind":1}"#, "json: cannot unmarshal number into Go struct field .kind of type string", r#"{"kind":1}"#);
}

#[test]
fn yaml_that_is_no_object_is_refused() {
    let message = "the object provided is unrecognized (must be of type ConfigMap): yaml: mapping values are not allowed in this context (613a20623a20630a20202d2064)";
    assert_eq!(refused(MediaType::Yaml, b"a: b: c\n  - d"), message);
    assert!(refused(MediaType::Yaml, b"[]").contains("cannot unmarshal array into Go value"));
}

#[test]
fn protobuf_that_is_no_object_is_refused() {
    let head = "the object provided is unrecognized (must be of type ConfigMap):";
    let magic = "provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]";
    assert_eq!(refused(MediaType::Protobuf, b"hello"), format!("{head} {magic} (68656c6c6f)"));
    assert_eq!(refused(MediaType::Protobuf, b"k8s\0\n\xff"), format!("{head} unexpected EOF (6b3873000aff)"));
    let truncated = b"k8s\0\x0a\x0f\x0a\x02v1\x12\x09ConfigMap\x12\x02\x0a\x05";
    let message = r#"ConfigMap in version "v1" cannot be handled as a ConfigMap: unexpected EOF"#;
    assert_eq!(refused(MediaType::Protobuf, truncated), message);
}

#[test]
fn null_and_missing_kinds_are_taken() {
    assert_eq!(read(MediaType::Json, b"null").expect("null").value, json!(null));
    let value = json!({"metadata": {"name": "a"}});
    assert_eq!(read(MediaType::Json, value.to_string().as_bytes()).expect("an object").value, value);
}

#[test]
fn duplicates_are_strict_errors_and_warnings() {
    let bytes = br#"{"metadata":{"name":"a","name":"b","lbls":{}},"data":{"k":"1","k":"2"}}"#;
    let problems =
        read(MediaType::Json, bytes).expect("an object").strict_problems(bytes, &["metadata.lbls".to_owned()]);
    let status = cannot_be_handled_status("ConfigMap", "v1", "ConfigMap", &strict_error(&problems));
    let message = r#"ConfigMap in version "v1" cannot be handled as a ConfigMap: strict decoding error: duplicate field "metadata.name", unknown field "metadata.lbls", duplicate field "data.k""#;
    assert_eq!((status.code, status.message.as_str()), (400, message));

    let bytes = b"data:\n  k: a\n  k: b\nx: 1\n";
    let problems = read(MediaType::Yaml, bytes).expect("an object").strict_problems(bytes, &["x".to_owned()]);
    let told: Vec<&str> = warnings(&problems).collect();
    assert_eq!(told, [r#"line 3: key "k" already set in map"#, r#"unknown field "x""#]);
}

#[test]
fn several_lines_are_several_warnings() {
    let yaml =
        "yaml: unmarshal errors:\n  line 7: key \"k\" already set in map\n  line 8: key \"k\" already set in map";
    let all = ["a".to_owned(), yaml.to_owned()];
    let told: Vec<&str> = warnings(&all).collect();
    assert_eq!(told, ["a", r#"line 7: key "k" already set in map"#, r#"line 8: key "k" already set in map"#]);
}

#[test]
fn content_types_are_known_or_refused() {
    assert_eq!(content_type::object(None), Ok(MediaType::Json));
    assert_eq!(content_type::object(Some("")), Ok(MediaType::Json));
    assert_eq!(content_type::object(Some("application/yaml; charset=utf-8")), Ok(MediaType::Yaml));
    let status = content_type::object(Some("text/plain")).expect_err("a refusal");
    let message = "the body of the request was in an unknown format - accepted media types include: application/json, application/yaml, application/vnd.kubernetes.protobuf";
    assert_eq!((status.code, status.reason, status.message.as_str()), (415, "UnsupportedMediaType", message));
    assert_eq!(status.details, None);

    assert_eq!(content_type::patch(Some("application/merge-patch+json; charset=utf-8"), true), Ok(PatchType::Merge));
    assert_eq!(
        content_type::patch(Some("application/strategic-merge-patch+json"), false),
        Ok(PatchType::StrategicMerge)
    );
    let status = content_type::patch(Some("application/strategic-merge-patch+json"), true).expect_err("a refusal");
    let message = "the body of the request was in an unknown format - accepted media types include: application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml";
    assert_eq!(status.message, message);
    assert_eq!(content_type::patch(None, false).expect_err("a refusal").code, 415);
}

#[test]
fn texts_are_quoted_as_in_go() {
    assert_eq!(go_format::quote("a\"b\\\n\u{1}é\u{ad}\u{7f}"), r#""a\"b\\\n\x01é\u00ad\x7f""#);
    assert_eq!(go_format::quote("it's"), r#""it's""#);
    assert_eq!(go_format::parse_int("+5"), Ok(5));
    assert!(go_format::parse_uint("+5").is_err());
}
