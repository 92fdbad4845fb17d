use super::*;

#[test]
fn a_set_is_written_as_kubernetes_writes_it() {
    let mut set = FieldSet::default();
    let port =
        |port: i64| PathElement::Key(vec![("containerPort".into(), port.into()), ("protocol".into(), "TCP".into())]);
    set.insert(&[PathElement::field("spec")]);
    set.insert(&[PathElement::field("spec"), PathElement::field("ports"), port(80)]);
    set.insert(&[PathElement::field("spec"), PathElement::field("ports"), port(443), PathElement::field("name")]);
    set.insert(&[PathElement::field("finalizers"), PathElement::Value("<a&b>".into())]);
    set.insert(&[PathElement::field("places"), PathElement::Index(3)]);
    let expected = json!({
        "f:finalizers": {"v:\"\\u003ca\\u0026b\\u003e\"": {}},
        "f:places": {"i:3": {}},
        "f:spec": {".": {}, "f:ports": {
            "k:{\"containerPort\":443,\"protocol\":\"TCP\"}": {"f:name": {}},
            "k:{\"containerPort\":80,\"protocol\":\"TCP\"}": {},
        }},
    });
    assert_eq!(set.to_value(), expected);
    assert_eq!(FieldSet::from_value(&expected).unwrap(), set);
}

#[test]
fn number_of_an_item_is_the_same_when_its_set_is_read_again() {
    for number in
        ["1000000000000000000000000000000000000000000000000000000000000000612885206811", "6.934698245112694e+276"]
    {
        let set = set(json!({"f:list": {format!("v:{number}"): {}}}));
        assert_eq!(FieldSet::from_value(&set.to_value()).unwrap(), set, "{number}");
    }
}

#[test]
fn what_is_no_set_is_refused_and_unknown_sorts_are_left_out() {
    for wrong in [
        json!([]),
        json!({"f:a": 1}),
        json!({"fa": {}}),
        json!({"v:{": {}}),
        json!({"k:[]": {}}),
        json!({"i:x": {}}),
        json!({"": {}}),
    ] {
        assert!(FieldSet::from_value(&wrong).is_err(), "{wrong}");
    }
    assert_eq!(set(json!({"x:a": {"f:b": {}}, "f:c": {}})), set(json!({"f:c": {}})));
    let deep = (0..120).fold(json!({}), |below, _| json!({"f:a": below}));
    assert!(FieldSet::from_value(&deep).is_err());
}

#[test]
fn a_set_with_the_same_element_in_two_spellings_is_read_as_one() {
    let twice = json!({"f:a": {"k:{\"x\":1}": {"f:b": {}}, "k:{ \"x\": 1 }": {"f:c": {}}}});
    assert_eq!(set(twice), set(json!({"f:a": {"k:{\"x\":1}": {"f:b": {}, "f:c": {}}}})));
}

#[test]
fn differences_leave_what_is_below_and_recursive_ones_do_not() {
    let all = set(json!({"f:a": {".": {}, "f:b": {}}, "f:c": {}}));
    assert_eq!(all.clone().difference(&set(json!({"f:a": {}}))), set(json!({"f:a": {"f:b": {}}, "f:c": {}})));
    assert_eq!(all.recursive_difference(&set(json!({"f:a": {}}))), set(json!({"f:c": {}})));
}

#[test]
fn fields_come_before_what_is_below_them_and_numbers_in_their_order() {
    let set = set(json!({"f:b": {}, "f:a": {"k:{\"p\":443}": {}, "k:{\"p\":80}": {}, "v:\"x\"": {}, "i:1": {}}}));
    let mut paths = Vec::new();
    set.for_each(&mut |path| paths.push(FieldPath(path).to_string()));
    assert_eq!(paths, [".b", ".a[p=80]", ".a[p=443]", ".a[=\"x\"]", ".a[1]"]);
}

fn elements() -> impl Strategy<Value = PathElement> {
    let scalar = || {
        prop_oneof![
            (-2i64..3).prop_map(Value::from),
            "[a-b<]{0,2}".prop_map(Value::from),
            any::<bool>().prop_map(Value::from)
        ]
    };
    prop_oneof![
        3 => "[a-c]{1,2}".prop_map(|name| PathElement::field(&name)),
        1 => scalar().prop_map(PathElement::Value),
        1 => (scalar(), scalar()).prop_map(|(a, b)| PathElement::Key(vec![("a".into(), a), ("b".into(), b)])),
        1 => (0i64..3).prop_map(PathElement::Index),
    ]
}

fn sets() -> impl Strategy<Value = FieldSet> {
    prop::collection::vec(prop::collection::vec(elements(), 1..4), 0..8).prop_map(|paths| {
        let mut set = FieldSet::default();
        paths.iter().for_each(|path| set.insert(path));
        set
    })
}

proptest! {
    #[test]
    fn a_set_survives_being_written_and_read(set in sets()) {
        prop_assert_eq!(FieldSet::from_value(&set.to_value()).unwrap(), set);
    }

    #[test]
    fn sets_obey_the_laws(a in sets(), b in sets()) {
        prop_assert_eq!(a.clone().union(&b), b.clone().union(&a));
        prop_assert_eq!(a.intersection(&b), b.intersection(&a));
        prop_assert_eq!(a.clone().union(&a), a.clone());
        prop_assert!(a.clone().difference(&a).is_empty());
        prop_assert!(a.clone().difference(&b).intersection(&b).is_empty());
        prop_assert_eq!(a.clone().difference(&b).union(&a.intersection(&b)), a.clone());
        let recursive = a.clone().recursive_difference(&b);
        prop_assert_eq!(recursive.intersection(&a.difference(&b)), recursive);
    }

    #[test]
    fn every_field_of_a_set_is_in_it(set in sets()) {
        let mut all = FieldSet::default();
        let mut missing = 0;
        set.for_each(&mut |path| {
            let path: Vec<PathElement> = path.iter().map(|element| (*element).clone()).collect();
            missing += usize::from(!set.has(&path));
            all.insert(&path);
        });
        prop_assert_eq!((missing, all), (0, set));
    }

    #[test]
    fn nothing_that_a_client_sends_as_entries_panics(text in "\\PC{0,20}", key in "[fkvi.]?:?\\PC{0,8}") {
        let _ = FieldSet::from_value(&json!({key: {text: {}}}));
    }
}
