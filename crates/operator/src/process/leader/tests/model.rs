//! A model of an API server for one Lease, with connections that delay or refuse requests.

use std::{
    convert::Infallible,
    sync::{Arc, Mutex},
    time::Duration,
};

use http::{Method, Request, Response};
use k8s_openapi::api::coordination::v1::Lease;
use kube::{
    Client,
    client::Body,
    core::{ObjectMeta, Status},
};
use serde::Serialize;
use tokio::time::sleep;

/// The stored objects. A clone shares them.
#[derive(Clone, Default)]
pub(super) struct Model(Arc<Mutex<Stored>>);

#[derive(Default)]
struct Stored {
    lease: Option<Lease>,
    revision: u64,
    lacks_namespace: bool,
    /// The requests about the Lease, and their status codes.
    log: Vec<(Method, u16)>,
}

/// How a connection treats requests.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Way {
    /// The delay of requests. A request arrives even if its sender no longer waits for the response.
    pub(super) there: Duration,
    pub(super) back: Duration,
    pub(super) is_cut: bool,
    /// The code with which every request is refused.
    pub(super) refuses: Option<u16>,
}

/// A connection whose behavior can change. A clone is the same connection.
#[derive(Clone, Default)]
pub(super) struct Line(Arc<Mutex<Way>>);

impl Line {
    pub(super) fn is(&self, way: Way) {
        *self.0.lock().unwrap() = way;
    }

    pub(super) fn way(&self) -> Way {
        *self.0.lock().unwrap()
    }
}

impl Model {
    pub(super) fn without_namespace() -> Self {
        let model = Self::default();
        model.0.lock().unwrap().lacks_namespace = true;
        model
    }

    /// A client that uses this connection.
    pub(super) fn client(&self, line: &Line) -> Client {
        let model = self.clone();
        let line = line.clone();
        let send = move |request: Request<Body>| {
            let model = model.clone();
            let way = line.way();
            async move {
                let arrives = tokio::spawn(async move {
                    sleep(way.there).await;
                    match way.refuses {
                        Some(code) => failure(code),
                        None => model.answer(request).await,
                    }
                });
                let response = arrives.await.unwrap();
                sleep(way.back).await;
                if way.is_cut {
                    std::future::pending::<()>().await;
                }
                Ok::<_, Infallible>(response)
            }
        };
        Client::new(tower::service_fn(send), "default")
    }

    pub(super) fn lease(&self) -> Option<Lease> {
        self.0.lock().unwrap().lease.clone()
    }

    pub(super) fn holder(&self) -> Option<String> {
        self.lease()?.spec?.holder_identity
    }

    /// Changes or deletes the Lease as another process would.
    pub(super) fn write(&self, change: impl FnOnce(&mut Option<Lease>)) {
        let mut stored = self.0.lock().unwrap();
        change(&mut stored.lease);
        stored.seal();
    }

    /// The requests about the Lease so far.
    pub(super) fn log(&self) -> Vec<(Method, u16)> {
        self.0.lock().unwrap().log.clone()
    }

    async fn answer(&self, request: Request<Body>) -> Response<Body> {
        let (parts, body) = request.into_parts();
        let body = body.collect_bytes().await.unwrap();
        let mut stored = self.0.lock().unwrap();
        if !parts.uri.path().contains("/leases") {
            stored.lacks_namespace = false;
            return success(&k8s_openapi::api::core::v1::Namespace::default());
        }
        let sent = serde_json::from_slice::<Lease>(&body).ok();
        let code = stored.judge(&parts.method, sent.as_ref());
        stored.log.push((parts.method.clone(), code));
        if code != 200 {
            return failure(code);
        }
        if sent.is_some() {
            stored.lease = sent;
            stored.seal();
        }
        success(stored.lease.as_ref().unwrap())
    }
}

impl Stored {
    fn judge(&self, method: &Method, sent: Option<&Lease>) -> u16 {
        let revision = |lease: &Lease| lease.metadata.resource_version.clone();
        match (method, &self.lease, sent) {
            (&Method::GET, Some(_), None) => 200,
            (&Method::GET, None, None) => 404,
            (&Method::POST, _, Some(_)) if self.lacks_namespace => 404,
            (&Method::POST, old, Some(_)) => old.as_ref().map_or(200, |_| 409),
            (&Method::PUT, None, Some(_)) => 404,
            (&Method::PUT, Some(old), Some(new)) if revision(old) == revision(new) => 200,
            (&Method::PUT, Some(_), Some(_)) => 409,
            other => panic!("nobody may do this: {other:?}"),
        }
    }

    fn seal(&mut self) {
        self.revision += 1;
        if let Some(lease) = &mut self.lease {
            let metadata = std::mem::take(&mut lease.metadata);
            lease.metadata = ObjectMeta { resource_version: Some(self.revision.to_string()), ..metadata };
        }
    }
}

fn success(object: &impl Serialize) -> Response<Body> {
    Response::new(Body::from(serde_json::to_vec(object).unwrap()))
}

fn failure(code: u16) -> Response<Body> {
    let reason = if code == 404 { "NotFound" } else { "Test" };
    let status = Status::failure("as the test wants it", reason).with_code(code);
    let body = Body::from(serde_json::to_vec(&status).unwrap());
    Response::builder().status(code).body(body).unwrap()
}
