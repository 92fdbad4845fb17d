use super::*;

fn causes(status: &StatusError) -> Vec<(&str, &str, &str)> {
    let causes = status.details.as_ref().unwrap().causes.iter();
    causes.map(|cause| (cause.reason.as_str(), cause.message.as_str(), cause.field.as_str())).collect()
}

#[test]
fn an_apply_creates_and_owns_what_it_sets() {
    let mut map = Fixture::config_map();
    map.apply("one", json!({"metadata": {"labels": {"l": "m"}}, "data": {"k": "v"}}));
    map.expect(&[("one Apply", json!({"f:data": {"f:k": {}}, "f:metadata": {"f:labels": {"f:l": {}}}}))]);
    let entry = map.at("/metadata/managedFields/0");
    let expected = json!({"apiVersion": "v1", "fieldsType": "FieldsV1", "fieldsV1": entry["fieldsV1"], "manager": "one",
        "operation": "Apply", "time": NOW});
    assert_eq!(entry, expected);
}

#[test]
fn the_same_apply_again_changes_nothing() {
    let mut map = Fixture::config_map();
    map.apply("one", json!({"data": {"k": "v"}}));
    let before = map.object.clone();
    map.now = "2030-01-01T00:00:00Z";
    assert_eq!(map.apply("one", json!({"data": {"k": "v"}})).object, before);
}

#[test]
fn what_is_no_longer_applied_is_removed() {
    let mut map = Fixture::config_map();
    map.apply("one", json!({"data": {"a": "1", "b": "2"}}));
    map.apply("one", json!({"data": {"a": "1"}})).expect(&[("one Apply", json!({"f:data": {"f:a": {}}}))]);
    assert_eq!(map.at("/data"), json!({"a": "1"}));
    map.apply("one", json!({})).expect(&[]);
    assert_eq!(map.at("/data"), Value::Null);
}

#[test]
fn a_conflict_has_a_cause_for_every_field_and_manager() {
    let mut map = Fixture::config_map();
    map.apply("one", json!({"data": {"a": "1", "b": "2"}}));
    let refused = map.try_apply("two", "", json!({"data": {"a": "9", "b": "8"}}), false).unwrap_err();
    assert_eq!((refused.code, refused.reason), (409, "Conflict"));
    assert_eq!(refused.message, "Apply failed with 2 conflicts: conflicts with \"one\":\n- .data.a\n- .data.b");
    let cause = |field| ("FieldManagerConflict", "conflict with \"one\"", field);
    assert_eq!(causes(&refused), [cause(".data.a"), cause(".data.b")]);
}

#[test]
fn conflicts_with_several_managers_are_listed_by_manager() {
    let mut map = Fixture::config_map();
    map.apply("zed", json!({"data": {"a": "1"}}));
    map.put("editor", json!({"data": {"a": "1", "b": "2"}}));
    let refused = map.try_apply("two", "", json!({"data": {"a": "9", "b": "8"}}), false).unwrap_err();
    let message = "Apply failed with 2 conflicts: conflicts with \"editor\" using v1:\n- .data.b\nconflicts with \"zed\":\n- .data.a";
    assert_eq!(refused.message, message);
}

#[test]
fn an_updater_conflicts_in_its_version_and_shares_what_is_the_same() {
    let mut map = Fixture::config_map();
    map.put("editor", json!({"data": {"a": "1"}}));
    let refused = map.try_apply("one", "", json!({"data": {"a": "2"}}), false).unwrap_err();
    assert_eq!(refused.message, "Apply failed with 1 conflict: conflict with \"editor\" using v1: .data.a");
    map.apply("one", json!({"data": {"a": "1", "z": "0"}}));
    map.expect(&[
        ("one Apply", json!({"f:data": {"f:a": {}, "f:z": {}}})),
        ("editor Update", json!({"f:data": {".": {}, "f:a": {}}})),
    ]);
}

