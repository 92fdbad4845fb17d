//! Requests that only pods have: service accounts, bindings, evictions and logs.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use http::StatusCode;
use serde_json::{Value, json};
use tokio::sync::mpsc;

use super::{
    call::ResourceRequest,
    create, decode, delete, get,
    handler_response::{self, HandlerResponse},
    loopback::{LoopbackClient, LoopbackTarget},
    update::{self, ManagedFieldsMode, Precondition},
};
use crate::{
    admission::AdmissionOperation,
    api::{GroupResource, ObjectKey, StatusError, meta::MetaAccessor},
    codec::{
        MediaType,
        query::{DeleteOptions, LogOptions, QueryParameters, WriteOptions},
    },
    http::{Body, ResourcePath},
    kinds::pod::{self, BudgetUpdate},
    kubelet_client::{LogRequest, LogStream},
    store::{ListQuery, Stored},
};

/// A namespace gets its account `default` soon after it is created; a pod that is created before waits for it
/// with so many look-ups, at this interval.
const MAX_ACCOUNT_LOOKUPS: usize = 40;
const ACCOUNT_POLL_INTERVAL: Duration = Duration::from_millis(25);

/// Injects the ServiceAccount into a new pod. Other kinds do not change.
pub async fn admit_service_account(on: ResourceRequest<'_>, pod: &mut Value) -> Result<(), StatusError> {
    let is_pod = on.resource.gv.group.is_empty() && &*on.resource.plural == "pods";
    if !on.core().service_accounts || !is_pod {
        return Ok(());
    }
    let name = pod::service_account_name(pod);
    let Some(account) = wait_for_account(on, name).await else {
        let namespace = on.namespace();
        let why = format!("error looking up service account {namespace}/{name}: serviceaccount {name:?} not found");
        let of = if pod.name().is_empty() { pod.meta_str("generateName") } else { pod.name() };
        return Err(StatusError::forbidden(&on.collection(), of, &why));
    };
    pod::inject_service_account(pod, &account.value());
    Ok(())
}

async fn wait_for_account(on: ResourceRequest<'_>, name: &str) -> Option<Arc<Stored>> {
    let key = ObjectKey::new(GroupResource::new("", "serviceaccounts"), on.namespace(), name);
    let tries = if name == pod::DEFAULT_ACCOUNT { MAX_ACCOUNT_LOOKUPS } else { 0 };
    for _ in 0..tries {
        if let Some(found) = on.core().store.get(&key) {
            return Some(found);
        }
        tokio::time::sleep(ACCOUNT_POLL_INTERVAL).await;
    }
    on.core().store.get(&key)
}

/// Binds a pod to a node.
pub async fn bind(on: ResourceRequest<'_>, body: &[u8]) -> Result<HandlerResponse, StatusError> {
    let options = WriteOptions::for_create(&QueryParameters::parse(&on.call.query))?;
    let binding = decode::object(on, body, &options)?;
    store_binding(on, binding, &options).await
}

/// The same on the old path, where only the body names the pod.
pub async fn bind_by_binding_name(on: ResourceRequest<'_>, body: &[u8]) -> Result<HandlerResponse, StatusError> {
    let options = WriteOptions::for_create(&QueryParameters::parse(&on.call.query))?;
    let binding = decode::object(on, body, &options)?;
    create::check_namespace_given(on, &binding)?;
    let pods = on.call.catalog.get(&on.resource.gv, "pods").ok_or_else(StatusError::no_such_path)?;
    let path = ResourcePath {
        resource: pods.plural.to_string(),
        name: binding.name().to_owned(),
        subresource: "binding".to_owned(),
        ..on.path.clone()
    };
    store_binding(ResourceRequest { resource: pods, path: &path, ..on }, binding, &options).await
}

async fn store_binding(
    on: ResourceRequest<'_>,
    binding: Value,
    options: &WriteOptions,
) -> Result<HandlerResponse, StatusError> {
    let binding = run_admission(on, binding, options).await?;
    check_name(on, &binding)?;
    let now = on.core().now();
    let make = |pod: &Value| Ok((pod::bind(pod, &binding, &now)?, ManagedFieldsMode::Keep));
    update::guaranteed_update(on, options, Precondition::default(), &make).await?;
    Ok(created_status())
}

/// Evicts a pod if the disruption budgets allow it.
pub async fn evict(on: ResourceRequest<'_>, body: &[u8]) -> Result<HandlerResponse, StatusError> {
    let options = WriteOptions::for_create(&QueryParameters::parse(&on.call.query))?;
    let eviction = run_admission(on, decode::object(on, body, &options)?, &options).await?;
    check_name(on, &eviction)?;
    let live = handler_response::value(on.resource, &*get::read_object(on)?);
    let budgets = budgets(on);
    if let BudgetUpdate::Decrement(budget) = pod::check_eviction(&live, &budgets, &on.core().now())?
        && !options.dry_run
    {
        update_budget_status(on, budget).await?;
    }
    let given = eviction.get("deleteOptions").map(Value::to_string).unwrap_or_default();
    let mut deletion = DeleteOptions::from_request(&QueryParameters::parse(""), MediaType::Json, given.as_bytes())?;
    deletion.dry_run |= options.dry_run;
    delete::delete_object(on, &deletion).await?;
    Ok(created_status())
}

/// The name in a binding or an eviction must be that of the path.
fn check_name(on: ResourceRequest<'_>, object: &Value) -> Result<(), StatusError> {
    if object.name() == on.path.name {
        return Ok(());
    }
    let kind = on.body_kind();
    Err(StatusError::bad_request(format!("name in URL does not match name in {kind} object")))
}

