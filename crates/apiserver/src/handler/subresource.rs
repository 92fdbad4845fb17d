//! Subresources: `status`, `scale`, and what pods, namespaces and ServiceAccounts have of their own.

use bytes::Bytes;
use http::StatusCode;
use serde_json::{Value, json};

use super::{answer::Answer, call::On, decode, dispatch, get};
use crate::{
    api::{Status, meta::Meta},
    admission::Operation,
    codec::query::{Query, WriteOptions},
    handler::answer,
};

/// Answers a request about one.
pub async fn answer(on: On<'_>, body: &[u8]) -> Result<Answer, Status> {
    match (on.path.resource.as_str(), on.path.subresource.as_str()) {
        (_, "status") | ("namespaces", "finalize") => dispatch::main(on, body).await,
        ("pods", "log") => log(on),
        ("serviceaccounts", "token") => token(on, body).await,
        _ => Err(Status::no_such_path()),
    }
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
    on.writer(&options).owner(on).update(None, &mut request);
    tokens.prepare(namespace, name, &mut request)?;
    let (admission, review) = (&on.core().admission, on.review(Operation::Create, &options));
    admission.mutate(&review, &mut request, None).await?;
    admission.validate(&review, Some(&request), None).await?;
    let issued = tokens.issue(namespace, name, request)?;
    issued.warnings.into_iter().for_each(|warning| on.call.warnings.add(warning));
    Ok(Answer::Object(StatusCode::CREATED, issued.object))
}

/// The output of a pod, which its node has.
fn log(on: On<'_>) -> Result<Answer, Status> {
    let pod = answer::value(on.resource, &*get::read(on)?);
    let query = Query::parse(&on.call.query);
    container(&pod, query.get("container").unwrap_or_default())?;
    if pod.pointer("/spec/nodeName").and_then(Value::as_str).is_none_or(str::is_empty) {
        return Ok(Answer::Text(StatusCode::NO_CONTENT, "", Bytes::new()));
    }
    let message = format!("the node of pod {} does not answer", pod.name());
    Err(Status::new(StatusCode::SERVICE_UNAVAILABLE, "ServiceUnavailable", message))
}

/// The container that is meant, which must be said if there are several.
fn container(pod: &Value, asked: &str) -> Result<String, Status> {
    let names: Vec<&str> = ["containers", "initContainers", "ephemeralContainers"]
        .iter()
        .filter_map(|list| pod.pointer(&format!("/spec/{list}")).and_then(Value::as_array))
        .flatten()
        .filter_map(|container| container.get("name").and_then(Value::as_str))
        .collect();
    let pod = pod.name();
    match (asked, names.as_slice()) {
        ("", [only]) => Ok((*only).to_owned()),
        ("", several) => {
            let choice = several.join(" ");
            Err(Status::bad_request(format!("a container name must be specified for pod {pod}, choose one of: [{choice}]")))
        }
        (asked, names) if names.contains(&asked) => Ok(asked.to_owned()),
        (asked, _) => Err(Status::bad_request(format!("container {asked} is not valid for pod {pod}"))),
    }
}
