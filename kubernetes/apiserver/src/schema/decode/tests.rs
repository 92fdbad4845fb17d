use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::api::GroupVersion;

fn kind(api_version: &str, kind: &str) -> &'static Schema {
    builtin::schema_for_kind(&GroupVersion::parse(api_version).unwrap(), kind).unwrap()
}

/// The object after a walk.
fn checked(mut object: Value) -> Value {
    let schema = kind(object["apiVersion"].as_str().unwrap(), object["kind"].as_str().unwrap());
    check_types(&mut object, schema).unwrap();
    object
}

fn refused(mut object: Value) -> String {
    let schema = kind(object["apiVersion"].as_str().unwrap(), object["kind"].as_str().unwrap());
    check_types(&mut object, schema).unwrap_err().to_string()
}

fn config_map(rest: Value) -> Value {
    merged(json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}}), rest)
}

fn merged(mut object: Value, rest: Value) -> Value {
    object.as_object_mut().unwrap().extend(rest.as_object().unwrap().clone());
    object
}

#[test]
fn wrong_types_are_refused_in_gos_words() {
    let cases = [
        (config_map(json!({"data": {"k": 1}})), "number", "ConfigMap.data of type string"),
        (config_map(json!({"data": 1})), "number", "ConfigMap.data of type map[string]string"),
        (
            config_map(json!({"metadata": {"labels": "x"}})),
            "string",
            "ObjectMeta.metadata.labels of type map[string]string",
        ),
        (
            config_map(json!({"metadata": {"labels": [1]}})),
            "array",
            "ObjectMeta.metadata.labels of type map[string]string",
        ),
        (config_map(json!({"metadata": "x"})), "string", "ConfigMap.metadata of type v1.ObjectMeta"),
        (config_map(json!({"immutable": "x"})), "string", "ConfigMap.immutable of type bool"),
        (config_map(json!({"binaryData": {"a": 1}})), "number", "ConfigMap.binaryData of type []uint8"),
        (deployment(json!({"replicas": "two"})), "string", "DeploymentSpec.spec.replicas of type int32"),
        (deployment(json!({"replicas": 1.5})), "number 1.5", "DeploymentSpec.spec.replicas of type int32"),
        (
            deployment(json!({"replicas": 4_294_967_296_u64})),
            "number 4294967296",
            "DeploymentSpec.spec.replicas of type int32",
        ),
        (
            deployment(json!({"template": {"spec": {"containers": [{"name": 1}]}}})),
            "number",
            "Container.spec.template.spec.containers.name of type string",
        ),
        (
            deployment(json!({"template": {"spec": {"containers": {}}}})),
            "object",
            "PodSpec.spec.template.spec.containers of type []v1.Container",
        ),
        (
            config_map(json!({"metadata": {"creationTimestamp": 1}})),
            "number",
            "ObjectMeta.metadata.creationTimestamp of type string",
        ),
    ];
    for (object, found, wanted) in cases {
        assert_eq!(refused(object), format!("json: cannot unmarshal {found} into Go struct field {wanted}"));
    }
    let mut list = json!([]);
    let error = check_types(&mut list, kind("v1", "ConfigMap")).unwrap_err();
    assert_eq!(error.to_string(), "json: cannot unmarshal array into Go value of type v1.ConfigMap");
}

fn deployment(spec: Value) -> Value {
    json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "spec": spec})
}

fn lease(spec: Value) -> Value {
    json!({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "l"}, "spec": spec})
}

#[test]
fn values_of_special_types_are_refused_in_their_own_words() {
    let micro = "2006-01-02T15:04:05.000000Z07:00";
    let time = "2006-01-02T15:04:05Z07:00";
    let cases = [
        (
            lease(json!({"renewTime": "2020-01-01T00:00:00.1Z"})),
            format!(r#"parsing time "2020-01-01T00:00:00.1Z" as "{micro}": cannot parse ".1Z" as ".000000""#),
        ),
        (
            lease(json!({"renewTime": "yesterday"})),
            format!(r#"parsing time "yesterday" as "{micro}": cannot parse "yesterday" as "2006""#),
        ),
        (
            config_map(json!({"metadata": {"creationTimestamp": "2020-01-01"}})),
            format!(r#"parsing time "2020-01-01" as "{time}": cannot parse "" as "T""#),
        ),
        (
            config_map(json!({"metadata": {"creationTimestamp": "2020-02-30T00:00:00Z"}})),
            r#"parsing time "2020-02-30T00:00:00Z": day out of range"#.into(),
        ),
        (
            config_map(json!({"metadata": {"creationTimestamp": "2020-01-01T00:00:00Zx"}})),
            r#"parsing time "2020-01-01T00:00:00Zx": extra text: "x""#.into(),
        ),
        (secret(json!({"k": "???"})), "illegal base64 data at input byte 0".into()),
        (secret(json!({"k": "YQ="})), "illegal base64 data at input byte 3".into()),
        (secret(json!({"k": "YWJ"})), "illegal base64 data at input byte 0".into()),
        (secret(json!({"k": "YQ==x"})), "illegal base64 data at input byte 4".into()),
        (
            pod(json!({"limits": {"cpu": "abc"}})),
            "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'".into(),
        ),
    ];
    for (object, message) in cases {
        assert_eq!(refused(object), message);
    }
}

fn secret(data: Value) -> Value {
    json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, "data": data})
}

fn pod(resources: Value) -> Value {
    let containers = json!([{"name": "a", "image": "i", "resources": resources}]);
    json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {"containers": containers}})
}

