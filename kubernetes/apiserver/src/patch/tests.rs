use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::schema::{Schema, builtin};

fn patched(mut object: Value, patch: Value) -> Result<Value, StatusError> {
    apply_json_patch(&mut object, patch.to_string().as_bytes())?;
    Ok(object)
}

fn merged(mut object: Value, patch: Value) -> Value {
    apply_merge_patch(&mut object, patch.to_string().as_bytes()).unwrap();
    object
}

fn kind(name: &str) -> &'static Schema {
    builtin::schema_by_name(name).unwrap()
}

fn strategically(kind_name: &str, object: Value, patch: Value) -> Result<Value, StatusError> {
    apply_strategic_merge(object, parse_object(patch.to_string().as_bytes())?, kind(kind_name))
}

fn deployment(object: Value, patch: Value) -> Result<Value, StatusError> {
    strategically("io.k8s.api.apps.v1.Deployment", object, patch)
}

fn pods(containers: Value) -> Value {
    json!({"spec": {"template": {"spec": {"containers": containers}}}})
}

fn names(object: &Value) -> Vec<&str> {
    let containers = object.pointer("/spec/template/spec/containers").unwrap().as_array().unwrap();
    containers.iter().map(|container| container["name"].as_str().unwrap()).collect()
}

#[test]
fn a_json_patch_adds_replaces_removes_copies_moves_and_tests() {
    let object = json!({"data": {"a": "1", "b": "2"}});
    let patch = json!([
        {"op": "test", "path": "/data/a", "value": "1"},
        {"op": "add", "path": "/data/c", "value": "3"},
        {"op": "replace", "path": "/data/a", "value": "9"},
        {"op": "remove", "path": "/data/b"},
        {"op": "copy", "from": "/data/c", "path": "/data/d"},
        {"op": "move", "from": "/data/d", "path": "/data/e"},
    ]);
    assert_eq!(patched(object, patch).unwrap(), json!({"data": {"a": "9", "c": "3", "e": "3"}}));
}

#[test]
fn a_json_patch_replaces_what_is_not_there_and_counts_lists_from_both_ends() {
    let object = json!({"data": {}, "list": [1, 2, 3], "a/b": {"~": 0}});
    let patch = json!([
        {"op": "replace", "path": "/data/new", "value": "x"},
        {"op": "add", "path": "/list/-", "value": 4},
        {"op": "add", "path": "/list/1", "value": 9},
        {"op": "remove", "path": "/list/-1"},
        {"op": "replace", "path": "/list/-1", "value": 7},
        {"op": "replace", "path": "/a~1b/~0", "value": 1},
        {"op": "test", "path": "/absent", "value": null},
    ]);
    let expected = json!({"data": {"new": "x"}, "list": [1, 9, 2, 7], "a/b": {"~": 1}});
    assert_eq!(patched(object, patch).unwrap(), expected);
}

#[test]
fn a_json_patch_that_does_not_apply_is_refused_without_a_reason() {
    for operation in [
        json!({"op": "test", "path": "/data/a", "value": "2"}),
        json!({"op": "remove", "path": "/data/zz"}),
        json!({"op": "add", "path": "/nope/zz", "value": "x"}),
        json!({"op": "frob", "path": "/data/a"}),
        json!({"op": "add", "value": "x"}),
        json!({"op": "add", "path": "", "value": {}}),
        json!({"op": "replace", "path": "", "value": 1}),
        json!({"op": "replace", "path": "/list/1", "value": 1}),
        json!({"op": "add", "path": "/list/3", "value": 1}),
        json!({"op": "add", "path": "/list/x", "value": 1}),
        json!({"op": "move", "from": "/data/zz", "path": "/data/a"}),
        json!({"op": "copy", "from": "/nope/zz", "path": "/data/a"}),
        json!({"op": 1, "path": "/data/a"}),
        json!(null),
    ] {
        let refused = patched(json!({"data": {"a": "1"}, "list": [1]}), json!([operation])).unwrap_err();
        assert_eq!((refused.code, refused.reason), (422, "Invalid"), "{operation}");
        assert_eq!(refused.message, "the server rejected our request due to an error in our request");
        assert_eq!(refused.details, Some(Box::default()));
    }
}

