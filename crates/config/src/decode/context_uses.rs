//! Warnings about values from the context of requests, `from_context`, that no request can have.
//!
//! The Collector accepts such a document, and so does this program, with a warning.

use super::{
    pipeline::DecodedPipeline,
    references::DocumentSections,
    report::{ContextUse, DecodeReport, new_finding},
};
use crate::model::{ContextKey, GrpcServer, ProcessorConfig, ReceiverConfig};

/// The attributes that authenticators provide.
const AUTH_CONTEXT_KEYS: [&str; 2] = ["subject", "username"];

/// Warns about each use whose value is absent in all pipelines.
pub(crate) fn check(parts: &DocumentSections<'_>, report: &DecodeReport) {
    for used in report.take_contexts() {
        let uses = |wiring: &&DecodedPipeline| position(&used, wiring).is_some();
        let reasons: Vec<_> =
            parts.pipelines.values().filter(uses).map(|wiring| why_never(&used, wiring, parts)).collect();
        if let Some(Some((message, help))) = reasons.first()
            && reasons.iter().all(Option::is_some)
        {
            let message = format!("`from_context` never has a value: {message}");
            report.add_warning(new_finding(used.path, used.span, message, (*help).to_owned()));
        }
    }
}

/// The position in a pipeline of the processor that uses the value.
fn position(used: &ContextUse, wiring: &DecodedPipeline) -> Option<usize> {
    let is_of =
        |id: &str| used.path.strip_prefix("processors::").is_some_and(|rest| rest.starts_with(&format!("{id}::")));
    wiring.processors.iter().position(|reference| is_of(reference.id.as_str()))
}

/// Why the value is always absent in this pipeline, and what to do about it.
fn why_never(
    used: &ContextUse,
    wiring: &DecodedPipeline,
    parts: &DocumentSections<'_>,
) -> Option<(&'static str, &'static str)> {
    let before = wiring.processors.iter().take(position(used, wiring)?);
    let mut before = before.filter_map(|reference| parts.processors.components.get(&reference.id));
    if before.any(|processor| matches!(processor, ProcessorConfig::TailSampling(_))) {
        return Some((
            "after `tail_sampling` a trace no longer belongs to one request",
            "put this processor before `tail_sampling`",
        ));
    }
    match &used.context {
        ContextKey::ClientAddress => None,
        ContextKey::Auth(name) if !AUTH_CONTEXT_KEYS.contains(&name.as_str()) => Some((
            "authenticators do not provide this attribute",
            "use `auth.subject` or `auth.username`, the identity of the sender",
        )),
        ContextKey::Auth(_) if !any_server(wiring, parts, |end| end.auth)? => Some((
            "no receiver of the pipelines has an authenticator",
            "set `auth: {authenticator: …}` in the receiver",
        )),
        ContextKey::Metadata(_) if !any_server(wiring, parts, |end| end.include_metadata)? => Some((
            "no receiver of the pipelines keeps the request headers",
            "set `include_metadata: true` in the receiver's protocol",
        )),
        ContextKey::Auth(_) | ContextKey::Metadata(_) => None,
    }
}

/// The features of one server of a receiver.
struct ServerFeatures {
    auth: bool,
    include_metadata: bool,
}

impl ServerFeatures {
    fn grpc(server: &GrpcServer) -> Self {
        Self { auth: server.auth.is_some(), include_metadata: server.include_metadata }
    }
}

/// Whether any server of the pipeline's receivers has a feature; `None` if one of them could not be read.
fn any_server(
    wiring: &DecodedPipeline,
    parts: &DocumentSections<'_>,
    is: impl Fn(&ServerFeatures) -> bool,
) -> Option<bool> {
    let mut found = false;
    for reference in &wiring.receivers {
        let ends: Vec<ServerFeatures> = match parts.receivers.components.get(&reference.id)? {
            ReceiverConfig::Otlp(receiver) => {
                let http = receiver.http.as_ref();
                let http = http
                    .map(|http| ServerFeatures { auth: http.auth.is_some(), include_metadata: http.include_metadata });
                receiver.grpc.as_ref().map(ServerFeatures::grpc).into_iter().chain(http).collect()
            }
            ReceiverConfig::OpenCensus(receiver) => vec![ServerFeatures::grpc(&receiver.server)],
        };
        found |= ends.iter().any(&is);
    }
    Some(found)
}
