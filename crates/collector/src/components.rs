//! The registry of components: the only module that names them.
//!
//! The engine uses the results of these functions and names no component. Cargo features choose which
//! components are compiled in; a document that uses another one is refused with the name of the feature.

mod catalog;
mod exporter_node;

use std::{sync::Arc, time::Duration};

use kubewake_config::{
    ComponentId,
    model::{self, MemoryLimit, QueueConfig, RetryConfig},
};
use kubewake_otlp::Signal;

pub use self::{
    catalog::list_components,
    exporter_node::{ExporterNode, PreparedExporter},
};
use crate::{
    core::{DestinationLabels, Exporter, PipelineSet, Processor, ProcessorStats, StatsRegistry},
    extension::{ClientAuth, ServerAuth},
    net::listener_pool::AddressClaims,
    processor::transform::{RequestTransform, TransformProcessor},
};

/// An exporter built from its settings, for one signal.
pub struct ExporterParts {
    pub exporter: Arc<dyn Exporter>,
    pub timeout: Option<Duration>,
    /// The retry policy; `None` disables retries.
    pub retry: Option<RetryConfig>,
    /// The queue in front of it.
    pub queue: Option<QueueConfig>,
    /// The destination, for labels.
    pub destination: DestinationLabels,
}

/// Why a component could not be built. The message holds no secret.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct BuildError(pub String);

/// The authenticators of an extension, for clients and for servers.
#[derive(Clone, Default)]
pub struct AuthProviders {
    pub client: Option<Arc<dyn ClientAuth>>,
    pub server: Option<Arc<dyn ServerAuth>>,
}

/// Builds an exporter for one signal.
pub fn prepare_exporter(
    settings: &model::ExporterConfig,
    signal: Signal,
    auth: Option<Arc<dyn ClientAuth>>,
) -> Result<PreparedExporter, BuildError> {
    let _ = &auth;
    let one = match settings {
        #[cfg(feature = "exporter-loadbalancing")]
        model::ExporterConfig::LoadBalancing(settings) => {
            let prepared = crate::exporter::loadbalancing::prepare(settings, signal, auth)?;
            return Ok(PreparedExporter::Balanced(Box::new(prepared)));
        }
        #[cfg(feature = "exporter-otlp")]
        model::ExporterConfig::OtlpGrpc(settings) => crate::exporter::otlp_grpc::build(settings, signal, auth),
        #[cfg(feature = "exporter-otlphttp")]
        model::ExporterConfig::OtlpHttp(settings) => crate::exporter::otlp_http::build(settings, signal, auth),
        #[cfg(feature = "exporter-debug")]
        model::ExporterConfig::Debug(settings) => crate::exporter::debug::build(settings),
        #[cfg(feature = "exporter-file")]
        model::ExporterConfig::File(settings) => crate::exporter::file::build(settings),
        #[cfg(feature = "exporter-nop")]
        model::ExporterConfig::Nop(_) => crate::exporter::nop::build(),
        #[allow(unreachable_patterns)]
        _ => Err(catalog::missing_feature_error("this exporter", "exporter-…")),
    };
    one.map(|built| PreparedExporter::Single(Box::new(built)))
}

/// The role of a processor in its pipeline.
pub enum ProcessorRole {
    /// A limit of the memory that the pipeline is charged to: bytes, and the part reserved for requests in
    /// progress.
    MemoryBudget(u64, u64),
    /// A processor that data passes through.
    Node,
}

pub fn processor_role(settings: &model::ProcessorConfig) -> ProcessorRole {
    match settings {
        model::ProcessorConfig::MemoryLimiter(limiter) => match limiter.limit {
            MemoryLimit::Bytes { limit, spike } => ProcessorRole::MemoryBudget(limit, spike),
            MemoryLimit::Percent { limit, spike } => {
                let total = crate::engine::memory::available_bytes();
                let share = |percent: u32| total / 100 * u64::from(percent.min(100));
                ProcessorRole::MemoryBudget(share(limit), share(spike))
            }
        },
        _ => ProcessorRole::Node,
    }
}

