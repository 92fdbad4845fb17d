//! Documents for the collectors.
//!
//! ```text
//! gateway   receivers ─┬─ traces/NAME   memory_limiter → k8s_attributes → filter → probabilistic_sampler → its exporter
//!                      ├─ …             for each pipeline of any kind that does not wait for whole traces
//!                      └─ traces/_sticky   memory_limiter → k8s_attributes → load_balancing by trace id
//! sticky    otlp ─────── traces/NAME   memory_limiter → filter → probabilistic_sampler → tail_sampling → its exporter
//! ```
//!
//! # Guarantees
//!
//! - The same pipelines and settings make the same documents, in whatever order they are given.
//! - No document holds a credential, a header, a certificate, or anything that stands in a Secret or a ConfigMap. Each is a key of one Secret, and the document
//!   names the file. What a key holds never changes.
//! - Each pipeline has components of its own, so that its backend concerns nobody else, and a change of it leaves the others alone.

mod exporter;
mod selection;

use std::collections::BTreeMap;

use kubewake_config::{
    FixedSources, Secret, fingerprint,
    written::{
        Client, Exporter, Extension, LoadBalancing, OtlpReceiver, Pipeline, Processor, Receiver, Service, Text, Tls,
        Written,
    },
};

use crate::{
    Settings, Signal, Valid, settings::Batching, settings::QUEUE_BYTES, settings::Retrying, v1alpha1::LogLevel,
};
use exporter::Keys;

/// Where the Secret is mounted in collectors.
pub const SECRETS_DIRECTORY: &str = "/etc/kubewake/secrets";
/// The headless Service of the collectors in which whole traces wait.
pub const STICKY_SERVICE: &str = "kubewake-sticky";
/// The variable with the address of the pod that a collector runs in.
pub const POD_IP: &str = "POD_IP";
/// OTLP over gRPC.
pub const OTLP_GRPC_PORT: u16 = 4317;
/// OTLP over HTTP.
pub const OTLP_HTTP_PORT: u16 = 4318;
/// OpenCensus.
pub const OPENCENSUS_PORT: u16 = 55678;
/// The collectors' own metrics and status.
pub const METRICS_PORT: u16 = 8888;
/// The collectors' health.
pub const HEALTH_PORT: u16 = 13133;

/// What the collectors read.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Layer {
    /// The document of those that receive; none if no pipeline takes anything.
    pub gateway: Option<Document>,
    /// The document of those in which whole traces wait; none if no pipeline needs them.
    pub sticky: Option<Document>,
    /// The keys of the Secret that both documents name.
    pub secrets: BTreeMap<String, Secret>,
    /// The collectors that receive ask the cluster which pod sent something, and so must be allowed to.
    pub enriched: bool,
}

/// A document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Document {
    /// The text.
    pub yaml: String,
    /// What the status of a collector says that has read it.
    pub hash: String,
}

impl Layer {
    /// The world that the documents refer to, so that [`load`](kubewake_config::load()) can check them.
    pub fn sources(&self) -> FixedSources {
        let empty = FixedSources::new().with_env(POD_IP, "127.0.0.1");
        self.secrets
            .iter()
            .fold(empty, |sources, (key, text)| sources.with_file(format!("{SECRETS_DIRECTORY}/{key}"), text.reveal()))
    }
}

/// What the collectors read for these pipelines: all that are valid and hold a slot.
pub fn render(pipelines: &[Valid], settings: &Settings) -> Layer {
    let mut rendered: Vec<&Valid> = pipelines.iter().filter(|pipeline| pipeline.is_rendered()).collect();
    rendered.sort_by_key(|pipeline| (pipeline.signal.name(), &pipeline.name));
    if rendered.is_empty() {
        return Layer::default();
    }
    let (waiting, flowing): (Vec<&Valid>, Vec<&Valid>) =
        rendered.iter().copied().partition(|pipeline| pipeline.is_sticky());
    let enriched = settings.enrichment || rendered.iter().any(|pipeline| selection::selects(&pipeline.input));
    let mut keys = Keys::default();
    let mut gateway = base(settings);
    receivers(&mut gateway, settings, rendered.iter().any(|pipeline| pipeline.signal == Signal::Traces));
    if enriched {
        gateway.processors.insert(ENRICH.into(), selection::enrichment(&rendered, settings));
    }
    for pipeline in flowing {
        add(&mut gateway, &mut keys, pipeline, settings, enriched);
    }
    if !waiting.is_empty() {
        forward(&mut gateway, &waiting, settings, enriched);
    }
    let sticky = (!waiting.is_empty()).then(|| {
        let mut sticky = base(settings);
        sticky.receivers.insert(OTLP.into(), otlp(false));
        for pipeline in waiting {
            add(&mut sticky, &mut keys, pipeline, settings, false);
        }
        Document::of(&sticky)
    });
    Layer { gateway: Some(Document::of(&gateway)), sticky, secrets: keys.0, enriched }
}

impl Document {
    fn of(written: &Written) -> Self {
        let yaml = written.to_yaml();
        Self { hash: fingerprint(&yaml), yaml }
    }
}

