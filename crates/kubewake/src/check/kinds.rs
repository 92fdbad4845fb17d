//! Whether the kinds are there, and as this version has them.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::{Api, ResourceExt as _};
use kubewake_trail::in_words;
use serde_json::Value;

use super::{
    Scene, code,
    line::{Line, Section},
};

const INSTALL: &str = "kubewake operator manifests | kubectl apply --server-side --force-conflicts -f -";
/// So many differences are named.
const NAMED: usize = 3;
/// A schema has at most some ten levels.
const DEEPEST: usize = 64;

type Found = Vec<(CustomResourceDefinition, Option<CustomResourceDefinition>)>;

pub(super) async fn look(scene: &Scene<'_>) -> Section {
    let lines = match find(scene).await {
        Ok(found) => vec![are_there(&found), are_alike(&found)].into_iter().flatten().collect(),
        Err(error) => {
            let mend = "kubectl auth can-i get customresourcedefinitions.apiextensions.k8s.io";
            vec![Line::warned(code::KW201, format!("they cannot be seen: {}", in_words(&error)), mend)]
        }
    };
    Section { name: "Kinds", lines }
}

/// Before an install: what is there already must not be in its way.
pub(super) async fn before(scene: &Scene<'_>) -> Section {
    let lines = match find(scene).await {
        Ok(found) if found.iter().all(|(_, there)| there.is_none()) => {
            vec![Line::passed(code::KW202, "none is there yet")]
        }
        Ok(found) => are_alike(&found).into_iter().collect(),
        Err(_) => Vec::new(),
    };
    Section { name: "Kinds", lines }
}

/// Ours, each with the one of the cluster.
async fn find(scene: &Scene<'_>) -> Result<Found, kube::Error> {
    let api: Api<CustomResourceDefinition> = Api::all(scene.cluster.client.clone());
    let mut found = Vec::new();
    for ours in kubewake_api::crds() {
        let there = api.get_opt(&ours.name_any()).await?;
        found.push((ours, there));
    }
    Ok(found)
}

fn are_there(found: &Found) -> Option<Line> {
    let is_served = |crd: &CustomResourceDefinition| {
        let conditions = crd.status.as_ref().and_then(|status| status.conditions.as_ref());
        conditions.into_iter().flatten().any(|it| it.type_ == "Established" && it.status == "True")
    };
    let missing: Vec<String> = found
        .iter()
        .filter(|(_, there)| !there.as_ref().is_some_and(is_served))
        .map(|(ours, _)| ours.name_any())
        .collect();
    Some(match missing.is_empty() {
        true => Line::passed(code::KW201, ""),
        false => Line::failed(code::KW201, format!("not {}", missing.join(", ")), INSTALL),
    })
}

/// None if there is none to compare.
fn are_alike(found: &Found) -> Option<Line> {
    let pairs: Vec<_> = found.iter().filter_map(|(ours, there)| Some((ours, there.as_ref()?))).collect();
    if pairs.is_empty() {
        return None;
    }
    let mut differences = Vec::new();
    for (ours, there) in pairs {
        let (ours_json, there_json) = (schema(ours), schema(there));
        let name = ours.spec.names.kind.clone();
        compare(&ours_json, &there_json, &name, &mut differences, DEEPEST);
    }
    Some(match differences.len() {
        0 => Line::passed(code::KW202, env!("CARGO_PKG_VERSION")),
        more => {
            let named: Vec<String> = differences.into_iter().take(NAMED).collect();
            let rest = more.saturating_sub(named.len());
            let rest = if rest > 0 { format!(", and {rest} more") } else { String::new() };
            Line::warned(code::KW202, format!("they differ in {}{rest}", named.join(", ")), INSTALL)
        }
    })
}

/// What objects look like, in the version that this program knows.
fn schema(crd: &CustomResourceDefinition) -> Value {
    let version = crd.spec.versions.iter().find(|version| version.name == "v1alpha1");
    let schema =
        version.and_then(|version| version.schema.as_ref()).and_then(|schema| schema.open_api_v3_schema.as_ref());
    serde_json::to_value(schema).unwrap_or_default()
}

/// Fields that one has and the other has not, and those of which something else is said. Descriptions do not count.
fn compare(ours: &Value, there: &Value, path: &str, differences: &mut Vec<String>, depth: usize) {
    let empty = serde_json::Map::new();
    let properties = |schema: &Value| schema.get("properties").and_then(Value::as_object).unwrap_or(&empty).clone();
    let (own, other) = (properties(ours), properties(there));
    for name in own.keys().chain(other.keys().filter(|name| !own.contains_key(*name))) {
        let path = format!("{path}.{name}");
        match (own.get(name), other.get(name)) {
            (Some(own), Some(other)) if depth > 0 => compare(own, other, &path, differences, depth - 1),
            (Some(_), Some(_)) => {}
            _ => differences.push(path),
        }
    }
    for key in ["type", "enum", "pattern", "maxLength", "maxItems", "required", "x-kubernetes-validations"] {
        if ours.get(key) != there.get(key) {
            differences.push(path.to_owned());
            break;
        }
    }
    if let (Some(own), Some(other)) = (ours.get("items"), there.get("items"))
        && depth > 0
    {
        compare(own, other, &format!("{path}[]"), differences, depth - 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_another_version_says_is_found_wherever_it_is() {
        let ours = schema(kubewake_api::crds().first().unwrap());
        let differ = |there: &Value| {
            let mut differences = Vec::new();
            compare(&ours, there, "TracePipeline", &mut differences, DEEPEST);
            differences
        };
        assert_eq!(differ(&ours), [""; 0]);
        let mut there = ours.clone();
        there["properties"]["spec"]["properties"].as_object_mut().unwrap().remove("paused");
        there["properties"]["spec"]["properties"]["filter"]["items"]["properties"]["later"] =
            serde_json::json!({"type": "string"});
        there["properties"]["spec"]["description"] = "in other words".into();
        assert_eq!(differ(&there), ["TracePipeline.spec.filter[].later", "TracePipeline.spec.paused"]);
        assert!(!differ(&Value::Null).is_empty());
    }
}