/// Whether this build has the processor, and the settings can be applied here.
pub fn check_processor(settings: &model::ProcessorConfig) -> Result<(), BuildError> {
    match settings {
        #[cfg(feature = "processor-k8sattributes")]
        model::ProcessorConfig::KubernetesAttributes(settings) => crate::processor::k8s_attributes::check(settings),
        settings => catalog::require_processor(settings),
    }
}

/// Builds the request transform of these settings, if the processor is one.
fn build_transform(
    id: &ComponentId,
    settings: &model::ProcessorConfig,
    stats: &ProcessorStats,
) -> Option<Box<dyn RequestTransform>> {
    let _ = (id, stats);
    match settings {
        #[cfg(feature = "processor-filter")]
        model::ProcessorConfig::Filter(settings) => {
            Some(Box::new(crate::processor::filter::FilterTransform::new(model::FilterProcessor::clone(settings))))
        }
        #[cfg(feature = "processor-attributes")]
        model::ProcessorConfig::Attributes(settings) => Some(Box::new(
            crate::processor::attributes::AttributesTransform::new(model::AttributesProcessor::clone(settings)),
        )),
        #[cfg(feature = "processor-attributes")]
        model::ProcessorConfig::Resource(settings) => {
            Some(Box::new(crate::processor::attributes::ResourceTransform::new(settings.clone())))
        }
        #[cfg(feature = "processor-redaction")]
        model::ProcessorConfig::Redaction(settings) => Some(Box::new(
            crate::processor::redaction::RedactionTransform::new(model::RedactionProcessor::clone(settings)),
        )),
        #[cfg(feature = "processor-probabilistic-sampler")]
        model::ProcessorConfig::ProbabilisticSampler(settings) => {
            use crate::processor::probabilistic_sampler::ProbabilisticSampler;
            Some(Box::new(ProbabilisticSampler::new(id, settings, &stats.sampled)))
        }
        _ => None,
    }
}

/// A processor in a pipeline, which can take new settings.
pub enum ProcessorNode {
    /// A processor that transforms each request at once.
    Transform(Arc<TransformProcessor>),
    #[cfg(feature = "processor-batch")]
    Batch(Arc<crate::processor::batch::BatchingProcessor>),
    #[cfg(feature = "processor-tail-sampling")]
    TailSampling(Arc<crate::processor::tail_sampling::TailSampler>),
    #[cfg(feature = "processor-k8sattributes")]
    KubernetesAttributes(Arc<crate::processor::k8s_attributes::KubernetesEnrichmentProcessor>),
}

impl ProcessorNode {
    pub fn build(
        id: &ComponentId,
        settings: &model::ProcessorConfig,
        signal: Signal,
        registry: &StatsRegistry,
    ) -> Result<Self, BuildError> {
        let stats = registry.processor(id, signal);
        if let Some(mapper) = build_transform(id, settings, &stats) {
            return Ok(Self::Transform(TransformProcessor::new(signal, mapper, stats)));
        }
        match settings {
            #[cfg(feature = "processor-batch")]
            model::ProcessorConfig::Batch(settings) => {
                Ok(Self::Batch(crate::processor::batch::BatchingProcessor::new(signal, settings.clone(), stats)))
            }
            #[cfg(feature = "processor-tail-sampling")]
            model::ProcessorConfig::TailSampling(settings) => {
                let stats = registry.processor(id, signal);
                let sampling = registry.sampler(id);
                let settings = model::TailSamplingProcessor::clone(settings);
                Ok(Self::TailSampling(crate::processor::tail_sampling::TailSampler::new(id, settings, stats, sampling)))
            }
            #[cfg(feature = "processor-k8sattributes")]
            model::ProcessorConfig::KubernetesAttributes(settings) => {
                let stats = (registry.processor(id, signal), registry.cluster(id));
                let shared = &registry.shared;
                Ok(Self::KubernetesAttributes(crate::processor::k8s_attributes::KubernetesEnrichmentProcessor::new(
                    id, signal, settings, shared, stats,
                )))
            }
            _ => Err(catalog::missing_feature_error("this processor", "processor-…")),
        }
    }

