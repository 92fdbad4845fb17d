//! The form in which objects are shown: as they are, as rows of a Table, or only their metadata.

use serde_json::{Map, Value, json};

use super::{
    answer::{self, Listing},
    call::On,
};
use crate::{
    api::Status,
    codec::{
        Media,
        accept::{self, Chosen, Endpoint, Include},
        protobuf,
        query::Query,
    },
    kinds::table,
    registry::Resource,
};

/// What the caller of a watch or a list wants to see.
#[derive(Clone, Copy, Debug)]
pub struct Form {
    /// Media type and form.
    pub chosen: Chosen,
    /// The columns of a Table are said with its first rows only.
    columns: bool,
}

impl Form {
    /// What the caller accepts, and of Tables, what it wants in their rows.
    pub fn checked(on: On<'_>, answer: accept::Answer) -> Result<Self, Status> {
        let form = Self::of(on, answer)?;
        Ok(Self { chosen: form.chosen.with_include(&Query::parse(&on.call.query))?, ..form })
    }

    /// What the caller accepts. It is asked before a request does anything.
    pub fn of(on: On<'_>, answer: accept::Answer) -> Result<Self, Status> {
        let query = Query::parse(&on.call.query);
        let header = |name| Some(on.call.header(name)).filter(|text| !text.is_empty());
        let (accept, agent) = (header(http::header::ACCEPT), header(http::header::USER_AGENT));
        let endpoint = Endpoint { custom: !has_protobuf(on, accept), answer };
        let chosen = accept::negotiate(accept, agent, &query, endpoint)?;
        Ok(Self { chosen, columns: true })
    }

    #[cfg(test)]
    pub(super) fn of_chosen(chosen: Chosen) -> Self {
        Self { chosen, columns: true }
    }

    /// An object in this form; none if it is shown as it is.
    pub fn object(&self, resource: &Resource, object: &Value) -> Option<Value> {
        match self.chosen.form {
            accept::Form::Object => None,
            accept::Form::Table { version, include } => {
                let mut table = self.table(resource, version.api_version(), &json!({}), include, [object.clone()]);
                copy_version(&mut table, object);
                Some(table)
            }
            accept::Form::PartialObjectMetadata { version } | accept::Form::PartialObjectMetadataList { version } => {
                Some(partial(version.api_version(), object))
            }
        }
    }

    /// Whether objects are shown as they are.
    pub fn is_object(&self) -> bool {
        self.chosen.form == accept::Form::Object
    }

    /// A list in this form without its items, and the name of the field that has them.
    pub fn envelope(&self, resource: &Resource, listing: &Listing) -> (Map<String, Value>, &'static str) {
        let mut meta = answer::list_meta(resource, listing);
        let kinds = match self.chosen.form {
            accept::Form::Object => (resource.list_kind.to_string(), resource.gv.to_string(), "items"),
            accept::Form::Table { version, .. } => ("Table".to_owned(), version.api_version().to_owned(), "rows"),
            accept::Form::PartialObjectMetadata { version } | accept::Form::PartialObjectMetadataList { version } => {
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

    /// An object, which says what it is, as an item of a list in this form.
    pub fn item(&self, resource: &Resource, mut object: Value) -> Value {
        match self.chosen.form {
            accept::Form::Object => {
                // Items of built-in kinds have no kind of their own.
                if let Some(object) = object.as_object_mut().filter(|_| resource.custom.is_none()) {
                    object.remove("apiVersion");
                    object.remove("kind");
                }
                object
            }
            accept::Form::Table { version, include } => {
                row(resource, version.api_version(), include, object, jiff::Timestamp::now())
            }
            accept::Form::PartialObjectMetadata { version } | accept::Form::PartialObjectMetadataList { version } => {
                partial(version.api_version(), &object)
            }
        }
    }

    /// Whether an event shows an object as it is, in JSON.
    pub fn is_plain(&self) -> bool {
        self.chosen.form == accept::Form::Object && self.chosen.media == Media::Json
    }

    /// The object of an event in this form; none if it is shown as it is.
    pub fn event(&mut self, resource: &Resource, object: &Value) -> Option<Value> {
        let shown = self.object(resource, object);
        self.columns = false;
        shown
    }

    /// A bookmark in this form.
    pub fn bookmark(&mut self, object: Value, resource: &Resource) -> Value {
        match self.chosen.form {
            accept::Form::Object => object,
            accept::Form::Table { version, include } => {
                let mut table = self.table(resource, version.api_version(), &json!({}), include, [object.clone()]);
                copy_version(&mut table, &object);
                self.columns = false;
                table
            }
            accept::Form::PartialObjectMetadata { version } | accept::Form::PartialObjectMetadataList { version } => {
                partial(version.api_version(), &object)
            }
        }
    }

    fn table(
        &self,
        resource: &Resource,
        api_version: &str,
        meta: &Value,
        include: Include,
        objects: impl IntoIterator<Item = Value>,
    ) -> Value {
        let now = jiff::Timestamp::now();
        let objects: Vec<Value> = objects.into_iter().collect();
        let kind = objects.first().and_then(|object| object.get("kind")).and_then(Value::as_str);
        let columns = match self.columns {
            true => table::columns(resource, kind.unwrap_or(&resource.kind)).into(),
            false => Value::Null,
        };
        let rows: Vec<Value> =
            objects.into_iter().map(|object| row(resource, api_version, include, object, now)).collect();
        json!({ "kind": "Table", "apiVersion": api_version, "metadata": meta, "columnDefinitions": columns, "rows": rows })
    }
}

/// A row of a Table.
fn row(resource: &Resource, api_version: &str, include: Include, object: Value, now: jiff::Timestamp) -> Value {
    let mut row = json!({ "cells": table::cells(resource, &object, now) });
    let shown = match include {
        Include::None => Value::Null,
        Include::Metadata => partial(api_version, &object),
        Include::Object => object,
    };
    if let Some(row) = row.as_object_mut() {
        row.insert("object".into(), shown);
    }
    row
}

/// Whether there is a protobuf message of the kind. Whoever does not ask for it gets the usual answer: there is.
fn has_protobuf(on: On<'_>, accept: Option<&str>) -> bool {
    let asked = accept.is_some_and(|accept| accept.contains("protobuf"));
    on.resource.custom.is_none() && (!asked || protobuf::knows(&on.shown().gv, &on.shown().kind))
}

fn copy_version(table: &mut Value, object: &Value) {
    let version = object.pointer("/metadata/resourceVersion").cloned();
    let meta = table.get_mut("metadata").and_then(Value::as_object_mut);
    if let (Some(version), Some(meta)) = (version, meta) {
        meta.insert("resourceVersion".into(), version);
    }
}

/// Only the metadata.
pub fn partial(api_version: &str, object: &Value) -> Value {
    let mut partial = Map::new();
    partial.insert("kind".into(), "PartialObjectMetadata".into());
    partial.insert("apiVersion".into(), api_version.into());
    partial.insert("metadata".into(), object.get("metadata").cloned().unwrap_or_else(|| json!({})));
    partial.into()
}
