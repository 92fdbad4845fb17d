//! The CustomResourceDefinitions of all resources.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceDefinition, JSONSchemaProps, JSONSchemaPropsOrArray, JSONSchemaPropsOrBool,
};
use kube::CustomResourceExt as _;

use crate::v1alpha1::{LogPipeline, MetricPipeline, Telemetry, TracePipeline};

/// Returns the definitions of all resources.
pub fn crds() -> Vec<CustomResourceDefinition> {
    let mut crds = vec![TracePipeline::crd(), LogPipeline::crd(), MetricPipeline::crd(), Telemetry::crd()];
    let schemas = crds.iter_mut().flat_map(|crd| &mut crd.spec.versions).filter_map(|version| version.schema.as_mut());
    schemas.filter_map(|schema| schema.open_api_v3_schema.as_mut()).for_each(tidy_schema);
    crds
}

/// Adapts a schema that was made from Rust types.
///
/// Fields are either present or absent: if they could also be `null`, every validation rule would have to check for
/// it. A paragraph of a description is one line, which `kubectl explain` wraps as wide as it likes.
fn tidy_schema(schema: &mut JSONSchemaProps) {
    schema.nullable = None;
    schema.description = schema.description.take().map(|text| unwrap_paragraphs(&text));
    schema.properties.iter_mut().flatten().for_each(|(_, property)| tidy_schema(property));
    if let Some(JSONSchemaPropsOrArray::Schema(items)) = &mut schema.items {
        tidy_schema(items);
    }
    if let Some(JSONSchemaPropsOrBool::Schema(others)) = &mut schema.additional_properties {
        tidy_schema(others);
    }
}

fn unwrap_paragraphs(text: &str) -> String {
    let paragraphs = text.split("\n\n").map(|paragraph| paragraph.split('\n').collect::<Vec<_>>().join(" "));
    paragraphs.collect::<Vec<_>>().join("\n\n")
}
