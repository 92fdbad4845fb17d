//! What the fuzz targets reach of private modules. Nothing is decided here.
#![allow(missing_docs, reason = "not an interface: see `fuzz/`")]

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, StatusCode};
use kubewake_config::{
    ComponentId, SecretString,
    model::{self, BasicAuth, Htpasswd},
};
use kubewake_otlp::Signal;
use kubewake_runtime::lock::Mutex;

pub use crate::net::decompress::{DecompressError, decompress, parse_encoding};
use crate::{
    core::{Batch, Charge, ConsumeOutcome, Consumer, DropReason, OverflowPolicy, Part, Processor as _},
    extension::{AuthDecision, basic, oauth2},
    processor::{
        attributes::AttributesTransform,
        filter::FilterTransform,
        redaction::RedactionTransform,
        resource::ResourceTransform,
        tail_sampling::TailSampler,
        transform::{RequestTransform, TransformProcessor},
    },
    receiver::otlp,
};

/// Keeps the bytes that come.
#[derive(Default)]
struct CollectingConsumer(Mutex<Vec<Bytes>>);

impl Consumer for CollectingConsumer {
    fn consume(self: Arc<Self>, batch: Batch, _: OverflowPolicy) -> ConsumeOutcome {
        let mut kept = self.0.lock();
        kept.extend(batch.parts().iter().map(|part| part.bytes.clone()));
        ConsumeOutcome::Now(Ok(()))
    }

    fn count_refused(&self, _: &Batch) {}

    fn count_lost(&self, _: &Batch, _: DropReason) {}
}

/// What a processor makes of a request that was scanned; none where nothing is left of it.
pub fn process(processor: model::ProcessorConfig, signal: Signal, request: Bytes, items: usize) -> Option<Bytes> {
    let mapper: Box<dyn RequestTransform> = match processor {
        model::ProcessorConfig::Redaction(settings) => Box::new(RedactionTransform::new(*settings)),
        model::ProcessorConfig::Filter(settings) => Box::new(FilterTransform::new(*settings)),
        model::ProcessorConfig::Attributes(settings) => Box::new(AttributesTransform::new(*settings)),
        model::ProcessorConfig::Resource(settings) => Box::new(ResourceTransform::new(settings)),
        _ => return None,
    };
    let mapping = TransformProcessor::new(signal, mapper, Arc::default());
    let last = Arc::new(CollectingConsumer::default());
    mapping.output().set_targets(vec![last.clone()]);
    let mut batch = Batch::empty(signal);
    batch.push(Part::new(request, items, Arc::default(), Arc::new(Charge::exempt())));
    let ConsumeOutcome::Now(_) = mapping.consume(batch, OverflowPolicy::Refuse) else { return None };
    last.0.lock().pop()
}

/// What `tail_sampling` hands on of requests that were scanned, decided on after each round of them. None where
/// it is another processor.
pub async fn sample(processor: model::ProcessorConfig, rounds: Vec<Vec<(Bytes, usize)>>) -> Option<Vec<Vec<Bytes>>> {
    let model::ProcessorConfig::TailSampling(settings) = processor else { return None };
    let id = ComponentId::new("tail_sampling");
    let sampler = TailSampler::new(&id, *settings, Arc::default(), Arc::default());
    let last = Arc::new(CollectingConsumer::default());
    sampler.output().set_targets(vec![last.clone()]);
    let mut kept = Vec::new();
    for round in rounds {
        for (request, items) in round {
            let part = Part::new(request, items, Arc::default(), Arc::new(Charge::exempt()));
            sampler.clone().consume(Batch::single(Signal::Traces, part), OverflowPolicy::Refuse).wait().await.ok()?;
        }
        sampler.flush().await;
        kept.push(std::mem::take(&mut *last.0.lock()));
    }
    Some(kept)
}

/// The message of a unary call that arrived in these frames, and whether it is compressed; or the message of a refusal.
pub fn grpc_message(frames: Vec<Bytes>, max: usize) -> Result<(Bytes, bool), String> {
    otlp::read_arrived(frames, max).map_err(|refusal| refusal.message.to_string())
}

/// The header that an answer of a token endpoint gives, and how long it lives; or the message of an error.
pub fn oauth2_token(status: StatusCode, body: &[u8]) -> Result<(HeaderValue, Option<Duration>), String> {
    oauth2::read_token(status, body).map_err(|error| error.0)
}

/// Whether a request with these headers is let in by a file of users, unless that takes a hash.
pub fn basic_login(htpasswd: &str, headers: &HeaderMap) -> Option<bool> {
    let settings = Htpasswd { inline: Some(SecretString::new(htpasswd)), ..Htpasswd::default() };
    let server = basic::build(&BasicAuth::Server(settings)).ok()?.server?;
    match server.authenticate(headers, std::net::Ipv4Addr::LOCALHOST.into()) {
        AuthDecision::Now(identified) => Some(identified.is_ok()),
        AuthDecision::Later(_) => None,
    }
}

/// Whether a line of a watch on pods can be read.
#[cfg(feature = "kubernetes")]
pub fn watch_line(line: &[u8]) -> bool {
    crate::kubernetes::reads_event::<crate::processor::k8s_attributes::objects::WatchedPod>(line)
}
