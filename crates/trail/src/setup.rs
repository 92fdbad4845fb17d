//! Sets up the export of a program's spans from the environment, in one call.
//!
//! ```no_run
//! # fn main() -> Result<(), kubewake_trail::setup::SetupError> {
//! let (telemetry, trail) = kubewake_trail::setup("head-operator")?;
//! // … run controllers with `trail` …
//! drop(telemetry); // flushes
//! # Ok(()) }
//! ```
//!
//! | variable | meaning |
//! | --- | --- |
//! | `OTEL_EXPORTER_OTLP_ENDPOINT`, `…_TRACES_ENDPOINT` | where to, as a URL; unset, nothing is exported |
//! | `OTEL_EXPORTER_OTLP_PROTOCOL`, `…_TRACES_PROTOCOL` | `grpc` or `http/protobuf`; by default as the port says |
//! | `OTEL_EXPORTER_OTLP_HEADERS`, `…_TIMEOUT`, `…_COMPRESSION`, `…_INSECURE` | as OpenTelemetry has them |
//! | `OTEL_EXPORTER_OTLP_CERTIFICATE`, `…_TRACES_CERTIFICATE` | a PEM file with the authorities to trust |
//! | `OTEL_SERVICE_NAME`, `OTEL_RESOURCE_ATTRIBUTES` | win over what is found here |
//! | `OTEL_TRACES_SAMPLER`, `…_ARG` | `parentbased_…` follow links too; `parentbased_always_on` unless set |
//! | `OTEL_BSP_*` | the queue before the exporter |
//! | `OTEL_SDK_DISABLED=true`, `OTEL_TRACES_EXPORTER=none` | nothing happens at all |
//! | `RUST_LOG` | what is logged (`info` unless set), where the program has no subscriber of its own |
//! | `POD_NAME`, `POD_NAMESPACE`, `NODE_NAME` | become `k8s.*` attributes |
//!
//! *Guaranteed*: a slow or unavailable exporter costs a program no more than a full queue, from which new spans
//! are dropped. The export has a thread of its own, so that it works in any runtime and a flush cannot wait for
//! itself. A flush ends after [`FLUSH_TIMEOUT`].

use std::{fmt, sync::Arc, time::Duration};

use opentelemetry::{
    global::BoxedTracer,
    trace::{TracerProvider as _, noop::NoopTracer},
};
use opentelemetry_sdk::trace::{BatchSpanProcessor, SdkTracer, SdkTracerProvider};
use tracing::{Level, Metadata, Subscriber};
use tracing_subscriber::{
    Layer, Registry,
    filter::{FilterExt as _, LevelFilter, Targets, filter_fn},
    layer::SubscriberExt as _,
    registry::LookupSpan,
    util::SubscriberInitExt as _,
};

use self::{
    export_runtime::ExportRuntime,
    exporter::{CountingExporter, ExportStats},
    settings::ExportSettings,
};
use crate::{
    deferred_spans::DeferredSpanProcessor,
    errors::error_chain,
    trail::{Options, Trail},
};

mod export_runtime;
mod exporter;
mod http;
mod resource;
mod settings;

/// Libraries whose spans ours replace, or that would trace the export itself.
const EXCLUDED_TARGETS: [&str; 8] = ["kube", "hyper", "h2", "tower", "tonic", "rustls", "tokio", "opentelemetry"];

/// The limit of a flush. A pod has 30 s to terminate; this is the share of the flush.
pub const FLUSH_TIMEOUT: Duration = Duration::from_secs(5);

