//! Warnings about values from the context of requests, `from_context`, that no request can have.
//!
//! The Collector accepts such a document, and so does this program, with a warning.

use super::{
    pipeline::DecodedPipeline,
    references::DocumentSections,
    report::{ContextUse, DecodeReport, new_finding},
};
use crate::{component::ServerContext, model::ContextKey};

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
            report.add_warning(new_finding(used.path, used.span, message, help.clone()));
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
fn why_never(used: &ContextUse, wiring: &DecodedPipeline, parts: &DocumentSections<'_>) -> Option<(String, String)> {
    let before = wiring.processors.iter().take(position(used, wiring)?);
    let mut before = before.filter_map(|reference| parts.processors.components.get(&reference.id));
    if let Some(regrouping) = before.find(|processor| !processor.keeps_requests()) {
        let name = regrouping.type_name();
        return Some((
            format!("after `{name}` a trace no longer belongs to one request"),
            format!("put this processor before `{name}`"),
        ));
    }
    let (message, help) = match &used.context {
        ContextKey::ClientAddress => None::<(&str, &str)>,
        ContextKey::Auth(name) if !AUTH_CONTEXT_KEYS.contains(&name.as_str()) => Some((
            "authenticators do not provide this attribute",
            "use `auth.subject` or `auth.username`, the identity of the sender",
        )),
        ContextKey::Auth(_) if !any_server(wiring, parts, |server| server.sender_identity)? => Some((
            "no receiver of the pipelines has an authenticator",
            "set `auth: {authenticator: …}` in the receiver",
        )),
        ContextKey::Metadata(_) if !any_server(wiring, parts, |server| server.metadata)? => Some((
            "no receiver of the pipelines keeps the request headers",
            "set `include_metadata: true` in the receiver's protocol",
        )),
        ContextKey::Auth(_) | ContextKey::Metadata(_) => None,
    }?;
    Some((message.to_owned(), help.to_owned()))
}

/// Whether any server of the pipeline's receivers has a feature; `None` if one of them could not be read.
fn any_server(
    wiring: &DecodedPipeline,
    parts: &DocumentSections<'_>,
    has: impl Fn(&ServerContext) -> bool,
) -> Option<bool> {
    let mut found = false;
    for reference in &wiring.receivers {
        found |= parts.receivers.components.get(&reference.id)?.servers().iter().any(&has);
    }
    Some(found)
}
