//! From a request to its handler.

use std::sync::Arc;

use super::{
    answer::Answer,
    call::{Call, On},
    create, delete,
    filter::Filter,
    form::Form,
    get, patch, pods, review, subresource, update, watch,
};
use crate::{
    api::{GroupVersion, Status},
    codec::{
        accept, content_type,
        query::{GetOptions, ListOptions, Query, WriteOptions},
    },
    http::ResourcePath,
    registry::Resource,
};

/// Finds the resource of a request.
pub fn prepare(call: &Call, path: &ResourcePath) -> Result<Arc<Resource>, Status> {
    let resource = call.catalog.get(&path.gv, &path.resource).cloned().ok_or_else(Status::no_such_path)?;
    allowed(call, &resource, path)?;
    if resource.custom.is_none() {
        route(call, path)?;
    }
    Ok(resource)
}

/// The version that a refusal of [`prepare`] belongs to: the router of built-in kinds knows none.
pub fn refusing_version<'p>(call: &Call, path: &'p ResourcePath) -> Option<&'p GroupVersion> {
    let resource = call.catalog.get(&path.gv, &path.resource)?;
    resource.custom.as_ref().map(|_| &path.gv)
}

/// What is wrong with a list before it begins, and with it its span.
pub fn check(on: On<'_>) -> Result<(), Status> {
    if on.call.info.verb == "list" {
        Form::of(on, accept::Answer::Object)?;
        Filter::new(on, &ListOptions::from_query(&Query::parse(&on.call.query))?)?;
    }
    Ok(())
}

/// What kube-apiserver's router, which only built-in kinds have, refuses before any handler: patches and answers of unknown types.
fn route(call: &Call, path: &ResourcePath) -> Result<(), Status> {
    let header = |name| Some(call.header(name)).filter(|text| !text.is_empty());
    if call.info.verb == "patch" {
        content_type::patch(header(http::header::CONTENT_TYPE), false)?;
    }
    let answer = match call.info.verb {
        "list" => accept::Answer::List,
        "watch" => accept::Answer::Watch,
        _ => accept::Answer::Object,
    };
    let more: &[&str] = match (path.resource.as_str(), path.subresource.as_str()) {
        ("pods", "log") => &["text/plain"],
        (_, "exec" | "attach" | "portforward" | "proxy") => return Ok(()),
        _ => &[],
    };
    accept::route(header(http::header::ACCEPT), answer, more)
}

/// Whether a path is below no group that the server itself has, and belongs to no custom resource either.
pub fn is_no_page(call: &Call, path: &ResourcePath) -> bool {
    match call.catalog.get(&path.gv, &path.resource) {
        Some(resource) => resource.custom.is_some() && !resource.namespaced && !path.namespace.is_empty(),
        None => !call.catalog.of(&path.gv).any(|resource| resource.custom.is_none()),
    }
}

/// The resource that the objects of another one are stored as.
pub fn stored(call: &Call, resource: &Resource) -> Option<Arc<Resource>> {
    let gv = resource.strategy.stored_as()?;
    call.catalog.get(&gv, &resource.plural).cloned()
}

/// Answers a request about objects.
pub async fn answer(on: On<'_>, body: &[u8]) -> Result<Answer, Status> {
    Form::of(on, accept::Answer::Object)?;
    let answer = match (on.path.subresource.as_str(), on.is_review()) {
        ("", false) if is_binding(&on) => pods::bind_named(on, body).await?,
        ("", false) => {
            on.warn_deprecated();
            main(on, body).await?
        }
        ("", true) => review::answer(on, body).await?,
        _ => subresource::answer(on, body).await?,
    };
    if !matches!(on.call.info.verb, "list" | "watch") {
        on.span.event("About to write a response");
    }
    Ok(answer)
}

/// Whether this is the old path of bindings, of which none is kept.
fn is_binding(on: &On<'_>) -> bool {
    on.resource.gv.group.is_empty() && &*on.resource.plural == "bindings"
}

/// The verbs of the main path, which `status` shares.
pub async fn main(on: On<'_>, body: &[u8]) -> Result<Answer, Status> {
    let query = Query::parse(&on.call.query);
    match on.call.info.verb {
        "get" => get::get(on, &GetOptions::from_query(&query)?),
        "list" => get::list(on, &ListOptions::from_query(&query)?),
        "watch" => watch::watch(on, &ListOptions::from_query(&query)?),
        "create" => create::create(on, body, &WriteOptions::create(&query)?).await,
        "update" => update::update(on, body, &WriteOptions::update(&query)?).await,
        "patch" => {
            let kind = content_type::patch(on.content_type(), on.resource.custom.is_some())?;
            let options = WriteOptions::patch(&query, kind == content_type::PatchType::Apply)?;
            patch::patch(on, body, &options, kind).await
        }
        "delete" => delete::delete(on, body, &query).await,
        "deletecollection" => delete::delete_collection(on, body, &query).await,
        _ => Err(Status::method_not_allowed()),
    }
}

/// Whether the resource, or its subresource, has this verb at this place.
fn allowed(call: &Call, resource: &Resource, path: &ResourcePath) -> Result<(), Status> {
    // The router of built-in kinds knows no HEAD, which custom resources answer as they answer GET. Old paths say what to do whatever
    // the method, and have one method only.
    let verb = match (call.info.verb, &call.method) {
        (_, &http::Method::HEAD) if resource.custom.is_none() => "",
        ("watch", method) if method != http::Method::GET && method != http::Method::HEAD => "",
        (verb, _) => verb,
    };
    if path.subresource.is_empty() {
        let across = resource.namespaced && path.namespace.is_empty();
        let reads = matches!(verb, "list" | "watch");
        if !resource.namespaced && !path.namespace.is_empty() && path.resource != "namespaces" {
            return Err(Status::no_such_path());
        }
        let collection = path.name.is_empty();
        let misplaced = match verb {
            "create" => !collection,
            "update" | "patch" => collection,
            _ => false,
        };
        // Objects of all namespaces can only be read.
        let known = serves(resource, verb) && (!across || reads || !collection) && !misplaced;
        // A path that no verb of the resource leads to is not there at all: reviews have no names, and are not of all namespaces.
        let has = |verbs: &[&str]| verbs.iter().any(|verb| serves(resource, verb));
        let is_absent = match collection {
            true => across && !has(&["list"]),
            false => across || !has(&["get", "update", "patch", "delete", "watch"]),
        };
        if is_absent {
            return Err(Status::no_such_path());
        }
        return if known { Ok(()) } else { Err(Status::method_not_allowed()) };
    }
    let subresource = resource.subresource(&path.subresource).ok_or_else(|| match resource.custom {
        Some(_) => Status::not_found(&resource.group_resource(), &path.name),
        None => Status::no_such_path(),
    })?;
    if subresource.verbs.contains(&verb) { Ok(()) } else { Err(Status::method_not_allowed()) }
}

/// Whether a resource has a verb. One that is on its way out lists none that write, but its objects can still be changed, or their
/// finalizers would keep them for ever; and why nothing can be created its handler says better.
fn serves(resource: &Resource, verb: &str) -> bool {
    let going = resource.custom.as_ref().is_some_and(|custom| custom.terminating);
    resource.verbs.contains(&verb) || (going && matches!(verb, "create" | "update" | "patch"))
}
