//! The definitions of the resources, for whoever installs them.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceDefinition, JSONSchemaProps, JSONSchemaPropsOrArray, JSONSchemaPropsOrBool,
};
use kube::CustomResourceExt as _;

use crate::v1alpha1::{LogPipeline, MetricPipeline, Telemetry, TracePipeline};

/// All definitions.
pub fn crds() -> Vec<CustomResourceDefinition> {
    let mut crds = vec![TracePipeline::crd(), LogPipeline::crd(), MetricPipeline::crd(), Telemetry::crd()];
    let schemas = crds.iter_mut().flat_map(|crd| &mut crd.spec.versions).filter_map(|version| version.schema.as_mut());
    schemas.filter_map(|schema| schema.open_api_v3_schema.as_mut()).for_each(without_null);
    crds
}

/// A field is there or not. If it could be `null`, too, every rule would have to ask whether it is.
fn without_null(schema: &mut JSONSchemaProps) {
    schema.nullable = None;
    schema.properties.iter_mut().flatten().for_each(|(_, property)| without_null(property));
    if let Some(JSONSchemaPropsOrArray::Schema(items)) = &mut schema.items {
        without_null(items);
    }
    if let Some(JSONSchemaPropsOrBool::Schema(others)) = &mut schema.additional_properties {
        without_null(others);
    }
}