/// The reason why no export is possible. `Debug` prints the same text, since a `main` that returns it uses
/// that.
#[derive(thiserror::Error)]
pub enum SetupError {
    /// A variable has an invalid value.
    #[error("{name} is {value:?}; use {expected}")]
    Variable {
        /// The name of the variable.
        name: &'static str,
        /// Its value.
        value: String,
        /// The accepted values.
        expected: &'static str,
    },
    /// An endpoint without a scheme, so that it is unknown whether it uses TLS.
    #[error("{name} is {value:?}, which has no scheme: write http://{value}, or https://{value} if it speaks TLS")]
    NoScheme {
        /// The name of the variable.
        name: &'static str,
        /// Its value, without a password.
        value: String,
    },
    /// The certificate authorities cannot be read.
    #[error("failed to load CA certificates from {file} (OTEL_EXPORTER_OTLP_CERTIFICATE)")]
    Certificate {
        /// The path of the file.
        file: String,
        /// The I/O error.
        source: std::io::Error,
    },
    /// The exporter cannot be created.
    #[error("failed to create the span exporter")]
    Exporter(#[from] opentelemetry_otlp::ExporterBuildError),
    /// The export thread cannot be started.
    #[error("failed to start the export of spans")]
    Start(#[source] std::io::Error),
}

impl fmt::Debug for SetupError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&error_chain(self))
    }
}

/// Sets up logs on standard error, unless the program has a subscriber already, and the export of spans
/// according to the environment.
///
/// # Errors
/// Where a variable has an invalid value.
pub fn setup(service: &str) -> Result<(TelemetryGuard, Trail), SetupError> {
    TelemetrySetup::new(service).start()
}

/// [`setup`] with options.
#[derive(Clone, Debug)]
pub struct TelemetrySetup {
    service: String,
    version: Option<String>,
    options: Options,
    installs_subscriber: bool,
}

impl TelemetrySetup {
    /// Creates a setup for a service of this name; `OTEL_SERVICE_NAME` overrides it.
    #[must_use]
    pub fn new(service: &str) -> Self {
        Self { service: service.to_owned(), version: None, options: Options::default(), installs_subscriber: true }
    }

    /// Sets the version of the program.
    #[must_use]
    pub fn version(mut self, version: &str) -> Self {
        self.version = Some(version.to_owned());
        self
    }

    /// Sets the options of the [`Trail`].
    #[must_use]
    pub fn options(mut self, options: Options) -> Self {
        self.options = options;
        self
    }

    /// Installs no subscriber for logs. The program adds [`TelemetryGuard::layer`] to its own subscriber, so
    /// that its `tracing` spans are exported.
    #[must_use]
    pub fn without_subscriber(mut self) -> Self {
        self.installs_subscriber = false;
        self
    }

    /// Starts the export.
    ///
    /// # Errors
    /// Where a variable has an invalid value.
    pub fn start(self) -> Result<(TelemetryGuard, Trail), SetupError> {
        let settings = ExportSettings::read(&self.service, self.version.as_deref(), |name| std::env::var(name).ok())?;
        // A program may have two cryptography providers, ours included; rustls panics unless one is the
        // default. A default that the program has installed before stays.
        let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
        let (telemetry, trail) = match &settings {
            Some(settings) => TelemetryGuard::start(settings, self.options)?,
            None => (TelemetryGuard { inner: None }, Trail::disabled()),
        };
        let warnings = settings.map(|settings| settings.warnings).unwrap_or_default();
        if self.installs_subscriber {
            let logs = tracing_subscriber::fmt::layer().with_writer(std::io::stderr).with_ansi(wants_ansi_colors());
            // `CountingExporter` logs export errors once; the SDK would log each of them.
            let said_twice = filter_fn(|event| event.name() != "BatchSpanProcessor.ExportError");
            let logs = logs.with_filter(log_filter(std::env::var("RUST_LOG").ok().as_deref())?.and(said_twice));
            // A subscriber of the program stays in place.
            let _ = Registry::default().with(telemetry.layer()).with(logs).try_init();
        }
        // Logged only now, with a subscriber in place.
        warnings.iter().for_each(|warning| tracing::warn!("{warning}"));
        Ok((telemetry, trail))
    }
}

/// Keeps the export running. Dropping it flushes.
#[derive(Debug)]
#[must_use = "dropping this ends all tracing"]
pub struct TelemetryGuard {
    inner: Option<ActiveTelemetry>,
}

#[derive(Debug)]
struct ActiveTelemetry {
    provider: SdkTracerProvider,
    stats: Arc<ExportStats>,
    /// Declared last, so that it ends after the provider.
    _background: ExportRuntime,
}

