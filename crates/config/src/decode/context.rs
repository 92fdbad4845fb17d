//! Values from the context of requests, `from_context`, that no request can have.
//!
//! The Collector takes such a document, and so do we; whoever wrote it should know.

use super::{
    pipeline::Wiring,
    references::Parts,
    report::{ContextUse, Report, finding},
};
use crate::model::{Context, GrpcServer, Processor, Receiver};

/// What an authenticator says of whoever called.
const SAID: [&str; 2] = ["subject", "username"];

/// Warns of each that has no value in any pipeline.
pub(crate) fn check(parts: &Parts<'_>, report: &Report) {
    for used in report.take_contexts() {
        let uses = |wiring: &&Wiring| position(&used, wiring).is_some();
        let reasons: Vec<_> =
            parts.pipelines.values().filter(uses).map(|wiring| why_never(&used, wiring, parts)).collect();
        if let Some(Some((message, help))) = reasons.first()
            && reasons.iter().all(Option::is_some)
        {
            let message = format!("`from_context` never has a value: {message}");
            report.add_warning(finding(used.path, used.span, message, (*help).to_owned()));
        }
    }
}

/// Where in a pipeline the processor stands that uses it.
fn position(used: &ContextUse, wiring: &Wiring) -> Option<usize> {
    let is_of =
        |id: &str| used.path.strip_prefix("processors::").is_some_and(|rest| rest.starts_with(&format!("{id}::")));
    wiring.processors.iter().position(|reference| is_of(reference.id.as_str()))
}

/// Why there is none in this pipeline, and what to do about it.
fn why_never(used: &ContextUse, wiring: &Wiring, parts: &Parts<'_>) -> Option<(&'static str, &'static str)> {
    let before = wiring.processors.iter().take(position(used, wiring)?);
    let mut before = before.filter_map(|reference| parts.processors.components.get(&reference.id));
    if before.any(|processor| matches!(processor, Processor::TailSampling(_))) {
        return Some((
            "behind `tail_sampling` a trace is no longer the request of one sender",
            "put this processor before `tail_sampling`",
        ));
    }
    match &used.context {
        Context::ClientAddress => None,
        Context::Auth(name) if !SAID.contains(&name.as_str()) => Some((
            "an authenticator does not say that",
            "`auth.subject` and `auth.username` are who it says that the sender is",
        )),
        Context::Auth(_) if !any(wiring, parts, |end| end.auth)? => Some((
            "no receiver of its pipelines has an authenticator",
            "set `auth: {authenticator: …}` in the receiver",
        )),
        Context::Metadata(_) if !any(wiring, parts, |end| end.include_metadata)? => Some((
            "no receiver of its pipelines keeps headers",
            "set `include_metadata: true` in the receiver's protocol",
        )),
        Context::Auth(_) | Context::Metadata(_) => None,
    }
}

/// A server of a receiver.
struct End {
    auth: bool,
    include_metadata: bool,
}

impl End {
    fn grpc(server: &GrpcServer) -> Self {
        Self { auth: server.auth.is_some(), include_metadata: server.include_metadata }
    }
}

/// Whether some server of the pipeline's receivers is so; `None` if one of these could not be read.
fn any(wiring: &Wiring, parts: &Parts<'_>, is: impl Fn(&End) -> bool) -> Option<bool> {
    let mut found = false;
    for reference in &wiring.receivers {
        let ends: Vec<End> = match parts.receivers.components.get(&reference.id)? {
            Receiver::Otlp(receiver) => {
                let http = receiver.http.as_ref();
                let http = http.map(|http| End { auth: http.auth.is_some(), include_metadata: http.include_metadata });
                receiver.grpc.as_ref().map(End::grpc).into_iter().chain(http).collect()
            }
            Receiver::OpenCensus(receiver) => vec![End::grpc(&receiver.server)],
        };
        found |= ends.iter().any(&is);
    }
    Some(found)
}