#[test]
fn force_takes_fields_over() {
    let mut map = Fixture::config_map();
    map.apply("one", json!({"data": {"a": "1", "b": "2"}}));
    map.object = Some(map.try_apply("two", "", json!({"data": {"a": "9"}}), true).unwrap());
    map.expect(&[("one Apply", json!({"f:data": {"f:b": {}}})), ("two Apply", json!({"f:data": {"f:a": {}}}))]);
    assert_eq!(map.at("/data"), json!({"a": "9", "b": "2"}));
    let refused = map.try_apply("one", "", json!({"data": {"a": "1", "b": "2"}}), false).unwrap_err();
    assert_eq!(refused.message, "Apply failed with 1 conflict: conflict with \"two\": .data.a");
}

#[test]
fn a_shared_field_goes_with_its_last_owner_and_who_joins_has_no_time() {
    let mut map = Fixture::config_map();
    map.apply("one", json!({"data": {"a": "1"}}));
    map.apply("two", json!({"data": {"a": "1"}}));
    map.expect(&[("two Apply", json!({"f:data": {"f:a": {}}})), ("one Apply", json!({"f:data": {"f:a": {}}}))]);
    assert_eq!(map.at("/metadata/managedFields/0/time"), Value::Null);
    map.apply("one", json!({})).expect(&[("two Apply", json!({"f:data": {"f:a": {}}}))]);
    assert_eq!(map.at("/data"), json!({"a": "1"}));
    map.apply("two", json!({})).expect(&[]);
    assert_eq!(map.at("/data"), Value::Null);
}

fn web(containers: Value) -> Value {
    json!({"spec": {"template": {"spec": {"containers": containers}}}})
}

#[test]
fn containers_and_ports_are_owned_by_their_keys_with_defaults() {
    let mut deployment = Fixture::builtin("apps/v1", "Deployment");
    deployment
        .apply("one", web(json!([{"name": "main", "image": "1", "ports": [{"containerPort": 80}]}, {"name": "side"}])));
    let port = json!({"k:{\"containerPort\":80,\"protocol\":\"TCP\"}": {".": {}, "f:containerPort": {}}});
    let main = json!({".": {}, "f:name": {}, "f:image": {}, "f:ports": port});
    let side = json!({".": {}, "f:name": {}});
    let containers = json!({"k:{\"name\":\"main\"}": main, "k:{\"name\":\"side\"}": side});
    let owned = json!({"f:spec": {"f:template": {"f:spec": {"f:containers": containers}}}});
    deployment.expect(&[("one Apply", owned)]);
    deployment.apply("two", web(json!([{"name": "main", "env": [{"name": "C", "value": "3"}]}])));
    deployment.apply("one", web(json!([{"name": "main", "image": "1"}])));
    let left = json!([{"name": "main", "image": "1", "env": [{"name": "C", "value": "3"}]}]);
    assert_eq!(deployment.at("/spec/template/spec/containers"), left);
}

#[test]
fn what_the_server_defaulted_goes_with_the_item_that_it_belongs_to() {
    let mut deployment = Fixture::builtin("apps/v1", "Deployment");
    deployment.apply("one", web(json!([{"name": "main"}, {"name": "side"}])));
    let containers = deployment.object.as_mut().unwrap().pointer_mut("/spec/template/spec/containers").unwrap();
    containers[0]["imagePullPolicy"] = json!("Always");
    containers[1]["imagePullPolicy"] = json!("Always");
    deployment.apply("one", web(json!([{"name": "main"}])));
    let left = json!([{"name": "main", "imagePullPolicy": "Always"}]);
    assert_eq!(deployment.at("/spec/template/spec/containers"), left);
}