#[test]
fn what_is_no_json_patch_is_a_bad_request() {
    let cases = [
        ("{", "invalid JSON patch"),
        (
            r#"{"op": "add"}"#,
            "error decoding patch: json: cannot unmarshal object into Go value of type []handlers.jsonPatchOp",
        ),
        ("[1]", "error decoding patch: json: cannot unmarshal number into Go value of type handlers.jsonPatchOp"),
    ];
    for (patch, message) in cases {
        let refused = apply_json_patch(&mut json!({}), patch.as_bytes()).unwrap_err();
        assert_eq!((refused.code, refused.reason, refused.message.as_str()), (400, "BadRequest", message));
    }
}

#[test]
fn a_patch_that_is_null_changes_nothing() {
    assert_eq!(patched(json!({"a": 1}), json!(null)).unwrap(), json!({"a": 1}));
    assert_eq!(deployment(json!({"a": 1}), json!(null)).unwrap(), json!({"a": 1}));
    let refused = deployment(json!({}), json!([])).unwrap_err();
    assert_eq!(refused.message, "json: cannot unmarshal array into Go value of type map[string]interface {}");
}

#[test]
fn a_json_patch_is_bounded() {
    let many = Value::Array(vec![json!({"op": "test", "path": "/a", "value": null}); 10_001]);
    assert_eq!(patched(json!({}), many).unwrap_err().code, 413);
    let double = json!({"op": "copy", "from": "/a", "path": "/a/-"});
    let copies = Value::Array(vec![double; 40]);
    assert_eq!(patched(json!({"a": ["text"]}), copies).unwrap_err().code, 422);
    let mut deeper = Vec::new();
    for _ in 0..200 {
        deeper.push(json!({"op": "add", "path": "/b", "value": {}}));
        deeper.push(json!({"op": "move", "from": "/a", "path": "/b/a"}));
        deeper.push(json!({"op": "move", "from": "/b", "path": "/a"}));
    }
    assert_eq!(patched(json!({"a": {}}), Value::Array(deeper)).unwrap_err().code, 422);
}

#[test]
fn a_merge_patch_removes_by_null_replaces_lists_and_merges_objects() {
    let object = json!({"data": {"a": "1", "b": "2"}, "list": [1], "x": "1"});
    let patch = json!({"data": {"a": null, "c": {"d": null, "e": 1}}, "list": [2], "x": {"y": null}});
    assert_eq!(merged(object.clone(), patch), json!({"data": {"b": "2", "c": {"e": 1}}, "list": [2], "x": {}}));
    assert_eq!(merged(object, json!({"data": null, "nope": null})), json!({"list": [1], "x": "1"}));
}

#[test]
fn what_is_no_merge_patch_is_a_bad_request() {
    let cases = [
        ("[]", "error decoding patch: json: cannot unmarshal array into Go value of type map[string]interface {}"),
        ("\"x\"", "error decoding patch: json: cannot unmarshal string into Go value of type map[string]interface {}"),
        ("{", "invalid JSON patch"),
        ("null", "invalid JSON patch"),
        ("data: {k: v}\n", "invalid JSON patch"),
    ];
    for (patch, message) in cases {
        let refused = apply_merge_patch(&mut json!({}), patch.as_bytes()).unwrap_err();
        assert_eq!((refused.code, refused.message.as_str()), (400, message));
    }
}

