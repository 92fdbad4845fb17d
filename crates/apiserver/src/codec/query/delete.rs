//! Options of delete, which come in the query or in the body.

use serde_json::{Map, Value};

use super::{Query, check, check_dry_run};
use crate::{
    api::{Status, field, go},
    codec::{Media, body},
};

/// The scheme that kube-apiserver looks up options in; it is part of a message.
const SCHEME: &str = "k8s.io/apimachinery/pkg/apis/meta/internalversion/scheme/register.go:27";

/// Options of delete and deletecollection.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names are Kubernetes' own")]
pub struct DeleteOptions {
    pub dry_run: bool,
    pub grace_period_seconds: Option<i64>,
    pub propagation_policy: Option<Propagation>,
    pub orphan_dependents: Option<bool>,
    /// The uid that the object must have.
    pub uid: Option<String>,
    /// The resourceVersion that the object must have.
    pub resource_version: Option<String>,
}

/// What becomes of an object's dependents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names are Kubernetes' own")]
pub enum Propagation {
    Foreground,
    Background,
    Orphan,
}

/// Before the rules are checked.
#[derive(Default)]
struct Given {
    options: DeleteOptions,
    policy: Option<String>,
    dry_run: Vec<String>,
}

impl DeleteOptions {
    /// Reads and checks the options: of the body, or without one, of the query.
    ///
    /// # Errors
    /// A 400 for what cannot be read, a 422 for what does not fit together.
    pub fn read(query: &Query<'_>, media: Media, bytes: &[u8]) -> Result<Self, Status> {
        let given = if bytes.is_empty() { from_query(query)? } else { from_body(media, bytes)? };
        given.check()
    }

    /// What becomes of dependents, if the caller said so in either way.
    pub fn propagation(&self) -> Option<Propagation> {
        let orphan = |orphan| if orphan { Propagation::Orphan } else { Propagation::Background };
        self.propagation_policy.or_else(|| self.orphan_dependents.map(orphan))
    }
}

impl Given {
    fn check(self) -> Result<DeleteOptions, Status> {
        let Given { mut options, policy, dry_run } = self;
        let mut errors = Vec::new();
        if let Some(policy) = policy {
            let shown = Value::from(policy.as_str());
            if options.orphan_dependents.is_some() {
                let why = "orphanDependents and deletionPropagation cannot be both set";
                errors.push(field::Error::invalid("propagationPolicy", &shown, why));
            }
            options.propagation_policy = match policy.as_str() {
                "Foreground" => Some(Propagation::Foreground),
                "Background" => Some(Propagation::Background),
                "Orphan" => Some(Propagation::Orphan),
                _ => {
                    let known = &["Foreground", "Background", "Orphan", "nil"];
                    errors.push(field::Error::not_supported("propagationPolicy", &shown, known));
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

fn from_query(query: &Query<'_>) -> Result<Given, Status> {
    let options = DeleteOptions {
        grace_period_seconds: query.int("gracePeriodSeconds")?,
        orphan_dependents: query.flag("orphanDependents"),
        uid: query.get("uid").filter(|uid| !uid.is_empty()).map(str::to_owned),
        ..DeleteOptions::default()
    };
    Ok(Given {
        options,
        policy: query.get("propagationPolicy").map(str::to_owned),
        dry_run: query.all("dryRun").map(str::to_owned).collect(),
    })
}

fn from_body(media: Media, bytes: &[u8]) -> Result<Given, Status> {
    let body = body::decode_options(media, bytes)?;
    let Value::Object(object) = body.value else { return Ok(Given::default()) };
    match object.get("kind").and_then(Value::as_str).unwrap_or_default() {
        "" | "DeleteOptions" => {}
        kind => {
            let version = object.get("apiVersion").and_then(Value::as_str).unwrap_or("v1");
            let (kind, version) = (go::quote(kind), go::quote(version));
            let message = format!("no kind {kind} is registered for version {version} in scheme {SCHEME:?}");
            return Err(Status::bad_request(message));
        }
    }
    let reader = Reader { at: &object, path: "DeleteOptions" };
    let conditions = object.get("preconditions").and_then(Value::as_object);
    let empty = Map::new();
    let conditions = Reader { at: conditions.unwrap_or(&empty), path: "Preconditions.preconditions" };
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
    Ok(Given { options, policy, dry_run: dry_run.unwrap_or_default() })
}

/// Typed fields of an object.
struct Reader<'o> {
    at: &'o Map<String, Value>,
    path: &'static str,
}

impl<'o> Reader<'o> {
    fn get<T>(&self, name: &str, go_type: &str, read: impl Fn(&'o Value) -> Option<T>) -> Result<Option<T>, Status> {
        let Some(value) = self.at.get(name).filter(|value| !value.is_null()) else { return Ok(None) };
        read(value).map(Some).ok_or_else(|| {
            let (found, path) = (go::json_kind(value), self.path);
            Status::bad_request(format!(
                "json: cannot unmarshal {found} into Go struct field {path}.{name} of type {go_type}"
            ))
        })
    }

    fn text(&self, name: &str, go_type: &str) -> Result<Option<String>, Status> {
        self.get(name, go_type, |value| value.as_str().map(str::to_owned))
    }
}
