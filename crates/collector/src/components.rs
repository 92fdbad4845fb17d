//! The one place that knows which components there are.
//!
//! The engine works on what these functions return and names no component. Which of them are compiled in is chosen by
//! cargo features; a document that asks for another one is refused with the name of the feature.

mod catalog;
mod files;
mod sink;

use std::{sync::Arc, time::Duration};

use kubewake_config::{
    ComponentId,
    model::{self, MemoryLimit, Queue, Retry},
};
use kubewake_otlp::Signal;

pub use self::{
    catalog::listing,
    files::{exporter_files, extension_files, receiver_files},
    sink::{Built, Sink},
};
use crate::{
    core::{Destination, Exporter, Intake, Processor, ProcessorStats, Registry},
    extension::{ClientAuth, ServerAuth},
    net::sockets::Claims,
    processor::map::{Mapper, Mapping},
};

/// An exporter as it was built from its settings, for one signal.
pub struct BuiltExporter {
    /// Who sends.
    pub exporter: Arc<dyn Exporter>,
    /// Limit of one attempt.
    pub timeout: Option<Duration>,
    /// Whether and how often to try again.
    pub retry: Option<Retry>,
    /// The buffer in front of it.
    pub queue: Option<Queue>,
    /// Where it sends to, for labels.
    pub destination: Destination,
}

/// Why a component could not be built. The message holds no secret.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct BuildError(pub String);

/// The credentials that an extension gives, by the side that uses them.
#[derive(Clone, Default)]
pub struct Auth {
    /// For exporters.
    pub client: Option<Arc<dyn ClientAuth>>,
    /// For receivers.
    pub server: Option<Arc<dyn ServerAuth>>,
}

/// Builds an exporter for one signal.
pub fn build_exporter(
    settings: &model::Exporter,
    signal: Signal,
    auth: Option<Arc<dyn ClientAuth>>,
) -> Result<Built, BuildError> {
    let _ = &auth;
    let one = match settings {
        #[cfg(feature = "exporter-loadbalancing")]
        model::Exporter::LoadBalancing(settings) => {
            let prepared = crate::exporter::loadbalancing::prepare(settings, signal, auth)?;
            return Ok(Built::Many(Box::new(prepared)));
        }
        #[cfg(feature = "exporter-otlp")]
        model::Exporter::OtlpGrpc(settings) => crate::exporter::otlp_grpc::build(settings, signal, auth),
        #[cfg(feature = "exporter-otlphttp")]
        model::Exporter::OtlpHttp(settings) => crate::exporter::otlp_http::build(settings, signal, auth),
        #[cfg(feature = "exporter-debug")]
        model::Exporter::Debug(settings) => crate::exporter::debug::build(settings),
        #[cfg(feature = "exporter-file")]
        model::Exporter::File(settings) => crate::exporter::file::build(settings),
        #[cfg(feature = "exporter-nop")]
        model::Exporter::Nop => crate::exporter::nop::build(),
        #[allow(unreachable_patterns)]
        _ => Err(catalog::left_out("this exporter", "exporter-…")),
    };
    one.map(|built| Built::One(Box::new(built)))
}

/// The extension that an exporter takes its credentials from.
pub fn exporter_auth(settings: &model::Exporter) -> Option<&ComponentId> {
    match settings {
        model::Exporter::OtlpGrpc(settings) => settings.auth.as_ref(),
        model::Exporter::OtlpHttp(settings) => settings.auth.as_ref(),
        model::Exporter::LoadBalancing(settings) => settings.otlp.auth.as_ref(),
        model::Exporter::Debug(_) | model::Exporter::File(_) | model::Exporter::Nop => None,
    }
}