#[test]
fn containers_merge_by_name_and_new_ones_come_first() {
    let object = pods(json!([{"name": "main", "image": "1", "tty": true}, {"name": "side", "image": "1"}]));
    let after = deployment(object, pods(json!([{"name": "main", "image": "2"}]))).unwrap();
    let expected = pods(json!([{"name": "main", "image": "2", "tty": true}, {"name": "side", "image": "1"}]));
    assert_eq!(after, expected);
    let after = deployment(after, pods(json!([{"name": "extra", "image": "e"}]))).unwrap();
    assert_eq!(names(&after), ["extra", "main", "side"]);
}

#[test]
fn lists_inside_of_merged_items_merge_by_their_own_keys() {
    let object = pods(json!([{"name": "main",
        "env": [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}],
        "ports": [{"containerPort": 80, "name": "http"}, {"containerPort": 443, "name": "https"}]}]));
    let patch = pods(json!([{"name": "main",
        "env": [{"name": "B", "value": "3"}, {"name": "C", "value": "4"}],
        "ports": [{"containerPort": 443, "name": "tls"}, {"containerPort": 8080}]}]));
    let expected = pods(json!([{"name": "main",
        "env": [{"name": "A", "value": "1"}, {"name": "B", "value": "3"}, {"name": "C", "value": "4"}],
        "ports": [{"containerPort": 80, "name": "http"}, {"containerPort": 443, "name": "tls"}, {"containerPort": 8080}]}]));
    assert_eq!(deployment(object, patch).unwrap(), expected);
}

#[test]
fn volumes_and_mounts_merge_by_their_keys() {
    let pod = |volumes: Value, mounts: Value| json!({"spec": {"volumes": volumes, "containers": [{"name": "main", "volumeMounts": mounts}]}});
    let object = pod(json!([{"name": "v", "emptyDir": {}}]), json!([{"name": "v", "mountPath": "/a"}]));
    let patch = pod(
        json!([{"name": "w", "configMap": {"name": "c"}}]),
        json!([{"name": "w", "mountPath": "/b"}, {"mountPath": "/a", "readOnly": true}]),
    );
    let expected = pod(
        json!([{"name": "w", "configMap": {"name": "c"}}, {"name": "v", "emptyDir": {}}]),
        json!([{"name": "w", "mountPath": "/b"}, {"name": "v", "mountPath": "/a", "readOnly": true}]),
    );
    assert_eq!(strategically("io.k8s.api.core.v1.Pod", object, patch).unwrap(), expected);
}

#[test]
fn service_ports_merge_by_port() {
    let service = |ports: Value| json!({"spec": {"ports": ports}});
    let object = service(json!([{"name": "a", "port": 80, "targetPort": 80}]));
    let name = "io.k8s.api.core.v1.Service";
    let after = strategically(name, object, service(json!([{"name": "b", "port": 81}]))).unwrap();
    let patch = service(json!([{"port": 80, "targetPort": "web"}]));
    let expected = service(json!([{"name": "b", "port": 81}, {"name": "a", "port": 80, "targetPort": "web"}]));
    assert_eq!(strategically(name, after, patch).unwrap(), expected);
}