#[test]
fn quantities_are_canonical() {
    let given = json!({
        "limits": {"cpu": "1.5", "memory": "2000000000", "ephemeral-storage": "1.5Gi"}, "requests": {"cpu": 1, "memory": "1e9"},
    });
    let expected = json!({
        "limits": {"cpu": "1500m", "memory": "2G", "ephemeral-storage": "1536Mi"}, "requests": {"cpu": "1", "memory": "1e9"},
    });
    assert_eq!(checked(pod(given))["spec"]["containers"][0]["resources"], expected);
}

#[test]
fn times_are_in_utc_without_fraction() {
    let time = |given: &str| checked(config_map(json!({"metadata": {"creationTimestamp": given}})))["metadata"].clone();
    for given in
        ["2020-01-01T00:00:00Z", "2020-01-01T00:00:00.999Z", "2020-01-01T01:30:00+01:30", "2019-12-31T23:00:00-01:00"]
    {
        assert_eq!(time(given), json!({"creationTimestamp": "2020-01-01T00:00:00Z"}), "{given}");
    }
    assert_eq!(time("0001-01-01T00:00:00Z"), json!({}));
    let spec = checked(lease(json!({"renewTime": "2020-01-01T02:00:00.100000+02:00"})))["spec"].clone();
    assert_eq!(spec, json!({"renewTime": "2020-01-01T00:00:00.100000Z"}));
}

#[test]
fn bytes_are_encoded_again() {
    assert_eq!(
        checked(secret(json!({"a": "YW\nJj\r\n", "b": "YR==", "c": "", "d": null})))["data"],
        json!({"a": "YWJj", "b": "YQ==", "c": "", "d": ""})
    );
}

#[test]
fn null_means_absent_and_is_zero_in_a_map() {
    let given = config_map(json!({"metadata": {"name": "a", "labels": null, "finalizers": null}, "data": null}));
    assert_eq!(checked(given), config_map(json!({})));
    assert_eq!(checked(config_map(json!({"data": {"k": null}})))["data"], json!({"k": ""}));
    let mut null = Value::Null;
    check_types(&mut null, kind("v1", "ConfigMap")).unwrap();
    assert_eq!(null, json!({"metadata": {}}));
}

#[test]
fn unknown_fields_go_and_are_reported() {
    let mut object = deployment(json!({
        "replica": 3,
        "template": {"spec": {"containers": [{"name": "a"}, {"name": "b", "imag": "x", "env": [{"nam": "z"}]}]}},
    }));
    object["x"] = json!(1);
    let schema = kind("apps/v1", "Deployment");
    let unknown = check_types(&mut object, schema).unwrap();
    let expected =
        ["spec.replica", "spec.template.spec.containers[1].env[0].nam", "spec.template.spec.containers[1].imag", "x"];
    assert_eq!(unknown, expected);
    assert_eq!(check_types(&mut object, schema).unwrap(), [""; 0]);
    let mut many = config_map(json!({}));
    many.as_object_mut().unwrap().extend((0..1000).map(|index| (format!("x{index}"), json!(1))));
    assert_eq!(check_types(&mut many, kind("v1", "ConfigMap")).unwrap().len(), 100);
    assert_eq!(many, config_map(json!({})));
}

