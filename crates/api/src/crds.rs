//! The definitions of the resources, for whoever installs them.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::CustomResourceExt as _;

use crate::v1alpha1::{LogPipeline, MetricPipeline, Telemetry, TracePipeline};

/// All definitions.
pub fn crds() -> Vec<CustomResourceDefinition> {
    vec![TracePipeline::crd(), LogPipeline::crd(), MetricPipeline::crd(), Telemetry::crd()]
}