/// The extensions that a receiver takes its authenticators from.
pub fn receiver_auth(settings: &model::Receiver) -> Vec<&ComponentId> {
    match settings {
        model::Receiver::Otlp(settings) => {
            let grpc = settings.grpc.as_ref().and_then(|s| s.auth.as_ref());
            let http = settings.http.as_ref().and_then(|s| s.auth.as_ref());
            grpc.into_iter().chain(http).collect()
        }
        model::Receiver::OpenCensus(settings) => settings.server.auth.iter().collect(),
    }
}

/// What a processor is to a pipeline.
pub enum Role {
    /// A limit of the memory that the pipeline draws on: bytes, and the part kept for requests under way.
    Budget(u64, u64),
    /// A step that data goes through.
    Step,
}

/// What the processor is.
pub fn role(settings: &model::Processor) -> Role {
    match settings {
        model::Processor::MemoryLimiter(limiter) => match limiter.limit {
            MemoryLimit::Bytes { limit, spike } => Role::Budget(limit, spike),
            MemoryLimit::Percent { limit, spike } => {
                let total = crate::engine::memory::available();
                let share = |percent: u32| total / 100 * u64::from(percent.min(100));
                Role::Budget(share(limit), share(spike))
            }
        },
        _ => Role::Step,
    }
}

/// Whether this build has the processor, and it can be put into effect here.
pub fn check_processor(settings: &model::Processor) -> Result<(), BuildError> {
    match settings {
        #[cfg(feature = "processor-k8sattributes")]
        model::Processor::KubernetesAttributes(settings) => crate::processor::k8s_attributes::check(settings),
        settings => catalog::has_processor(settings),
    }
}

/// What turns requests into others by these settings, if that is what the processor does.
fn mapper(id: &ComponentId, settings: &model::Processor, stats: &ProcessorStats) -> Option<Box<dyn Mapper>> {
    let _ = (id, stats);
    match settings {
        #[cfg(feature = "processor-filter")]
        model::Processor::Filter(settings) => {
            Some(Box::new(crate::processor::filter::Filter::new(model::Filter::clone(settings))))
        }
        #[cfg(feature = "processor-attributes")]
        model::Processor::Attributes(settings) => {
            Some(Box::new(crate::processor::attributes::Attributes::new(model::Attributes::clone(settings))))
        }
        #[cfg(feature = "processor-attributes")]
        model::Processor::Resource(settings) => {
            Some(Box::new(crate::processor::attributes::Resources::new(settings.clone())))
        }
        #[cfg(feature = "processor-redaction")]
        model::Processor::Redaction(settings) => {
            Some(Box::new(crate::processor::redaction::Redaction::new(model::Redaction::clone(settings))))
        }
        #[cfg(feature = "processor-probabilistic-sampler")]
        model::Processor::ProbabilisticSampler(settings) => {
            use crate::processor::probabilistic_sampler::ProbabilisticSampler;
            Some(Box::new(ProbabilisticSampler::new(id, settings, &stats.sampled)))
        }
        _ => None,
    }
}

/// A step of a pipeline that can take new settings.
pub enum Step {
    /// One that turns each request into another one at once.
    Map(Arc<Mapping>),
    /// `batch`
    #[cfg(feature = "processor-batch")]
    Batch(Arc<crate::processor::batch::Batcher>),
    /// `tail_sampling`
    #[cfg(feature = "processor-tail-sampling")]
    TailSampling(Arc<crate::processor::tail_sampling::TailSampler>),
    /// `k8s_attributes`
    #[cfg(feature = "processor-k8sattributes")]
    Enrich(Arc<crate::processor::k8s_attributes::Enricher>),
}