const OTLP: &str = "otlp";
const OPENCENSUS: &str = "opencensus";
const LIMIT: &str = "memory_limiter";
const ENRICH: &str = "k8s_attributes";
/// No resource can have this name.
const STICKY: &str = "traces/_sticky";
const BALANCE: &str = "load_balancing/sticky";
/// What may wait until there are collectors in which traces wait: as much as a pipeline's queue holds.
const WAITING_BYTES: i64 = QUEUE_BYTES;

/// What every document has.
fn base(settings: &Settings) -> Written {
    let mut written = Written::default();
    written.extensions.insert("health_check".into(), Extension::HealthCheck(at(HEALTH_PORT)));
    // A quarter of the memory is for the process itself. The fifth part of the rest is for what is under way when it gets tight.
    let limiter = Processor::MemoryLimiter { limit_percentage: 75, spike_limit_percentage: 15 };
    written.processors.insert(LIMIT.into(), limiter);
    written.service = Service {
        pipelines: BTreeMap::new(),
        log_level: Some(match settings.log_level {
            LogLevel::Debug => "debug",
            LogLevel::Info => "info",
            LogLevel::Warn => "warn",
            LogLevel::Error => "error",
        }),
        metrics: Some((Text::Env(POD_IP, String::new()), METRICS_PORT)),
    };
    written
}

/// A port of the pod.
fn at(port: u16) -> Text {
    Text::Env(POD_IP, format!(":{port}"))
}

fn otlp(with_http: bool) -> Receiver {
    Receiver::Otlp(OtlpReceiver { grpc: Some(at(OTLP_GRPC_PORT)), http: with_http.then(|| at(OTLP_HTTP_PORT)) })
}

fn receivers(written: &mut Written, settings: &Settings, traces: bool) {
    written.receivers.insert(OTLP.into(), otlp(true));
    // It brings traces and nothing else.
    if settings.opencensus && traces {
        written.receivers.insert(OPENCENSUS.into(), Receiver::OpenCensus(at(OPENCENSUS_PORT)));
    }
}

/// The receivers of a document that have something for a signal.
fn receivers_of(written: &Written, signal: Signal) -> Vec<String> {
    let is_fit = |id: &&String| signal == Signal::Traces || *id != OPENCENSUS;
    written.receivers.keys().filter(is_fit).cloned().collect()
}

/// A pipeline with all its components.
fn add(written: &mut Written, keys: &mut Keys, pipeline: &Valid, settings: &Settings, enriched: bool) {
    let name = pipeline.component_name();
    let mut processors = vec![LIMIT.to_owned()];
    processors.extend(enriched.then(|| ENRICH.to_owned()));
    let mut own = |kind: &str, processor: Processor| {
        let id = format!("{kind}/{name}");
        written.processors.insert(id.clone(), processor);
        processors.push(id);
    };
    if let Some(filter) = selection::filter(pipeline) {
        own("filter", filter);
    }
    if let Some(sampling_percentage) = pipeline.sampling.percentage {
        // Proportional, so that what was sampled before is sampled once more; what cannot be decided is kept.
        let mode = "proportional";
        own("probabilistic_sampler", Processor::ProbabilisticSampler { mode, sampling_percentage, fail_closed: false });
    }
    if let Some(tail) = &pipeline.sampling.tail {
        own("tail_sampling", Processor::TailSampling(tail.clone()));
    }
    let exporters = vec![exporter::add(written, keys, pipeline, settings)];
    let receivers = receivers_of(written, pipeline.signal);
    // Who is deleted and made again is another one: figures and data of the first are not its own.
    let uid = Some(pipeline.uid.clone()).filter(|uid| !uid.is_empty());
    written
        .service
        .pipelines
        .insert(pipeline.pipeline_id(), Pipeline { receivers, processors, exporters, uid, carries: Vec::new() });
}

/// Traces on to the collectors in which they wait.
fn forward(written: &mut Written, waiting: &[&Valid], settings: &Settings, enriched: bool) {
    let client = Client {
        tls: Some(Tls { insecure: true, ..Tls::default() }),
        // It is the cluster's own network: time is dearer than bytes.
        compression: Some("none"),
        retry: Some(Retrying::default().over(&Retrying::default())),
        queue: Some(Batching::default().over(&Batching::default())),
        ..Client::default()
    };
    let service = format!("{STICKY_SERVICE}.{}", settings.namespace);
    // Until the first of them is ready, traces wait: senders are told that it was taken as soon as another pipeline took it, and would not send it again.
    let waiting_bytes = Some(WAITING_BYTES);
    let balancing = LoadBalancing { service, port: OTLP_GRPC_PORT, client, waiting_bytes };
    written.exporters.insert(BALANCE.into(), Exporter::LoadBalancing(balancing));
    let mut processors = vec![LIMIT.to_owned()];
    processors.extend(enriched.then(|| ENRICH.to_owned()));
    let receivers = receivers_of(written, Signal::Traces);
    // What is lost on the way is lost to these, and their statuses say so.
    let carries = waiting.iter().map(|pipeline| pipeline.uid.clone()).filter(|uid| !uid.is_empty()).collect();
    let pipeline = Pipeline { receivers, processors, exporters: vec![BALANCE.to_owned()], uid: None, carries };
    written.service.pipelines.insert(STICKY.into(), pipeline);
}
