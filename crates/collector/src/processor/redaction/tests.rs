use bytes::Bytes;
use kubewake_config::{FixedSources, load};
use kubewake_otlp::{UnlimitedAllowance, json, wire::put_bytes};
use serde_json::{Value as Json, json};

use super::*;
use crate::core::{Charge, Part};

/// The only log record of a request after redaction, in OTLP's JSON.
fn redacted(settings: &str, record: Json) -> Json {
    let request = json!({"resourceLogs": [{"scopeLogs": [{"logRecords": [record]}]}]});
    let bytes = json::decode(Signal::Logs, request.to_string().as_bytes()).unwrap();
    let out = map(settings, bytes.into());
    let mut text = Vec::new();
    json::encode(Signal::Logs, &out, &mut text).unwrap();
    let request: Json = serde_json::from_slice(&text).unwrap();
    request["resourceLogs"][0]["scopeLogs"][0]["logRecords"][0].clone()
}

fn map(settings: &str, bytes: Bytes) -> Bytes {
    let document = format!(
        "receivers: {{otlp: {{protocols: {{grpc: }}}}}}\nprocessors: {{redaction: {settings}}}\nexporters: {{nop: }}\n\
         service: {{pipelines: {{logs: {{receivers: [otlp], processors: [redaction], exporters: [nop]}}}}}}"
    );
    let document = load(&document, &FixedSources::new()).unwrap_or_else(|errors| panic!("{errors}")).document;
    let model::ProcessorConfig::Redaction(settings) = document.processors.into_values().next().unwrap() else {
        panic!()
    };
    let part = Part::new(bytes, 1, Arc::default(), Arc::new(Charge::exempt()));
    RedactionTransform::new(*settings).transform(Signal::Logs, &part, &mut UnlimitedAllowance).unwrap().bytes
}

fn text(key: &str, value: &str) -> Json {
    json!({"key": key, "value": {"stringValue": value}})
}

#[test]
fn attributes_are_removed_masked_and_counted_as_the_collector_documents_it() {
    let attributes = json!([
        text("description", "payment 4111111111111111 processed"),
        text("email", "user@example.com"),
        text("credit_card", "4111111111111111"),
        text("safe_id", "4111111111111111"),
        text("api_key", "two\nlines"),
        {"key": "number", "value": {"intValue": "4111111111111111"}},
    ]);
    let settings = "{allowed_keys: [description, email, number, api_key], ignored_key_patterns: ['^safe_'], \
                    blocked_key_patterns: ['.*key$'], blocked_values: ['4[0-9]{12}(?:[0-9]{3})?'], \
                    allowed_values: ['.+@example\\.com'], summary: debug}";
    let record = redacted(settings, json!({"attributes": attributes}));
    let expected = json!([
        text("description", "payment **** processed"),
        text("email", "user@example.com"),
        text("safe_id", "4111111111111111"),
        text("api_key", "****\n****"),
        {"key": "number", "value": {"intValue": "4111111111111111"}},
        text("redaction.redacted.keys", "credit_card"),
        {"key": "redaction.redacted.count", "value": {"intValue": "1"}},
        text("redaction.masked.keys", "api_key,description"),
        {"key": "redaction.masked.count", "value": {"intValue": "2"}},
        text("redaction.allowed.keys", "email"),
        {"key": "redaction.allowed.count", "value": {"intValue": "1"}},
        {"key": "redaction.ignored.count", "value": {"intValue": "1"}},
    ]);
    assert_eq!(record["attributes"], expected);
    let all_types = "{allow_all_keys: true, redact_all_types: true, blocked_values: ['^4111']}";
    let record = redacted(all_types, json!({"attributes": [{"key": "n", "value": {"intValue": "4111222"}}]}));
    assert_eq!(record["attributes"], json!([text("n", "****222")]));
}

#[test]
fn a_mask_may_be_a_hash() {
    let masked = |function: &str| {
        let settings = format!("{{allow_all_keys: true, blocked_values: ['s[a-z]+t'], hash_function: {function}}}");
        let record = redacted(&settings, json!({"body": {"stringValue": "<secret>"}}));
        record["body"]["stringValue"].as_str().unwrap().to_owned()
    };
    let key = "k".repeat(64);
    assert_eq!(masked("''"), "<****>");
    assert_eq!(masked("MD5"), "<5ebe2294ecd0e0f08eab7690d2a6ee69>");
    assert_eq!(masked("sha1"), "<e5e9fa1ba31ecd1ae84f75caaa474f3a663f05f4>");
    assert_eq!(masked("sha3"), "<f5a5207a8729b1f709cb710311751eb2fc8acad5a1fb8ac991b736e69b6529a3>");
    assert_eq!(masked(&format!("hmac-sha256, hmac_key: {key}")).len(), 64 + 2);
    assert_eq!(masked(&format!("hmac-sha512, hmac_key: {key}")).len(), 128 + 2);
}