impl Step {
    /// Builds a step.
    pub fn build(
        id: &ComponentId,
        settings: &model::Processor,
        signal: Signal,
        registry: &Registry,
    ) -> Result<Self, BuildError> {
        let stats = registry.processor(id, signal);
        if let Some(mapper) = mapper(id, settings, &stats) {
            return Ok(Self::Map(Mapping::new(signal, mapper, stats)));
        }
        match settings {
            #[cfg(feature = "processor-batch")]
            model::Processor::Batch(settings) => {
                Ok(Self::Batch(crate::processor::batch::Batcher::new(signal, settings.clone(), stats)))
            }
            #[cfg(feature = "processor-tail-sampling")]
            model::Processor::TailSampling(settings) => {
                let (stats, sampling) = (registry.processor(id, signal), registry.sampler(id));
                let settings = model::TailSampling::clone(settings);
                Ok(Self::TailSampling(crate::processor::tail_sampling::TailSampler::new(id, settings, stats, sampling)))
            }
            #[cfg(feature = "processor-k8sattributes")]
            model::Processor::KubernetesAttributes(settings) => {
                let stats = (registry.processor(id, signal), registry.cluster(id));
                let shared = &registry.shared;
                Ok(Self::Enrich(crate::processor::k8s_attributes::Enricher::new(id, signal, settings, shared, stats)))
            }
            _ => Err(catalog::left_out("this processor", "processor-…")),
        }
    }

    /// Puts new settings in force.
    pub fn reconfigure(&self, id: &ComponentId, settings: &model::Processor) {
        // An id keeps its type, so that a step never meets the settings of another one.
        match self {
            Self::Map(mapping) => {
                mapper(id, settings, mapping.stats()).into_iter().for_each(|mapper| mapping.reconfigure(mapper))
            }
            #[cfg(feature = "processor-batch")]
            Self::Batch(batcher) => {
                if let model::Processor::Batch(settings) = settings {
                    batcher.reconfigure(settings.clone());
                }
            }
            #[cfg(feature = "processor-tail-sampling")]
            Self::TailSampling(sampler) => {
                if let model::Processor::TailSampling(settings) = settings {
                    sampler.reconfigure(model::TailSampling::clone(settings));
                }
            }
            #[cfg(feature = "processor-k8sattributes")]
            Self::Enrich(enricher) => {
                if let model::Processor::KubernetesAttributes(settings) = settings {
                    enricher.reconfigure(settings);
                }
            }
        }
    }

    /// Whether anybody else holds it, and so may still hand it data.
    pub fn is_in_use(&self) -> bool {
        match self {
            Self::Map(mapping) => Arc::strong_count(mapping) > 1,
            #[cfg(feature = "processor-batch")]
            Self::Batch(batcher) => Arc::strong_count(batcher) > 1,
            #[cfg(feature = "processor-tail-sampling")]
            Self::TailSampling(sampler) => Arc::strong_count(sampler) > 1,
            #[cfg(feature = "processor-k8sattributes")]
            Self::Enrich(enricher) => Arc::strong_count(enricher) > 1,
        }
    }

    /// The step itself.
    pub fn processor(&self) -> Arc<dyn Processor> {
        match self {
            Self::Map(mapping) => mapping.clone(),
            #[cfg(feature = "processor-batch")]
            Self::Batch(batcher) => batcher.clone(),
            #[cfg(feature = "processor-tail-sampling")]
            Self::TailSampling(sampler) => sampler.clone(),
            #[cfg(feature = "processor-k8sattributes")]
            Self::Enrich(enricher) => enricher.clone(),
        }
    }
}

/// Builds what an extension gives to receivers and exporters.
pub fn build_auth(settings: &model::Extension) -> Result<Auth, BuildError> {
    match settings {
        #[cfg(feature = "extension-auth")]
        model::Extension::BasicAuth(settings) => crate::extension::basic::build(settings),
        #[cfg(feature = "extension-auth")]
        model::Extension::BearerTokenAuth(settings) => crate::extension::bearer::build(settings),
        #[cfg(feature = "extension-auth")]
        model::Extension::OAuth2Client(settings) => crate::extension::oauth2::build(settings),
        model::Extension::HealthCheck(_) => Ok(Auth::default()),
        #[allow(unreachable_patterns)]
        _ => Err(catalog::left_out("this extension", "extension-auth")),
    }
}