#[test]
fn patch_replace_replaces_a_list_or_an_object() {
    let object = pods(json!([{"name": "main"}, {"name": "side"}]));
    let after = deployment(object, pods(json!([{"name": "new"}, {"$patch": "replace"}]))).unwrap();
    assert_eq!(after, pods(json!([{"name": "new"}])));
    let object = json!({"spec": {"strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1}}}});
    let patch = json!({"spec": {"strategy": {"$patch": "replace", "type": "Recreate"}}});
    assert_eq!(deployment(object, patch).unwrap(), json!({"spec": {"strategy": {"type": "Recreate"}}}));
}

#[test]
fn patch_delete_removes_an_item_or_empties_an_object() {
    let object = pods(json!([{"name": "main"}, {"name": "side"}]));
    let patch = pods(json!([{"name": "side", "$patch": "delete"}, {"name": "gone", "$patch": "delete"}]));
    assert_eq!(names(&deployment(object, patch).unwrap()), ["main"]);
    let patch = json!({"metadata": {"labels": {"$patch": "delete"}}});
    let after = deployment(json!({"metadata": {"labels": {"a": "b"}}}), patch).unwrap();
    assert_eq!(after, json!({"metadata": {"labels": {}}}));
    let after = deployment(json!({"metadata": {}}), json!({"metadata": {"labels": {"$patch": "delete"}}})).unwrap();
    assert_eq!(after, json!({"metadata": {}}));
}

#[test]
fn retain_keys_drops_all_other_members() {
    let object = json!({"spec": {"strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1}}}});
    let patch = json!({"spec": {"strategy": {"$retainKeys": ["type"], "type": "Recreate"}}});
    assert_eq!(deployment(object.clone(), patch).unwrap(), json!({"spec": {"strategy": {"type": "Recreate"}}}));
    let patch = json!({"spec": {"strategy": {"$retainKeys": ["type"], "other": 1}}});
    let refused = deployment(object, patch).unwrap_err();
    assert_eq!((refused.code, refused.message.as_str()), (400, "invalid patch format of retainKeys"));
}

#[test]
fn set_element_order_orders_a_list() {
    let object = pods(json!([{"name": "main", "image": "1"}, {"name": "side"}, {"name": "own"}]));
    let patch = json!({"spec": {"template": {"spec": {
        "$setElementOrder/containers": [{"name": "side"}, {"name": "main"}],
        "containers": [{"name": "main", "image": "3"}],
    }}}});
    let after = deployment(object.clone(), patch).unwrap();
    assert_eq!(names(&after), ["side", "main", "own"]);
    assert_eq!(after.pointer("/spec/template/spec/containers/1/image"), Some(&json!("3")));
    let patch = json!({"spec": {"template": {"spec": {
        "$setElementOrder/containers": [{"name": "side"}],
        "containers": [{"name": "main", "image": "3"}],
    }}}});
    assert!(deployment(object, patch).unwrap_err().message.starts_with("The order in patch list:\n"));
}

#[test]
fn lists_of_plain_values_merge_and_lose_values_by_directive() {
    let with = |finalizers: Value| json!({"metadata": {"finalizers": finalizers}});
    let patch = json!({"metadata": {"$deleteFromPrimitiveList/finalizers": ["a"]}});
    let after = deployment(with(json!(["a", "b"])), patch).unwrap();
    assert_eq!(after, with(json!(["b"])));
    assert_eq!(deployment(after, with(json!(["c"]))).unwrap(), with(json!(["c", "b"])));
}

#[test]
fn null_removes_and_lists_without_a_strategy_are_replaced() {
    let object = json!({"metadata": {"labels": {"app": "web"}}, "spec": {"replicas": 2}});
    let patch = json!({"metadata": {"labels": {"app": null, "n": "1"}}, "spec": {"replicas": null}});
    let expected = json!({"metadata": {"labels": {"n": "1"}}, "spec": {}});
    assert_eq!(deployment(object, patch).unwrap(), expected);
    let with = |args: Value| pods(json!([{"name": "main", "args": args}]));
    assert_eq!(deployment(with(json!(["a"])), with(json!(["b"]))).unwrap(), with(json!(["b"])));
}

#[test]
fn strategic_patches_that_contradict_themselves_are_refused() {
    let object = || pods(json!([{"name": "main"}]));
    let cases = [
        (pods(json!([{"image": "x"}])), 500, "map: map[image:x] does not contain declared merge key: name"),
        (
            pods(json!([{"name": "main", "$patch": "frob"}])),
            500,
            "unknown patch type: frob in map: map[$patch:frob name:main]",
        ),
        (json!({"spec": {"$patch": "merge"}}), 500, "unknown patch type: merge in map: map[$patch:merge]"),
        (json!({"spec": {"$deleteFromPrimitiveList": []}}), 400, "invalid patch format of primitive list"),
        (pods(json!([["x"]])), 422, "the server rejected our request due to an error in our request"),
    ];
    for (patch, code, message) in cases {
        let refused = deployment(object(), patch).unwrap_err();
        assert_eq!((refused.code, refused.message.as_str()), (code, message));
    }
}

fn values() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i8>().prop_map(Value::from),
        "[a-c]{0,2}".prop_map(Value::from)
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        let keys = prop_oneof![
            "[a-c]",
            Just("spec".to_owned()),
            Just("name".to_owned()),
            Just("containers".to_owned()),
            Just("template".to_owned()),
            Just("metadata".to_owned()),
            Just("finalizers".to_owned()),
            Just("$patch".to_owned()),
            Just("$retainKeys".to_owned()),
            Just("$setElementOrder/containers".to_owned()),
            Just("$deleteFromPrimitiveList/finalizers".to_owned()),
        ];
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map(keys, inner, 0..4).prop_map(|members| members.into_iter().collect()),
        ]
    })
}

fn objects() -> impl Strategy<Value = Value> {
    values().prop_map(|value| if value.is_object() { value } else { json!({"a": value}) })
}

/// A list in a patch keeps its nulls where it replaces an object, and loses them elsewhere.
fn without_lists(value: Value) -> Value {
    match value {
        Value::Array(items) => items.len().into(),
        Value::Object(members) => members.into_iter().map(|(key, value)| (key, without_lists(value))).collect(),
        plain => plain,
    }
}

fn operations() -> impl Strategy<Value = Value> {
    let op = prop::sample::select(vec!["add", "remove", "replace", "test", "move", "copy"]);
    let path = || "(/(a|b|c|spec|0|-1|-)){0,3}";
    prop::collection::vec((op, path(), path(), values()), 0..6).prop_map(|operations| {
        let operation = |(op, path, from, value)| json!({"op": op, "path": path, "from": from, "value": value});
        operations.into_iter().map(operation).collect()
    })
}

proptest! {
    #[test]
    fn a_strategic_patch_of_nothing_changes_nothing(object in objects()) {
        prop_assert_eq!(deployment(object.clone(), json!({})).unwrap(), object);
    }

    #[test]
    fn no_patch_panics(object in values(), patch in values(), operations in operations()) {
        let _ = deployment(object.clone(), patch.clone());
        let _ = patched(object.clone(), operations);
        let mut object = object;
        let _ = apply_merge_patch(&mut object, patch.to_string().as_bytes());
    }

    #[test]
    fn a_merge_patch_applied_twice_changes_nothing_more(object in objects(), patch in objects()) {
        let patch = without_lists(patch);
        let once = merged(object, patch.clone());
        prop_assert_eq!(merged(once.clone(), patch), once);
    }
}

/// Webhooks get the reason why their patch does not apply.
#[test]
fn failures_are_said_as_the_original_says_them() {
    let document = serde_json::json!({ "a": [1, 2], "b": {} });
    for (operation, said) in [
        (
            r#"{"op":"remove","path":"/nope"}"#,
            "error in remove for path: '/nope': Unable to remove nonexistent key: nope: missing value",
        ),
        (
            r#"{"op":"add","path":"/x/y","value":1}"#,
            "add operation does not apply: doc is missing path: \"/x/y\": missing value",
        ),
        (
            r#"{"op":"replace","path":"/x/y","value":1}"#,
            "replace operation does not apply: doc is missing path: /x/y: missing value",
        ),
        (
            r#"{"op":"replace","path":"/a/7","value":1}"#,
            "replace operation does not apply: doc is missing key: /a/7: missing value",
        ),
        (
            r#"{"op":"add","path":"/a/7","value":1}"#,
            "error in add for path: '/a/7': Unable to access invalid index: 7: invalid index referenced",
        ),
        (
            r#"{"op":"add","path":"/a/z","value":1}"#,
            "error in add for path: '/a/z': value was not a proper array index: 'z': strconv.Atoi: parsing \"z\": invalid syntax",
        ),
        (r#"{"op":"test","path":"/b","value":1}"#, "testing value /b failed: test failed"),
        (
            r#"{"op":"move","from":"/x/y","path":"/b/c"}"#,
            "move operation does not apply: doc is missing from path: /x/y: missing value",
        ),
        (r#"{"op":"jump","path":"/b"}"#, "Unexpected kind: jump"),
        (r#"{"op":"add"}"#, "add operation failed to decode path: missing value"),
    ] {
        let patch = serde_json::from_str(&format!("[{operation}]")).unwrap();
        let failure = JsonPatch::parse(patch).unwrap().apply(&mut document.clone()).unwrap_err();
        assert_eq!(failure.to_string(), said);
    }
}

#[test]
fn json_patch_that_moves_too_many_items_is_refused() {
    let object = serde_json::json!({ "a": vec![0; 100_000] });
    let patch: Vec<Value> =
        (0..1_000).map(|_| serde_json::json!({ "op": "move", "from": "/a/0", "path": "/a/0" })).collect();
    let refused = apply_json_patch(&mut object.clone(), Value::from(patch.clone()).to_string().as_bytes()).unwrap_err();
    assert_eq!(refused.code, 422, "{refused:?}");
    let few = Value::from(patch[..20].to_vec()).to_string();
    let mut same = object.clone();
    apply_json_patch(&mut same, few.as_bytes()).unwrap();
    assert_eq!(same, object);
    let at_the_end: Vec<Value> =
        (0..2_000).map(|n| serde_json::json!({ "op": "add", "path": "/a/-", "value": n })).collect();
    apply_json_patch(&mut same, Value::from(at_the_end).to_string().as_bytes()).unwrap();
}

/// A value of nested lists.
fn nested(depth: usize) -> String {
    format!("{}{}", "[".repeat(depth), "]".repeat(depth))
}

#[test]
fn no_patch_makes_an_object_deeper_than_a_body_may_be() {
    let inside = MAX_DEPTH - 1;
    for (depth, fits) in [(inside, true), (inside + 1, false)] {
        let text = format!(r#"{{"a":{}}}"#, nested(depth));
        assert_eq!(crate::codec::json::decode(text.as_bytes()).is_ok(), fits, "a body");
        assert_eq!(apply_merge_patch(&mut serde_json::json!({}), text.as_bytes()).is_ok(), fits, "a merge patch");
        assert_eq!(parse_object(text.as_bytes()).is_ok(), fits, "a strategic patch");
        let add = format!(r#"[{{"op":"add","path":"/a","value":{}}}]"#, nested(depth));
        assert_eq!(apply_json_patch(&mut serde_json::json!({}), add.as_bytes()).is_ok(), fits, "a JSON patch");
    }
    let mut object = serde_json::json!({ "a": { "b": {} } });
    let add = format!(r#"[{{"op":"add","path":"/a/b/c","value":{}}}]"#, nested(inside - 1));
    assert_eq!(apply_json_patch(&mut object, add.as_bytes()).unwrap_err().code, 422, "below a path");
}

#[test]
fn strategic_patch_that_deletes_many_items_is_linear() {
    // Quadratic work would be 10^10 comparisons.
    let item = |n: usize| serde_json::json!({ "name": format!("n{n}"), "value": "x" });
    let env: Vec<Value> = (0..100_000).map(item).collect();
    let gone: Vec<Value> =
        (0..100_000).map(|n| serde_json::json!({ "$patch": "delete", "name": format!("other{n}") })).collect();
    let template = |env: Vec<Value>| serde_json::json!({ "spec": { "template": { "spec": { "containers": [{ "name": "c", "env": env }] } } } });
    let merged = deployment(template(env.clone()), template(gone)).unwrap();
    assert_eq!(merged, template(env));
}
