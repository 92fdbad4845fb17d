//! Renders the collectors' documents.
//!
//! ```text
//! gateway   receivers ─┬─ traces/NAME   memory_limiter → k8s_attributes → filter → sampler → its exporter
//!                      ├─ …             for each pipeline of any kind that does not wait for whole traces
//!                      └─ traces/_sticky   memory_limiter → k8s_attributes → load_balancing by trace id
//! sticky    otlp ─────── traces/NAME   memory_limiter → filter → probabilistic_sampler → tail_sampling → its exporter
//! ```
//!
//! # Guarantees
//!
//! - The same pipelines and settings make the same documents, in whatever order they are given.
//! - No document holds a credential, a header, a certificate, or any value of a Secret or a ConfigMap. Each is
//!   a key of one Secret, and the document names the file. The value of a key never changes.
//! - Each pipeline has components of its own, so that its backend affects no other pipeline, and a change of it
//!   leaves the others as they are.

mod exporter;
mod selection;

use std::collections::BTreeMap;

use kubewake_config::{
    FixedSources, SecretString,
    document_builder::{
        ClientSection, ClientTlsSection, DocumentBuilder, ExporterSection, ExtensionSection, LoadBalancingSection,
        OtlpReceiverSection, PipelineSection, ProcessorSection, ReceiverSection, ServiceSection, TextSource,
    },
    fingerprint,
};

use crate::{
    CollectorSettings, Signal, ValidPipeline, settings::DEFAULT_QUEUE_BYTES, settings::RetrySettings,
    settings::SendingQueueSettings, v1alpha1::CollectorLogLevel,
};
use exporter::SecretKeys;

/// The path at which collectors mount the Secret.
pub const SECRETS_DIRECTORY: &str = "/etc/kubewake/secrets";
/// The directory of a node in which the kubelet has the logs of containers.
pub const POD_LOG_DIRECTORY: &str = "/var/log/pods";
/// The headless Service of the sticky tier.
pub const STICKY_SERVICE: &str = "kubewake-sticky";
/// The environment variable with the address of a collector's pod.
pub const POD_IP_VARIABLE: &str = "POD_IP";
/// The port of OTLP over gRPC.
pub const OTLP_GRPC_PORT: u16 = 4317;
/// The port of OTLP over HTTP.
pub const OTLP_HTTP_PORT: u16 = 4318;
/// The port of OpenCensus.
pub const OPENCENSUS_PORT: u16 = 55678;
/// The port of the collectors' own metrics and status.
pub const METRICS_PORT: u16 = 8888;
/// The port of the collectors' health endpoint.
pub const HEALTH_PORT: u16 = kubewake_status::STATUS_PORT;

/// The configuration of all collectors.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CollectorConfigs {
    /// The document of the gateway; none if no pipeline receives anything.
    pub gateway: Option<RenderedDocument>,
    /// The document of the sticky tier; none if no pipeline waits for whole traces.
    pub sticky: Option<RenderedDocument>,
    /// The document of the collectors on the nodes; none if no pipeline reads logs of containers.
    pub agent: Option<RenderedDocument>,
    /// The keys and values of the Secret that the documents of gateway and sticky tier refer to.
    pub secrets: BTreeMap<String, SecretString>,
    /// The keys and values of the Secret that the document of the collectors on the nodes refers to.
    pub agent_secrets: BTreeMap<String, SecretString>,
    /// Whether the gateway looks up senders' pods in the cluster, and so needs the right to.
    pub enriched: bool,
}

/// A document for one tier of collectors.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RenderedDocument {
    /// The document as YAML.
    pub yaml: String,
    /// The hash that a collector reports after it has read the document.
    pub hash: String,
}

impl CollectorConfigs {
    /// The documents of all tiers.
    pub fn documents(&self) -> impl Iterator<Item = &RenderedDocument> {
        [&self.gateway, &self.sticky, &self.agent].into_iter().flatten()
    }

    /// The files and variables that the documents refer to, so that [`load`](kubewake_config::load()) can check
    /// them.
    pub fn sources(&self) -> FixedSources {
        let empty = FixedSources::new().with_env(POD_IP_VARIABLE, "127.0.0.1");
        let secrets = self.secrets.iter().chain(&self.agent_secrets);
        secrets
            .fold(empty, |sources, (key, text)| sources.with_file(format!("{SECRETS_DIRECTORY}/{key}"), text.reveal()))
    }
}

