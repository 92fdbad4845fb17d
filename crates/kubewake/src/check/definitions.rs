//! Checks of the CRDs: that they are installed, and match this version.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::{Api, ResourceExt as _};
use kubewake_trail::error_chain;
use serde_json::Value;

use super::{
    CheckContext, codes,
    report::{CheckLine, CheckSection},
};

pub(super) const INSTALL_COMMAND: &str =
    "kubewake operator manifests | kubectl apply --server-side --force-conflicts -f -";
/// Differences that a line lists.
const MAX_NAMED_DIFFERENCES: usize = 3;
/// A schema has some ten levels at most.
const MAX_SCHEMA_DEPTH: usize = 64;

type DefinitionPairs = Vec<(CustomResourceDefinition, Option<CustomResourceDefinition>)>;

pub(super) async fn check(scene: &CheckContext<'_>) -> CheckSection {
    let lines = match fetch_definitions(scene).await {
        Ok(found) => vec![check_installed(&found), check_matching(&found)].into_iter().flatten().collect(),
        Err(error) => {
            let mend = "kubectl auth can-i get customresourcedefinitions.apiextensions.k8s.io";
            vec![CheckLine::warned(codes::KW201, format!("failed to get the CRDs: {}", error_chain(&error)), mend)]
        }
    };
    CheckSection { name: "Kinds", lines }
}

/// Checks before an installation that existing CRDs do not conflict with it.
pub(super) async fn check_before_install(scene: &CheckContext<'_>) -> CheckSection {
    let lines = match fetch_definitions(scene).await {
        Ok(found) if found.iter().all(|(_, there)| there.is_none()) => {
            vec![CheckLine::passed(codes::KW202, "no CRD of Kubewake is installed yet")]
        }
        Ok(found) => check_matching(&found).into_iter().collect(),
        Err(_) => Vec::new(),
    };
    CheckSection { name: "Kinds", lines }
}

/// The CRDs of this program, each with the cluster's.
async fn fetch_definitions(scene: &CheckContext<'_>) -> Result<DefinitionPairs, kube::Error> {
    let api: Api<CustomResourceDefinition> = Api::all(scene.cluster.client.clone());
    let mut found = Vec::new();
    for ours in kubewake_api::crds() {
        let there = api.get_opt(&ours.name_any()).await?;
        found.push((ours, there));
    }
    Ok(found)
}

fn check_installed(found: &DefinitionPairs) -> Option<CheckLine> {
    let is_served = |crd: &CustomResourceDefinition| {
        let conditions = crd.status.as_ref().and_then(|status| status.conditions.as_ref());
        conditions.into_iter().flatten().any(|it| it.type_ == "Established" && it.status == "True")
    };
    let missing: Vec<String> = found
        .iter()
        .filter(|(_, there)| !there.as_ref().is_some_and(is_served))
        .map(|(ours, _)| ours.name_any())
        .collect();
    Some(if missing.is_empty() {
        CheckLine::passed(codes::KW201, "")
    } else {
        CheckLine::failed(codes::KW201, format!("missing or not established: {}", missing.join(", ")), INSTALL_COMMAND)
    })
}

/// None if there is no CRD to compare.
fn check_matching(found: &DefinitionPairs) -> Option<CheckLine> {
    let pairs: Vec<_> = found.iter().filter_map(|(ours, there)| Some((ours, there.as_ref()?))).collect();
    if pairs.is_empty() {
        return None;
    }
    let mut differences = Vec::new();
    for (ours, there) in pairs {
        let ours_json = served_schema(ours);
        let there_json = served_schema(there);
        let name = ours.spec.names.kind.clone();
        collect_differences(&ours_json, &there_json, &name, &mut differences, MAX_SCHEMA_DEPTH);
    }
    Some(match differences.len() {
        0 => CheckLine::passed(codes::KW202, env!("CARGO_PKG_VERSION")),
        more => {
            let named: Vec<String> = differences.into_iter().take(MAX_NAMED_DIFFERENCES).collect();
            let rest = more.saturating_sub(named.len());
            let rest = if rest > 0 { format!(", and {rest} more") } else { String::new() };
            CheckLine::warned(
                codes::KW202,
                format!("the installed CRDs differ in {}{rest}", named.join(", ")),
                INSTALL_COMMAND,
            )
        }
    })
}

/// The schema of the version that this program uses.
fn served_schema(crd: &CustomResourceDefinition) -> Value {
    let version = crd.spec.versions.iter().find(|version| version.name == "v1alpha1");
    let schema =
        version.and_then(|version| version.schema.as_ref()).and_then(|schema| schema.open_api_v3_schema.as_ref());
    serde_json::to_value(schema).unwrap_or_default()
}

/// Fields that only one of the schemas has, and fields that differ. Descriptions are ignored.
fn collect_differences(ours: &Value, there: &Value, path: &str, differences: &mut Vec<String>, depth: usize) {
    let empty = serde_json::Map::new();
    let properties = |schema: &Value| schema.get("properties").and_then(Value::as_object).unwrap_or(&empty).clone();
    let own = properties(ours);
    let other = properties(there);
    for name in own.keys().chain(other.keys().filter(|name| !own.contains_key(*name))) {
        let path = format!("{path}.{name}");
        match (own.get(name), other.get(name)) {
            (Some(own), Some(other)) if depth > 0 => collect_differences(own, other, &path, differences, depth - 1),
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
        collect_differences(own, other, &format!("{path}[]"), differences, depth - 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_another_version_says_is_found_wherever_it_is() {
        let ours = served_schema(kubewake_api::crds().first().unwrap());
        let differ = |there: &Value| {
            let mut differences = Vec::new();
            collect_differences(&ours, there, "TracePipeline", &mut differences, MAX_SCHEMA_DEPTH);
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
