//! What only pods have: accounts, bindings, evictions and logs.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use http::StatusCode;
use serde_json::{Value, json};
use tokio::sync::mpsc;

use super::{
    answer::{self, Answer},
    call::On,
    create, decode, delete, get,
    internal::{Internal, Target},
    update::{self, Managers, Precondition},
};
use crate::{
    admission::Operation,
    api::{GroupResource, ObjectKey, Status, meta::Meta},
    codec::{
        Media,
        query::{DeleteOptions, LogOptions, Query, WriteOptions},
    },
    http::{Body, ResourcePath},
    kinds::pod::{self, Budget},
    nodes::{LogRequest, Output},
    store::{ListQuery, Stored},
};

/// A namespace gets its account `default` soon after it is made; a pod that comes in between waits for it so often, and so long.
const ACCOUNT_TRIES: usize = 40;
const ACCOUNT_PAUSE: Duration = Duration::from_millis(25);

/// A new pod gets what its ServiceAccount has. Other kinds get nothing.
pub async fn give_account(on: On<'_>, pod: &mut Value) -> Result<(), Status> {
    let is_pod = on.resource.gv.group.is_empty() && &*on.resource.plural == "pods";
    if !on.core().service_accounts || !is_pod {
        return Ok(());
    }
    let name = pod::account_of(pod);
    let Some(account) = account(on, name).await else {
        let namespace = on.namespace();
        let why = format!("error looking up service account {namespace}/{name}: serviceaccount {name:?} not found");
        let of = if pod.name().is_empty() { pod.meta_str("generateName") } else { pod.name() };
        return Err(Status::forbidden(&on.collection(), of, &why));
    };
    pod::give_account(pod, &account.value());
    Ok(())
}

async fn account(on: On<'_>, name: &str) -> Option<Arc<Stored>> {
    let key = ObjectKey::new(GroupResource::new("", "serviceaccounts"), on.namespace(), name);
    let tries = if name == pod::DEFAULT_ACCOUNT { ACCOUNT_TRIES } else { 0 };
    for _ in 0..tries {
        if let Some(found) = on.core().store.get(&key) {
            return Some(found);
        }
        tokio::time::sleep(ACCOUNT_PAUSE).await;
    }
    on.core().store.get(&key)
}

/// A scheduler says where a pod runs.
pub async fn bind(on: On<'_>, body: &[u8]) -> Result<Answer, Status> {
    let options = WriteOptions::create(&Query::parse(&on.call.query))?;
    let binding = decode::object(on, body, &options)?;
    bind_by(on, binding, &options).await
}

/// The same by the old path, on which only the binding names the pod.
pub async fn bind_named(on: On<'_>, body: &[u8]) -> Result<Answer, Status> {
    let options = WriteOptions::create(&Query::parse(&on.call.query))?;
    let binding = decode::object(on, body, &options)?;
    create::check_namespace_given(on, &binding)?;
    let pods = on.call.catalog.get(&on.resource.gv, "pods").ok_or_else(Status::no_such_path)?;
    let path = ResourcePath {
        resource: pods.plural.to_string(),
        name: binding.name().to_owned(),
        subresource: "binding".to_owned(),
        ..on.path.clone()
    };
    bind_by(On { resource: pods, path: &path, ..on }, binding, &options).await
}

async fn bind_by(on: On<'_>, binding: Value, options: &WriteOptions) -> Result<Answer, Status> {
    let binding = admitted(on, binding, options).await?;
    check_name(on, &binding)?;
    let now = on.core().now();
    let make = |pod: &Value| Ok((pod::bind(pod, &binding, &now)?, Managers::Done));
    update::change(on, options, Precondition::default(), &make).await?;
    Ok(done())
}

/// A pod is deleted if the disruption budgets allow it.
pub async fn evict(on: On<'_>, body: &[u8]) -> Result<Answer, Status> {
    let options = WriteOptions::create(&Query::parse(&on.call.query))?;
    let eviction = admitted(on, decode::object(on, body, &options)?, &options).await?;
    check_name(on, &eviction)?;
    let live = answer::value(on.resource, &*get::read(on)?);
    let budgets = budgets(on);
    if let Budget::Charge(budget) = pod::evict(&live, &budgets, &on.core().now())?
        && !options.dry_run
    {
        charge(on, budget).await?;
    }
    let given = eviction.get("deleteOptions").map(Value::to_string).unwrap_or_default();
    let mut deletion = DeleteOptions::read(&Query::parse(""), Media::Json, given.as_bytes())?;
    deletion.dry_run |= options.dry_run;
    delete::remove(on, &deletion).await?;
    Ok(done())
}