/// Renders the configuration for these pipelines, which must all hold a slot.
pub fn render(pipelines: &[ValidPipeline], settings: &CollectorSettings) -> CollectorConfigs {
    let mut rendered: Vec<&ValidPipeline> = pipelines.iter().filter(|pipeline| pipeline.is_rendered()).collect();
    rendered.sort_by_key(|pipeline| (pipeline.signal.name(), &pipeline.name));
    let mut configs = CollectorConfigs::default();
    let receiving: Vec<&ValidPipeline> = rendered.iter().copied().filter(|it| it.receives_otlp()).collect();
    if !receiving.is_empty() {
        add_receiving_tiers(&mut configs, &receiving, settings);
    }
    configs
}

/// Renders the documents of the gateway and of the sticky tier for the pipelines that receive what is sent.
fn add_receiving_tiers(configs: &mut CollectorConfigs, receiving: &[&ValidPipeline], settings: &CollectorSettings) {
    let (waiting, flowing): (Vec<&ValidPipeline>, Vec<&ValidPipeline>) =
        receiving.iter().copied().partition(|pipeline| pipeline.is_sticky());
    let enriched = settings.enrichment || receiving.iter().any(|pipeline| selection::has_selection(&pipeline.input));
    let mut keys = SecretKeys::default();
    let mut gateway = base_document(settings);
    receivers(&mut gateway, settings, receiving.iter().any(|pipeline| pipeline.signal == Signal::Traces));
    if enriched {
        gateway.processors.insert(ENRICHMENT_PROCESSOR.into(), selection::enrichment(receiving, settings));
    }
    for pipeline in flowing {
        add_pipeline(&mut gateway, &mut keys, pipeline, settings, enriched);
    }
    if !waiting.is_empty() {
        add_sticky_forwarding(&mut gateway, &waiting, settings, enriched);
    }
    configs.sticky = (!waiting.is_empty()).then(|| {
        let mut sticky = base_document(settings);
        sticky.receivers.insert(OTLP_RECEIVER.into(), otlp(false));
        for pipeline in waiting {
            add_pipeline(&mut sticky, &mut keys, pipeline, settings, false);
        }
        RenderedDocument::from_builder(&sticky)
    });
    configs.gateway = Some(RenderedDocument::from_builder(&gateway));
    configs.secrets = keys.0;
    configs.enriched = enriched;
}

impl RenderedDocument {
    fn from_builder(written: &DocumentBuilder) -> Self {
        let yaml = written.to_yaml();
        Self { hash: fingerprint(&yaml), yaml }
    }
}

const OTLP_RECEIVER: &str = "otlp";
const OPENCENSUS_RECEIVER: &str = "opencensus";
const MEMORY_LIMITER: &str = "memory_limiter";
const ENRICHMENT_PROCESSOR: &str = "k8s_attributes";
/// An id that no resource's pipeline can have.
const STICKY_PIPELINE: &str = "traces/_sticky";
const STICKY_EXPORTER: &str = "load_balancing/sticky";
/// Traces that may wait at the gateway until the sticky tier is ready: as much as the queue of a pipeline.
const STICKY_QUEUE_BYTES: i64 = DEFAULT_QUEUE_BYTES;

/// The part that all documents have in common.
fn base_document(settings: &CollectorSettings) -> DocumentBuilder {
    let mut written = DocumentBuilder::default();
    written.extensions.insert("health_check".into(), ExtensionSection::HealthCheck(listen_address(HEALTH_PORT)));
    // A quarter of the memory is for the process itself. A fifth of the rest is reserved for requests in flight
    // when memory is short.
    let limiter = ProcessorSection::MemoryLimiter { limit_percentage: 75, spike_limit_percentage: 15 };
    written.processors.insert(MEMORY_LIMITER.into(), limiter);
    written.service = ServiceSection {
        pipelines: BTreeMap::new(),
        log_level: Some(match settings.log_level {
            CollectorLogLevel::Debug => "debug",
            CollectorLogLevel::Info => "info",
            CollectorLogLevel::Warn => "warn",
            CollectorLogLevel::Error => "error",
        }),
        metrics: Some((TextSource::Env(POD_IP_VARIABLE, String::new()), METRICS_PORT)),
    };
    written
}

/// A port on the pod's address.
fn listen_address(port: u16) -> TextSource {
    TextSource::Env(POD_IP_VARIABLE, format!(":{port}"))
}