    pub fn reconfigure(&self, id: &ComponentId, settings: &model::ProcessorConfig) {
        // An id keeps its type, so the settings always match.
        match self {
            Self::Transform(mapping) => build_transform(id, settings, mapping.stats())
                .into_iter()
                .for_each(|mapper| mapping.reconfigure(mapper)),
            #[cfg(feature = "processor-batch")]
            Self::Batch(batcher) => {
                if let model::ProcessorConfig::Batch(settings) = settings {
                    batcher.reconfigure(settings.clone());
                }
            }
            #[cfg(feature = "processor-tail-sampling")]
            Self::TailSampling(sampler) => {
                if let model::ProcessorConfig::TailSampling(settings) = settings {
                    sampler.reconfigure(model::TailSamplingProcessor::clone(settings));
                }
            }
            #[cfg(feature = "processor-k8sattributes")]
            Self::KubernetesAttributes(enricher) => {
                if let model::ProcessorConfig::KubernetesAttributes(settings) = settings {
                    enricher.reconfigure(settings);
                }
            }
        }
    }

    /// Whether there are other references, through which data may still arrive.
    pub fn is_in_use(&self) -> bool {
        match self {
            Self::Transform(mapping) => Arc::strong_count(mapping) > 1,
            #[cfg(feature = "processor-batch")]
            Self::Batch(batcher) => Arc::strong_count(batcher) > 1,
            #[cfg(feature = "processor-tail-sampling")]
            Self::TailSampling(sampler) => Arc::strong_count(sampler) > 1,
            #[cfg(feature = "processor-k8sattributes")]
            Self::KubernetesAttributes(enricher) => Arc::strong_count(enricher) > 1,
        }
    }

    pub fn processor(&self) -> Arc<dyn Processor> {
        match self {
            Self::Transform(mapping) => mapping.clone(),
            #[cfg(feature = "processor-batch")]
            Self::Batch(batcher) => batcher.clone(),
            #[cfg(feature = "processor-tail-sampling")]
            Self::TailSampling(sampler) => sampler.clone(),
            #[cfg(feature = "processor-k8sattributes")]
            Self::KubernetesAttributes(enricher) => enricher.clone(),
        }
    }
}

/// Builds the authenticators of an extension.
pub fn build_auth(settings: &model::ExtensionConfig) -> Result<AuthProviders, BuildError> {
    match settings {
        #[cfg(feature = "extension-auth")]
        model::ExtensionConfig::BasicAuth(settings) => crate::extension::basic::build(settings),
        #[cfg(feature = "extension-auth")]
        model::ExtensionConfig::BearerTokenAuth(settings) => crate::extension::bearer::build(settings),
        #[cfg(feature = "extension-auth")]
        model::ExtensionConfig::OAuth2Client(settings) => crate::extension::oauth2::build(settings),
        model::ExtensionConfig::HealthCheck(_) => Ok(AuthProviders::default()),
        #[allow(unreachable_patterns)]
        _ => Err(catalog::missing_feature_error("this extension", "extension-auth")),
    }
}

/// A receiver that is checked and bound, and has not started.
pub enum PreparedReceiver {
    #[cfg(feature = "receiver-otlp")]
    Otlp(Box<crate::receiver::otlp::PreparedOtlp>),
    #[cfg(feature = "receiver-opencensus")]
    OpenCensus(Box<crate::receiver::opencensus::PreparedOpenCensus>),
}

pub enum ReceiverNode {
    #[cfg(feature = "receiver-otlp")]
    Otlp(crate::receiver::otlp::OtlpServer),
    #[cfg(feature = "receiver-opencensus")]
    OpenCensus(crate::receiver::opencensus::OpenCensusServer),
}

