//! Who sent spans, and what the viewer says of itself.

use axum::{extract, response::Response};
use http::StatusCode;
use serde::Serialize;

use super::{StoreJson, aside, json};
use crate::{query, serve::State};

#[derive(Serialize)]
struct ServiceJson<'a> {
    name: &'a str,
    operations: Vec<&'a str>,
    spans: usize,
}

pub(crate) async fn services(extract::State(state): extract::State<State>) -> Response {
    aside(move || {
        let services = query::services(&state.store.snapshot());
        let services: Vec<_> = services
            .iter()
            .map(|(name, service)| ServiceJson {
                name,
                operations: service.operations.keys().map(String::as_str).collect(),
                spans: service.spans,
            })
            .collect();
        json(StatusCode::OK, &serde_json::json!({ "services": services }))
    })
    .await
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Info<'a> {
    version: &'a str,
    store: StoreJson,
    otlp: Otlp,
    cluster: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    data_dir: Option<String>,
}

#[derive(Serialize)]
struct Otlp {
    grpc: Option<String>,
    http: Option<String>,
}

pub(crate) async fn info(extract::State(state): extract::State<State>) -> Response {
    let text = |address: Option<std::net::SocketAddr>| address.map(|address| address.to_string());
    let addresses = state.addresses;
    let info = Info {
        version: env!("CARGO_PKG_VERSION"),
        store: state.store.figures().into(),
        otlp: Otlp { grpc: text(addresses.otlp_grpc), http: text(addresses.otlp_http) },
        cluster: state.cluster.is_some(),
        data_dir: state.data_dir.as_ref().map(|path| path.display().to_string()),
    };
    json(StatusCode::OK, &info)
}
