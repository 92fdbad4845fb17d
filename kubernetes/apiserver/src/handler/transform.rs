//! The form of returned objects: as they are, as rows of a Table, or only their metadata.

use serde_json::{Map, Value, json};

use super::{
    call::ResourceRequest,
    handler_response::{self, ListPage},
};
use crate::{
    api::StatusError,
    codec::{
        MediaType,
        accept::{self, EndpointRestrictions, IncludeObjectPolicy, MediaTypeOptions},
        protobuf,
        query::QueryParameters,
    },
    kinds::table,
    registry::ServedResource,
};

/// The form that the caller of a watch or a list accepts.
#[derive(Clone, Copy, Debug)]
pub struct ResponseTransform {
    pub chosen: MediaTypeOptions,
    /// Whether columns are due: a Table has them in its first response only.
    columns: bool,
}

impl ResponseTransform {
    /// Negotiates the form and, for Tables, the objects in their rows.
    pub fn negotiate_with_include(on: ResourceRequest<'_>, answer: accept::ResponseKind) -> Result<Self, StatusError> {
        let form = Self::negotiate(on, answer)?;
        Ok(Self { chosen: form.chosen.with_include_object(&QueryParameters::parse(&on.call.query))?, ..form })
    }

    /// Negotiates the form, before a request does anything.
    pub fn negotiate(on: ResourceRequest<'_>, answer: accept::ResponseKind) -> Result<Self, StatusError> {
        let query = QueryParameters::parse(&on.call.query);
        let header = |name| Some(on.call.header(name)).filter(|text| !text.is_empty());
        let accept = header(http::header::ACCEPT);
        let agent = header(http::header::USER_AGENT);
        let endpoint = EndpointRestrictions { custom: !has_protobuf(on, accept), answer };
        let chosen = accept::negotiate(accept, agent, &query, endpoint)?;
        Ok(Self { chosen, columns: true })
    }

    #[cfg(test)]
    pub(super) fn from_chosen(chosen: MediaTypeOptions) -> Self {
        Self { chosen, columns: true }
    }

    /// An object in this form; none if it does not change.
    pub fn object(&self, resource: &ServedResource, object: &Value) -> Option<Value> {
        match self.chosen.form {
            accept::ObjectForm::Object => None,
            accept::ObjectForm::Table { version, include } => {
                let mut table = self.table(resource, version.api_version(), &json!({}), include, [object.clone()]);
                copy_resource_version(&mut table, object);
                Some(table)
            }
            accept::ObjectForm::PartialObjectMetadata { version }
            | accept::ObjectForm::PartialObjectMetadataList { version } => {
                Some(partial_object_metadata(version.api_version(), object))
            }
        }
    }

    /// Whether objects do not change.
    pub fn is_object(&self) -> bool {
        self.chosen.form == accept::ObjectForm::Object
    }

    /// A list in this form without its items, and the name of their field.
    pub fn envelope(&self, resource: &ServedResource, listing: &ListPage) -> (Map<String, Value>, &'static str) {
        let mut meta = handler_response::list_meta(resource, listing);
        let kinds = match self.chosen.form {
            accept::ObjectForm::Object => (resource.list_kind.to_string(), resource.gv.to_string(), "items"),
            accept::ObjectForm::Table { version, .. } => ("Table".to_owned(), version.api_version().to_owned(), "rows"),
            accept::ObjectForm::PartialObjectMetadata { version }
            | accept::ObjectForm::PartialObjectMetadataList { version } => {
                ("PartialObjectMetadataList".to_owned(), version.api_version().to_owned(), "items")
            }
        };
        if let Some(meta) = meta.as_object_mut().filter(|_| !self.is_object() && listing.continuation.is_none()) {
            meta.remove("continue");
        }
        let (kind, api_version, field) = kinds;
        let mut envelope = Map::new();
        envelope.insert("kind".into(), kind.into());
        envelope.insert("apiVersion".into(), api_version.into());
        envelope.insert("metadata".into(), meta);
        if field == "rows" {
            let columns = if self.columns { table::columns(resource, &resource.kind).into() } else { Value::Null };
            envelope.insert("columnDefinitions".into(), columns);
        }
        (envelope, field)
    }