impl TelemetryGuard {
    fn start(settings: &ExportSettings, options: Options) -> Result<(Self, Trail), SetupError> {
        let background = ExportRuntime::start().map_err(SetupError::Start)?;
        let exports = Arc::new(ExportStats::default());
        let exporter = exporter::build_exporter(settings, background.handle(), &exports)?;
        let exporter = CountingExporter::new(exporter, settings.redacted_endpoint.clone(), Arc::clone(&exports));
        let processor = BatchSpanProcessor::builder(exporter).build();
        let hold = DeferredSpanProcessor::new(processor);
        let provider = SdkTracerProvider::builder()
            .with_resource(settings.resource.clone())
            .with_sampler(settings.sampler.clone())
            .with_span_processor(hold.clone())
            .build();
        let trail = Trail::new(&provider, hold, options);
        Ok((Self { inner: Some(ActiveTelemetry { provider, stats: exports, _background: background }) }, trail))
    }

    /// Whether spans are exported.
    #[must_use]
    pub fn is_enabled(&self) -> bool {
        self.inner.is_some()
    }

    /// A tracer for the program's own spans, with this instrumentation scope.
    #[must_use]
    pub fn tracer(&self, scope: &'static str) -> BoxedTracer {
        match &self.inner {
            Some(inner) => BoxedTracer::new(Box::new(inner.provider.tracer(scope))),
            None => BoxedTracer::new(Box::new(NoopTracer::new())),
        }
    }

    /// A layer that turns `tracing` spans into exported spans, for a subscriber of the program's own. kube's
    /// spans are left out: this crate's spans replace them.
    pub fn layer<S>(&self) -> Option<impl Layer<S> + use<S>>
    where
        S: Subscriber + for<'span> LookupSpan<'span> + Send + Sync,
    {
        let inner = self.inner.as_ref()?;
        let tracer: SdkTracer = inner.provider.tracer("tracing");
        Some(tracing_layer(tracer))
    }

    /// The number of exported spans, and of spans lost because the export failed.
    #[must_use]
    pub fn export_counts(&self) -> (u64, u64) {
        self.inner.as_ref().map(|inner| inner.stats.snapshot()).unwrap_or_default()
    }

    /// Exports the remaining spans and ends the export. Takes at most [`FLUSH_TIMEOUT`].
    pub fn shutdown(mut self) {
        self.flush();
    }

    fn flush(&mut self) {
        let Some(inner) = self.inner.take() else { return };
        if let Err(error) = inner.provider.shutdown_with_timeout(FLUSH_TIMEOUT) {
            tracing::warn!(
                error = exporter::export_error_message(&error, None),
                "failed to export all spans before the process ended"
            );
        }
    }
}

impl Drop for TelemetryGuard {
    fn drop(&mut self) {
        self.flush();
    }
}

/// A layer that turns `tracing` spans of level INFO and above into spans. They are children of the current span of this
/// crate. For programs with a provider of their own; others use [`TelemetryGuard::layer`].
pub fn tracing_layer<S>(tracer: SdkTracer) -> impl Layer<S> + use<S>
where
    S: Subscriber + for<'span> LookupSpan<'span> + Send + Sync,
{
    let layer = tracing_opentelemetry::layer().with_tracer(tracer).with_location(false).with_threads(false);
    layer.with_filter(filter_fn(is_recorded))
}

fn is_recorded(metadata: &Metadata<'_>) -> bool {
    let library = metadata.target().split([':', '_']).next().unwrap_or_default();
    *metadata.level() <= Level::INFO && !EXCLUDED_TARGETS.contains(&library)
}

/// Colours are only for a terminal.
fn wants_ansi_colors() -> bool {
    std::io::IsTerminal::is_terminal(&std::io::stderr()) && std::env::var_os("NO_COLOR").is_none()
}

/// Parses a filter such as `info,crate=debug`.
fn log_filter(said: Option<&str>) -> Result<Targets, SetupError> {
    let Some(text) = said.filter(|text| !text.is_empty()) else {
        // kube's client logs every failed request again, without the name of the server.
        return Ok(Targets::new().with_default(LevelFilter::INFO).with_target("kube_client", LevelFilter::OFF));
    };
    let expected = "a level, or `target=level`, or several of them separated by commas";
    text.parse().map_err(|_| SetupError::Variable { name: "RUST_LOG", value: text.to_owned(), expected })
}