#[test]
fn maps_sets_and_atomic_lists_merge_as_their_types_say() {
    let mut widget = Fixture::widget();
    widget.apply("one", json!({"spec": {"m": [{"k": "a", "v": "1"}], "s": ["x"], "l": ["1"], "am": {"x": "1"}}}));
    widget.apply("two", json!({"spec": {"m": [{"k": "b", "v": "2"}], "s": ["y"]}}));
    let spec =
        json!({"m": [{"k": "a", "v": "1"}, {"k": "b", "v": "2"}], "s": ["x", "y"], "l": ["1"], "am": {"x": "1"}});
    assert_eq!(widget.at("/spec"), spec);
    let refused = widget.try_apply("two", "", json!({"spec": {"l": ["2"], "am": {"y": "2"}}}), false).unwrap_err();
    assert_eq!(refused.message, "Apply failed with 2 conflicts: conflicts with \"one\":\n- .spec.am\n- .spec.l");
    widget.apply("one", json!({"spec": {"s": ["z"]}}));
    assert_eq!(widget.at("/spec"), json!({"m": [{"k": "b", "v": "2"}], "s": ["y", "z"]}));
    let of_two = json!({"f:m": {"k:{\"k\":\"b\"}": {".": {}, "f:k": {}, "f:v": {}}}, "f:s": {"v:\"y\"": {}}});
    widget.expect(&[
        ("one Apply", json!({"f:spec": {"f:s": {"v:\"z\"": {}}}})),
        ("two Apply", json!({"f:spec": of_two})),
    ]);
}

#[test]
fn a_configuration_orders_the_items_that_it_has() {
    let mut widget = Fixture::widget();
    widget.put("m", json!({"spec": {"s": ["a", "b", "c", "d"]}}));
    let cases = [
        (json!(["d", "a"]), json!(["b", "c", "d", "a"])),
        (json!(["c", "x", "d"]), json!(["a", "b", "c", "x", "d"])),
        (json!(["x"]), json!(["a", "b", "c", "d", "x"])),
        (json!(["b", "x"]), json!(["a", "b", "c", "d", "x"])),
    ];
    for (config, expected) in cases {
        let applied = widget.try_apply("one", "", json!({"spec": {"s": config}}), false).unwrap();
        assert_eq!(applied["spec"]["s"], expected, "{config}");
    }
}

#[test]
fn owner_references_are_whole_and_finalizers_are_a_set() {
    let mut map = Fixture::config_map();
    let owner = |name: &str| json!([{"apiVersion": "v1", "kind": "ConfigMap", "name": name, "uid": "1-2"}]);
    map.apply("one", json!({"metadata": {"finalizers": ["a/a"], "ownerReferences": owner("o")}}));
    map.apply("two", json!({"metadata": {"finalizers": ["a/b"]}}));
    assert_eq!(map.at("/metadata/finalizers"), json!(["a/a", "a/b"]));
    let of_one = json!({"f:finalizers": {"v:\"a/a\"": {}}, "f:ownerReferences": {"k:{\"uid\":\"1-2\"}": {}}});
    map.expect(&[
        ("one Apply", json!({"f:metadata": of_one})),
        ("two Apply", json!({"f:metadata": {"f:finalizers": {"v:\"a/b\"": {}}}})),
    ]);
    let refused = map.try_apply("two", "", json!({"metadata": {"ownerReferences": owner("p")}}), false).unwrap_err();
    assert_eq!(causes(&refused)[0].2, ".metadata.ownerReferences[uid=\"1-2\"]");
}

#[test]
fn null_and_empty_values_are_owned() {
    let mut map = Fixture::config_map();
    map.apply("one", json!({"metadata": {"labels": {}}, "data": null}));
    map.expect(&[("one Apply", json!({"f:data": {}, "f:metadata": {"f:labels": {}}}))]);
    map.apply("one", json!({"metadata": {"annotations": null}, "data": {}}));
    map.expect(&[("one Apply", json!({"f:data": {}, "f:metadata": {"f:annotations": {}}}))]);
}

