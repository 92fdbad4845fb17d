use serde_json::json;

use super::{
    body::{cannot_be_handled, strict_error, warnings},
    content_type::PatchType,
    *,
};

#[track_caller]
fn refused(media: Media, bytes: &[u8]) -> String {
    decode(media, bytes, "ConfigMap").expect_err("a refusal").message
}

#[test]
fn bodies_that_are_no_object_are_refused() {
    let json = |text: &str, why: &str, shown: &str| {
        let message = format!(
            "the object provided is unrecognized (must be of type ConfigMap): couldn't get version/kind; json parse error: {why} ({shown})"
        );
        assert_eq!(refused(Media::Json, text.as_bytes()), message);
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
    assert_eq!(refused(Media::Yaml, b"a: b: c\n  - d"), message);
    assert!(refused(Media::Yaml, b"[]").contains("cannot unmarshal array into Go value"));
}

#[test]
fn null_and_missing_kinds_are_taken() {
    assert_eq!(decode(Media::Json, b"null", "ConfigMap").expect("null").value, json!(null));
    let value = json!({"metadata": {"name": "a"}});
    assert_eq!(decode(Media::Json, value.to_string().as_bytes(), "ConfigMap").expect("an object").value, value);
}

#[test]
fn duplicates_are_strict_errors_and_warnings() {
    let body = decode(Media::Json, br#"{"metadata":{"name":"b","name":"c"}}"#, "ConfigMap").expect("an object");
    assert_eq!(body.strict, [r#"duplicate field "metadata.name""#]);
    let status = cannot_be_handled("ConfigMap", "v1", "ConfigMap", &strict_error(&body.strict));
    let message = r#"ConfigMap in version "v1" cannot be handled as a ConfigMap: strict decoding error: duplicate field "metadata.name""#;
    assert_eq!((status.code, status.message.as_str()), (400, message));
    let yaml =
        "yaml: unmarshal errors:\n  line 7: key \"k\" already set in map\n  line 8: key \"k\" already set in map";
    let all = ["a".to_owned(), yaml.to_owned()];
    let told: Vec<&str> = warnings(&all).collect();
    assert_eq!(told, ["a", r#"line 7: key "k" already set in map"#, r#"line 8: key "k" already set in map"#]);
}

#[test]
fn content_types_are_known_or_refused() {
    assert_eq!(content_type::object(None), Ok(Media::Json));
    assert_eq!(content_type::object(Some("")), Ok(Media::Json));
    assert_eq!(content_type::object(Some("application/yaml; charset=utf-8")), Ok(Media::Yaml));
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
    assert_eq!(go::quote("a\"b\\\n\u{1}é\u{ad}\u{7f}"), r#""a\"b\\\n\x01é\u00ad\x7f""#);
    assert_eq!(go::quote("it's"), r#""it's""#);
    assert_eq!(go::parse_int("+5"), Ok(5));
    assert!(go::parse_uint("+5").is_err());
}
