//! OpenTelemetry's SDK, from the usual variables, in one call.
//!
//! ```no_run
//! # fn main() -> Result<(), kubewake_trail::setup::Error> {
//! let (telemetry, trail) = kubewake_trail::Setup::new("head-operator").install()?;
//! // … work …
//! telemetry.shutdown();
//! # Ok(())
//! # }
//! ```
//!
//! | variable | meaning |
//! | --- | --- |
//! | `OTEL_EXPORTER_OTLP_ENDPOINT`, `OTEL_EXPORTER_OTLP_TRACES_ENDPOINT` | where spans go; without one nothing is recorded |
//! | `OTEL_EXPORTER_OTLP_PROTOCOL`, `OTEL_EXPORTER_OTLP_TRACES_PROTOCOL` | `grpc` or `http/protobuf`; by default gRPC on port 4317, else HTTP |
//! | `OTEL_EXPORTER_OTLP_HEADERS`, `…_TIMEOUT`, `…_COMPRESSION` | as OpenTelemetry says, also for traces alone |
//! | `OTEL_TRACES_SAMPLER`, `OTEL_TRACES_SAMPLER_ARG` | which roots are sampled; parents and links are followed always |
//! | `OTEL_SERVICE_NAME`, `OTEL_RESOURCE_ATTRIBUTES` | what the spans say about this process |
//! | `OTEL_BSP_*` | how spans are batched |
//! | `OTEL_SDK_DISABLED`, `OTEL_TRACES_EXPORTER=none` | switch it off |
//! | `POD_NAME`, `POD_NAMESPACE`, `NODE_NAME` | become `k8s.pod.name`, `k8s.namespace.name`, `k8s.node.name` |
//! | `RUST_LOG` | what is logged, with [`Setup::install`] |
//!
//! *Guarantees.* Exporting happens on threads of its own behind a bounded queue: a backend that is down costs nobody anything but the spans. What was recorded before
//! [`Telemetry::shutdown`], or before the [`Telemetry`] is dropped, is exported then, if that takes no longer than a few seconds.
//! *Not done*: metrics and logs; certificates from files.

mod http;
mod resource;
mod runtime;
mod settings;

#[cfg(test)]
mod tests;

use std::{env, io};

use opentelemetry::{
    global::BoxedTracer,
    trace::{TracerProvider as _, noop::NoopTracer},
};
use opentelemetry_otlp::{
    ExporterBuildError, SpanExporter, WithHttpConfig as _, WithTonicConfig as _,
    tonic_types::transport::ClientTlsConfig,
};
use opentelemetry_sdk::trace::{BatchSpanProcessor, SdkTracer, SdkTracerProvider};
use tracing::{Level, Subscriber, level_filters::LevelFilter};
use tracing_subscriber::{
    Layer, filter::Targets, layer::SubscriberExt as _, registry::LookupSpan, util::SubscriberInitExt as _,
};

use self::{
    http::Http,
    runtime::Runtime,
    settings::{Export, Protocol, Settings},
};
use crate::{Hold, Options, Trail, sampler::FollowLinks};

/// The name under which an author's own spans are made.
const SCOPE: &str = "tracing";
/// Spans of these are not recorded: ours say the same, or they are about the export itself.
const NOT_RECORDED: [&str; 8] =
    ["kube", "kube_client", "kube_runtime", "hyper", "hyper_util", "h2", "tonic", "opentelemetry"];

