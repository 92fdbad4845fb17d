//! One call that makes a program export its spans, as the environment says.
//!
//! ```no_run
//! # fn main() -> Result<(), kubewake_trail::setup::Error> {
//! let (telemetry, trail) = kubewake_trail::setup("head-operator")?;
//! // … run controllers with `trail` …
//! drop(telemetry); // flushes
//! # Ok(()) }
//! ```
//!
//! | variable | meaning |
//! | --- | --- |
//! | `OTEL_EXPORTER_OTLP_ENDPOINT`, `…_TRACES_ENDPOINT` | where to, with `http://` or `https://`; without one nothing happens at all |
//! | `OTEL_EXPORTER_OTLP_PROTOCOL`, `…_TRACES_PROTOCOL` | `grpc` or `http/protobuf`; unless set, `http/protobuf` for port 4318 and `grpc` for any other |
//! | `OTEL_EXPORTER_OTLP_HEADERS`, `…_TIMEOUT`, `…_COMPRESSION`, `…_INSECURE` | as OpenTelemetry has them |
//! | `OTEL_EXPORTER_OTLP_CERTIFICATE`, `…_TRACES_CERTIFICATE` | a PEM file with the authorities to trust instead of the system's |
//! | `OTEL_SERVICE_NAME`, `OTEL_RESOURCE_ATTRIBUTES` | win over what is found here |
//! | `OTEL_TRACES_SAMPLER`, `…_ARG` | `parentbased_…` follow links too; `parentbased_always_on` unless set |
//! | `OTEL_BSP_*` | the queue before the exporter |
//! | `OTEL_SDK_DISABLED=true`, `OTEL_TRACES_EXPORTER=none` | nothing happens at all |
//! | `RUST_LOG` | what is logged (`info` unless set), where the program has no subscriber of its own |
//! | `POD_NAME`, `POD_NAMESPACE`, `NODE_NAME` | become `k8s.*` attributes |
//!
//! Guaranteed: an exporter that is slow or down costs nobody more than a full queue, from which new spans are dropped. Exporting has a thread of its own, so that it works in any
//! runtime and flushing cannot wait for itself. Flushing ends after [`FLUSH`].

use std::{fmt, sync::Arc, time::Duration};

use opentelemetry::{
    global::BoxedTracer,
    trace::{TracerProvider as _, noop::NoopTracer},
};
use opentelemetry_sdk::trace::{BatchSpanProcessor, SdkTracer, SdkTracerProvider};
use tracing_subscriber::{
    Layer, Registry,
    filter::{FilterExt as _, LevelFilter, Targets, filter_fn},
    layer::SubscriberExt as _,
    registry::LookupSpan,
    util::SubscriberInitExt as _,
};

use self::{
    background::Background,
    exporter::{Counted, Exports},
    settings::Settings,
};
use crate::{
    errors::in_words,
    hold::Hold,
    trail::{Options, Trail},
};

mod background;
mod exporter;
mod http;
mod resource;
mod settings;

/// A pod has 30 s to end; this is what flushing may take of it.
pub const FLUSH: Duration = Duration::from_secs(5);

/// Why nothing can be exported. `Debug` says it in words as well, since that is what a `main` that returns it prints.
#[derive(thiserror::Error)]
pub enum Error {
    /// A variable holds what nobody understands.
    #[error("{name} is {value:?}; use {expected}")]
    Variable {
        /// Which variable.
        name: &'static str,
        /// What it holds.
        value: String,
        /// What it may hold.
        expected: &'static str,
    },
    /// An endpoint does not say whether it is called over TLS.
    #[error("{name} is {value:?}, which has no scheme: write http://{value}, or https://{value} if it speaks TLS")]
    NoScheme {
        /// Which variable.
        name: &'static str,
        /// What it holds, without a password.
        value: String,
    },
    /// The file with the authorities cannot be used.
    #[error("the certificate {file} that OTEL_EXPORTER_OTLP_CERTIFICATE names cannot be used")]
    Certificate {
        /// Which file.
        file: String,
        /// Why.
        source: std::io::Error,
    },
    /// The exporter cannot be made.
    #[error("cannot export spans")]
    Exporter(#[from] opentelemetry_otlp::ExporterBuildError),
    /// No thread for exporting.
    #[error("cannot start exporting")]
    Start(#[source] std::io::Error),
}

impl fmt::Debug for Error {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&in_words(self))
    }
}

/// Sets everything up: logs on standard error unless the program has a subscriber already, and spans as the environment says.
///
/// # Errors
/// Where the environment holds what nobody understands.
pub fn setup(service: &str) -> Result<(Telemetry, Trail), Error> {
    Setup::new(service).start()
}

/// [`setup`] with choices.
#[derive(Clone, Debug)]
pub struct Setup {
    service: String,
    version: Option<String>,
    options: Options,
    subscriber: bool,
}

impl Setup {
    /// Sets up a service of this name; `OTEL_SERVICE_NAME` wins over it.
    #[must_use]
    pub fn new(service: &str) -> Self {
        Self { service: service.to_owned(), version: None, options: Options::default(), subscriber: true }
    }

    /// The version of the program.
    #[must_use]
    pub fn version(mut self, version: &str) -> Self {
        self.version = Some(version.to_owned());
        self
    }

    /// Traces with these options.
    #[must_use]
    pub fn options(mut self, options: Options) -> Self {
        self.options = options;
        self
    }

