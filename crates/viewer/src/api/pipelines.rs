//! Pipelines of the cluster, with the counters of their collectors.

use axum::{extract, response::Response};
use http::StatusCode;
use serde::Serialize;

use super::json_response;
use crate::{cluster::PipelineView, serve::ViewerState};

#[derive(Serialize)]
struct PipelinesJson {
    available: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    pipelines: Vec<PipelineView>,
}

pub(crate) async fn pipelines(extract::State(state): extract::State<ViewerState>) -> Response {
    let found = match &state.cluster {
        Some(cluster) => cluster.pipelines().await,
        None => Err("the viewer was started without a cluster: set --kubeconfig".to_owned()),
    };
    let answer = match found {
        Ok(pipelines) => PipelinesJson { available: true, reason: None, pipelines },
        Err(reason) => PipelinesJson { available: false, reason: Some(reason), pipelines: Vec::new() },
    };
    json_response(StatusCode::OK, &answer)
}
