//! Renders the collectors' documents.
//!
//! ```text
//! gateway   receivers ─┬─ traces/NAME   memory_limiter → k8s_attributes → filter → sampler → its exporter
//!                      ├─ …             for each pipeline of any kind that does not wait for whole traces
//!                      └─ traces/_sticky   memory_limiter → k8s_attributes → load_balancing by trace id
//! sticky    otlp ─────── traces/NAME   memory_limiter → filter → probabilistic_sampler → tail_sampling → its exporter
//! agent     file_log ─── logs/NAME     memory_limiter → k8s_attributes → filter → its exporter
//! ```
//!
//! # Guarantees
//!
//! - The same pipelines and settings make the same documents, in whatever order they are given.
//! - No document holds a credential, a header, a certificate, or any value of a Secret or a ConfigMap. Each is
//!   a key of one Secret, and the document names the file. The value of a key never changes.
//! - Each pipeline has components of its own, so that its backend affects no other pipeline, and a change of it
//!   leaves the others as they are.

mod agent;
mod exporter;
mod log_exporter;
mod receiver;
mod selection;

use std::collections::BTreeMap;

use kubewake_config::{
    CollectorDocument, ComponentId, ConfigText, EncodeError, FixedSources, PipelineId, SecretString, TextReference,
    fingerprint,
    model::{
        ClientTls, CompressionType, ExporterConfig, ExtensionConfig, FilterProcessor, GrpcServer, HealthCheck,
        HttpServer, LoadBalancingExporter, LogLevel, LogsConfig, MemoryLimit, MemoryLimiter, MetricsConfig,
        OpenCensusReceiver, OtlpGrpcExporter, OtlpReceiver, PeerResolver, PipelineConfig, ProbabilisticSampler,
        ProcessorConfig, QueueConfig, QueueSizer, ReceiverConfig, RoutingKey, SamplerMode, ServiceResolver,
        TelemetryConfig,
    },
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
/// The directory of a node in which collectors there record their positions.
pub const STATE_DIRECTORY: &str = "/var/lib/kubewake/agent";
/// The environment variable with the name of a collector's node.
pub const NODE_NAME_VARIABLE: &str = "NODE_NAME";
/// The namespace of the collectors on the nodes.
pub const AGENT_NAMESPACE: &str = "kubewake-agents";
/// The DaemonSet of the collectors on the nodes.
pub const AGENT_NAME: &str = "kubewake-agent";
/// The headless Service of the sticky tier.
pub const STICKY_SERVICE: &str = "kubewake-sticky";
/// The environment variable with the address of a collector's pod.
pub const POD_IP_VARIABLE: &str = "POD_IP";
/// The address in place of a pod's in documents that are checked and not run.
const CHECKED_POD_IP: &str = "127.0.0.1";
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
        let empty = FixedSources::new().with_env(POD_IP_VARIABLE, CHECKED_POD_IP);
        let secrets = self.secrets.iter().chain(&self.agent_secrets);
        secrets
            .fold(empty, |sources, (key, text)| sources.with_file(format!("{SECRETS_DIRECTORY}/{key}"), text.reveal()))
    }
}

/// Renders the configuration for these pipelines, which must all hold a slot.
///
/// # Errors
///
/// If a document would contain a secret, which is a bug of this crate: every secret has a key of its own.
pub fn render(pipelines: &[ValidPipeline], settings: &CollectorSettings) -> Result<CollectorConfigs, EncodeError> {
    let mut rendered: Vec<&ValidPipeline> = pipelines.iter().filter(|pipeline| pipeline.is_rendered()).collect();
    rendered.sort_by_key(|pipeline| (pipeline.signal.name(), &pipeline.name));
    let mut configs = CollectorConfigs::default();
    let receiving: Vec<&ValidPipeline> = rendered.iter().copied().filter(|it| it.receives_otlp()).collect();
    if !receiving.is_empty() {
        add_receiving_tiers(&mut configs, &receiving, settings)?;
    }
    let reading: Vec<&ValidPipeline> = rendered.into_iter().filter(|it| it.reads_logs()).collect();
    if !reading.is_empty() {
        agent::add_agent(&mut configs, &reading, settings)?;
    }
    Ok(configs)
}

