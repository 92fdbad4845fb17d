//! A server, and requests to it.

use http_body_util::BodyExt;
use kubewake_apiserver::server::{ApiServer, Options};
use serde_json::Value;

use crate::raw::{Http2, request};

pub const MAPS: &str = "/api/v1/namespaces/default/configmaps";
pub const APPLY: &str = "application/apply-patch+yaml";
pub const MERGE: &str = "application/merge-patch+json";

pub struct Stage {
    _server: ApiServer,
    client: Http2,
}

#[derive(Debug)]
pub struct Answer {
    pub code: u16,
    pub body: Value,
    pub text: String,
    pub warnings: Vec<String>,
}

impl Answer {
    pub fn message(&self) -> (u16, &str) {
        (self.code, self.body["message"].as_str().unwrap_or_default())
    }
}

impl Stage {
    pub async fn new() -> Self {
        let server = ApiServer::start(Options::default()).await.unwrap();
        let client = Http2::new(&server).await;
        Self { _server: server, client }
    }

    /// A request with a JSON body, or a patch.
    pub async fn send(&self, method: &str, path: &str, content_type: &str, body: impl ToString) -> Answer {
        self.ask(method, path, content_type, "", body).await
    }

    /// The same with an `Accept` header.
    pub async fn ask(&self, method: &str, path: &str, media: &str, accept: &str, body: impl ToString) -> Answer {
        let mut request = request(method, path, media, body.to_string());
        if !accept.is_empty() {
            request.headers_mut().insert("accept", accept.parse().unwrap());
        }
        let answer = self.client.send(request).await.unwrap();
        let code = answer.status().as_u16();
        let warnings = answer.headers().get_all("warning").iter();
        let warnings = warnings.map(|warning| warning.to_str().unwrap().to_owned()).collect();
        let bytes = answer.into_body().collect().await.unwrap().to_bytes();
        let text = String::from_utf8_lossy(&bytes).into_owned();
        Answer { code, body: serde_json::from_slice(&bytes).unwrap_or_default(), text, warnings }
    }

    pub async fn get(&self, path: &str) -> Answer {
        self.send("GET", path, "", "").await
    }

    pub async fn post(&self, path: &str, body: Value) -> Answer {
        self.send("POST", path, "application/json", body).await
    }

    pub async fn put(&self, path: &str, body: Value) -> Answer {
        self.send("PUT", path, "application/json", body).await
    }
}
