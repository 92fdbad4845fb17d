//! The services that sent spans, and the viewer's own figures.

use axum::{extract, response::Response};
use http::StatusCode;
use serde::Serialize;

use super::{StoreJson, json_response, run_blocking};
use crate::{query, serve::ViewerState};

#[derive(Serialize)]
struct ServiceJson<'a> {
    name: &'a str,
    operations: Vec<&'a str>,
    spans: usize,
}

pub(crate) async fn services(extract::State(state): extract::State<ViewerState>) -> Response {
    run_blocking(move || {
        let services = query::list_services(&state.store.snapshot());
        let services: Vec<_> = services
            .iter()
            .map(|(name, service)| ServiceJson {
                name,
                operations: service.operations.keys().map(String::as_str).collect(),
                spans: service.spans,
            })
            .collect();
        json_response(StatusCode::OK, &serde_json::json!({ "services": services }))
    })
    .await
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct InfoJson<'a> {
    version: &'a str,
    store: StoreJson,
    otlp: OtlpAddressesJson,
    cluster: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    data_dir: Option<String>,
}

#[derive(Serialize)]
struct OtlpAddressesJson {
    grpc: Option<String>,
    http: Option<String>,
}

pub(crate) async fn info(extract::State(state): extract::State<ViewerState>) -> Response {
    let text = |address: Option<std::net::SocketAddr>| address.map(|address| address.to_string());
    let addresses = state.addresses;
    let info = InfoJson {
        version: env!("CARGO_PKG_VERSION"),
        store: state.store.figures().into(),
        otlp: OtlpAddressesJson { grpc: text(addresses.otlp_grpc), http: text(addresses.otlp_http) },
        cluster: state.cluster.is_some(),
        data_dir: state.data_dir.as_ref().map(|path| path.display().to_string()),
    };
    json_response(StatusCode::OK, &info)
}
