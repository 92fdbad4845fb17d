//! Single objects: creates them from files, reads them, and waits for them.

use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};
use bytes::Bytes;
use http::Method;
use http_body_util::{BodyExt, Full};
use serde_json::{Value, json};
use tokio::time::timeout;

use crate::connect::{ServerTarget, request_builder};

const DEPLOYMENTS: &str = "/apis/apps/v1/namespaces/default/deployments";

/// Creates the object in a file, which is JSON, or YAML by its name.
pub(crate) async fn create_from_file(target: &ServerTarget, path: &str, file: &str) -> anyhow::Result<Value> {
    let body = Bytes::from(std::fs::read(file)?);
    if file.ends_with(".yaml") {
        send_as(target, Method::POST, path, ("application/yaml", body)).await?
    } else {
        send(target, Method::POST, path, body).await?
    };
    Ok(json!({ "created": path }))
}

/// Reads one field of an object, by a JSON pointer.
pub(crate) async fn read_field(target: &ServerTarget, path: &str, pointer: &str) -> anyhow::Result<Value> {
    let object: Value = serde_json::from_slice(&send(target, Method::GET, path, Bytes::new()).await?)?;
    Ok(json!({ "value": object.pointer(pointer) }))
}

/// Creates a Deployment, and returns the time until all its replicas are ready: a watch reports it.
pub(crate) async fn deploy_and_wait(target: &ServerTarget, file: &str, patience: Duration) -> anyhow::Result<Value> {
    let text = std::fs::read(file)?;
    let wanted: Value = serde_json::from_slice(&text)?;
    let text_of = |pointer: &str| wanted.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned();
    let replicas = wanted.pointer("/spec/replicas").and_then(Value::as_u64).unwrap_or(1);
    let mut connection = target.connect().await?;
    let watch = format!("{DEPLOYMENTS}?watch=true&fieldSelector=metadata.name={}", text_of("/metadata/name"));
    let mut events = connection.send_request(request_builder(&watch).body(Full::default())?).await?.into_body();
    let start = Instant::now();
    send(target, Method::POST, DEPLOYMENTS, text.into()).await?;
    let ready = async {
        let mut rest = Vec::new();
        while let Some(frame) = events.frame().await {
            let Ok(data) = frame?.into_data() else { continue };
            rest.extend_from_slice(&data);
            while let Some(end) = memchr::memchr(b'\n', &rest) {
                let event: Value = serde_json::from_slice(&rest.drain(..=end).collect::<Vec<u8>>())?;
                if event.pointer("/object/status/readyReplicas").and_then(Value::as_u64) == Some(replicas) {
                    return Ok(start.elapsed());
                }
            }
        }
        bail!("the watch ended before the Deployment was ready")
    };
    let elapsed = timeout(patience, ready).await.context("the Deployment did not become ready")??;
    Ok(json!({ "ready_ms": elapsed.as_secs_f64() * 1000.0 }))
}

async fn send(target: &ServerTarget, method: Method, path: &str, body: Bytes) -> anyhow::Result<Bytes> {
    send_as(target, method, path, ("application/json", body)).await
}

async fn send_as(
    target: &ServerTarget,
    method: Method,
    path: &str,
    (media, body): (&str, Bytes),
) -> anyhow::Result<Bytes> {
    let mut connection = target.connect().await?;
    let request = request_builder(path).method(method).header(http::header::CONTENT_TYPE, media);
    let answer = connection.send_request(request.body(Full::new(body))?).await?;
    let status = answer.status();
    let body = answer.into_body().collect().await?.to_bytes();
    ensure!(status.is_success(), "request of {path} failed with status {status}: {body:?}");
    Ok(body)
}
