//! OTLP over HTTP, by hyper.
//!
//! The SDK exports from a thread of its own, which is not one of tokio's; requests are made by the exporters' runtime. An answer is read up to a limit, since nobody
//! but a wrong address sends more.

use std::{fmt, pin::Pin, time::Duration};

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::{
    client::legacy::{Client, connect::HttpConnector},
    rt::TokioExecutor,
};
use opentelemetry_http::{HttpClient, HttpError};
use tokio::runtime::Handle;

/// The specification's own limit.
const TIMEOUT: Duration = Duration::from_secs(10);
/// An answer is a few bytes.
const MAX_ANSWER: usize = 64 << 10;

/// A client for exporters.
pub(super) struct Http {
    client: Client<HttpsConnector<HttpConnector>, Full<Bytes>>,
    runtime: Handle,
}

impl Http {
    /// Requests are made on this runtime.
    pub(super) fn new(runtime: Handle) -> std::io::Result<Self> {
        let roots = HttpsConnectorBuilder::new()
            .with_provider_and_native_roots(rustls::crypto::aws_lc_rs::default_provider())?;
        let connector = roots.https_or_http().enable_http1().build();
        Ok(Self { client: Client::builder(TokioExecutor::new()).build(connector), runtime })
    }
}

impl HttpClient for Http {
    fn send_bytes<'a, 'b>(
        &'a self,
        request: Request<Bytes>,
    ) -> Pin<Box<dyn Future<Output = Result<Response<Bytes>, HttpError>> + Send + 'b>>
    where
        'a: 'b,
        Self: 'b,
    {
        let answer = self.client.request(request.map(Full::new));
        let work = async move {
            let (parts, body) = answer.await?.into_parts();
            let bytes = Limited::new(body, MAX_ANSWER).collect().await?.to_bytes();
            Ok::<_, HttpError>(Response::from_parts(parts, bytes))
        };
        let work = self.runtime.spawn(async { tokio::time::timeout(TIMEOUT, work).await });
        Box::pin(async move { work.await?? })
    }
}

impl fmt::Debug for Http {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Http")
    }
}
