//! Finds the resource and the handler of a request.

use std::sync::Arc;

use super::{
    call::{ApiRequest, ResourceRequest},
    create, delete, get,
    handler_response::HandlerResponse,
    patch, pods, review,
    selection_predicate::SelectionPredicate,
    subresource,
    transform::ResponseTransform,
    update, watch,
};
use crate::{
    api::{GroupVersion, StatusError},
    codec::{
        accept, content_type,
        query::{GetOptions, ListOptions, QueryParameters, WriteOptions},
    },
    http::ResourcePath,
    registry::ServedResource,
};

/// Finds the resource of a request, and checks that it supports the request.
pub fn find_resource(call: &ApiRequest, path: &ResourcePath) -> Result<Arc<ServedResource>, StatusError> {
    let resource = call.catalog.get(&path.gv, &path.resource).cloned().ok_or_else(StatusError::no_such_path)?;
    check_verb_supported(call, &resource, path)?;
    if resource.custom.is_none() {
        route(call, path)?;
    }
    Ok(resource)
}

/// The version whose encoder writes a refusal of [`find_resource`]: the router of built-in kinds has none.
pub fn error_group_version<'p>(call: &ApiRequest, path: &'p ResourcePath) -> Option<&'p GroupVersion> {
    let resource = call.catalog.get(&path.gv, &path.resource)?;
    resource.custom.as_ref().map(|_| &path.gv)
}

/// Errors that a list returns before its span starts.
pub fn check_list_request(on: ResourceRequest<'_>) -> Result<(), StatusError> {
    if on.call.info.verb == "list" {
        ResponseTransform::negotiate(on, accept::ResponseKind::Object)?;
        SelectionPredicate::new(on, &ListOptions::from_query(&QueryParameters::parse(&on.call.query))?)?;
    }
    Ok(())
}

/// Requests that kube-apiserver's router, which only built-in kinds have, refuses before any handler:
/// unsupported media types of patches and responses.
fn route(call: &ApiRequest, path: &ResourcePath) -> Result<(), StatusError> {
    let header = |name| Some(call.header(name)).filter(|text| !text.is_empty());
    if call.info.verb == "patch" {
        content_type::patch(header(http::header::CONTENT_TYPE), false)?;
    }
    let answer = match call.info.verb {
        "list" => accept::ResponseKind::List,
        "watch" => accept::ResponseKind::Watch,
        _ => accept::ResponseKind::Object,
    };
    let more: &[&str] = match (path.resource.as_str(), path.subresource.as_str()) {
        ("pods", "log") => &["text/plain"],
        (_, "exec" | "attach" | "portforward" | "proxy") => return Ok(()),
        _ => &[],
    };
    accept::check_route_accepts(header(http::header::ACCEPT), answer, more)
}

/// Whether the path is in no group of the server itself, and belongs to no custom resource either.
pub fn is_unknown_path(call: &ApiRequest, path: &ResourcePath) -> bool {
    match call.catalog.get(&path.gv, &path.resource) {
        Some(resource) => resource.custom.is_some() && !resource.namespaced && !path.namespace.is_empty(),
        None => !call.catalog.resources_of_version(&path.gv).any(|resource| resource.custom.is_none()),
    }
}

/// The resource in whose version the objects of another one are stored.
pub fn storage_resource(call: &ApiRequest, resource: &ServedResource) -> Option<Arc<ServedResource>> {
    let gv = resource.strategy.storage_version()?;
    call.catalog.get(&gv, &resource.plural).cloned()
}

/// Handles a request about objects.
pub async fn handle_resource_request(on: ResourceRequest<'_>, body: &[u8]) -> Result<HandlerResponse, StatusError> {
    ResponseTransform::negotiate(on, accept::ResponseKind::Object)?;
    let answer = match (on.path.subresource.as_str(), on.is_review()) {
        ("", false) if is_binding(&on) => pods::bind_by_binding_name(on, body).await?,
        ("", false) => {
            on.warn_deprecated();
            handle_main_verb(on, body).await?
        }
        ("", true) => review::handle_review(on, body).await?,
        _ => subresource::handle_subresource(on, body).await?,
    };
    if !matches!(on.call.info.verb, "list" | "watch") {
        on.span.add_event("About to write a response");
    }
    Ok(answer)
}

