use super::*;

#[test]
fn a_creator_owns_every_field_that_is_not_there_by_itself() {
    let mut deployment = Fixture::builtin("apps/v1", "Deployment");
    deployment.put(
        "m",
        json!({
            "metadata": {"labels": {"app": "web"}, "uid": "u", "creationTimestamp": NOW, "generation": 1, "namespace": "n"},
            "spec": {
                "replicas": 2,
                "selector": {"matchLabels": {"app": "web"}},
                "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": "25%"}},
                "template": {"metadata": {}, "spec": {"securityContext": {}, "containers": [{
                    "name": "main",
                    "env": [{"name": "A", "value": "1"}],
                    "ports": [{"containerPort": 80, "protocol": "TCP"}, {"containerPort": 443, "protocol": "TCP"}],
                }]}},
            },
            "status": {"replicas": 3},
        }),
    );
    let port = || json!({".": {}, "f:containerPort": {}, "f:protocol": {}});
    deployment.expect(&[(
        "m Update",
        json!({
            "f:metadata": {"f:labels": {".": {}, "f:app": {}}},
            "f:spec": {
                "f:replicas": {},
                "f:selector": {},
                "f:strategy": {"f:type": {}, "f:rollingUpdate": {".": {}, "f:maxSurge": {}}},
                "f:template": {"f:spec": {"f:securityContext": {}, "f:containers": {"k:{\"name\":\"main\"}": {
                    ".": {},
                    "f:name": {},
                    "f:resources": {},
                    "f:env": {".": {}, "k:{\"name\":\"A\"}": {".": {}, "f:name": {}, "f:value": {}}},
                    "f:ports": {
                        ".": {},
                        "k:{\"containerPort\":80,\"protocol\":\"TCP\"}": port(),
                        "k:{\"containerPort\":443,\"protocol\":\"TCP\"}": port(),
                    },
                }}}},
            },
        }),
    )]);
}

#[test]
fn a_custom_resource_has_nothing_by_itself_and_free_form_parts_have_fields() {
    let mut widget = Fixture::widget();
    widget.put("m", json!({"spec": {"size": 1, "free": {"deep": [1, {"x": 1}], "n": null}, "am": {"x": "1"}}, "status": {"ready": true}}));
    let spec = json!({".": {}, "f:size": {}, "f:free": {".": {}, "f:deep": {}, "f:n": {}}, "f:am": {}});
    widget.expect(&[("m Update", json!({"f:spec": spec}))]);
}

#[test]
fn an_object_without_fields_has_no_books_and_gets_none_later() {
    let mut map = Fixture::config_map();
    map.put("m", json!({})).expect(&[]);
    map.put("m", json!({"data": {"a": "1"}})).expect(&[]);
}

#[test]
fn each_updater_owns_what_it_changed_last() {
    let mut map = Fixture::config_map();
    map.put("one", json!({"data": {"a": "1", "b": "1"}}));
    map.put("two", json!({"data": {"a": "1", "b": "2", "c": "3"}}));
    map.expect(&[
        ("one Update", json!({"f:data": {".": {}, "f:a": {}}})),
        ("two Update", json!({"f:data": {"f:b": {}, "f:c": {}}})),
    ]);
    map.put("one", json!({"data": {"a": "1"}}));
    map.expect(&[("one Update", json!({"f:data": {".": {}, "f:a": {}}}))]);
}

#[test]
fn only_who_changed_something_has_a_new_time() {
    let mut map = Fixture::config_map();
    map.put("one", json!({"data": {"a": "1"}}));
    map.now = "2025-01-01T00:00:00Z";
    map.put("two", json!({"data": {"a": "1", "b": "2"}}));
    map.now = "2026-01-01T00:00:00Z";
    map.put("two", json!({"data": {"a": "1", "b": "2"}}));
    assert_eq!(map.at("/metadata/managedFields/0/time"), NOW);
    assert_eq!(map.at("/metadata/managedFields/1/time"), "2025-01-01T00:00:00Z");
}

#[test]
fn entries_are_sorted_by_operation_then_time_then_manager() {
    let mut map = Fixture::config_map();
    map.put("z", json!({"data": {"a": "1"}}));
    map.put("b", json!({"data": {"a": "1", "b": "1"}}));
    map.now = "2020-01-01T00:00:00Z";
    map.put("y", json!({"data": {"a": "1", "b": "1", "c": "1"}}));
    map.apply("x", json!({"data": {"d": "1"}}));
    let books = map.books();
    let who: Vec<&str> = books.iter().map(|(who, _)| who.as_str()).collect();
    assert_eq!(who, ["x Apply", "y Update", "b Update", "z Update"]);
}