    /// Installs no subscriber for logs. The program adds [`Telemetry::layer`] to its own, so that its `tracing` spans are exported.
    #[must_use]
    pub fn without_subscriber(mut self) -> Self {
        self.subscriber = false;
        self
    }

    /// Starts.
    ///
    /// # Errors
    /// Where the environment holds what nobody understands.
    pub fn start(self) -> Result<(Telemetry, Trail), Error> {
        let settings = Settings::read(&self.service, self.version.as_deref(), |name| std::env::var(name).ok())?;
        // With ours, a program may have two cryptography providers; rustls then wants to be told which, and panics otherwise. One that
        // the program chose before stays.
        let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
        let (telemetry, trail) = match &settings {
            Some(settings) => Telemetry::start(settings, self.options)?,
            None => (Telemetry { inner: None }, Trail::off()),
        };
        let warnings = settings.map(|settings| settings.warnings).unwrap_or_default();
        if self.subscriber {
            let logs = tracing_subscriber::fmt::layer().with_writer(std::io::stderr).with_ansi(colours());
            // What cannot be exported is said by us, once and in words.
            let said_twice = filter_fn(|event| event.name() != "BatchSpanProcessor.ExportError");
            let logs = logs.with_filter(log_filter(std::env::var("RUST_LOG").ok().as_deref())?.and(said_twice));
            // A program that has a subscriber keeps it.
            let _ = Registry::default().with(telemetry.layer()).with(logs).try_init();
        }
        // Now that somebody hears it.
        warnings.iter().for_each(|warning| tracing::warn!("{warning}"));
        Ok((telemetry, trail))
    }
}

/// What exports. Dropping it flushes.
#[derive(Debug)]
#[must_use = "dropping this ends all tracing"]
pub struct Telemetry {
    inner: Option<Inner>,
}

#[derive(Debug)]
struct Inner {
    provider: SdkTracerProvider,
    exports: Arc<Exports>,
    /// Ends after the provider.
    _background: Background,
}

impl Telemetry {
    fn start(settings: &Settings, options: Options) -> Result<(Self, Trail), Error> {
        let background = Background::start().map_err(Error::Start)?;
        let exports = Arc::new(Exports::default());
        let exporter = exporter::build(settings, background.handle(), &exports)?;
        let exporter = Counted::new(exporter, settings.shown.clone(), Arc::clone(&exports));
        let processor = BatchSpanProcessor::builder(exporter).build();
        let hold = Hold::new(processor);
        let provider = SdkTracerProvider::builder()
            .with_resource(settings.resource.clone())
            .with_sampler(settings.sampler.clone())
            .with_span_processor(hold.clone())
            .build();
        let trail = Trail::new(&provider, hold, options);
        Ok((Self { inner: Some(Inner { provider, exports, _background: background }) }, trail))
    }

    /// Whether anything is exported.
    #[must_use]
    pub fn is_on(&self) -> bool {
        self.inner.is_some()
    }

    /// Makes spans of the program's own, under this name.
    #[must_use]
    pub fn tracer(&self, scope: &'static str) -> BoxedTracer {
        match &self.inner {
            Some(inner) => BoxedTracer::new(Box::new(inner.provider.tracer(scope))),
            None => BoxedTracer::new(Box::new(NoopTracer::new())),
        }
    }

    /// Makes spans of `tracing` spans, for a subscriber of the program's own. kube's spans are left out: ours stand for them.
    pub fn layer<S>(&self) -> Option<impl Layer<S> + use<S>>
    where
        S: tracing::Subscriber + for<'span> LookupSpan<'span> + Send + Sync,
    {
        let inner = self.inner.as_ref()?;
        let tracer: SdkTracer = inner.provider.tracer("tracing");
        Some(crate::spans::layer(tracer))
    }

    /// How many spans were exported, and how many were lost because nobody took them.
    #[must_use]
    pub fn exported(&self) -> (u64, u64) {
        self.inner.as_ref().map(|inner| inner.exports.read()).unwrap_or_default()
    }

    /// Exports what waits, and nothing from now on. Takes at most [`FLUSH`].
    pub fn shutdown(mut self) {
        self.flush();
    }

    fn flush(&mut self) {
        let Some(inner) = self.inner.take() else { return };
        if let Err(error) = inner.provider.shutdown_with_timeout(FLUSH) {
            tracing::warn!(error = exporter::in_words(&error, None), "not all spans were exported before the end");
        }
    }
}

impl Drop for Telemetry {
    fn drop(&mut self) {
        self.flush();
    }
}

/// Only a person at a terminal wants colours.
fn colours() -> bool {
    std::io::IsTerminal::is_terminal(&std::io::stderr()) && std::env::var_os("NO_COLOR").is_none()
}

/// `info,crate=debug` and the like.
fn log_filter(said: Option<&str>) -> Result<Targets, Error> {
    let Some(text) = said.filter(|text| !text.is_empty()) else {
        // kube's client says every failed request a second time, and without a word on whom it asked.
        return Ok(Targets::new().with_default(LevelFilter::INFO).with_target("kube_client", LevelFilter::OFF));
    };
    let expected = "a level, or `target=level`, or several of them parted by commas";
    text.parse().map_err(|_| Error::Variable { name: "RUST_LOG", value: text.to_owned(), expected })
}