fn otlp(with_http: bool) -> ReceiverSection {
    ReceiverSection::Otlp(OtlpReceiverSection {
        grpc: Some(listen_address(OTLP_GRPC_PORT)),
        http: with_http.then(|| listen_address(OTLP_HTTP_PORT)),
    })
}

fn receivers(written: &mut DocumentBuilder, settings: &CollectorSettings, traces: bool) {
    written.receivers.insert(OTLP_RECEIVER.into(), otlp(true));
    // OpenCensus carries only traces.
    if settings.opencensus && traces {
        written
            .receivers
            .insert(OPENCENSUS_RECEIVER.into(), ReceiverSection::OpenCensus(listen_address(OPENCENSUS_PORT)));
    }
}

/// The receivers of a document that carry a signal.
fn receivers_of(written: &DocumentBuilder, signal: Signal) -> Vec<String> {
    let is_fit = |id: &&String| signal == Signal::Traces || *id != OPENCENSUS_RECEIVER;
    written.receivers.keys().filter(is_fit).cloned().collect()
}

/// Adds a pipeline with all its components.
fn add_pipeline(
    written: &mut DocumentBuilder,
    keys: &mut SecretKeys,
    pipeline: &ValidPipeline,
    settings: &CollectorSettings,
    enriched: bool,
) {
    let name = pipeline.component_name();
    let mut processors = vec![MEMORY_LIMITER.to_owned()];
    processors.extend(enriched.then(|| ENRICHMENT_PROCESSOR.to_owned()));
    let mut own = |kind: &str, processor: ProcessorSection| {
        let id = format!("{kind}/{name}");
        written.processors.insert(id.clone(), processor);
        processors.push(id);
    };
    if let Some(filter) = selection::filter(pipeline) {
        own("filter", filter);
    }
    if let Some(sampling_percentage) = pipeline.sampling.percentage {
        // Proportional, so that data that was sampled before is sampled again; undecidable items are kept.
        let mode = "proportional";
        own(
            "probabilistic_sampler",
            ProcessorSection::ProbabilisticSampler { mode, sampling_percentage, fail_closed: false },
        );
    }
    if let Some(tail) = &pipeline.sampling.tail {
        own("tail_sampling", ProcessorSection::TailSampling(tail.clone()));
    }
    let exporters = vec![exporter::add_exporter(written, keys, pipeline, settings)];
    let receivers = receivers_of(written, pipeline.signal);
    // A resource that is deleted and created again is another pipeline: metrics and data of the first are not
    // its own.
    let uid = Some(pipeline.uid.clone()).filter(|uid| !uid.is_empty());
    written
        .service
        .pipelines
        .insert(pipeline.pipeline_id(), PipelineSection { receivers, processors, exporters, uid, carries: Vec::new() });
}

/// Adds the pipeline that forwards traces to the sticky tier.
fn add_sticky_forwarding(
    written: &mut DocumentBuilder,
    waiting: &[&ValidPipeline],
    settings: &CollectorSettings,
    enriched: bool,
) {
    let client = ClientSection {
        tls: Some(ClientTlsSection { insecure: true, ..ClientTlsSection::default() }),
        // On the cluster's own network time costs more than bytes.
        compression: Some("none"),
        retry: Some(RetrySettings::default().with_defaults(&RetrySettings::default())),
        queue: Some(SendingQueueSettings::default().with_defaults(&SendingQueueSettings::default())),
        ..ClientSection::default()
    };
    let service = format!("{STICKY_SERVICE}.{}", settings.namespace);
    // Traces wait until the first sticky collector is ready. Senders get their response as soon as another
    // pipeline has accepted a request, and would not send it again.
    let waiting_bytes = Some(STICKY_QUEUE_BYTES);
    let balancing = LoadBalancingSection { service, port: OTLP_GRPC_PORT, client, waiting_bytes };
    written.exporters.insert(STICKY_EXPORTER.into(), ExporterSection::LoadBalancing(balancing));
    let mut processors = vec![MEMORY_LIMITER.to_owned()];
    processors.extend(enriched.then(|| ENRICHMENT_PROCESSOR.to_owned()));
    let receivers = receivers_of(written, Signal::Traces);
    // Losses in forwarding are losses of these pipelines, and their statuses report them.
    let carries = waiting.iter().map(|pipeline| pipeline.uid.clone()).filter(|uid| !uid.is_empty()).collect();
    let pipeline =
        PipelineSection { receivers, processors, exporters: vec![STICKY_EXPORTER.to_owned()], uid: None, carries };
    written.service.pipelines.insert(STICKY_PIPELINE.into(), pipeline);
}
