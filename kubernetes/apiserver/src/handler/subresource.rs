//! Subresources: `status`, `scale`, and those of pods, namespaces and ServiceAccounts.

use http::StatusCode;
use serde_json::{Value, json};

use super::{call::ResourceRequest, decode, dispatch, handler_response::HandlerResponse, pods, scale};
use crate::{
    admission::AdmissionOperation,
    api::{StatusError, meta::child_mut, status::StatusDetails},
    codec::query::{QueryParameters, WriteOptions},
};

/// The default lifetime of a token.
const DEFAULT_TOKEN_TTL_SECONDS: i64 = 3600;

/// Handles a request about a subresource.
pub async fn handle_subresource(on: ResourceRequest<'_>, body: &[u8]) -> Result<HandlerResponse, StatusError> {
    match (on.path.resource.as_str(), on.path.subresource.as_str()) {
        ("pods", "ephemeralcontainers") if on.core().nodes.is_some() => Err(ephemeral_containers_unsupported()),
        (_, "status")
        | ("namespaces", "finalize")
        | ("pods", "ephemeralcontainers" | "resize")
        | ("certificatesigningrequests", "approval") => dispatch::handle_main_verb(on, body).await,
        (_, "scale") => scale::handle_scale(on, body).await,
        ("pods", "binding") => pods::bind(on, body).await,
        ("pods", "eviction") => pods::evict(on, body).await,
        ("pods", "log") => pods::stream_logs(on).await,
        ("serviceaccounts", "token") => create_token(on, body).await,
        ("pods", way @ ("exec" | "attach" | "portforward" | "proxy")) => Err(connection_unsupported(way)),
        _ => Err(StatusError::no_such_path()),
    }
}

/// Discovery lists these subresources, as kube-apiserver's does; "not found" would be understood as a missing
/// pod.
fn connection_unsupported(way: &str) -> StatusError {
    let message = format!("this server does not support pods/{way}: use the address or the logs of the pod");
    StatusError::new(StatusCode::METHOD_NOT_ALLOWED, "MethodNotAllowed", message)
}

/// Embedded nodes do not run ephemeral containers. The refusal is that of a server with the feature disabled,
/// which `kubectl debug` understands.
fn ephemeral_containers_unsupported() -> StatusError {
    let message = "the server could not find the requested resource: its nodes do not support ephemeral containers";
    StatusError::new(StatusCode::NOT_FOUND, "NotFound", message).with(StatusDetails::default())
}

/// Sets the phase of a namespace whose deletion has begun.
pub fn mark_terminating(namespace: &mut Value) {
    if let Some(object) = namespace.as_object_mut() {
        let status = object.entry("status").or_insert_with(|| json!({}));
        if let Some(status) = status.as_object_mut() {
            status.insert("phase".into(), "Terminating".into());
        }
    }
}

/// Issues a token for a ServiceAccount.
async fn create_token(on: ResourceRequest<'_>, body: &[u8]) -> Result<HandlerResponse, StatusError> {
    let options = WriteOptions::for_create(&QueryParameters::parse(&on.call.query))?;
    let mut request = decode::object(on, body, &options)?;
    let namespace = on.namespace();
    let name = on.path.name.as_str();
    let tokens = &on.core().access.tokens;
    let spec = request.as_object_mut().and_then(|request| child_mut(request, "spec"));
    if let Some(spec) = spec.filter(|spec| spec.get("expirationSeconds").is_none_or(Value::is_null)) {
        spec.insert("expirationSeconds".into(), DEFAULT_TOKEN_TTL_SECONDS.into());
    }
    on.writer_identity(&options).field_manager(&on).update(None, &mut request);
    tokens.prepare(namespace, name, &mut request)?;
    let admission = &on.core().admission;
    let review = on.review(AdmissionOperation::Create, &options);
    admission.mutate(&review, &mut request, None).await?;
    admission.validate(&review, Some(&request), None).await?;
    let issued = tokens.issue(namespace, name, request)?;
    issued.warnings.into_iter().for_each(|warning| on.call.warnings.add(warning));
    Ok(HandlerResponse::Object(StatusCode::CREATED, issued.object))
}