/// Whether this is the old path of bindings, which are not stored.
fn is_binding(on: &ResourceRequest<'_>) -> bool {
    on.resource.gv.group.is_empty() && &*on.resource.plural == "bindings"
}

/// The verbs of the main path, which `status` shares.
pub async fn handle_main_verb(on: ResourceRequest<'_>, body: &[u8]) -> Result<HandlerResponse, StatusError> {
    let query = QueryParameters::parse(&on.call.query);
    match on.call.info.verb {
        "get" => get::get(on, &GetOptions::from_query(&query)?),
        "list" => get::list(on, &ListOptions::from_query(&query)?),
        "watch" => watch::watch(on, &ListOptions::from_query(&query)?),
        "create" => create::create(on, body, &WriteOptions::for_create(&query)?).await,
        "update" => update::update(on, body, &WriteOptions::for_update(&query)?).await,
        "patch" => {
            let kind = content_type::patch(on.content_type(), on.resource.custom.is_some())?;
            let options = WriteOptions::for_patch(&query, kind == content_type::PatchType::Apply)?;
            patch::patch(on, body, &options, kind).await
        }
        "delete" => delete::delete(on, body, &query).await,
        "deletecollection" => delete::delete_collection(on, body, &query).await,
        _ => Err(StatusError::method_not_allowed()),
    }
}

/// Whether the resource, or its subresource, supports this verb at this path.
fn check_verb_supported(call: &ApiRequest, resource: &ServedResource, path: &ResourcePath) -> Result<(), StatusError> {
    // The router of built-in kinds has no HEAD; for custom resources HEAD is GET. Old watch paths name the verb
    // whatever the method, and have one method only.
    let verb = match (call.info.verb, &call.method) {
        (_, &http::Method::HEAD) if resource.custom.is_none() => "",
        ("watch", method) if method != http::Method::GET && method != http::Method::HEAD => "",
        (verb, _) => verb,
    };
    if path.subresource.is_empty() {
        let across = resource.namespaced && path.namespace.is_empty();
        let reads = matches!(verb, "list" | "watch");
        if !resource.namespaced && !path.namespace.is_empty() && path.resource != "namespaces" {
            return Err(StatusError::no_such_path());
        }
        let collection = path.name.is_empty();
        let misplaced = match verb {
            "create" => !collection,
            "update" | "patch" => collection,
            _ => false,
        };
        // Objects of all namespaces can only be read.
        let known = serves(resource, verb) && (!across || reads || !collection) && !misplaced;
        // A path that no verb of the resource leads to is 404 and not 405: reviews have no names, and are not
        // listed across namespaces.
        let has = |verbs: &[&str]| verbs.iter().any(|verb| serves(resource, verb));
        let is_absent = if collection {
            across && !has(&["list"])
        } else {
            across || !has(&["get", "update", "patch", "delete", "watch"])
        };
        if is_absent {
            return Err(StatusError::no_such_path());
        }
        return if known { Ok(()) } else { Err(StatusError::method_not_allowed()) };
    }
    let subresource = resource.subresource(&path.subresource).ok_or_else(|| match resource.custom {
        Some(_) => StatusError::not_found(&resource.group_resource(), &path.name),
        None => StatusError::no_such_path(),
    })?;
    if subresource.verbs.contains(&verb) { Ok(()) } else { Err(StatusError::method_not_allowed()) }
}

/// Whether a resource supports a verb. A terminating one lists no verbs that write, but its objects can still
/// be changed, or their finalizers would keep them for ever; a create gets a better message from its handler.
fn serves(resource: &ServedResource, verb: &str) -> bool {
    let going = resource.custom.as_ref().is_some_and(|custom| custom.terminating);
    resource.verbs.contains(&verb) || (going && matches!(verb, "create" | "update" | "patch"))
}
