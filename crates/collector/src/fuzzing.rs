//! What the fuzz targets reach of private modules. Nothing is decided here.
#![allow(missing_docs, reason = "not an interface: see `fuzz/`")]

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, StatusCode};
use kubewake_config::{
    ComponentId, Secret,
    model::{self, BasicAuth, Htpasswd},
};
use kubewake_otlp::Signal;

pub use crate::net::decode::{DecodeError, algorithm, decompress};
use crate::{
    core::{Answer, Batch, Charge, Consumer, DropReason, Part, Pressure, Processor as _},
    extension::{Verdict, basic, oauth2},
    processor::{
        attributes::{Attributes, Resources},
        filter::Filter,
        map::{Mapper, Mapping},
        redaction::Redaction,
        tail_sampling::TailSampler,
    },
    receiver::otlp,
};

/// Keeps the bytes that come.
#[derive(Default)]
struct LastStep(Mutex<Vec<Bytes>>);

impl Consumer for LastStep {
    fn consume(self: Arc<Self>, batch: Batch, _: Pressure) -> Answer {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.extend(batch.parts().iter().map(|part| part.bytes.clone()));
        Answer::Now(Ok(()))
    }

    fn refused(&self, _: &Batch) {}

    fn lost(&self, _: &Batch, _: DropReason) {}
}

/// What a processor makes of a request that was scanned; none where nothing is left of it.
pub fn process(processor: model::Processor, signal: Signal, request: Bytes, items: usize) -> Option<Bytes> {
    let mapper: Box<dyn Mapper> = match processor {
        model::Processor::Redaction(settings) => Box::new(Redaction::new(*settings)),
        model::Processor::Filter(settings) => Box::new(Filter::new(*settings)),
        model::Processor::Attributes(settings) => Box::new(Attributes::new(*settings)),
        model::Processor::Resource(settings) => Box::new(Resources::new(settings)),
        _ => return None,
    };
    let mapping = Mapping::new(signal, mapper, Arc::default());
    let last = Arc::new(LastStep::default());
    mapping.next().point_at(vec![last.clone()]);
    let mut batch = Batch::empty(signal);
    batch.push(Part::new(request, items, Arc::default(), Arc::new(Charge::free())));
    let Answer::Now(_) = mapping.consume(batch, Pressure::Refuse) else { return None };
    last.0.lock().unwrap_or_else(PoisonError::into_inner).pop()
}

/// What `tail_sampling` hands on of requests that were scanned, decided on after each round of them. None where it is another processor.
pub async fn sample(processor: model::Processor, rounds: Vec<Vec<(Bytes, usize)>>) -> Option<Vec<Vec<Bytes>>> {
    let model::Processor::TailSampling(settings) = processor else { return None };
    let id = ComponentId::new("tail_sampling");
    let sampler = TailSampler::new(&id, *settings, Arc::default(), Arc::default());
    let last = Arc::new(LastStep::default());
    sampler.next().point_at(vec![last.clone()]);
    let mut kept = Vec::new();
    for round in rounds {
        for (request, items) in round {
            let part = Part::new(request, items, Arc::default(), Arc::new(Charge::free()));
            sampler.clone().consume(Batch::single(Signal::Traces, part), Pressure::Refuse).wait().await.ok()?;
        }
        sampler.flush().await;
        kept.push(std::mem::take(&mut *last.0.lock().unwrap_or_else(PoisonError::into_inner)));
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
    let settings = Htpasswd { inline: Some(Secret::new(htpasswd)), ..Htpasswd::default() };
    let server = basic::build(&BasicAuth::Server(settings)).ok()?.server?;
    match server.authenticate(headers, std::net::Ipv4Addr::LOCALHOST.into()) {
        Verdict::Now(identified) => Some(identified.is_ok()),
        Verdict::Later(_) => None,
    }
}

/// Whether a line of a watch on pods can be read.
#[cfg(feature = "kubernetes")]
pub fn watch_line(line: &[u8]) -> bool {
    crate::kubernetes::reads_event::<crate::processor::k8s_attributes::objects::Pod>(line)
}
