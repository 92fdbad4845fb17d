//! Subresources: `status`, `scale`, and what pods, namespaces and ServiceAccounts have of their own.

use http::StatusCode;
use serde_json::{Value, json};

use super::{answer::Answer, call::On, decode, dispatch, pods, scale};
use crate::{
    admission::Operation,
    api::{Status, meta::child_mut, status::Details},
    codec::query::{Query, WriteOptions},
};

/// How long a token is good for, unless somebody says otherwise.
const TOKEN_SECONDS: i64 = 3600;

/// Answers a request about one.
pub async fn answer(on: On<'_>, body: &[u8]) -> Result<Answer, Status> {
    match (on.path.resource.as_str(), on.path.subresource.as_str()) {
        ("pods", "ephemeralcontainers") if on.core().nodes.is_some() => Err(no_ephemeral_containers()),
        (_, "status")
        | ("namespaces", "finalize")
        | ("pods", "ephemeralcontainers" | "resize")
        | ("certificatesigningrequests", "approval") => dispatch::main(on, body).await,
        (_, "scale") => scale::answer(on, body).await,
        ("pods", "binding") => pods::bind(on, body).await,
        ("pods", "eviction") => pods::evict(on, body).await,
        ("pods", "log") => pods::log(on).await,
        ("serviceaccounts", "token") => token(on, body).await,
        ("pods", way @ ("exec" | "attach" | "portforward" | "proxy")) => Err(no_way_in(way)),
        _ => Err(Status::no_such_path()),
    }
}

/// Discovery names them, as kube-apiserver's does; a "not found" would be taken for the pod.
fn no_way_in(way: &str) -> Status {
    let message = format!("pods/{way} is not served here: there is no way into a pod but its own address and its logs");
    Status::new(StatusCode::METHOD_NOT_ALLOWED, "MethodNotAllowed", message)
}

/// Nodes that are here run none. This is how a server with the feature switched off refuses them, which `kubectl debug` understands.
fn no_ephemeral_containers() -> Status {
    let message = "the server could not find the requested resource: its nodes run no ephemeral containers";
    Status::new(StatusCode::NOT_FOUND, "NotFound", message).with(Details::default())
}

/// A namespace whose deletion has begun says so in its phase.
pub fn mark_terminating(namespace: &mut Value) {
    if let Some(object) = namespace.as_object_mut() {
        let status = object.entry("status").or_insert_with(|| json!({}));
        if let Some(status) = status.as_object_mut() {
            status.insert("phase".into(), "Terminating".into());
        }
    }
}

/// A token for a ServiceAccount.
async fn token(on: On<'_>, body: &[u8]) -> Result<Answer, Status> {
    let options = WriteOptions::create(&Query::parse(&on.call.query))?;
    let mut request = decode::object(on, body, &options)?;
    let (namespace, name) = (on.namespace(), on.path.name.as_str());
    let tokens = &on.core().access.tokens;
    let spec = request.as_object_mut().and_then(|request| child_mut(request, "spec"));
    if let Some(spec) = spec.filter(|spec| spec.get("expirationSeconds").is_none_or(Value::is_null)) {
        spec.insert("expirationSeconds".into(), TOKEN_SECONDS.into());
    }
    on.writer(&options).owner(&on).update(None, &mut request);
    tokens.prepare(namespace, name, &mut request)?;
    let (admission, review) = (&on.core().admission, on.review(Operation::Create, &options));
    admission.mutate(&review, &mut request, None).await?;
    admission.validate(&review, Some(&request), None).await?;
    let issued = tokens.issue(namespace, name, request)?;
    issued.warnings.into_iter().for_each(|warning| on.call.warnings.add(warning));
    Ok(Answer::Object(StatusCode::CREATED, issued.object))
}