/// Renders the documents of the gateway and of the sticky tier, for the pipelines that receive what is sent.
fn add_receiving_tiers(
    configs: &mut CollectorConfigs,
    receiving: &[&ValidPipeline],
    settings: &CollectorSettings,
) -> Result<(), EncodeError> {
    let (waiting, flowing): (Vec<&ValidPipeline>, Vec<&ValidPipeline>) =
        receiving.iter().copied().partition(|pipeline| pipeline.is_sticky());
    let enriched = settings.enrichment || receiving.iter().any(|pipeline| selection::has_selection(&pipeline.input));
    let mut keys = SecretKeys::default();
    let mut gateway = base_document(settings);
    add_receivers(&mut gateway, settings, receiving.iter().any(|pipeline| pipeline.signal == Signal::Traces));
    if enriched {
        let enrichment = selection::enrichment(receiving, settings);
        let id = ComponentId::new(ENRICHMENT_PROCESSOR);
        gateway.processors.insert(id, ProcessorConfig::KubernetesAttributes(enrichment.into()));
    }
    for pipeline in flowing {
        add_pipeline(&mut gateway, &mut keys, pipeline, settings, enriched);
    }
    if !waiting.is_empty() {
        add_sticky_forwarding(&mut gateway, &waiting, settings, enriched);
    }
    if !waiting.is_empty() {
        let mut document = base_document(settings);
        document.receivers.insert(ComponentId::new(OTLP_RECEIVER), ReceiverConfig::Otlp(otlp_over_grpc().into()));
        for pipeline in waiting {
            add_pipeline(&mut document, &mut keys, pipeline, settings, false);
        }
        configs.sticky = Some(finish_document(document)?);
    }
    configs.gateway = Some(finish_document(gateway)?);
    configs.secrets = keys.0;
    configs.enriched = enriched;
    Ok(())
}

impl RenderedDocument {
    fn from_document(document: &CollectorDocument) -> Result<Self, EncodeError> {
        let yaml = document.to_yaml()?;
        Ok(Self { hash: fingerprint(&yaml), yaml })
    }
}

const OTLP_RECEIVER: &str = "otlp";
const OPENCENSUS_RECEIVER: &str = "opencensus";
const MEMORY_LIMITER: &str = "memory_limiter";
const ENRICHMENT_PROCESSOR: &str = "k8s_attributes";
/// A name that no resource's pipeline can have.
const STICKY_PIPELINE: &str = "_sticky";
const STICKY_EXPORTER: &str = "load_balancing/sticky";
/// Traces that may wait at the gateway until the sticky tier is ready: as much as the queue of a pipeline.
const STICKY_QUEUE_BYTES: u64 = DEFAULT_QUEUE_BYTES.unsigned_abs();

/// The part that all documents have in common.
fn base_document(settings: &CollectorSettings) -> CollectorDocument {
    let mut document = CollectorDocument::default();
    let health = HealthCheck { endpoint: listen_address(HEALTH_PORT), ..HealthCheck::default() };
    document.extensions.insert(ComponentId::new("health_check"), ExtensionConfig::HealthCheck(health));
    // A quarter of the memory is for the process itself. A fifth of the rest is reserved for requests in flight
    // when memory is short.
    let limiter = MemoryLimiter { limit: MemoryLimit::Percent { limit: 75, spike: 15 } };
    document.processors.insert(ComponentId::new(MEMORY_LIMITER), ProcessorConfig::MemoryLimiter(limiter));
    let level = match settings.log_level {
        CollectorLogLevel::Debug => LogLevel::Debug,
        CollectorLogLevel::Info => LogLevel::Info,
        CollectorLogLevel::Warn => LogLevel::Warn,
        CollectorLogLevel::Error => LogLevel::Error,
    };
    let metrics = MetricsConfig { endpoint: Some(listen_address(METRICS_PORT)), ..MetricsConfig::default() };
    let logs = LogsConfig { level, ..LogsConfig::default() };
    document.service.telemetry = TelemetryConfig { logs, metrics, ..TelemetryConfig::default() };
    document
}

/// Enables all extensions, and writes the document.
fn finish_document(mut document: CollectorDocument) -> Result<RenderedDocument, EncodeError> {
    document.service.extensions = document.extensions.keys().cloned().collect();
    RenderedDocument::from_document(&document)
}

/// A port on the pod's address.
fn listen_address(port: u16) -> ConfigText {
    let reference = TextReference::Env { name: POD_IP_VARIABLE, rest: format!(":{port}") };
    ConfigText::referenced(format!("{CHECKED_POD_IP}:{port}"), reference)
}

fn grpc_server(port: u16) -> GrpcServer {
    GrpcServer { endpoint: listen_address(port), ..GrpcServer::default() }
}

fn otlp_over_grpc() -> OtlpReceiver {
    OtlpReceiver { grpc: Some(grpc_server(OTLP_GRPC_PORT)), http: None }
}

fn add_receivers(document: &mut CollectorDocument, settings: &CollectorSettings, traces: bool) {
    let http = HttpServer { endpoint: listen_address(OTLP_HTTP_PORT), ..HttpServer::default() };
    let otlp = OtlpReceiver { http: Some(http), ..otlp_over_grpc() };
    document.receivers.insert(ComponentId::new(OTLP_RECEIVER), ReceiverConfig::Otlp(otlp.into()));
    // OpenCensus carries only traces.
    if settings.opencensus && traces {
        let receiver = OpenCensusReceiver { server: grpc_server(OPENCENSUS_PORT), ..OpenCensusReceiver::default() };
        document.receivers.insert(ComponentId::new(OPENCENSUS_RECEIVER), ReceiverConfig::OpenCensus(receiver.into()));
    }
}

