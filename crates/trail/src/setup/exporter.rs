//! Builds the exporter from the settings and counts its results.

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
    SetupError,
    http::OtlpHttpClient,
    settings::{ExportProtocol, ExportSettings},
};

/// Builds the exporter on this runtime. The exporter reads endpoint, headers, timeout and compression from the
/// environment itself.
pub(super) fn build_exporter(
    settings: &ExportSettings,
    runtime: &Handle,
    exports: &Arc<ExportStats>,
) -> Result<Otlp, SetupError> {
    let authorities = settings.certificate.as_deref().map(read_certificate).transpose()?;
    match settings.protocol {
        ExportProtocol::Grpc => {
            let _entered = runtime.enter();
            let tls = match authorities {
                Some(pem) => ClientTlsConfig::new().ca_certificate(Certificate::from_pem(pem)),
                None => ClientTlsConfig::new().with_native_roots(),
            };
            let exporter = Otlp::builder().with_tonic();
            let exporter = if settings.is_tls { exporter.with_tls_config(tls) } else { exporter };
            Ok(exporter.build()?)
        }
        ExportProtocol::Http => {
            let client = OtlpHttpClient::new(authorities.as_deref(), runtime.clone(), Arc::clone(exports));
            let client = client.map_err(|source| SetupError::Certificate {
                file: settings.certificate.clone().unwrap_or_else(|| "the system's certificate store".to_owned()),
                source,
            })?;
            Ok(Otlp::builder().with_http().with_http_client(client).build()?)
        }
    }
}

fn read_certificate(file: &str) -> Result<Vec<u8>, SetupError> {
    std::fs::read(file).map_err(|source| SetupError::Certificate { file: file.to_owned(), source })
}

/// Describes an export error. The SDK's own messages name its types, and not always the cause.
pub(super) fn export_error_message(error: &OTelSdkError, cause: Option<String>) -> String {
    let text = match error {
        OTelSdkError::AlreadyShutdown => return "the exporter is shut down".to_owned(),
        OTelSdkError::Timeout(after) => return format!("no response within {after:?}"),
        OTelSdkError::InternalFailure(text) => text,
    };
    let after = |prefix: &str| text.strip_prefix(prefix);
    if let Some(code) = after("TonicTracesClient export failed with gRPC code: ") {
        return format!("gRPC {code}");
    }
    if let Some(status) = after("HTTP export failed with status code: ") {
        return format!("HTTP status {status}");
    }
    cause.filter(|_| text == "HTTP export failed: network error").unwrap_or_else(|| text.clone())
}

/// Counters of the export.
#[derive(Debug, Default)]
pub(super) struct ExportStats {
    exported: AtomicU64,
    lost: AtomicU64,
    failing: AtomicBool,
    /// The cause of the last connection error, which the exporter itself does not report.
    cause: Mutex<Option<String>>,
}

impl ExportStats {
    /// Records the cause of a request without a response.
    pub(super) fn note_cause(&self, cause: String) {
        *self.cause.lock().unwrap_or_else(PoisonError::into_inner) = Some(cause);
    }

    pub(super) fn snapshot(&self) -> (u64, u64) {
        (self.exported.load(Ordering::Relaxed), self.lost.load(Ordering::Relaxed))
    }
}

/// An exporter that counts results and logs the first failure of a series.
#[derive(Debug)]
pub(super) struct CountingExporter {
    next: Otlp,
    /// The endpoint without credentials.
    redacted_endpoint: String,
    stats: Arc<ExportStats>,
}

impl CountingExporter {
    pub(super) fn new(next: Otlp, redacted_endpoint: String, stats: Arc<ExportStats>) -> Self {
        Self { next, redacted_endpoint, stats }
    }
}

impl SpanExporter for CountingExporter {
    async fn export(&self, batch: Vec<SpanData>) -> OTelSdkResult {
        let spans = u64::try_from(batch.len()).unwrap_or(u64::MAX);
        let result = self.next.export(batch).await;
        match &result {
            Ok(()) => {
                self.stats.exported.fetch_add(spans, Ordering::Relaxed);
                if self.stats.failing.swap(false, Ordering::Relaxed) {
                    tracing::info!(to = self.redacted_endpoint, "spans are exported again");
                }
            }
            Err(error) => {
                let lost = self.stats.lost.fetch_add(spans, Ordering::Relaxed) + spans;
                if !self.stats.failing.swap(true, Ordering::Relaxed) {
                    let cause = self.stats.cause.lock().unwrap_or_else(PoisonError::into_inner).take();
                    let to = &self.redacted_endpoint;
                    let error = export_error_message(error, cause);
                    tracing::warn!(
                        to,
                        error,
                        lost,
                        "failed to export spans; further failures are not logged until an export succeeds"
                    );
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
        let said = |error: OTelSdkError| export_error_message(&error, Some("connection refused".to_owned()));
        let grpc = "TonicTracesClient export failed with gRPC code: Unavailable: tcp connect error: Connection refused (os error 111)";
        assert_eq!(said(failed(grpc)), "gRPC Unavailable: tcp connect error: Connection refused (os error 111)");
        assert_eq!(said(failed("HTTP export failed with status code: 401")), "HTTP status 401");
        assert_eq!(said(failed("HTTP export failed: network error")), "connection refused");
        assert_eq!(said(OTelSdkError::Timeout(Duration::from_secs(5))), "no response within 5s");
    }
}
