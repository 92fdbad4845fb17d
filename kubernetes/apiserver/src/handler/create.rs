//! POST: creates an object.

use std::sync::Arc;

use http::StatusCode;
use serde_json::Value;

use super::{
    call::ResourceRequest,
    decode, get,
    handler_response::HandlerResponse,
    metadata::{self, OwnersSeen},
    namespace_defaults, pods, priority, size_limit,
    spans::{READ_TRANSACTION, WRITE_TRANSACTION},
    validate,
};
use crate::{
    admission::{AdmissionOperation, refused_name},
    api::{
        StatusError, go_format, identity,
        meta::{MetaAccessor, set_meta},
        status::{StatusCause, StatusDetails},
    },
    auth::AuthorizationAttributes,
    codec::query::WriteOptions,
    crd::versions,
    registry::CustomResourceInfo,
    store::{EncodedObject, Stored, WriteError},
};

/// How often a generated name is tried, as in kube-apiserver.
const MAX_GENERATED_NAME_ATTEMPTS: usize = 8;

/// Creates the object in the body.
pub async fn create(
    on: ResourceRequest<'_>,
    body: &[u8],
    options: &WriteOptions,
) -> Result<HandlerResponse, StatusError> {
    on.record_body_read(body);
    on.span.add_event("About to convert to expected version");
    let mut object = decode::object(on, body, options)?;
    on.span.add_event("Conversion done");
    check_namespace_given(on, &object)?;
    metadata::dedup_owners(&mut object, OwnersSeen::Sent, &on.call.warnings);
    on.span.add_event("About to store object in database");
    let created = insert(on, object, options, true).await;
    on.record_write_result(body, &created);
    created
}

/// Stores a new object: from a POST, or from an apply to an object that does not exist, which has its managers
/// already.
pub async fn insert(
    on: ResourceRequest<'_>,
    object: Value,
    options: &WriteOptions,
    manage: bool,
) -> Result<HandlerResponse, StatusError> {
    check_definition(on, on.resource.custom.as_deref(), object.name())?;
    check_namespace(on, refused_name(object.name(), Some(&object)))?;
    let object = run_mutating_admission(on, object, options, manage).await?;
    // The name is generated after mutating webhooks have seen the object without one.
    if !object.name().is_empty() || object.meta_str("generateName").is_empty() {
        return try_create(on, object, options, manage).await;
    }
    let mut tries = MAX_GENERATED_NAME_ATTEMPTS;
    loop {
        tries -= 1;
        let mut candidate = object.clone();
        set_meta(&mut candidate, "name", identity::generate_name(object.meta_str("generateName")));
        match try_create(on, candidate, options, manage).await {
            Err(status) if status.reason == "AlreadyExists" && tries > 0 => {}
            answer => return answer,
        }
    }
}

/// Runs mutating admission on a new object.
async fn run_mutating_admission(
    on: ResourceRequest<'_>,
    mut object: Value,
    options: &WriteOptions,
    manage: bool,
) -> Result<Value, StatusError> {
    metadata::strip_server_fields(&mut object);
    set_namespace(on, &mut object);
    on.served_resource().strategy.default(&mut object);
    if manage {
        on.update_managed_fields(options, None, &mut object);
    }
    namespace_defaults::admit_create(on, &mut object)?;
    pods::admit_service_account(on, &mut object).await?;
    priority::admit_create(on, &mut object)?;
    on.core().admission.mutate(&on.review(AdmissionOperation::Create, options), &mut object, None).await?;
    metadata::dedup_owners(&mut object, OwnersSeen::Admitted, &on.call.warnings);
    on.served_resource().strategy.default(&mut object);
    Ok(object)
}

async fn try_create(
    on: ResourceRequest<'_>,
    mut object: Value,
    options: &WriteOptions,
    manage: bool,
) -> Result<HandlerResponse, StatusError> {
    let version = object.resource_version().to_owned();
    metadata::set_create_metadata(&mut object, on.namespace(), &on.core().now());
    on.served_resource().strategy.record_author(&mut object, &on.call.user);
    on.served_resource().strategy.prepare_create(&mut object);
    validate::create(on, &object)?;
    priority::validate(on, &object, true)?;
    namespace_defaults::validate(on, &object, None)?;
    validate::check_escalation(on, &object, None).await?;
    if on.call.info.verb != "create" {
        authorize_create(on).await?;
    }
    on.core().admission.validate(&on.review(AdmissionOperation::Create, options), Some(&object), None).await?;
    if options.dry_run {
        return dry_run(on, object);
    }
    let name = object.name().to_owned();
    size_limit::enforce_size_limit(on, &mut object, &name, !manage)?;
    let stored = store_object(on, object, &version).await?;
    if let Err(status) =
        recheck_namespace_and_definition(on, &stored.key.name).and_then(|()| validate::validate_stored(on, &stored))
    {
        // The object is removed: it is in no served collection, or has what another object has. If it was
        // changed since, the cleanup of its namespace or definition finds it.
        let _ = on.core().store.delete(&stored.key, stored.revision, None).await;
        return Err(status);
    }
    Ok(HandlerResponse::Stored(StatusCode::CREATED, stored))
}

/// A user with `update` or `patch` needs `create` to create an object that does not exist.
async fn authorize_create(on: ResourceRequest<'_>) -> Result<(), StatusError> {
    let resource = on.served_resource();
    let attributes =
        AuthorizationAttributes::for_resource(&on.call.user, "create", &resource.gv.group, &resource.plural)
            .namespace(on.namespace())
            .name(&on.path.name);
    on.core().access.authorizers.check(&attributes).await
}