/// A binding or an eviction names its pod, whatever the path says.
fn check_name(on: On<'_>, object: &Value) -> Result<(), Status> {
    if object.name() == on.path.name {
        return Ok(());
    }
    let kind = on.wanted_kind();
    Err(Status::bad_request(format!("name in URL does not match name in {kind} object")))
}

/// What webhooks make of a binding or an eviction.
async fn admitted(on: On<'_>, mut object: Value, options: &WriteOptions) -> Result<Value, Status> {
    let (admission, review) = (&on.core().admission, on.review(Operation::Create, options));
    admission.mutate(&review, &mut object, None).await?;
    admission.validate(&review, Some(&object), None).await?;
    Ok(object)
}

fn budgets(on: On<'_>) -> Vec<Value> {
    let query = ListQuery { namespace: Some(on.namespace().into()), ..ListQuery::default() };
    let listed = on.core().store.list(&budget_collection(), &query);
    listed.map(|listed| listed.items.iter().map(|budget| budget.value()).collect()).unwrap_or_default()
}

fn budget_collection() -> GroupResource {
    GroupResource::new("policy", "poddisruptionbudgets")
}

async fn charge(on: On<'_>, budget: Value) -> Result<(), Status> {
    let key = ObjectKey::new(budget_collection(), on.namespace(), budget.name());
    let resource = on.call.catalog.all().find(|resource| resource.group_resource() == key.resource);
    let resource = resource.ok_or_else(Status::no_such_path)?;
    let change = |live: &mut Value| {
        if let (Some(live), Some(status)) = (live.as_object_mut(), budget.get("status")) {
            live.insert("status".into(), status.clone());
        }
    };
    let target = Target::of(resource, &key).subresource("status");
    Internal::new(on.core(), "system:apiserver").change(&target, &change).await.map(drop)
}

fn done() -> Answer {
    let status = json!({ "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201 });
    Answer::Object(StatusCode::CREATED, status)
}

/// The output of a pod, which its node has.
pub async fn log(on: On<'_>) -> Result<Answer, Status> {
    let pod = answer::value(on.resource, &*get::read(on)?);
    let query = Query::parse(&on.call.query);
    let options = LogOptions::from_query(&query, pod.name())?;
    let container = container(&pod, query.get("container").unwrap_or_default())?;
    let node = pod.pointer("/spec/nodeName").and_then(Value::as_str).unwrap_or_default();
    if node.is_empty() {
        return Ok(Answer::Text(StatusCode::NO_CONTENT, "", Bytes::new()));
    }
    let Some(nodes) = &on.core().nodes else {
        let message = format!("pod {} is bound to node {node:?}, and this server has no nodes", pod.name());
        return Err(Status::new(StatusCode::SERVICE_UNAVAILABLE, "ServiceUnavailable", message));
    };
    let (namespace, name, uid) = (on.namespace().to_owned(), pod.name().to_owned(), pod.uid().to_owned());
    let request = LogRequest { node: node.to_owned(), namespace, pod: name, uid, container, options };
    let output = nodes.logs(request).await?;
    Ok(Answer::Stream(until_stopped(on, output)))
}

/// The output, which ends with the server: nobody who follows it holds that up.
fn until_stopped(on: On<'_>, mut output: Output) -> Body {
    let (sender, receiver) = mpsc::channel(1);
    let mut stopped = on.core().stopped();
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
    Body::stream(receiver)
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
            Err(Status::bad_request(format!(
                "a container name must be specified for pod {pod}, choose one of: [{choice}]"
            )))
        }
        (asked, names) if names.contains(&asked) => Ok(asked.to_owned()),
        (asked, _) => Err(Status::bad_request(format!("container {asked} is not valid for pod {pod}"))),
    }
}
