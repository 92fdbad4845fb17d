//! The exporter that the settings ask for, with its results counted.

use std::{
    sync::{
        Arc,
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
    error::OTelSdkResult,
    trace::{SpanData, SpanExporter},
};
use tokio::runtime::Handle;

use super::{
    Error,
    http::Http,
    settings::{Protocol, Settings},
};

/// Makes the exporter, which works on this runtime. Endpoint, headers, timeout and compression it reads from the environment itself.
pub(super) fn build(settings: &Settings, runtime: &Handle) -> Result<Otlp, Error> {
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
            let client = Http::new(authorities.as_deref(), runtime.clone()).map_err(|source| Error::Certificate {
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

/// Counts of what was exported.
#[derive(Debug, Default)]
pub(super) struct Exports {
    exported: AtomicU64,
    lost: AtomicU64,
    failing: AtomicBool,
}

impl Exports {
    pub(super) fn read(&self) -> (u64, u64) {
        (self.exported.load(Ordering::Relaxed), self.lost.load(Ordering::Relaxed))
    }
}

/// Counts what an exporter does.
#[derive(Debug)]
pub(super) struct Counted {
    next: Otlp,
    exports: Arc<Exports>,
}

impl Counted {
    pub(super) fn new(next: Otlp, exports: Arc<Exports>) -> Self {
        Self { next, exports }
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
                    tracing::info!("spans are exported again");
                }
            }
            Err(error) => {
                let lost = self.exports.lost.fetch_add(spans, Ordering::Relaxed) + spans;
                if !self.exports.failing.swap(true, Ordering::Relaxed) {
                    tracing::warn!(%error, lost, "spans cannot be exported; this is said once until they can");
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