#[test]
fn a_configuration_that_does_not_fit_its_schema_is_refused() {
    let cases = [
        (json!({"spec": {"m": [{"k": "a"}, {"k": "a"}]}}), ".spec.m: duplicate entries for key [k=\"a\"]"),
        (json!({"spec": {"s": ["a", "a"]}}), ".spec.s: duplicate entries for key [=\"a\"]"),
        (json!({"spec": {"zzz": 2}}), ".spec.zzz: field not declared in schema"),
        (json!({"spec": {"l": [true]}}), ".spec.l[0]: expected string, got &value.valueUnstructured{Value:true}"),
        (json!({"spec": {"size": "1"}}), ".spec.size: expected numeric (int or float), got string"),
        (json!({"spec": {"m": 1}}), ".spec.m: expected list, got &{1}"),
        (json!({"spec": 1}), ".spec: expected map, got &{1}"),
        (json!({"spec": {"m": [null]}}), ".spec.m: element 0: associative list with keys may not have a null element"),
        (json!({"x": 1, "y": 1}), "errors:\n  .x: field not declared in schema\n  .y: field not declared in schema"),
    ];
    for (config, error) in cases {
        let refused = Fixture::widget().try_apply("one", "", config, false).unwrap_err();
        let message = format!("failed to create typed patch object (/a; example.com/v1, Kind=Widget): {error}");
        assert_eq!((refused.code, refused.reason, refused.message), (500, "", message));
    }
    let refused = Fixture::config_map().try_apply("one", "", json!({"data": {"a": true}}), false).unwrap_err();
    let shown = "expected string, got &value.valueUnstructured{Value:true}";
    assert_eq!(
        refused.message,
        format!("failed to create typed patch object (/a; /v1, Kind=ConfigMap): .data.a: {shown}")
    );
}

#[test]
fn a_configuration_of_another_kind_or_with_entries_is_refused() {
    let map = Fixture::config_map();
    let other = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "a"}});
    let refused = StatusError::from(map.owner("one", "").apply(None, &other, false).unwrap_err());
    assert_eq!((refused.code, refused.message.as_str()), (400, "invalid object type: apps/v1, Kind=Deployment"));
    let refused = map.try_apply("one", "", json!({"metadata": {"managedFields": []}}), false).unwrap_err();
    assert_eq!((refused.code, refused.message.as_str()), (400, "metadata.managedFields must be nil"));
}

#[test]
fn what_was_there_before_the_first_apply_has_an_owner() {
    let mut map = Fixture::config_map();
    map.object = Some(map.whole(json!({"metadata": {"uid": "u"}, "data": {"a": "1", "b": "1"}})));
    let refused = map.try_apply("one", "", json!({"data": {"a": "2"}}), false).unwrap_err();
    assert_eq!(refused.message, "Apply failed with 1 conflict: conflict with \"before-first-apply\" using v1: .data.a");
    map.apply("one", json!({"data": {"a": "1"}}));
    map.expect(&[
        ("one Apply", json!({"f:data": {"f:a": {}}})),
        ("before-first-apply Update", json!({"f:data": {".": {}, "f:a": {}, "f:b": {}}})),
    ]);
}

#[test]
fn a_status_is_applied_by_an_entry_of_its_own() {
    let mut widget = Fixture::widget();
    widget.apply("one", json!({"spec": {"size": 1}}));
    widget.object = Some(widget.try_apply("ctrl", "status", json!({"status": {"ready": true}}), false).unwrap());
    let books =
        [("ctrl Apply status", json!({"f:status": {"f:ready": {}}})), ("one Apply", json!({"f:spec": {"f:size": {}}}))];
    widget.expect(&books);
    // The main path cannot change the status: the strategy restores it, and it gets no owner.
    widget.apply("one", json!({"spec": {"size": 1}, "status": {"ready": false}})).expect(&books);
}

#[test]
fn an_object_from_the_store_has_no_kind_and_the_same_apply_still_changes_nothing() {
    let mut map = Fixture::config_map();
    map.apply("one", json!({"data": {"k": "v"}}));
    let stored = map.object.as_mut().unwrap().as_object_mut().unwrap();
    stored.remove("kind");
    stored.remove("apiVersion");
    map.now = "2030-01-01T00:00:00Z";
    map.apply("one", json!({"data": {"k": "v"}}));
    assert_eq!(map.at("/metadata/managedFields/0/time"), NOW);
}

fn client_side(config: &Value) -> Value {
    let mut object = config.clone();
    let annotation = config.to_string();
    object["metadata"]["annotations"]["kubectl.kubernetes.io/last-applied-configuration"] = json!(annotation);
    object
}

