use std::ops::Deref;

use serde_json::json;

use super::*;
use crate::schema::{ListType, MapType, ScalarType, SchemaShape};

fn core(name: &str) -> &'static Schema {
    schema_by_name(&format!("io.k8s.api.core.v1.{name}")).unwrap()
}

fn fields(schema: &Schema) -> Vec<(&str, &SchemaNode)> {
    match &schema.shape {
        SchemaShape::Object { fields, .. } => fields.iter().map(|(name, node)| (&**name, node)).collect(),
        _ => Vec::new(),
    }
}

#[test]
fn every_type_of_the_table_can_be_built_and_refers_to_types_that_are_there() {
    for (schema, name) in types().zip(names()) {
        assert_eq!(*schema.name, *name);
        for (field, node) in fields(schema) {
            // An unknown name would have become an anonymous tree that accepts anything.
            let anonymous = node.name.is_empty() && node.shape == SchemaShape::Any;
            assert!(!anonymous, "{name}.{field} refers to nothing");
        }
    }
    assert!(types().count() > 500);
}

#[test]
fn a_kind_is_found_by_group_version_and_kind() {
    let deployment = schema_for_kind(&GroupVersion::new("apps", "v1"), "Deployment").unwrap();
    assert_eq!(&*deployment.name, "io.k8s.api.apps.v1.Deployment");
    assert_eq!(&*schema_for_kind(&GroupVersion::new("", "v1"), "Event").unwrap().name, "io.k8s.api.core.v1.Event");
    let other = schema_for_kind(&GroupVersion::new("events.k8s.io", "v1"), "Event").unwrap();
    assert_eq!(&*other.name, "io.k8s.api.events.v1.Event");
    assert!(schema_for_kind(&GroupVersion::new("apps", "v1"), "Pod").is_none());
    assert!(schema_by_name("io.k8s.api.core.v1.Nope").is_none());
    assert!(schema_by_name("").is_none());
    assert_eq!(served_in("io.k8s.api.apps.v1.Deployment"), [GroupVersion::new("apps", "v1")]);
    assert!(kinds().any(|(gv, kind, _)| &*gv.group == "batch" && kind == "CronJob"));
}

#[test]
fn lists_have_their_merge_keys() {
    let containers = core("PodSpec").field("containers").unwrap();
    let SchemaShape::List { items, list } = &containers.shape else { panic!("no list") };
    assert_eq!(*list, ListType::Map(vec!["name".into()]));
    assert_eq!(&*items.name, "io.k8s.api.core.v1.Container");
    assert!(containers.patch.merge);
    assert_eq!(containers.patch.merge_key.as_deref(), Some("name"));
    let volumes = core("PodSpec").field("volumes").unwrap();
    assert!(volumes.patch.merge && volumes.patch.retain_keys);
    let ports = core("Container").field("ports").unwrap();
    let SchemaShape::List { list, .. } = &ports.shape else { panic!("no list") };
    assert_eq!(*list, ListType::Map(vec!["containerPort".into(), "protocol".into()]));
    let finalizers =
        schema_by_name("io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta").unwrap().field("finalizers").unwrap();
    assert!(matches!(&finalizers.shape, SchemaShape::List { list: ListType::Set, .. }));
}

#[test]
fn a_field_may_say_more_than_its_type() {
    let strategy = schema_by_name("io.k8s.api.apps.v1.DeploymentSpec").unwrap().field("strategy").unwrap();
    assert!(strategy.patch.retain_keys);
    assert_eq!(&*strategy.name, "io.k8s.api.apps.v1.DeploymentStrategy");
    let claim = core("PersistentVolumeSpec").field("claimRef").unwrap();
    assert!(matches!(claim.shape, SchemaShape::Object { map: MapType::Granular, .. }));
    assert!(matches!(core("ObjectReference").shape, SchemaShape::Object { map: MapType::Atomic, .. }));
}

#[test]
fn types_may_contain_themselves() {
    let name = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaProps";
    let props = schema_by_name(name).unwrap();
    let properties = props.field("properties").unwrap();
    assert!(std::ptr::eq(properties.field("a").unwrap(), props));
}

#[test]
fn scalars_are_told_apart() {
    let scalar = |name: &str, field: &str| match &core(name).field(field).unwrap().shape {
        SchemaShape::Scalar(scalar) => *scalar,
        SchemaShape::Map { values, .. } => match values.deref().shape {
            SchemaShape::Scalar(scalar) => scalar,
            _ => panic!("no scalar"),
        },
        _ => panic!("no scalar"),
    };
    assert_eq!(scalar("Secret", "data"), ScalarType::Bytes);
    assert_eq!(scalar("ResourceRequirements", "limits"), ScalarType::Quantity);
    assert_eq!(scalar("ServicePort", "targetPort"), ScalarType::IntOrString);
    assert_eq!(scalar("Event", "eventTime"), ScalarType::MicroTime);
    assert_eq!(scalar("Event", "firstTimestamp"), ScalarType::Time);
    assert_eq!(scalar("Event", "count"), ScalarType::Int32);
    assert_eq!(scalar("PodSpec", "activeDeadlineSeconds"), ScalarType::Int64);
}

#[test]
fn what_go_writes_when_empty_is_known() {
    let role = schema_by_name("io.k8s.api.rbac.v1.Role").unwrap();
    assert_eq!(role.always, [("metadata".into(), json!({})), ("rules".into(), json!(null))]);
    assert!(core("PodSpec").field("hostNetwork").unwrap().omit_empty);
    assert!(!core("PodSpec").field("enableServiceLinks").unwrap().omit_empty);
    assert_eq!(core("ServicePort").field("protocol").unwrap().default, Some(json!("TCP")));
    assert_eq!(core("Container").field("name").unwrap().default, Some(json!("")));
    assert!(core("Event").always.contains(&("eventTime".into(), json!(null))));
}
