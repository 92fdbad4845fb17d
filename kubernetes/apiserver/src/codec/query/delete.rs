//! Options of delete, in the query or in the body.

use serde_json::{Map, Value};

use super::{QueryParameters, check, check_dry_run};
use crate::{
    api::{StatusError, field, go_format},
    codec::{MediaType, body},
};

/// The scheme in which kube-apiserver looks up options; it is part of a message.
const OPTIONS_SCHEME: &str = "k8s.io/apimachinery/pkg/apis/meta/internalversion/scheme/register.go:27";

/// Options of delete and deletecollection.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeleteOptions {
    pub dry_run: bool,
    pub grace_period_seconds: Option<i64>,
    pub propagation_policy: Option<DeletionPropagation>,
    pub orphan_dependents: Option<bool>,
    /// The uid that the object must have.
    pub uid: Option<String>,
    /// The resourceVersion that the object must have.
    pub resource_version: Option<String>,
}

/// The fate of an object's dependents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeletionPropagation {
    Foreground,
    Background,
    Orphan,
}

#[derive(Default)]
struct UncheckedDeleteOptions {
    options: DeleteOptions,
    policy: Option<String>,
    dry_run: Vec<String>,
}

impl DeleteOptions {
    /// Decodes and validates the options: those in the body or else in the query.
    ///
    /// # Errors
    /// A 400 if they cannot be decoded, a 422 if they are inconsistent.
    pub fn from_request(query: &QueryParameters<'_>, media: MediaType, bytes: &[u8]) -> Result<Self, StatusError> {
        let given = if bytes.is_empty() { from_query(query)? } else { from_body(media, bytes)? };
        given.check()
    }

    /// The requested propagation policy, in either form.
    pub fn propagation(&self) -> Option<DeletionPropagation> {
        let orphan = |orphan| if orphan { DeletionPropagation::Orphan } else { DeletionPropagation::Background };
        self.propagation_policy.or_else(|| self.orphan_dependents.map(orphan))
    }
}

impl UncheckedDeleteOptions {
    fn check(self) -> Result<DeleteOptions, StatusError> {
        let UncheckedDeleteOptions { mut options, policy, dry_run } = self;
        let mut errors = Vec::new();
        if let Some(policy) = policy {
            let shown = Value::from(policy.as_str());
            if options.orphan_dependents.is_some() {
                let why = "orphanDependents and deletionPropagation cannot be both set";
                errors.push(field::FieldError::invalid("propagationPolicy", &shown, why));
            }
            options.propagation_policy = match policy.as_str() {
                "Foreground" => Some(DeletionPropagation::Foreground),
                "Background" => Some(DeletionPropagation::Background),
                "Orphan" => Some(DeletionPropagation::Orphan),
                _ => {
                    let known = &["Foreground", "Background", "Orphan", "nil"];
                    errors.push(field::FieldError::not_supported("propagationPolicy", &shown, known));
                    None
                }
            };
        }
        check_dry_run(&dry_run, &mut errors);
        options.dry_run = !dry_run.is_empty();
        check("DeleteOptions", &errors)?;
        Ok(options)
    }
}

fn from_query(query: &QueryParameters<'_>) -> Result<UncheckedDeleteOptions, StatusError> {
    let options = DeleteOptions {
        grace_period_seconds: query.int("gracePeriodSeconds")?,
        orphan_dependents: query.flag("orphanDependents"),
        uid: query.get("uid").filter(|uid| !uid.is_empty()).map(str::to_owned),
        ..DeleteOptions::default()
    };
    Ok(UncheckedDeleteOptions {
        options,
        policy: query.get("propagationPolicy").map(str::to_owned),
        dry_run: query.all("dryRun").map(str::to_owned).collect(),
    })
}

fn from_body(media: MediaType, bytes: &[u8]) -> Result<UncheckedDeleteOptions, StatusError> {
    let body = body::decode_options(media, bytes)?;
    let Value::Object(object) = body.value else { return Ok(UncheckedDeleteOptions::default()) };
    match object.get("kind").and_then(Value::as_str).unwrap_or_default() {
        "" | "DeleteOptions" => {}
        kind => {
            let version = object.get("apiVersion").and_then(Value::as_str).unwrap_or("v1");
            let kind = go_format::quote(kind);
            let version = go_format::quote(version);
            let message = format!("no kind {kind} is registered for version {version} in scheme {OPTIONS_SCHEME:?}");
            return Err(StatusError::bad_request(message));
        }
    }
    let reader = OptionsReader { at: &object, path: "DeleteOptions" };
    let conditions = object.get("preconditions").and_then(Value::as_object);
    let empty = Map::new();
    let conditions = OptionsReader { at: conditions.unwrap_or(&empty), path: "Preconditions.preconditions" };
    let options = DeleteOptions {
        grace_period_seconds: reader.get("gracePeriodSeconds", "int64", Value::as_i64)?,
        orphan_dependents: reader.get("orphanDependents", "bool", Value::as_bool)?,
        uid: conditions.text("uid", "types.UID")?,
        resource_version: conditions.text("resourceVersion", "string")?,
        ..DeleteOptions::default()
    };
    let dry_run = reader.get("dryRun", "[]string", |value| {
        value.as_array()?.iter().map(|item| item.as_str().map(str::to_owned)).collect::<Option<Vec<_>>>()
    })?;
    let policy = reader.text("propagationPolicy", "v1.DeletionPropagation")?;
    Ok(UncheckedDeleteOptions { options, policy, dry_run: dry_run.unwrap_or_default() })
}

/// Typed fields of an object.
struct OptionsReader<'o> {
    at: &'o Map<String, Value>,
    path: &'static str,
}

impl<'o> OptionsReader<'o> {
    fn get<T>(
        &self,
        name: &str,
        go_type: &str,
        read: impl Fn(&'o Value) -> Option<T>,
    ) -> Result<Option<T>, StatusError> {
        let Some(value) = self.at.get(name).filter(|value| !value.is_null()) else { return Ok(None) };
        read(value).map(Some).ok_or_else(|| {
            let found = go_format::json_kind(value);
            let path = self.path;
            StatusError::bad_request(format!(
                "json: cannot unmarshal {found} into Go struct field {path}.{name} of type {go_type}"
            ))
        })
    }

    fn text(&self, name: &str, go_type: &str) -> Result<Option<String>, StatusError> {
        self.get(name, go_type, |value| value.as_str().map(str::to_owned))
    }
}