#[test]
fn a_body_is_searched_as_deep_as_it_goes() {
    let map = |pairs: Json| json!({"kvlistValue": {"values": pairs}});
    let body = map(json!([
        text("note", "card 4111111111111111"),
        {"key": "list", "value": {"arrayValue": {"values": [{"stringValue": "4111111111111111"}, {"boolValue": true}]}}},
        {"key": "inner", "value": map(json!([text("token", "abc"), text("kept", "x")]))},
        text("safe", "4111111111111111"),
    ]));
    let settings = "{allow_all_keys: true, ignored_keys: [safe], blocked_key_patterns: [token], \
                    blocked_values: ['4[0-9]{15}'], summary: debug}";
    let record = redacted(settings, json!({"body": body}));
    let expected = map(json!([
        text("note", "card ****"),
        {"key": "list", "value": {"arrayValue": {"values": [{"stringValue": "****"}, {"boolValue": true}]}}},
        {"key": "inner", "value": map(json!([text("token", "****"), text("kept", "x")]))},
        text("safe", "4111111111111111"),
    ]));
    assert_eq!(record["body"], expected);
    let summary = json!([
        text("redaction.body.masked.keys", "inner.token,list.[0],note"),
        {"key": "redaction.body.masked.count", "value": {"intValue": "3"}},
        {"key": "redaction.body.ignored.count", "value": {"intValue": "1"}},
    ]);
    assert_eq!(record["attributes"], summary);
    // Without `allow_all_keys`, keys that are not allowed are removed from maps, too.
    let record = redacted("{allowed_keys: [inner, kept]}", json!({"body": body}));
    assert_eq!(record["body"], map(json!([{"key": "inner", "value": map(json!([text("kept", "x")]))}])));
}

#[test]
fn what_lies_too_deep_to_be_read_does_not_leave() {
    let within = |number: u32, content: &[u8]| {
        let mut out = Vec::new();
        put_bytes(&mut out, number, content);
        out
    };
    let mut value = within(1, b"secret");
    for _ in 0..1000 {
        value = within(5, &within(1, &value));
    }
    let bytes = [5, 2, 2, 1].into_iter().fold(value, |inner, number| within(number, &inner));
    let out = map("{allow_all_keys: true, blocked_values: ['never']}", Bytes::from(bytes));
    assert!(!out.windows(6).any(|some| some == b"secret"));
    assert!(out.windows(4).any(|some| some == b"****"));
}

#[test]
fn where_there_is_nothing_to_hide_nothing_is_copied() {
    let request = json!({"resourceLogs": [{"scopeLogs": [{"logRecords": [
        {"attributes": [text("a", "b")], "body": {"kvlistValue": {"values": [text("c", "d")]}}}
    ]}]}]});
    let bytes = Bytes::from(json::decode(Signal::Logs, request.to_string().as_bytes()).unwrap());
    let out = map("{allow_all_keys: true, blocked_values: ['never'], summary: debug}", bytes.clone());
    assert_eq!(out.as_ptr(), bytes.as_ptr());
}

#[test]
fn secret_in_a_value_that_comes_in_parts_is_masked() {
    let within = |number: u32, content: &[u8]| {
        let mut out = Vec::new();
        put_bytes(&mut out, number, content);
        out
    };
    let key = within(1, b"card");
    let secret = within(1, b"4111111111111111");
    let group = [&[0xfb, 0x3f][..], &within(1, b"x"), &[0xfc, 0x3f]].concat();
    let array = within(5, &within(1, &secret));
    let bodies = [
        // `value{secret} value{}`, which every protobuf reader takes for the secret.
        within(6, &[key.clone(), within(2, &secret), within(2, b"")].concat()),
        within(6, &[within(2, &secret), key.clone(), within(2, b""), key.clone()].concat()),
        within(6, &[group.clone(), key, within(2, &[group.clone(), secret.clone()].concat())].concat()),
        [within(5, &secret), within(5, b"")].concat(),
        [within(5, &array), within(5, &within(5, b""))].concat(),
        [within(5, b""), within(5, &[group, secret].concat())].concat(),
    ];
    for body in bodies {
        let bytes = [2, 2, 1].into_iter().fold(body, |inner, number| within(number, &inner));
        let out = map("{allow_all_keys: true, blocked_values: ['4[0-9]{15}']}", Bytes::from(bytes));
        assert!(!out.windows(6).any(|some| some == b"411111"), "{out:?}");
        assert!(out.windows(4).any(|some| some == b"****"), "{out:?}");
    }
}
