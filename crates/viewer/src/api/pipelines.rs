//! Pipelines of the cluster, with the figures of their collectors.

use axum::{extract, response::Response};
use http::StatusCode;
use serde::Serialize;

use super::json;
use crate::{cluster::PipelineView, serve::State};

#[derive(Serialize)]
struct Answer {
    available: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    pipelines: Vec<PipelineView>,
}

pub(crate) async fn pipelines(extract::State(state): extract::State<State>) -> Response {
    let found = match &state.cluster {
        Some(cluster) => cluster.pipelines().await,
        None => Err("the viewer was started without a cluster: --kubeconfig names one".to_owned()),
    };
    let answer = match found {
        Ok(pipelines) => Answer { available: true, reason: None, pipelines },
        Err(reason) => Answer { available: false, reason: Some(reason), pipelines: Vec::new() },
    };
    json(StatusCode::OK, &answer)
}