#[test]
fn an_empty_list_of_entries_or_an_empty_entry_ends_the_books() {
    for reset in [json!([]), json!([{}])] {
        let mut map = Fixture::config_map();
        map.put("one", json!({"data": {"a": "1"}}));
        map.put("two", json!({"data": {"a": "2"}, "metadata": {"managedFields": reset}})).expect(&[]);
        assert_eq!(map.at("/metadata/managedFields"), Value::Null);
    }
}

#[test]
fn entries_that_a_writer_sends_count_if_they_can_be_read() {
    let liar = json!({"manager": "liar", "operation": "Update", "apiVersion": "v1", "fieldsType": "FieldsV1",
        "fieldsV1": {"f:data": {}}, "time": "2001-01-01T00:00:00Z"});
    let mut map = Fixture::config_map();
    map.put("m", json!({"metadata": {"managedFields": [liar]}})).expect(&[("liar Update", json!({"f:data": {}}))]);
    assert_eq!(map.at("/metadata/managedFields/0/time"), "2001-01-01T00:00:00Z");
    let mut map = Fixture::config_map();
    map.put("one", json!({"data": {"a": "1"}}));
    for wrong in [json!([{"manager": "x"}]), json!([{}, {}]), json!("x"), json!([1])] {
        map.put("two", json!({"data": {"a": "1"}, "metadata": {"managedFields": wrong}}));
        map.expect(&[("one Update", json!({"f:data": {".": {}, "f:a": {}}}))]);
    }
}

#[test]
fn a_status_has_an_entry_of_its_own_and_neither_path_owns_the_others_fields() {
    let mut widget = Fixture::widget();
    widget.put("m", json!({"spec": {"size": 1}, "status": {"ready": true}}));
    let mut new = widget.object.clone().unwrap();
    new["status"] = json!({"ready": false});
    new["spec"]["size"] = json!(2);
    new["metadata"]["labels"] = json!({"x": "y"});
    new["metadata"]["managedFields"] = json!([]);
    widget.owner("m", "status").update(widget.object.as_ref(), &mut new);
    widget.object = Some(new);
    widget.expect(&[
        ("m Update", json!({"f:spec": {".": {}, "f:size": {}}})),
        ("m Update status", json!({"f:status": {"f:ready": {}}})),
    ]);
}

#[test]
fn more_than_ten_updaters_are_folded_together() {
    let mut map = Fixture::config_map();
    let mut data = json!({"start": "1"});
    map.put("m00", json!({"data": data}));
    for number in 1..14 {
        data[format!("k{number:02}")] = json!("1");
        map.put(&format!("m{number:02}"), json!({"data": data}));
    }
    let books = map.books();
    assert_eq!(books.len(), 10);
    let (who, what) = &books[0];
    assert_eq!(who, "ancient-changes Update");
    let expected = json!({"f:data": {".": {}, "f:start": {}, "f:k01": {}, "f:k02": {}, "f:k03": {}, "f:k04": {}}});
    assert_eq!(*what, expected);
}

#[test]
fn items_that_are_there_twice_are_owned_together() {
    let mut widget = Fixture::widget();
    widget.put("m", json!({"spec": {"m": [{"k": "a", "v": "1"}, {"k": "a", "v": "2"}], "s": ["x", "x"]}}));
    let spec = json!({".": {}, "f:m": {".": {}, "k:{\"k\":\"a\"}": {}}, "f:s": {".": {}, "v:\"x\"": {}}});
    widget.expect(&[("m Update", json!({"f:spec": spec}))]);
    widget.put("n", json!({"spec": {"m": [{"k": "a", "v": "2"}], "s": ["x", "x"]}}));
    let item = json!({".": {}, "f:k": {}, "f:v": {}});
    assert_eq!(widget.books()[1], ("n Update".to_owned(), json!({"f:spec": {"f:m": {"k:{\"k\":\"a\"}": item}}})));
}

#[test]
fn items_that_cannot_be_told_apart_end_the_books() {
    let mut widget = Fixture::widget();
    widget.put("m", json!({"spec": {"size": 1}}));
    widget.put("n", json!({"spec": {"size": 2, "m": [null]}}));
    widget.expect(&[]);
}

