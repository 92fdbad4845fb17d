use std::ops::Deref;

use serde_json::json;

use super::*;
use crate::schema::{ListType, MapType, Scalar, Shape};

fn core(name: &str) -> &'static Schema {
    by_name(&format!("io.k8s.api.core.v1.{name}")).unwrap()
}

fn fields(schema: &Schema) -> Vec<(&str, &Node)> {
    match &schema.shape {
        Shape::Object { fields, .. } => fields.iter().map(|(name, node)| (&**name, node)).collect(),
        _ => Vec::new(),
    }
}

#[test]
fn every_type_of_the_table_can_be_built_and_refers_to_types_that_are_there() {
    for (schema, name) in types().zip(names()) {
        assert_eq!(*schema.name, *name);
        for (field, node) in fields(schema) {
            // An unknown name would have become an anonymous tree that takes anything.
            let anonymous = node.name.is_empty() && node.shape == Shape::Any;
            assert!(!anonymous, "{name}.{field} refers to nothing");
        }
    }
    assert!(types().count() > 500);
}

#[test]
fn a_kind_is_found_by_group_version_and_kind() {
    let deployment = of_kind(&GroupVersion::new("apps", "v1"), "Deployment").unwrap();
    assert_eq!(&*deployment.name, "io.k8s.api.apps.v1.Deployment");
    assert_eq!(&*of_kind(&GroupVersion::new("", "v1"), "Event").unwrap().name, "io.k8s.api.core.v1.Event");
    let other = of_kind(&GroupVersion::new("events.k8s.io", "v1"), "Event").unwrap();
    assert_eq!(&*other.name, "io.k8s.api.events.v1.Event");
    assert!(of_kind(&GroupVersion::new("apps", "v1"), "Pod").is_none());
    assert!(by_name("io.k8s.api.core.v1.Nope").is_none());
    assert!(by_name("").is_none());
    assert_eq!(served_in("io.k8s.api.apps.v1.Deployment"), [GroupVersion::new("apps", "v1")]);
    assert!(kinds().any(|(gv, kind, _)| &*gv.group == "batch" && kind == "CronJob"));
}

#[test]
fn lists_have_their_merge_keys() {
    let containers = core("PodSpec").field("containers").unwrap();
    let Shape::List { items, list } = &containers.shape else { panic!("no list") };
    assert_eq!(*list, ListType::Map(vec!["name".into()]));
    assert_eq!(&*items.name, "io.k8s.api.core.v1.Container");
    assert!(containers.patch.merge);
    assert_eq!(containers.patch.merge_key.as_deref(), Some("name"));
    let volumes = core("PodSpec").field("volumes").unwrap();
    assert!(volumes.patch.merge && volumes.patch.retain_keys);
    let ports = core("Container").field("ports").unwrap();
    let Shape::List { list, .. } = &ports.shape else { panic!("no list") };
    assert_eq!(*list, ListType::Map(vec!["containerPort".into(), "protocol".into()]));
    let finalizers = by_name("io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta").unwrap().field("finalizers").unwrap();
    assert!(matches!(&finalizers.shape, Shape::List { list: ListType::Set, .. }));
}

#[test]
fn a_field_may_say_more_than_its_type() {
    let strategy = by_name("io.k8s.api.apps.v1.DeploymentSpec").unwrap().field("strategy").unwrap();
    assert!(strategy.patch.retain_keys);
    assert_eq!(&*strategy.name, "io.k8s.api.apps.v1.DeploymentStrategy");
    let claim = core("PersistentVolumeSpec").field("claimRef").unwrap();
    assert!(matches!(claim.shape, Shape::Object { map: MapType::Granular, .. }));
    assert!(matches!(core("ObjectReference").shape, Shape::Object { map: MapType::Atomic, .. }));
}

#[test]
fn types_may_contain_themselves() {
    let name = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaProps";
    let props = by_name(name).unwrap();
    let properties = props.field("properties").unwrap();
    assert!(std::ptr::eq(properties.field("a").unwrap(), props));
}

#[test]
fn scalars_are_told_apart() {
    let scalar = |name: &str, field: &str| match &core(name).field(field).unwrap().shape {
        Shape::Scalar(scalar) => *scalar,
        Shape::Map { values, .. } => match values.deref().shape {
            Shape::Scalar(scalar) => scalar,
            _ => panic!("no scalar"),
        },
        _ => panic!("no scalar"),
    };
    assert_eq!(scalar("Secret", "data"), Scalar::Bytes);
    assert_eq!(scalar("ResourceRequirements", "limits"), Scalar::Quantity);
    assert_eq!(scalar("ServicePort", "targetPort"), Scalar::IntOrString);
    assert_eq!(scalar("Event", "eventTime"), Scalar::MicroTime);
    assert_eq!(scalar("Event", "firstTimestamp"), Scalar::Time);
    assert_eq!(scalar("Event", "count"), Scalar::Int32);
    assert_eq!(scalar("PodSpec", "activeDeadlineSeconds"), Scalar::Int64);
}

#[test]
fn what_go_writes_when_empty_is_known() {
    let role = by_name("io.k8s.api.rbac.v1.Role").unwrap();
    assert_eq!(role.always, [("metadata".into(), json!({})), ("rules".into(), json!(null))]);
    assert!(core("PodSpec").field("hostNetwork").unwrap().omit_empty);
    assert!(!core("PodSpec").field("enableServiceLinks").unwrap().omit_empty);
    assert_eq!(core("ServicePort").field("protocol").unwrap().default, Some(json!("TCP")));
    assert_eq!(core("Container").field("name").unwrap().default, Some(json!("")));
    assert!(core("Event").always.contains(&("eventTime".into(), json!(null))));
}