#[test]
fn empty_fields_are_written_as_go_writes_them() {
    let role = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": {"name": "r", "labels": {}}, "rules": []});
    let written =
        json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": {"name": "r"}, "rules": null});
    assert_eq!(checked(role), written);
    let node = checked(json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}}));
    assert_eq!(node["status"]["daemonEndpoints"], json!({"kubeletEndpoint": {"Port": 0}}));
    assert_eq!(node["status"]["nodeInfo"]["bootID"], "");
    assert_eq!(node["spec"], json!({}));
    let event = checked(json!({"apiVersion": "v1", "kind": "Event", "metadata": {"name": "e"}, "count": 0}));
    let expected = json!({
        "apiVersion": "v1", "kind": "Event", "metadata": {"name": "e"}, "involvedObject": {}, "source": {},
        "eventTime": null, "firstTimestamp": null, "lastTimestamp": null, "reportingComponent": "", "reportingInstance": "",
    });
    assert_eq!(event, expected);
}

#[test]
fn pointers_keep_their_zero() {
    let spec = checked(deployment(json!({"replicas": 0, "minReadySeconds": 0, "selector": {}})))["spec"].clone();
    assert_eq!(spec["replicas"], 0);
    assert_eq!(spec.get("minReadySeconds"), None);
    assert_eq!(spec["selector"], json!({}));
    let pod = checked(json!({"apiVersion": "v1", "kind": "Pod", "metadata": {}, "spec": {
        "containers": [], "hostNetwork": false, "enableServiceLinks": false, "securityContext": {}, "hostname": "",
    }}));
    let expected = json!({"containers": null, "enableServiceLinks": false, "securityContext": {}});
    assert_eq!(pod["spec"], expected);
}

#[test]
fn the_schemas_of_a_crd_are_walked() {
    let props = json!({"type": "array", "items": {"type": "object", "zzz": 1, "required": []}, "maximum": 5.0, "default": {"a": null}});
    let versions = json!([{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": props}}]);
    let crd = json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {},
        "spec": {"group": "g", "names": {"plural": "a", "kind": "A"}, "scope": "Cluster", "versions": versions}});
    let expected = json!({"type": "array", "items": {"type": "object"}, "maximum": 5, "default": {"a": null}});
    let checked = checked(crd);
    assert_eq!(checked["spec"]["versions"][0]["schema"]["openAPIV3Schema"], expected);
    assert_eq!(checked["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["maximum"].to_string(), "5");
    assert_eq!(
        checked["status"],
        json!({"acceptedNames": {"kind": "", "plural": ""}, "conditions": null, "storedVersions": null})
    );
}

#[test]
fn depth_is_bounded() {
    let mut props = json!({});
    for _ in 0..5000 {
        props = Value::Object([("not".to_owned(), props)].into_iter().collect());
    }
    let schema = builtin::schema_by_name(JSON_SCHEMA_PROPS).unwrap();
    assert_eq!(check_types(&mut props, schema).unwrap_err().to_string(), "exceeded max depth");
    // Dropped level by level: refusing deep values is up to the decoder.
    while let Some(inner) = props.get_mut("not").map(Value::take) {
        props = inner;
    }
}

/// Any JSON, with field names of the types.
fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i32>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        "[a-z0-9.]{0,5}".prop_map(Value::from),
        Just(json!("2020-01-01T00:00:00Z")),
        Just(json!("")),
    ];
    leaf.prop_recursive(6, 48, 6, |inner| {
        let names = prop::sample::select(vec![
            "metadata",
            "spec",
            "status",
            "template",
            "containers",
            "name",
            "labels",
            "resources",
            "limits",
            "ports",
            "replicas",
            "creationTimestamp",
            "selector",
            "nodeInfo",
            "zzz",
            "env",
            "securityContext",
            "hostNetwork",
        ]);
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map(names.prop_map(str::to_owned), inner, 0..6)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn a_second_walk_changes_nothing(mut object in any_json()) {
        for name in ["Pod", "Node", "Event", "Service"] {
            let schema = kind("v1", name);
            if check_types(&mut object, schema).is_ok() {
                let first = object.clone();
                prop_assert_eq!(check_types(&mut object, schema).unwrap(), Vec::<String>::new());
                prop_assert_eq!(&object, &first);
            }
        }
    }

    #[test]
    fn base64_is_read_as_go_reads_it(text in "[A-Za-z=\n]{0,9}") {
        if let Ok(normal) = super::base64::normalize_base64(&text) {
            prop_assert_eq!(super::base64::normalize_base64(&normal).unwrap(), normal.clone());
        }
    }

    #[test]
    fn no_time_panics(text in "[0-9TZ:.+-]{0,30}|.*") {
        for precision in [super::time::TimePrecision::Seconds, super::time::TimePrecision::Micros] {
            if let Ok(Some(normal)) = super::time::normalize_time(&text, precision) {
                prop_assert_eq!(super::time::normalize_time(&normal, precision), Ok(None));
            }
        }
    }
}