#[test]
fn a_part_of_what_has_become_one_whole_is_the_whole() {
    let mut widget = Fixture::widget();
    let entry = |fields: Value| {
        json!({"manager": "old", "operation": "Update", "apiVersion": "example.com/v1",
        "fieldsType": "FieldsV1", "fieldsV1": fields, "time": NOW})
    };
    let fields = json!({"f:spec": {"f:am": {".": {}, "f:x": {}}, "f:l": {"v:\"1\"": {}}}});
    widget.object = Some(widget.whole(json!({
        "metadata": {"uid": "u", "managedFields": [entry(fields)]},
        "spec": {"am": {"x": "1"}, "l": ["1"]},
    })));
    widget.put("m", json!({"spec": {"am": {"x": "1"}, "l": ["1"]}}));
    widget.expect(&[("old Update", json!({"f:spec": {"f:am": {}, "f:l": {}}}))]);
}

#[test]
fn a_deep_object_has_books_that_can_be_read_again() {
    let mut widget = Fixture::widget();
    let deep = (0..120).fold(json!(1), |below, _| json!({"a": below}));
    widget.put("m", json!({"spec": {"free": deep}}));
    let text = widget.object.as_ref().unwrap().to_string();
    let read: Value = serde_json::from_str(&text).unwrap();
    assert!(FieldSet::from_value(&read["metadata"]["managedFields"][0]["fieldsV1"]).is_ok());
}

#[test]
fn a_change_of_nothing_but_times_is_none() {
    let mut map = Fixture::config_map();
    map.put("m", json!({"data": {"a": "1"}}));
    let old = map.object.clone().unwrap();
    let mut new = old.clone();
    new["metadata"]["managedFields"][0]["time"] = json!("2030-01-01T00:00:00Z");
    assert!(keep_unchanged_times(&old, &mut new));
    assert_eq!(new, old);
    new["metadata"]["managedFields"][0]["time"] = json!("2030-01-01T00:00:00Z");
    new["data"]["a"] = json!("2");
    assert!(!keep_unchanged_times(&old, &mut new));
    assert_eq!(new["metadata"]["managedFields"][0]["time"], "2030-01-01T00:00:00Z");
}

#[test]
fn a_manager_is_named_by_its_user_agent() {
    assert_eq!(default_manager("recorder/1.0"), "recorder");
    assert_eq!(default_manager("kubectl/v1.35 (linux/amd64)"), "kubectl");
    assert_eq!(default_manager("a\u{7}b"), "ab");
    assert_eq!(default_manager(&"é".repeat(100)).len(), 128);
    let mut map = Fixture::config_map();
    map.put("", json!({"data": {"a": "1"}})).expect(&[("unknown Update", json!({"f:data": {".": {}, "f:a": {}}}))]);
}

#[test]
fn what_a_set_lost_by_an_update_is_what_the_update_changed() {
    let mut map = Fixture::config_map();
    map.apply("one", json!({"data": {"a": "1", "b": "1"}, "metadata": {"labels": {"l": "1"}}}));
    map.put("two", json!({"data": {"a": "2"}, "metadata": {"labels": {"l": "1"}}}));
    map.expect(&[
        ("one Apply", json!({"f:metadata": {"f:labels": {"f:l": {}}}})),
        ("two Update", json!({"f:data": {"f:a": {}}})),
    ]);
}

#[test]
fn only_the_entries_in_metadata_are_no_field() {
    let mut widget = Fixture::widget();
    widget.put("m", json!({"spec": {"free": {"managedFields": [1]}}, "managedFields": 1}));
    widget.put("n", json!({"spec": {"free": {"managedFields": [2]}}, "managedFields": 2}));
    let of_n = json!({"f:spec": {"f:free": {"f:managedFields": {}}}, "f:managedFields": {}});
    assert_eq!(widget.books()[1], ("n Update".to_owned(), of_n));
}

/// Values with the names of real fields in the wrong positions.
fn values() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i8>().prop_map(Value::from),
        any::<f32>().prop_map(Value::from),
        "[a-c]{0,2}".prop_map(Value::from)
    ];
    let names =
        ["spec", "m", "s", "l", "am", "free", "k", "v", "status", "metadata", "labels", "finalizers", "managedFields"];
    leaf.prop_recursive(5, 40, 4, move |inner| {
        let members = prop::collection::btree_map(prop::sample::select(names.to_vec()), inner.clone(), 0..5);
        let members =
            members.prop_map(|members| members.into_iter().map(|(name, value)| (name.to_owned(), value)).collect());
        prop_oneof![prop::collection::vec(inner, 0..4).prop_map(Value::from), members]
    })
}