/// The receivers of a document that carry a signal.
fn receivers_of(document: &CollectorDocument, signal: Signal) -> Vec<ComponentId> {
    let is_fit = |receiver: &ReceiverConfig| receiver.signals().contains(&signal);
    document.receivers.iter().filter(|(_, receiver)| is_fit(receiver)).map(|(id, _)| id.clone()).collect()
}

/// The processors that all pipelines of a document begin with.
fn first_processors(enriched: bool) -> Vec<ComponentId> {
    let limiter = ComponentId::new(MEMORY_LIMITER);
    [limiter].into_iter().chain(enriched.then(|| ComponentId::new(ENRICHMENT_PROCESSOR))).collect()
}

/// Adds a pipeline with all its components.
fn add_pipeline(
    document: &mut CollectorDocument,
    keys: &mut SecretKeys,
    pipeline: &ValidPipeline,
    settings: &CollectorSettings,
    enriched: bool,
) {
    let name = pipeline.component_name();
    let mut processors = first_processors(enriched);
    for processor in own_processors(pipeline, selection::filter(pipeline)) {
        let id = ComponentId::new(format!("{}/{name}", processor.type_name()));
        document.processors.insert(id.clone(), processor);
        processors.push(id);
    }
    let exporters = vec![exporter::add_exporter(document, keys, pipeline, settings)];
    let receivers = receivers_of(document, pipeline.signal);
    let uid = pipeline_uid(pipeline);
    let config = PipelineConfig { receivers, processors, exporters, uid, carries: Vec::new() };
    document.service.pipelines.insert(pipeline.pipeline_id(), config);
}

/// A resource that is deleted and created again is another pipeline: metrics and data of the first are not its own.
fn pipeline_uid(pipeline: &ValidPipeline) -> Option<String> {
    Some(pipeline.uid.clone()).filter(|uid| !uid.is_empty())
}

/// The processors that belong to a pipeline alone.
fn own_processors(pipeline: &ValidPipeline, filter: Option<FilterProcessor>) -> impl Iterator<Item = ProcessorConfig> {
    let filter = filter.map(|filter| ProcessorConfig::Filter(filter.into()));
    // Proportional, so that data that was sampled before is sampled again; undecidable items are kept.
    let sampler = pipeline.sampling.percentage.map(|percentage| ProbabilisticSampler {
        mode: SamplerMode::Proportional,
        percentage: percentage as f32,
        fail_closed: false,
        ..ProbabilisticSampler::default()
    });
    let tail = pipeline.sampling.tail.clone().map(|tail| ProcessorConfig::TailSampling(tail.into()));
    filter.into_iter().chain(sampler.map(ProcessorConfig::ProbabilisticSampler)).chain(tail)
}

/// Adds the pipeline that forwards traces to the sticky tier.
fn add_sticky_forwarding(
    document: &mut CollectorDocument,
    waiting: &[&ValidPipeline],
    settings: &CollectorSettings,
    enriched: bool,
) {
    let otlp = OtlpGrpcExporter {
        tls: ClientTls { insecure: true, ..ClientTls::default() },
        // On the cluster's own network time costs more than bytes.
        compression: CompressionType::None,
        retry: RetrySettings::default().with_defaults(&RetrySettings::default()),
        queue: Some(SendingQueueSettings::default().with_defaults(&SendingQueueSettings::default())),
        ..OtlpGrpcExporter::default()
    };
    let resolver = ServiceResolver {
        name: STICKY_SERVICE.to_owned(),
        namespace: Some(settings.namespace.clone()),
        ports: vec![OTLP_GRPC_PORT],
        ..ServiceResolver::default()
    };
    // Traces wait until the first sticky collector is ready. Senders get their response as soon as another
    // pipeline has accepted a request, and would not send it again.
    let queue = QueueConfig { queue_size: STICKY_QUEUE_BYTES, sizer: QueueSizer::Bytes, ..QueueConfig::default() };
    let balancing = LoadBalancingExporter {
        otlp,
        resolver: PeerResolver::Kubernetes(resolver),
        routing: Some(RoutingKey::TraceId),
        timeout: None,
        retry: None,
        queue: Some(queue),
    };
    let exporter = ComponentId::new(STICKY_EXPORTER);
    document.exporters.insert(exporter.clone(), ExporterConfig::LoadBalancing(balancing.into()));
    // Losses in forwarding are losses of these pipelines, and their statuses report them.
    let carries = waiting.iter().map(|pipeline| pipeline.uid.clone()).filter(|uid| !uid.is_empty()).collect();
    let config = PipelineConfig {
        receivers: receivers_of(document, Signal::Traces),
        processors: first_processors(enriched),
        exporters: vec![exporter],
        uid: None,
        carries,
    };
    document.service.pipelines.insert(PipelineId::named(Signal::Traces, STICKY_PIPELINE), config);
}
