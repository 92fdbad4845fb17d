//! The exporter that the settings ask for, with its results counted.

use std::{
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use opentelemetry_otlp::{
    SpanExporter as Otlp, WithHttpConfig as _, WithTonicConfig as _,
    tonic_types::transport::{Certificate, ClientTlsConfig},
};
use opentelemetry_sdk::{
    Resource,
    error::{OTelSdkError, OTelSdkResult},
    trace::{SpanData, SpanExporter},
};
use tokio::runtime::Handle;

use super::{
    Error,
    http::Http,
    settings::{Protocol, Settings},
};

/// Makes the exporter, which works on this runtime. Endpoint, headers, timeout and compression it reads from the environment itself.
pub(super) fn build(settings: &Settings, runtime: &Handle, exports: &Arc<Exports>) -> Result<Otlp, Error> {
    let authorities = settings.certificate.as_deref().map(read).transpose()?;
    match settings.protocol {
        Protocol::Grpc => {
            let _entered = runtime.enter();
            let tls = match authorities {
                Some(pem) => ClientTlsConfig::new().ca_certificate(Certificate::from_pem(pem)),
                None => ClientTlsConfig::new().with_native_roots(),
            };
            let exporter = Otlp::builder().with_tonic();
            let exporter = if settings.is_tls { exporter.with_tls_config(tls) } else { exporter };
            Ok(exporter.build()?)
        }
        Protocol::Http => {
            let client = Http::new(authorities.as_deref(), runtime.clone(), Arc::clone(exports));
            let client = client.map_err(|source| Error::Certificate {
                file: settings.certificate.clone().unwrap_or_else(|| "of the system".to_owned()),
                source,
            })?;
            Ok(Otlp::builder().with_http().with_http_client(client).build()?)
        }
    }
}

fn read(file: &str) -> Result<Vec<u8>, Error> {
    std::fs::read(file).map_err(|source| Error::Certificate { file: file.to_owned(), source })
}

/// What went wrong, in words of ours: the SDK's own name its types, and not always the cause.
pub(super) fn in_words(error: &OTelSdkError, cause: Option<String>) -> String {
    let text = match error {
        OTelSdkError::AlreadyShutdown => return "exporting is over".to_owned(),
        OTelSdkError::Timeout(after) => return format!("no answer within {after:?}"),
        OTelSdkError::InternalFailure(text) => text,
    };
    let after = |prefix: &str| text.strip_prefix(prefix);
    if let Some(code) = after("TonicTracesClient export failed with gRPC code: ") {
        return format!("gRPC {code}");
    }
    if let Some(status) = after("HTTP export failed with status code: ") {
        return format!("it answered with HTTP status {status}");
    }
    cause.filter(|_| text == "HTTP export failed: network error").unwrap_or_else(|| text.clone())
}

/// Counts of what was exported.
#[derive(Debug, Default)]
pub(super) struct Exports {
    exported: AtomicU64,
    lost: AtomicU64,
    failing: AtomicBool,
    /// Why the last request had no answer, where the exporter itself does not say.
    cause: Mutex<Option<String>>,
}

impl Exports {
    /// A request had no answer.
    pub(super) fn note_cause(&self, cause: String) {
        *self.cause.lock().unwrap_or_else(PoisonError::into_inner) = Some(cause);
    }

    pub(super) fn read(&self) -> (u64, u64) {
        (self.exported.load(Ordering::Relaxed), self.lost.load(Ordering::Relaxed))
    }
}

/// Counts what an exporter does.
#[derive(Debug)]
pub(super) struct Counted {
    next: Otlp,
    /// Where to, without secrets.
    to: String,
    exports: Arc<Exports>,
}

impl Counted {
    pub(super) fn new(next: Otlp, to: String, exports: Arc<Exports>) -> Self {
        Self { next, to, exports }
    }
}

impl SpanExporter for Counted {
    async fn export(&self, batch: Vec<SpanData>) -> OTelSdkResult {
        let spans = u64::try_from(batch.len()).unwrap_or(u64::MAX);
        let result = self.next.export(batch).await;
        match &result {
            Ok(()) => {
                self.exports.exported.fetch_add(spans, Ordering::Relaxed);
                if self.exports.failing.swap(false, Ordering::Relaxed) {
                    tracing::info!(to = self.to, "spans are exported again");
                }
            }
            Err(error) => {
                let lost = self.exports.lost.fetch_add(spans, Ordering::Relaxed) + spans;
                if !self.exports.failing.swap(true, Ordering::Relaxed) {
                    let cause = self.exports.cause.lock().unwrap_or_else(PoisonError::into_inner).take();
                    let (to, error) = (&self.to, in_words(error, cause));
                    tracing::warn!(to, error, lost, "spans cannot be exported; this is said once until they can");
                }
            }
        }
        result
    }

    fn shutdown_with_timeout(&self, timeout: Duration) -> OTelSdkResult {
        self.next.shutdown_with_timeout(timeout)
    }

    fn force_flush(&self) -> OTelSdkResult {
        self.next.force_flush()
    }

    fn set_resource(&mut self, resource: &Resource) {
        self.next.set_resource(resource);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_of_the_exporter_are_in_words() {
        let failed = |text: &str| OTelSdkError::InternalFailure(text.to_owned());
        let said = |error: OTelSdkError| in_words(&error, Some("connection refused".to_owned()));
        let grpc = "TonicTracesClient export failed with gRPC code: Unavailable: tcp connect error: Connection refused (os error 111)";
        assert_eq!(said(failed(grpc)), "gRPC Unavailable: tcp connect error: Connection refused (os error 111)");
        assert_eq!(said(failed("HTTP export failed with status code: 401")), "it answered with HTTP status 401");
        assert_eq!(said(failed("HTTP export failed: network error")), "connection refused");
        assert_eq!(said(OTelSdkError::Timeout(Duration::from_secs(5))), "no answer within 5s");
    }
}