proptest! {
    #[test]
    fn nothing_that_a_client_sends_panics(live in values(), mut new in values(), force in any::<bool>(), builtin in any::<bool>()) {
        let fixture = if builtin { Fixture::config_map() } else { Fixture::widget() };
        let owner = fixture.owner("m", "");
        if let Some(config) = new.as_object_mut() {
            config.insert("apiVersion".to_owned(), fixture.api_version.into());
            config.insert("kind".to_owned(), fixture.kind.into());
        }
        let _ = owner.apply(None, &new, force);
        let _ = owner.apply(Some(&live), &new, force);
        owner.update(None, &mut new.clone());
        owner.update(Some(&live), &mut new);
    }
}

/// A kind in two versions: `size` of one is `width` in the other, which has no `color`.
#[derive(Debug)]
struct Renamed(Schema);

impl VersionConverter for Renamed {
    fn convert(&self, object: &Value, api_version: &str) -> Option<(Value, SchemaNode)> {
        if api_version != "example.com/v2" {
            return None;
        }
        let mut object = object.clone();
        if let Some(spec) = object.get_mut("spec").and_then(Value::as_object_mut)
            && let Some(size) = spec.remove("size")
        {
            spec.insert("width".into(), size);
        }
        Some((object, SchemaNode::Own(std::sync::Arc::new(self.0.clone()))))
    }
}

fn renamed() -> Renamed {
    let spec = object([("width", Schema::scalar(ScalarType::Integer))], MapType::Granular);
    Renamed(object([("spec", spec)], MapType::Granular))
}

/// A live object with an entry of another version.
fn written_in(api_version: &str) -> (Fixture, Value) {
    let fixture = Fixture::widget();
    let fields = json!({"f:spec": {".": {}, "f:width": {}}});
    let entry = json!({"manager": "old", "operation": "Update", "apiVersion": api_version, "fieldsType": "FieldsV1",
        "fieldsV1": fields, "time": NOW});
    let live = fixture.whole(json!({"metadata": {"uid": "u", "managedFields": [entry]}, "spec": {"size": 1}}));
    (fixture, live)
}

fn entries(object: &Value) -> Vec<(&str, &str, &Value)> {
    let entries = object.pointer("/metadata/managedFields").and_then(Value::as_array).into_iter().flatten();
    let text = |entry: &'_ Value, field: &str| -> &'static str { entry[field].as_str().unwrap().to_owned().leak() };
    entries.map(|entry| (text(entry, "manager"), text(entry, "apiVersion"), &entry["fieldsV1"])).collect()
}

#[test]
fn change_is_taken_from_manager_of_other_version_as_that_version_sees_it() {
    let (fixture, live) = written_in("example.com/v2");
    let convert = renamed();
    let owner = FieldManager { convert: Some(&convert), ..fixture.owner("new", "") };
    let mut same = fixture.whole(json!({"metadata": {"uid": "u"}, "spec": {"size": 1}}));
    owner.update(Some(&live), &mut same);
    assert_eq!(entries(&same), [("old", "example.com/v2", &json!({"f:spec": {".": {}, "f:width": {}}}))]);
    let mut changed = fixture.whole(json!({"metadata": {"uid": "u"}, "spec": {"size": 2}}));
    owner.update(Some(&live), &mut changed);
    let left = json!({"f:spec": {}});
    let taken = json!({"f:spec": {"f:size": {}}});
    let found = entries(&changed);
    assert_eq!(found.len(), 2, "{found:?}");
    assert!(found.contains(&("new", "example.com/v1", &taken)), "{found:?}");
    assert!(found.contains(&("old", "example.com/v2", &left)), "{found:?}");
}

#[test]
fn entry_of_version_that_is_no_more_goes_with_next_write() {
    let (fixture, live) = written_in("example.com/v0");
    let convert = renamed();
    let owner = FieldManager { convert: Some(&convert), ..fixture.owner("new", "") };
    let mut same = fixture.whole(json!({"metadata": {"uid": "u"}, "spec": {"size": 1}}));
    owner.update(Some(&live), &mut same);
    assert_eq!(entries(&same), []);
}

#[test]
fn books_end_where_other_version_cannot_show_object() {
    let (fixture, live) = written_in("example.com/v2");
    let convert = renamed();
    let owner = FieldManager { convert: Some(&convert), ..fixture.owner("new", "") };
    let mut wider = fixture.whole(json!({"metadata": {"uid": "u"}, "spec": {"size": 1, "s": ["x"]}}));
    owner.update(Some(&live), &mut wider);
    assert_eq!(entries(&wider), []);
}
