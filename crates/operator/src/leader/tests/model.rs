//! An API server as far as a Lease is concerned, and ways to it on which things go wrong.

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

/// What there is. A clone is the same one.
#[derive(Clone, Default)]
pub(super) struct Model(Arc<Mutex<Stored>>);

#[derive(Default)]
struct Stored {
    lease: Option<Lease>,
    revision: u64,
    lacks_namespace: bool,
    /// What was done to the Lease, and how it ended.
    log: Vec<(Method, u16)>,
}

/// What happens to requests on their way.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Way {
    /// How long they travel. Who does not wait for the answer does not keep them from arriving.
    pub(super) there: Duration,
    /// How long answers travel.
    pub(super) back: Duration,
    /// No answer ever arrives.
    pub(super) is_cut: bool,
    /// What the API server answers to everything.
    pub(super) refuses: Option<u16>,
}

/// The way that somebody takes. A clone is the same one.
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
    /// A cluster without the namespace.
    pub(super) fn without_namespace() -> Self {
        let model = Self::default();
        model.0.lock().unwrap().lacks_namespace = true;
        model
    }

    /// Somebody who gets there on this way.
    pub(super) fn client(&self, line: &Line) -> Client {
        let (model, line) = (self.clone(), line.clone());
        let send = move |request: Request<Body>| {
            let (model, way) = (model.clone(), line.way());
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

    /// The Lease as it is.
    pub(super) fn lease(&self) -> Option<Lease> {
        self.0.lock().unwrap().lease.clone()
    }

    pub(super) fn holder(&self) -> Option<String> {
        self.lease()?.spec?.holder_identity
    }

    /// Somebody else writes or deletes it.
    pub(super) fn write(&self, change: impl FnOnce(&mut Option<Lease>)) {
        let mut stored = self.0.lock().unwrap();
        change(&mut stored.lease);
        stored.seal();
    }

    /// What was done so far to the Lease.
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
