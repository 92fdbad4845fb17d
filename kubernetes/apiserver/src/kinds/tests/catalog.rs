//! The table of resources, as in discovery.

use super::{CATALOG, resource};
use crate::api::GroupVersion;

#[test]
fn hashes_of_stored_versions_are_kube_apiservers() {
    assert_eq!(&*resource("v1", "ConfigMap").storage_version_hash, "qFsyl6wFWjQ=");
    assert_eq!(&*resource("apps/v1", "Deployment").storage_version_hash, "8aSe+NMegvE=");
    assert_eq!(&*resource("events.k8s.io/v1", "Event").storage_version_hash, "r2yiGXH7wu8=", "stored as v1");
    assert_eq!(&*resource("autoscaling/v1", "HorizontalPodAutoscaler").storage_version_hash, "qwQve8ut294=");
    assert_eq!(&*resource("v1", "Binding").storage_version_hash, "", "nothing is stored");
}

#[test]
fn two_shapes_of_an_event_are_one_collection_with_one_name() {
    let core = resource("v1", "Event");
    let other = resource("events.k8s.io/v1", "Event");
    assert_eq!(core.group_resource(), other.group_resource());
    assert_eq!(other.group_kind().to_string(), "Event");
}

#[test]
fn names_verbs_and_subresources_are_those_of_discovery() {
    let deployments = resource("apps/v1", "Deployment");
    assert_eq!((&*deployments.plural, &*deployments.singular), ("deployments", "deployment"));
    assert_eq!(deployments.short_names, ["deploy".into()]);
    assert_eq!(deployments.categories, ["all".into()]);
    let scale = deployments.subresource("scale").unwrap();
    assert_eq!((&*scale.kind, scale.gv.clone()), ("Scale", GroupVersion::parse("autoscaling/v1")));
    assert!(deployments.has_status());
    let pods = resource("v1", "Pod");
    let parts: Vec<&str> = pods.subresources.iter().map(|part| &*part.name).collect();
    let known =
        ["attach", "binding", "ephemeralcontainers", "eviction", "exec", "log", "portforward", "proxy", "resize"];
    assert_eq!(parts.split_last(), Some((&"status", &known[..])));
    assert!(!resource("v1", "Namespace").verbs.contains(&"deletecollection"));
    assert_eq!(resource("authorization.k8s.io/v1", "SubjectAccessReview").verbs, ["create"]);
}

#[test]
fn every_kept_kind_has_a_schema() {
    let without: Vec<&str> = CATALOG
        .all()
        .filter(|resource| resource.verbs.contains(&"watch") && resource.schema.name.is_empty())
        .map(|resource| &*resource.kind)
        .collect();
    assert!(without.is_empty(), "{without:?}");
}

/// No rule panics on any object.
#[test]
fn no_rule_minds_values_of_wrong_types() {
    use serde_json::json;
    let odd = [json!(null), json!(1), json!("x"), json!([]), json!([[1], null, {}]), json!({"a": [1]}), json!(true)];
    for resource in CATALOG.all() {
        for (one, two) in odd.iter().zip(odd.iter().cycle().skip(1)) {
            for field in ["metadata", "spec", "status", "data", "webhooks", "rules", "subjects", "roleRef", "subsets"] {
                let whole = json!({ field: one });
                let nested = json!({"metadata": two, field: {"template": one, "containers": two, "ports": [one], "selector": two}});
                for mut object in [one.clone(), whole, nested] {
                    let old = object.clone();
                    let strategy = &resource.strategy;
                    strategy.convert_to_stored(&mut object);
                    strategy.default(&mut object);
                    strategy.prepare_create(&mut object);
                    strategy.prepare_update(&mut object, &old, "status");
                    strategy.prepare_update(&mut object, &old, "");
                    let mut errors = Vec::new();
                    strategy.validate_create(&object, &mut errors);
                    strategy.validate_update(&object, &old, "", &mut errors);
                    strategy.validate_update(&object, &old, "status", &mut errors);
                    strategy.grace_period(&object, None);
                    strategy.convert_to_served(&mut object);
                    super::super::table::cells(resource, &object, jiff::Timestamp::UNIX_EPOCH);
                }
            }
        }
    }
}