/// Why it cannot be set up.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say it")]
pub enum Error {
    #[error("OTEL_EXPORTER_OTLP_PROTOCOL is {0:?}; known are: grpc, http/protobuf")]
    Protocol(String),
    #[error("OTEL_TRACES_EXPORTER is {0:?}; known are: otlp, none")]
    Exporter(String),
    #[error(
        "OTEL_TRACES_SAMPLER is {0:?}; known are: always_on, always_off, traceidratio, each also with parentbased_ before it"
    )]
    Sampler(String),
    #[error("OTEL_TRACES_SAMPLER_ARG is {0:?}; it must be a number between 0 and 1")]
    Ratio(String),
    #[error("spans cannot be exported")]
    Export(#[from] ExporterBuildError),
    #[error("the exporter's thread does not start")]
    Thread(#[source] io::Error),
    #[error("the system's certificates cannot be read")]
    Certificates(#[source] io::Error),
    #[error("RUST_LOG cannot be read")]
    Filter(#[from] tracing_subscriber::filter::ParseError),
    #[error("somebody else subscribes to logs already")]
    Subscriber(#[from] tracing_subscriber::util::TryInitError),
}

/// Sets telemetry up.
#[derive(Clone, Debug)]
pub struct Setup {
    service: String,
    version: Option<String>,
    options: Options,
}

impl Setup {
    /// For a program of this name, which `OTEL_SERVICE_NAME` can replace.
    pub fn new(service: impl Into<String>) -> Self {
        Self { service: service.into(), version: None, options: Options::default() }
    }

    /// Its version.
    #[must_use]
    pub fn version(mut self, version: impl Into<String>) -> Self {
        self.version = Some(version.into());
        self
    }

    /// How controllers are traced.
    #[must_use]
    pub fn options(mut self, options: Options) -> Self {
        self.options = options;
        self
    }

    /// Starts to record, and nothing else: logs are whose they were. [`Telemetry::layer`] brings the spans of `tracing` in.
    ///
    /// # Errors
    /// When the variables contradict each other or make no sense.
    pub fn start(self) -> Result<(Telemetry, Trail), Error> {
        let variable = |name: &str| env::var(name).ok();
        let export = match Settings::read(variable)? {
            Settings::Off => return Ok((Telemetry { recording: None }, Trail::off())),
            Settings::On(export) => export,
        };
        let runtime = Runtime::start().map_err(Error::Thread)?;
        let hold = Hold::new(BatchSpanProcessor::builder(exporter(export, &runtime)?).build());
        let provider = SdkTracerProvider::builder()
            .with_resource(resource::resource(&self.service, self.version, variable))
            .with_sampler(FollowLinks::ratio(export.ratio))
            .with_span_processor(hold.clone())
            .build();
        let trail = Trail::new(&provider, hold, self.options);
        Ok((Telemetry { recording: Some(Recording { provider, _runtime: runtime }) }, trail))
    }

    /// Starts to record, and logs to standard error what `RUST_LOG` asks for (`info` without it).
    ///
    /// # Errors
    /// As [`start`](Self::start), and when there is a subscriber already.
    pub fn install(self) -> Result<(Telemetry, Trail), Error> {
        let filter: Targets = match env::var("RUST_LOG") {
            Ok(text) if !text.is_empty() => text.parse()?,
            _ => Targets::new().with_default(Level::INFO),
        };
        let (telemetry, trail) = self.start()?;
        let lines = tracing_subscriber::fmt::layer().with_writer(io::stderr).with_filter(filter);
        tracing_subscriber::registry().with(telemetry.layer()).with(lines).try_init()?;
        Ok((telemetry, trail))
    }
}

/// What records. Whoever drops it exports what is left.
#[derive(Debug)]
#[must_use = "what is left is exported when it is dropped, and nothing is recorded after"]
pub struct Telemetry {
    recording: Option<Recording>,
}

#[derive(Debug)]
struct Recording {
    provider: SdkTracerProvider,
    /// Must outlive the provider, whose exporter works there.
    _runtime: Runtime,
}

impl Telemetry {
    /// Whether anything is recorded.
    #[must_use]
    pub fn is_on(&self) -> bool {
        self.recording.is_some()
    }

    /// Makes spans of one's own, under this name.
    #[must_use]
    pub fn tracer(&self, scope: &'static str) -> BoxedTracer {
        match &self.recording {
            Some(recording) => BoxedTracer::new(Box::new(recording.provider.tracer(scope))),
            None => BoxedTracer::new(Box::new(NoopTracer::new())),
        }
    }

    /// Records an author's own `tracing` spans inside the span that is current: those of level `info` and above.
    /// Those of kube and of what is beneath it are left out, since [`Trail`] makes better ones.
    #[must_use]
    pub fn layer<S>(&self) -> Option<Box<dyn Layer<S> + Send + Sync>>
    where
        S: Subscriber + for<'span> LookupSpan<'span> + Send + Sync,
    {
        let tracer: SdkTracer = self.recording.as_ref()?.provider.tracer(SCOPE);
        let own = NOT_RECORDED.iter().map(|target| (*target, LevelFilter::OFF));
        let filter = Targets::new().with_default(Level::INFO).with_targets(own);
        Some(tracing_opentelemetry::layer().with_tracer(tracer).with_filter(filter).boxed())
    }

    /// Exports what is left. It takes a few seconds at most, for which it blocks.
    pub fn shutdown(self) {
        drop(self);
    }
}

impl Drop for Recording {
    fn drop(&mut self) {
        if let Err(error) = self.provider.shutdown() {
            tracing::warn!(%error, "the last spans are lost");
        }
    }
}

fn exporter(export: Export, runtime: &Runtime) -> Result<SpanExporter, Error> {
    // gRPC's connections are made on the runtime that is current here.
    let _inside = runtime.handle().enter();
    match export.protocol {
        Protocol::Grpc if export.is_https => {
            let roots = ClientTlsConfig::new().with_enabled_roots();
            Ok(SpanExporter::builder().with_tonic().with_tls_config(roots).build()?)
        }
        Protocol::Grpc => Ok(SpanExporter::builder().with_tonic().build()?),
        Protocol::HttpProtobuf => {
            let client = Http::new(runtime.handle().clone()).map_err(Error::Certificates)?;
            Ok(SpanExporter::builder().with_http().with_http_client(client).build()?)
        }
    }
}