/// A receiver that is checked and bound, and has not started.
pub enum PreparedReceiver {
    /// `otlp`
    #[cfg(feature = "receiver-otlp")]
    Otlp(Box<crate::receiver::otlp::Prepared>),
    /// `opencensus`
    #[cfg(feature = "receiver-opencensus")]
    OpenCensus(Box<crate::receiver::opencensus::Prepared>),
}

/// A running receiver.
pub enum AnyReceiver {
    /// `otlp`
    #[cfg(feature = "receiver-otlp")]
    Otlp(crate::receiver::otlp::Otlp),
    /// `opencensus`
    #[cfg(feature = "receiver-opencensus")]
    OpenCensus(crate::receiver::opencensus::OpenCensus),
}

/// What is in a variant, if it is that one. A build may have no other.
macro_rules! only {
    ($value:expr, $variant:path) => {
        match $value {
            $variant(inner) => Some(inner),
            #[allow(unreachable_patterns)]
            _ => None,
        }
    };
}

/// Finds the authenticator of a server.
pub type FindAuth<'a> = &'a dyn Fn(&ComponentId) -> Result<Arc<dyn ServerAuth>, BuildError>;

/// Checks and binds what a receiver needs beyond what the old one has.
pub fn prepare_receiver(
    settings: &model::Receiver,
    old: Option<&AnyReceiver>,
    auth: FindAuth<'_>,
    claims: &Claims,
) -> Result<PreparedReceiver, BuildError> {
    let _ = (old, auth, claims);
    match settings {
        #[cfg(feature = "receiver-otlp")]
        model::Receiver::Otlp(settings) => {
            let old = old.and_then(|old| only!(old, AnyReceiver::Otlp));
            let prepared = crate::receiver::otlp::prepare(settings, old, auth, claims)?;
            Ok(PreparedReceiver::Otlp(Box::new(prepared)))
        }
        #[cfg(feature = "receiver-opencensus")]
        model::Receiver::OpenCensus(settings) => {
            let old = old.and_then(|old| only!(old, AnyReceiver::OpenCensus));
            let prepared = crate::receiver::opencensus::prepare(settings, old, auth, claims)?;
            Ok(PreparedReceiver::OpenCensus(Box::new(prepared)))
        }
        #[allow(unreachable_patterns)]
        _ => Err(catalog::left_out("this receiver", "receiver-…")),
    }
}

impl PreparedReceiver {
    /// Takes over from the old one, and starts. What is left of the old one is to be closed.
    pub fn start(
        self,
        id: &ComponentId,
        old: Option<AnyReceiver>,
        intake: &Arc<Intake>,
        registry: &Registry,
    ) -> (AnyReceiver, AnyReceiver) {
        let _ = (id, &old, intake, registry);
        match self {
            #[cfg(feature = "receiver-otlp")]
            Self::Otlp(prepared) => {
                let old = old.and_then(|old| only!(old, AnyReceiver::Otlp));
                let (new, rest) = prepared.start(id, old, intake, registry);
                (AnyReceiver::Otlp(new), AnyReceiver::Otlp(rest))
            }
            #[cfg(feature = "receiver-opencensus")]
            Self::OpenCensus(prepared) => {
                let old = old.and_then(|old| only!(old, AnyReceiver::OpenCensus));
                let (new, rest) = prepared.start(id, old, intake, registry);
                (AnyReceiver::OpenCensus(new), AnyReceiver::OpenCensus(rest))
            }
        }
    }
}

impl AnyReceiver {
    /// The receiver itself.
    pub fn receiver(&self) -> &dyn crate::receiver::Receiver {
        match *self {
            #[cfg(feature = "receiver-otlp")]
            Self::Otlp(ref receiver) => receiver,
            #[cfg(feature = "receiver-opencensus")]
            Self::OpenCensus(ref receiver) => receiver,
        }
    }

    /// Where it listens, with a word for each address.
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