/// The content of a variant, if the value is that variant. The build may have no other variant.
macro_rules! only {
    ($value:expr, $variant:path) => {
        match $value {
            $variant(inner) => Some(inner),
            #[allow(unreachable_patterns)]
            _ => None,
        }
    };
}

pub type ServerAuthLookup<'a> = &'a dyn Fn(&ComponentId) -> Result<Arc<dyn ServerAuth>, BuildError>;

/// Checks and binds what a receiver needs beyond what the old one has.
pub fn prepare_receiver(
    settings: &model::ReceiverConfig,
    old: Option<&ReceiverNode>,
    auth: ServerAuthLookup<'_>,
    claims: &AddressClaims,
) -> Result<PreparedReceiver, BuildError> {
    let _ = (old, auth, claims);
    match settings {
        #[cfg(feature = "receiver-otlp")]
        model::ReceiverConfig::Otlp(settings) => {
            let old = old.and_then(|old| only!(old, ReceiverNode::Otlp));
            let prepared = crate::receiver::otlp::prepare(settings, old, auth, claims)?;
            Ok(PreparedReceiver::Otlp(Box::new(prepared)))
        }
        #[cfg(feature = "receiver-opencensus")]
        model::ReceiverConfig::OpenCensus(settings) => {
            let old = old.and_then(|old| only!(old, ReceiverNode::OpenCensus));
            let prepared = crate::receiver::opencensus::prepare(settings, old, auth, claims)?;
            Ok(PreparedReceiver::OpenCensus(Box::new(prepared)))
        }
        #[allow(unreachable_patterns)]
        _ => Err(catalog::missing_feature_error("this receiver", "receiver-…")),
    }
}

impl PreparedReceiver {
    /// Takes over from the old receiver, and starts. The second result is the rest of the old one, to be shut
    /// down.
    pub fn start(
        self,
        id: &ComponentId,
        old: Option<ReceiverNode>,
        intake: &Arc<PipelineSet>,
        registry: &StatsRegistry,
    ) -> (ReceiverNode, ReceiverNode) {
        let _ = (id, &old, intake, registry);
        match self {
            #[cfg(feature = "receiver-otlp")]
            Self::Otlp(prepared) => {
                let old = old.and_then(|old| only!(old, ReceiverNode::Otlp));
                let (new, rest) = prepared.start(id, old, intake, registry);
                (ReceiverNode::Otlp(new), ReceiverNode::Otlp(rest))
            }
            #[cfg(feature = "receiver-opencensus")]
            Self::OpenCensus(prepared) => {
                let old = old.and_then(|old| only!(old, ReceiverNode::OpenCensus));
                let (new, rest) = prepared.start(id, old, intake, registry);
                (ReceiverNode::OpenCensus(new), ReceiverNode::OpenCensus(rest))
            }
        }
    }
}

impl ReceiverNode {
    pub fn receiver(&self) -> &dyn crate::receiver::Receiver {
        match *self {
            #[cfg(feature = "receiver-otlp")]
            Self::Otlp(ref receiver) => receiver,
            #[cfg(feature = "receiver-opencensus")]
            Self::OpenCensus(ref receiver) => receiver,
        }
    }

    /// The addresses of its listeners, with the protocol of each.
    pub fn addresses(&self) -> Vec<(&'static str, std::net::SocketAddr)> {
        match *self {
            #[cfg(feature = "receiver-otlp")]
            Self::Otlp(ref receiver) => {
                let grpc = receiver.grpc_address().map(|a| ("grpc", a));
                grpc.into_iter().chain(receiver.http_address().map(|a| ("http", a))).collect()
            }
            #[cfg(feature = "receiver-opencensus")]
            Self::OpenCensus(ref receiver) => receiver.address().map(|a| ("grpc", a)).into_iter().collect(),
        }
    }
}