/// Whether the namespace and the definition of a created object still exist: both may have gone while webhooks
/// were called.
fn recheck_namespace_and_definition(on: ResourceRequest<'_>, name: &str) -> Result<(), StatusError> {
    check_namespace(on, name)?;
    if on.resource.custom.is_none() {
        return Ok(());
    }
    let catalog = on.core().registry.catalog();
    let served = catalog.get(&on.resource.gv, &on.resource.plural).ok_or_else(StatusError::no_such_path)?;
    check_definition(on, served.custom.as_deref(), name)
}

/// A dry run returns the object without a resourceVersion.
fn dry_run(on: ResourceRequest<'_>, object: Value) -> Result<HandlerResponse, StatusError> {
    if on.core().store.get(&on.key(object.name())).is_some() {
        return Err(already_exists(on, object.name()));
    }
    Ok(HandlerResponse::Object(StatusCode::CREATED, object))
}

async fn store_object(on: ResourceRequest<'_>, mut object: Value, version: &str) -> Result<Arc<Stored>, StatusError> {
    let name = object.name().to_owned();
    // A PUT or an apply has looked for the object before it creates one.
    let change = on.call.info.verb != "create";
    let span = on.storage_span(if change { "GuaranteedUpdate etcd3" } else { "Create etcd3" }, &name, true);
    if change {
        on.transaction_span(&span, READ_TRANSACTION).end();
        span.add_event("initial value restored");
    } else if go_format::parse_uint(version).is_ok_and(|version| version > 0) {
        // Only a POST is refused for this, and only by kube-apiserver's storage; a resourceVersion that is no
        // number is ignored.
        let message = "resourceVersion should not be set on objects to be created";
        return Err(StatusError::new(StatusCode::INTERNAL_SERVER_ERROR, "", message));
    }
    span.add_event("About to Encode");
    versions::store(on.resource, &mut object);
    let encoded = EncodedObject::from_value(&object).map_err(StatusError::internal)?;
    span.add_event_with("Encode succeeded", &[("len", encoded.encoded_size().into())]);
    span.add_event("TransformToStorage succeeded");
    if change {
        span.add_event("Transaction prepared");
    }
    let transaction = on.transaction_span(&span, WRITE_TRANSACTION);
    let created = on.core().store.insert(&on.key(&name), encoded).await;
    transaction.end();
    span.add_event(if change { "Txn call completed" } else { "Txn call succeeded" });
    match created {
        Ok(stored) => {
            if change {
                span.add_event("Transaction committed");
            }
            span.add_event_with("Decode succeeded", &[("len", stored.body.len().into())]);
            Ok(stored)
        }
        Err(WriteError::Exists) => Err(already_exists(on, &name)),
        Err(error) => Err(StatusError::internal(error)),
    }
}

/// The object exists already, perhaps only until its finalizers are done.
fn already_exists(on: ResourceRequest<'_>, name: &str) -> StatusError {
    let mut status = StatusError::already_exists(&on.collection(), name);
    if get::find(on, name).is_some_and(|live| live.deleting) {
        status.message = format!("object is being deleted: {}", status.message);
    }
    status
}

/// The namespace in the body, if given, must be that of the path. For cluster-scoped kinds, also in paths with
/// a namespace, there is nothing to compare.
pub fn check_namespace_given(on: ResourceRequest<'_>, object: &Value) -> Result<(), StatusError> {
    let given = object.namespace();
    if on.resource.namespaced && !given.is_empty() && given != on.namespace() {
        let message = "the namespace of the provided object does not match the namespace sent on the request";
        return Err(StatusError::bad_request(message));
    }
    Ok(())
}

fn set_namespace(on: ResourceRequest<'_>, object: &mut Value) {
    if on.resource.namespaced {
        set_meta(object, "namespace", on.namespace());
    }
}

/// Refuses to create objects of a kind whose definition is being deleted.
fn check_definition(
    on: ResourceRequest<'_>,
    custom: Option<&CustomResourceInfo>,
    name: &str,
) -> Result<(), StatusError> {
    if custom.is_some_and(|custom| custom.terminating) {
        let why = "create not allowed while custom resource definition is terminating";
        return Err(StatusError::forbidden(&on.collection(), name, why));
    }
    Ok(())
}

/// Refuses to create objects in a namespace that does not exist or is terminating.
fn check_namespace(on: ResourceRequest<'_>, name: &str) -> Result<(), StatusError> {
    if !on.resource.namespaced || on.is_review() {
        return Ok(());
    }
    let namespace = on.namespace();
    let live = on.core().namespace(namespace);
    let live =
        live.ok_or_else(|| StatusError::not_found(&crate::api::GroupResource::new("", "namespaces"), namespace))?;
    if !live.deleting {
        return Ok(());
    }
    let why = format!("unable to create new content in namespace {namespace} because it is being terminated");
    let cause = StatusCause {
        reason: "NamespaceTerminating".into(),
        message: format!("namespace {namespace} is being terminated"),
        field: "metadata.namespace".into(),
    };
    let details = StatusDetails { causes: vec![cause], ..StatusDetails::for_resource(&on.collection(), name) };
    Err(StatusError::forbidden(&on.collection(), name, &why).with(details))
}