    /// An object with its `apiVersion` and `kind`, as an item of a list in this form.
    pub fn transform_item(&self, resource: &ServedResource, mut object: Value) -> Value {
        match self.chosen.form {
            accept::ObjectForm::Object => {
                // Items of built-in kinds have no kind of their own.
                if let Some(object) = object.as_object_mut().filter(|_| resource.custom.is_none()) {
                    object.remove("apiVersion");
                    object.remove("kind");
                }
                object
            }
            accept::ObjectForm::Table { version, include } => {
                row(resource, version.api_version(), include, object, jiff::Timestamp::now())
            }
            accept::ObjectForm::PartialObjectMetadata { version }
            | accept::ObjectForm::PartialObjectMetadataList { version } => {
                partial_object_metadata(version.api_version(), &object)
            }
        }
    }

    /// Whether an event contains the object as it is, in JSON.
    pub fn is_plain(&self) -> bool {
        self.chosen.form == accept::ObjectForm::Object && self.chosen.media == MediaType::Json
    }

    /// The object of an event in this form; none if it does not change.
    pub fn transform_event(&mut self, resource: &ServedResource, object: &Value) -> Option<Value> {
        let shown = self.object(resource, object);
        self.columns = false;
        shown
    }

    pub fn transform_bookmark(&mut self, object: Value, resource: &ServedResource) -> Value {
        match self.chosen.form {
            accept::ObjectForm::Object => object,
            accept::ObjectForm::Table { version, include } => {
                let mut table = self.table(resource, version.api_version(), &json!({}), include, [object.clone()]);
                copy_resource_version(&mut table, &object);
                self.columns = false;
                table
            }
            accept::ObjectForm::PartialObjectMetadata { version }
            | accept::ObjectForm::PartialObjectMetadataList { version } => {
                partial_object_metadata(version.api_version(), &object)
            }
        }
    }

    fn table(
        &self,
        resource: &ServedResource,
        api_version: &str,
        meta: &Value,
        include: IncludeObjectPolicy,
        objects: impl IntoIterator<Item = Value>,
    ) -> Value {
        let now = jiff::Timestamp::now();
        let objects: Vec<Value> = objects.into_iter().collect();
        let kind = objects.first().and_then(|object| object.get("kind")).and_then(Value::as_str);
        let columns =
            if self.columns { table::columns(resource, kind.unwrap_or(&resource.kind)).into() } else { Value::Null };
        let rows: Vec<Value> =
            objects.into_iter().map(|object| row(resource, api_version, include, object, now)).collect();
        json!({ "kind": "Table", "apiVersion": api_version, "metadata": meta, "columnDefinitions": columns, "rows": rows })
    }
}

fn row(
    resource: &ServedResource,
    api_version: &str,
    include: IncludeObjectPolicy,
    object: Value,
    now: jiff::Timestamp,
) -> Value {
    let mut row = json!({ "cells": table::cells(resource, &object, now) });
    let shown = match include {
        IncludeObjectPolicy::None => Value::Null,
        IncludeObjectPolicy::Metadata => partial_object_metadata(api_version, &object),
        IncludeObjectPolicy::Object => object,
    };
    if let Some(row) = row.as_object_mut() {
        row.insert("object".into(), shown);
    }
    row
}

/// Whether the kind has a protobuf message. If protobuf is not accepted, the answer does not matter and is yes.
fn has_protobuf(on: ResourceRequest<'_>, accept: Option<&str>) -> bool {
    let asked = accept.is_some_and(|accept| accept.contains("protobuf"));
    on.resource.custom.is_none()
        && (!asked || protobuf::has_message(&on.served_resource().gv, &on.served_resource().kind))
}

fn copy_resource_version(table: &mut Value, object: &Value) {
    let version = object.pointer("/metadata/resourceVersion").cloned();
    let meta = table.get_mut("metadata").and_then(Value::as_object_mut);
    if let (Some(version), Some(meta)) = (version, meta) {
        meta.insert("resourceVersion".into(), version);
    }
}

pub fn partial_object_metadata(api_version: &str, object: &Value) -> Value {
    let mut partial = Map::new();
    partial.insert("kind".into(), "PartialObjectMetadata".into());
    partial.insert("apiVersion".into(), api_version.into());
    partial.insert("metadata".into(), object.get("metadata").cloned().unwrap_or_else(|| json!({})));
    partial.into()
}
