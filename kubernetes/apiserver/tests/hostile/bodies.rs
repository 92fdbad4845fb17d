//! Bodies that are too deep, too large, too many, or not text.

use serde_json::{Value, json};

use crate::victim::{JSON, MAPS, PROTOBUF, Victim, YAML};

const DEEP: usize = 10_000;
const LIMIT: usize = 3 << 20;
const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const MERGE: &str = "application/merge-patch+json";
const STRATEGIC: &str = "application/strategic-merge-patch+json";
const PATCH: &str = "application/json-patch+json";
const APPLY: &str = "application/apply-patch+yaml";

fn nested(open: &str, close: &str) -> String {
    format!("{}1{}", open.repeat(DEEP), close.repeat(DEEP))
}

fn in_object(field: &str, value: &str) -> String {
    format!(r#"{{"apiVersion":"v1","kind":"ConfigMap","metadata":{{"name":"deep"}},"{field}":{value}}}"#)
}

#[tokio::test]
async fn deep_nesting_is_refused_in_every_form() {
    let victim = Victim::new().await;
    let one = format!("{MAPS}/precious");
    for (open, close) in [("[", "]"), (r#"{"a":"#, "}"), (r#"[{"a":"#, "}]")] {
        let deep = nested(open, close);
        for field in ["data", "metadata", "unknown"] {
            let body = in_object(field, &deep);
            victim.refuses("POST", MAPS, JSON, body.clone()).await;
            victim.refuses("POST", MAPS, YAML, body.clone()).await;
            victim.refuses("PUT", &one, JSON, body).await;
        }
        victim.refuses("POST", MAPS, JSON, deep.clone()).await;
        victim.refuses("PATCH", &one, MERGE, format!(r#"{{"data":{deep}}}"#)).await;
        victim.refuses("PATCH", &one, STRATEGIC, format!(r#"{{"data":{deep}}}"#)).await;
        let operation = format!(r#"[{{"op":"add","path":"/data/x","value":{deep}}}]"#);
        victim.refuses("PATCH", &one, PATCH, operation).await;
        victim.refuses("PATCH", &format!("{one}?fieldManager=m"), APPLY, in_object("data", &deep)).await;
        victim.refuses("DELETE", &one, JSON, format!(r#"{{"preconditions":{deep}}}"#)).await;
    }
    // Unclosed, or nested by indentation alone.
    victim.refuses("POST", MAPS, JSON, "[".repeat(DEEP)).await;
    victim.refuses("POST", MAPS, YAML, "- ".repeat(DEEP)).await;
    let stairs: String = (0..1000).map(|depth| format!("{}a:\n", " ".repeat(depth))).collect();
    victim.refuses("POST", MAPS, YAML, stairs).await;
    victim.ends_well().await;
}

#[tokio::test]
async fn a_patch_cannot_nest_what_a_body_cannot() {
    let victim = Victim::new().await;
    victim
        .call(
            "POST",
            DEFINITIONS,
            JSON,
            definition(&json!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true })),
        )
        .await;
    let things = "/apis/example.com/v1/namespaces/default/things";
    served(&victim, things).await;
    let thing = json!({ "apiVersion": "example.com/v1", "kind": "Thing", "metadata": { "name": "t" }, "a": {} });
    assert_eq!(victim.call("POST", things, JSON, thing.to_string()).await.code, 201);
    // Each step is small, and copies the whole value into itself.
    let step = r#"[{"op":"copy","from":"/a","path":"/a/a"}]"#;
    let mut code = 200;
    for _ in 0..200 {
        let answer = victim.call("PATCH", &format!("{things}/t"), PATCH, step).await;
        code = answer.code;
        if code != 200 {
            assert!((400..500).contains(&code), "{answer:?}");
            break;
        }
    }
    assert_ne!(code, 200);
    // So does a patch of many steps, each of which doubles the object.
    let bomb: Vec<Value> =
        (0..60).map(|_| json!({ "op": "copy", "from": "/a", "path": format!("/a/{}", "b") })).collect();
    victim.call("PATCH", &format!("{things}/t"), PATCH, Value::from(bomb).to_string()).await;
    let wide: Vec<Value> =
        (0..40).map(|number| json!({ "op": "copy", "from": "", "path": format!("/a/x{number}") })).collect();
    victim.refuses("PATCH", &format!("{things}/t"), PATCH, Value::from(wide).to_string()).await;
    assert_eq!(victim.call("GET", &format!("{things}/t"), "", "").await.code, 200);
    victim.ends_well().await;
}

#[tokio::test]
async fn yaml_that_grows_is_refused() {
    let victim = Victim::new().await;
    let mut bomb = "a: &a [x,x,x,x,x,x,x,x,x]\n".to_owned();
    for pair in ('a'..='z').collect::<Vec<_>>().windows(2) {
        let list = format!("*{}", pair[0]);
        bomb.push_str(&format!("{}: &{} [{}]\n", pair[1], pair[1], [list.as_str(); 9].join(",")));
    }
    victim.refuses("POST", MAPS, YAML, bomb).await;
    for yaml in [
        "a: &a\n  b: *a\n",
        "&a [*a]",
        "? [a]\n: b",
        "<<: *none",
        "%YAML 9.9\n---\na: b",
        "--- a\n--- b",
        "!!binary x",
        "\u{feff}:",
        "a: 'b",
        "\"\\U00110000\"",
        "- \t- x",
        "@",
    ] {
        let answer = victim.call("POST", MAPS, YAML, yaml).await;
        assert!((400..500).contains(&answer.code), "{yaml:?}: {answer:?}");
    }
    victim.ends_well().await;
}

#[tokio::test]
async fn a_body_over_the_limit_is_refused_and_one_within_it_taken() {
    let victim = Victim::new().await;
    let of = |size: usize| json!({ "metadata": { "name": "large" }, "data": { "key": "x".repeat(size) } }).to_string();
    let answer = victim.refuses("POST", MAPS, JSON, of(LIMIT + 1)).await;
    assert_eq!((answer.code, &answer.body["reason"]), (413, &json!("RequestEntityTooLarge")));
    // kube-apiserver's own limit for the data of a ConfigMap.
    assert_eq!(victim.refuses("POST", MAPS, JSON, of((1 << 20) + 1)).await.code, 422);
    assert_eq!(victim.call("POST", MAPS, JSON, of((1 << 20) - 100)).await.code, 201);
    // Three MiB of the smallest tokens.
    for (content_type, body) in [
        (JSON, format!("[{}1]", "1,".repeat(LIMIT / 2 - 2))),
        (JSON, format!(r#"{{"data":{{{}"z":1}}}}"#, r#""a":"","#.repeat(LIMIT / 7 - 20))),
        (YAML, format!("[{}1]", "1,".repeat(LIMIT / 2 - 2))),
        (YAML, "- 1\n".repeat(LIMIT / 4)),
        (YAML, "a: &a 1\n".repeat(LIMIT / 8)),
        (JSON, "\"".repeat(LIMIT)),
        (JSON, " ".repeat(LIMIT)),
        (YAML, "#".repeat(LIMIT)),
    ] {
        let answer = victim.call("POST", MAPS, content_type, body).await;
        assert!((400..500).contains(&answer.code), "{content_type} {}", answer.code);
    }
    victim.ends_well().await;
}

#[tokio::test]
async fn garbage_is_refused_in_every_media_type() {
    let victim = Victim::new().await;
    let mut random = fastrand::Rng::with_seed(4);
    let one = format!("{MAPS}/precious");
    let prefix = b"k8s\0".to_vec();
    for round in 0..300 {
        let mut bytes: Vec<u8> = (0..random.usize(0..200)).map(|_| random.u8(..)).collect();
        if round % 2 == 0 {
            bytes.splice(0..0, prefix.clone());
        }
        for content_type in [PROTOBUF, JSON, YAML, "text/plain", "application/json; charset=\u{1}x"] {
            if http::HeaderValue::from_str(content_type).is_err() {
                continue;
            }
            victim.refuses("POST", MAPS, content_type, bytes.clone()).await;
        }
        let patch = [MERGE, STRATEGIC, PATCH, APPLY][round % 4];
        victim.refuses("PATCH", &one, patch, bytes.clone()).await;
    }
    victim.ends_well().await;
}

#[tokio::test]
async fn protobuf_that_lies_about_its_lengths_is_refused() {
    let victim = Victim::new().await;
    let unknown = |raw: &[u8]| {
        // Unknown { typeMeta = 1 { apiVersion = 1, kind = 2 }, raw = 2 }
        let mut body = b"k8s\0\x0a\x0f\x0a\x02v1\x12\x09ConfigMap\x12".to_vec();
        let mut length = raw.len();
        while length >= 0x80 {
            body.push((length & 0x7f) as u8 | 0x80);
            length >>= 7;
        }
        body.push(length as u8);
        body.extend_from_slice(raw);
        body
    };
    // Nested groups and messages, lengths that overflow, fields of number zero, unterminated varints.
    for raw in [
        vec![0x0b; 100_000],
        vec![0x0a, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f],
        vec![0x0a, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01],
        vec![0x00, 0x00],
        vec![0xff; 50],
        vec![0x0a, 0x05, 0x0a, 0x10, b'x'],
        vec![0x12, 0x04, 0x0a, 0x02, 0xff, 0xfe],
    ] {
        victim.refuses("POST", MAPS, PROTOBUF, unknown(&raw)).await;
    }
    let mut deep = Vec::new();
    for _ in 0..DEEP {
        let mut outer = vec![0x0a];
        let mut length = deep.len();
        while length >= 0x80 {
            outer.push((length & 0x7f) as u8 | 0x80);
            length >>= 7;
        }
        outer.push(length as u8);
        outer.extend_from_slice(&deep);
        deep = outer;
    }
    victim.refuses("POST", MAPS, PROTOBUF, unknown(&deep)).await;
    victim.ends_well().await;
}

#[tokio::test]
async fn numbers_and_types_out_of_range_are_refused() {
    let victim = Victim::new().await;
    for (path, body) in [
        (
            "/api/v1/namespaces/default/pods",
            r#"{"metadata":{"name":"p"},"spec":{"terminationGracePeriodSeconds":99999999999999999999,"containers":[{"name":"c","image":"i"}]}}"#,
        ),
        (
            "/api/v1/namespaces/default/pods",
            r#"{"metadata":{"name":"p"},"spec":{"priority":2147483648,"containers":[{"name":"c","image":"i"}]}}"#,
        ),
        (
            "/api/v1/namespaces/default/pods",
            r#"{"metadata":{"name":"p"},"spec":{"containers":[{"name":"c","image":"i","resources":{"limits":{"cpu":"1e999999999"}}}]}}"#,
        ),
        (
            "/api/v1/namespaces/default/pods",
            r#"{"metadata":{"name":"p"},"spec":{"containers":[{"name":"c","image":"i","resources":{"limits":{"cpu":"-1"}}}]}}"#,
        ),
        (
            "/apis/apps/v1/namespaces/default/deployments",
            r#"{"metadata":{"name":"d"},"spec":{"replicas":-1,"selector":{"matchLabels":{"a":"b"}},"template":{"metadata":{"labels":{"a":"b"}},"spec":{"containers":[{"name":"c","image":"i"}]}}}}"#,
        ),
        (MAPS, r#"{"metadata":{"name":"x"},"data":{"a":1e400}}"#),
        (MAPS, r#"{"metadata":{"name":7}}"#),
        (MAPS, r#"{"metadata":[]}"#),
        (MAPS, r#"{"metadata":"x"}"#),
        (MAPS, r#"{"metadata":{"name":"x","labels":[]}}"#),
        (MAPS, r#"{"metadata":{"name":"x","generation":-9223372036854775809}}"#),
        (MAPS, r#"{"metadata":{"name":"x","creationTimestamp":"yesterday"}}"#),
        (MAPS, r#"{"metadata":{"name":"x","ownerReferences":[null,1]}}"#),
        (
            MAPS,
            r#"{"metadata":{"name":"x","managedFields":[{"manager":"m","operation":"Apply","fieldsType":"FieldsV1","apiVersion":"v1","fieldsV1":{"f:metadata":{"k:{\"a\":":{}}}}]}}"#,
        ),
        (MAPS, r#"{"metadata":{"name":"a\u0000b"}}"#),
        (MAPS, r#"{"metadata":{"name":"\ud800"}}"#),
        (MAPS, r#"{"metadata":{"name":"x"},"binaryData":{"a":"***"}}"#),
    ] {
        let answer = victim.call("POST", path, JSON, body).await;
        // Invalid managedFields and quantities that are too large are corrected, not refused.
        let fine = answer.code == 201 && (body.contains("managedFields") || body.contains("1e999999999"));
        assert!(fine || (400..500).contains(&answer.code), "{body}: {answer:?}");
    }
    victim.ends_well().await;
}

fn definition(schema: &Value) -> String {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": { "name": "things.example.com" },
        "spec": {
            "group": "example.com", "scope": "Namespaced",
            "names": { "plural": "things", "kind": "Thing" },
            "versions": [{ "name": "v1", "served": true, "storage": true, "schema": { "openAPIV3Schema": schema } }],
        },
    })
    .to_string()
}

async fn served(victim: &Victim, path: &str) {
    crate::victim::soon(async { while victim.call("GET", path, "", "").await.code != 200 {} }).await;
}

#[tokio::test]
async fn definitions_that_ask_for_too_much_are_refused() {
    let victim = Victim::new().await;
    let mut deep = json!({ "type": "string" });
    for _ in 0..100 {
        deep = json!({ "type": "object", "properties": { "a": deep } });
    }
    for (schema, refused) in [
        (json!({ "type": "object", "properties": { "a": { "type": "string", "pattern": "(a+" } } }), true),
        (
            json!({ "type": "object", "properties": { "a": { "type": "string", "pattern": "(a{1000}){1000}{1000}" } } }),
            true,
        ),
        (json!({ "type": "object", "x-kubernetes-validations": [{ "rule": "(".repeat(5000) }] }), true),
        (
            json!({ "type": "object", "x-kubernetes-validations": [{ "rule": format!("{}true", "!".repeat(20_000)) }] }),
            true,
        ),
        (
            json!({ "type": "object", "x-kubernetes-validations": [{ "rule": format!("true{}", " && true".repeat(20_000)) }] }),
            true,
        ),
        (
            json!({ "type": "object", "x-kubernetes-validations": [{ "rule": format!("{}1{}.size() > 0", "[".repeat(5000), "]".repeat(5000)) }] }),
            true,
        ),
        (json!({ "type": "object", "properties": { "a": { "$ref": "#" } } }), true),
        (deep, false),
    ] {
        let answer = victim.call("POST", DEFINITIONS, JSON, definition(&schema)).await;
        if refused {
            assert!((400..500).contains(&answer.code), "{schema:.100}: {:.300}", answer.body.to_string());
        }
        if answer.code == 201 {
            let name = format!("{DEFINITIONS}/things.example.com");
            victim.call("DELETE", &name, "", "").await;
            crate::victim::soon(async { while victim.call("GET", &name, "", "").await.code != 404 {} }).await;
        }
    }
    victim.ends_well().await;
}
