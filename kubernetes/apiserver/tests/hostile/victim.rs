//! The server under attack.

use std::{future::Future, time::Duration};

use http::StatusCode;
use kubewake_apiserver::server::{ApiServer, Options};
use serde_json::{Value, json};

use crate::raw::Http2;

pub const JSON: &str = "application/json";
pub const YAML: &str = "application/yaml";
pub const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";
pub const MAPS: &str = "/api/v1/namespaces/default/configmaps";

/// Longer than any response takes on the slowest machine.
const PATIENCE: Duration = Duration::from_secs(120);

pub struct Victim {
    pub server: ApiServer,
    pub client: Http2,
}

#[derive(Debug)]
pub struct Answer {
    pub code: u16,
    pub body: Value,
}

impl Victim {
    pub async fn new() -> Self {
        let server = ApiServer::start(Options::default()).await.unwrap();
        let client = Http2::new(&server).await;
        let victim = Self { server, client };
        let object = json!({ "metadata": { "name": "precious" }, "data": { "key": "value" } });
        assert_eq!(victim.call("POST", MAPS, JSON, object.to_string()).await.code, 201);
        victim
    }

    /// A response, which must be JSON.
    pub async fn call(&self, method: &str, path: &str, content_type: &str, body: impl Into<bytes::Bytes>) -> Answer {
        let (code, bytes) = soon(self.client.call(method, path, content_type, body)).await;
        let body = serde_json::from_slice(&bytes).unwrap_or_else(|_| String::from_utf8_lossy(&bytes).into());
        Answer { code: code.as_u16(), body }
    }

    /// A response that must be an error in the form of a `Status`.
    pub async fn refuses(&self, method: &str, path: &str, content_type: &str, body: impl Into<bytes::Bytes>) -> Answer {
        let answer = self.call(method, path, content_type, body).await;
        assert!((400..500).contains(&answer.code), "{method} {path}: {answer:?}");
        assert_eq!(answer.body["kind"], "Status", "{method} {path}: {answer:?}");
        assert_eq!(answer.body["code"], answer.code, "{method} {path}: {answer:?}");
        answer
    }

    /// Checks that a new client is served, and that nothing is lost.
    pub async fn ends_well(self) {
        let client = soon(Http2::new(&self.server)).await;
        let (code, bytes) = soon(client.call("GET", &format!("{MAPS}/precious"), "", "")).await;
        assert_eq!(code, StatusCode::OK);
        assert_eq!(serde_json::from_slice::<Value>(&bytes).unwrap()["data"]["key"], "value");
        let (code, _) = soon(client.call("DELETE", &format!("{MAPS}/precious"), "", "")).await;
        assert_eq!(code, StatusCode::OK);
        soon(self.server.stop()).await;
    }
}

pub async fn soon<F: Future>(future: F) -> F::Output {
    tokio::time::timeout(PATIENCE, future).await.expect("the server hangs")
}