#[test]
fn kubectl_takes_over_what_it_applied_on_the_client_side() {
    let mut map = Fixture::config_map();
    let config = map.whole(json!({"data": {"a": "1", "b": "1"}}));
    map.put("kubectl-client-side-apply", client_side(&config));
    let refused = map.try_apply("other", "", json!({"data": {"a": "2"}}), false).unwrap_err();
    assert!(refused.message.contains("kubectl-client-side-apply"));
    let config = map.whole(json!({"data": {"a": "2", "b": "1"}}));
    map.apply("kubectl", config.clone());
    assert_eq!(map.at("/data/a"), "2");
    let annotation = map.at("/metadata/annotations/kubectl.kubernetes.io~1last-applied-configuration");
    assert_eq!(annotation.as_str().unwrap(), format!("{config}\n"));
}

#[test]
fn kubectl_conflicts_where_somebody_changed_what_it_applied_on_the_client_side() {
    let mut map = Fixture::config_map();
    let mut object = client_side(&map.whole(json!({"data": {"a": "1", "b": "1"}})));
    map.put("kubectl-client-side-apply", object.clone());
    object["data"]["b"] = json!("9");
    map.put("editor", object);
    let refused = map.try_apply("kubectl", "", json!({"data": {"a": "2", "b": "2"}}), false).unwrap_err();
    assert_eq!(refused.message, "Apply failed with 1 conflict: conflict with \"editor\" using v1: .data.b");
}

fn configs() -> impl Strategy<Value = Value> {
    let texts = || prop::collection::btree_set("[a-d]", 0..4).prop_map(|texts| texts.into_iter().collect::<Vec<_>>());
    let items = prop::collection::btree_map("[a-d]", prop::option::of("[xy]"), 0..4).prop_map(|items| {
        items
            .into_iter()
            .map(|(k, v)| v.map_or_else(|| json!({"k": k}), |v| json!({"k": k, "v": v})))
            .collect::<Vec<_>>()
    });
    let free = prop::collection::btree_map(
        "[a-c]",
        prop_oneof![Just(json!({})), Just(json!([1])), Just(json!({"x": {"y": 1}}))],
        0..3,
    );
    (prop::option::of(items.prop_shuffle()), prop::option::of(texts().prop_shuffle()), prop::option::of(texts()), free)
        .prop_map(|(m, s, l, free)| {
            let mut spec = json!({"free": free});
            for (key, value) in [("m", m.map(Value::from)), ("s", s.map(Value::from)), ("l", l.map(Value::from))] {
                if let Some(value) = value {
                    spec[key] = value;
                }
            }
            json!({"spec": spec})
        })
}

proptest! {
    #[test]
    fn applying_twice_is_applying_once(first in configs(), second in configs(), third in configs()) {
        let mut widget = Fixture::widget();
        widget.put("editor", first);
        widget.object = Some(widget.try_apply("one", "", second, true).unwrap());
        widget.object = Some(widget.try_apply("two", "", third.clone(), true).unwrap());
        let again = widget.try_apply("two", "", third, false).unwrap();
        prop_assert_eq!(Some(again), widget.object);
    }

    #[test]
    fn what_is_applied_is_there_and_owned(first in configs(), second in configs()) {
        let mut widget = Fixture::widget();
        widget.put("editor", first);
        widget.object = Some(widget.try_apply("one", "", second.clone(), true).unwrap());
        let whole = widget.whole(second);
        let merged = super::super::merge::merge(widget.object.as_ref().unwrap(), &whole, &widget.schema).unwrap();
        prop_assert_eq!(Some(merged), widget.object);
    }

    #[test]
    fn an_update_of_nothing_changes_nothing(first in configs(), second in configs()) {
        let mut widget = Fixture::widget();
        widget.put("one", first);
        widget.put("two", second.clone());
        let before = widget.object.clone();
        widget.put("three", second);
        prop_assert_eq!(before, widget.object);
    }
}