/// Runs admission on a binding or an eviction.
async fn run_admission(
    on: ResourceRequest<'_>,
    mut object: Value,
    options: &WriteOptions,
) -> Result<Value, StatusError> {
    let admission = &on.core().admission;
    let review = on.review(AdmissionOperation::Create, options);
    admission.mutate(&review, &mut object, None).await?;
    admission.validate(&review, Some(&object), None).await?;
    Ok(object)
}

fn budgets(on: ResourceRequest<'_>) -> Vec<Value> {
    let query = ListQuery { namespace: Some(on.namespace().into()), ..ListQuery::default() };
    let listed = on.core().store.list(&budget_collection(), &query);
    listed.map(|listed| listed.items.iter().map(|budget| budget.value()).collect()).unwrap_or_default()
}

fn budget_collection() -> GroupResource {
    GroupResource::new("policy", "poddisruptionbudgets")
}

async fn update_budget_status(on: ResourceRequest<'_>, budget: Value) -> Result<(), StatusError> {
    let key = ObjectKey::new(budget_collection(), on.namespace(), budget.name());
    let resource = on.call.catalog.all().find(|resource| resource.group_resource() == key.resource);
    let resource = resource.ok_or_else(StatusError::no_such_path)?;
    let change = |live: &mut Value| {
        if let (Some(live), Some(status)) = (live.as_object_mut(), budget.get("status")) {
            live.insert("status".into(), status.clone());
        }
    };
    let target = LoopbackTarget::for_object(resource, &key).with_subresource("status");
    LoopbackClient::new(on.core(), "system:apiserver").change(&target, &change).await.map(drop)
}

fn created_status() -> HandlerResponse {
    let status = json!({ "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201 });
    HandlerResponse::Object(StatusCode::CREATED, status)
}

/// The logs of a pod, from its node.
pub async fn stream_logs(on: ResourceRequest<'_>) -> Result<HandlerResponse, StatusError> {
    let pod = handler_response::value(on.resource, &*get::read_object(on)?);
    let query = QueryParameters::parse(&on.call.query);
    let options = LogOptions::from_query(&query, pod.name())?;
    let container = select_container(&pod, query.get("container").unwrap_or_default())?;
    let node = pod.pointer("/spec/nodeName").and_then(Value::as_str).unwrap_or_default();
    if node.is_empty() {
        return Ok(HandlerResponse::Text(StatusCode::NO_CONTENT, "", Bytes::new()));
    }
    let Some(nodes) = &on.core().nodes else {
        let message = format!("pod {} is bound to node {node:?}, and this server has no nodes", pod.name());
        return Err(StatusError::new(StatusCode::SERVICE_UNAVAILABLE, "ServiceUnavailable", message));
    };
    let namespace = on.namespace().to_owned();
    let name = pod.name().to_owned();
    let uid = pod.uid().to_owned();
    let request = LogRequest { node: node.to_owned(), namespace, pod: name, uid, container, options };
    let output = nodes.logs(request).await?;
    Ok(HandlerResponse::Stream(end_at_shutdown(on, output)))
}

/// Streams the logs, which end with the server: a client that follows them does not delay its end.
fn end_at_shutdown(on: ResourceRequest<'_>, mut output: LogStream) -> Body {
    let (sender, receiver) = mpsc::channel(1);
    let mut stopped = on.core().stop_signal();
    tokio::spawn(async move {
        loop {
            let piece = tokio::select! {
                piece = output.recv() => piece,
                () = sender.closed() => None,
                () = stopped.wait() => None,
            };
            let Some(piece) = piece else { break };
            if sender.send(piece).await.is_err() {
                break;
            }
        }
    });
    Body::from_receiver(receiver)
}

/// The requested container. It must be named if there are several, not counting init containers.
fn select_container(pod: &Value, asked: &str) -> Result<String, StatusError> {
    let names = |list: &str| {
        let all = pod.pointer(&format!("/spec/{list}")).and_then(Value::as_array).into_iter().flatten();
        all.filter_map(|container| container.get("name").and_then(Value::as_str)).collect::<Vec<&str>>()
    };
    let main = names("containers");
    let all = [names("initContainers"), main.clone(), names("ephemeralContainers")].concat();
    let pod = pod.name();
    match (asked, main.as_slice()) {
        ("", [only]) => Ok((*only).to_owned()),
        ("", _) => Err(StatusError::bad_request(format!(
            "a container name must be specified for pod {pod}, choose one of: [{}]",
            all.join(" ")
        ))),
        (asked, _) if all.contains(&asked) => Ok(asked.to_owned()),
        (asked, _) => Err(StatusError::bad_request(format!("container {asked} is not valid for pod {pod}"))),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn selected(containers: Value, asked: &str) -> Result<String, String> {
        let init = json!([{"name": "setup"}]);
        let pod = json!({"metadata": {"name": "web"}, "spec": {"initContainers": init, "containers": containers}});
        select_container(&pod, asked).map_err(|error| error.message)
    }

    #[test]
    fn container_of_a_log_is_the_only_main_one_unless_another_is_named() {
        let one = json!([{"name": "main"}]);
        assert_eq!(selected(one.clone(), ""), Ok("main".to_owned()));
        assert_eq!(selected(one.clone(), "setup"), Ok("setup".to_owned()));
        assert_eq!(selected(one, "other").unwrap_err(), "container other is not valid for pod web");
        let message = "a container name must be specified for pod web, choose one of: [setup a b]";
        assert_eq!(selected(json!([{"name": "a"}, {"name": "b"}]), "").unwrap_err(), message);
    }
}
