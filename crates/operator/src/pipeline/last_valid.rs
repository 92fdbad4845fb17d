//! Persists the last valid spec of each pipeline in a Secret, so that a restart does not lose it.
//!
//! A pipeline that holds a slot and becomes invalid continues with its last valid spec, for example after its
//! Secret was deleted or filled with nonsense. While the operator runs,
//! [`PipelineCache`](crate::pipeline::pipeline_cache::PipelineCache) has that spec; after a start it is loaded
//! from here. The pipeline owns the Secret, which goes with it: by the garbage collector, or as one of the
//! [`orphans`](crate::layer::orphans).

use jiff::Timestamp;
use k8s_openapi::{ByteString, apimachinery::pkg::apis::meta::v1::OwnerReference};
use kube::ResourceExt as _;
use kubewake_api::{
    ReferenceKind, ReferencedValue, ResolvedReferences, Signal, TelemetryPipeline, ValidPipeline, ValueReference,
    validate,
};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use xxhash_rust::xxh3::xxh3_64;

use crate::{
    model::{
        names::{self, ManagedPart},
        object_kind::ObjectKind,
    },
    objects::{
        apply::DesiredObject,
        object_cache::{self, ObjectCache},
    },
    reconcile::PipelineKind,
};

#[cfg(test)]
mod tests;

/// The key of the record in the Secret.
const RECORD_KEY: &str = "record";
/// The prefix of the names of all these Secrets.
const SECRET_NAME_PREFIX: &str = "kubewake-kept-";

#[derive(Debug, PartialEq, Deserialize, Serialize)]
struct LastValidRecord {
    /// When the spec was found valid: a certificate may have expired since.
    at: Timestamp,
    object: Value,
    found: Vec<RecordedValue>,
}

#[derive(PartialEq, Deserialize, Serialize)]
struct RecordedValue {
    kind: String,
    namespace: String,
    name: String,
    key: String,
    text: String,
    revision: String,
}

impl std::fmt::Debug for RecordedValue {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}/{} {} at {}", self.kind, self.namespace, self.name, self.key, self.revision)
    }
}

/// The Secret with the record of a valid pipeline. A record of the same spec and values keeps its time, so that
/// the Secret does not change.
pub fn record_secret<K: PipelineKind>(
    live: &ObjectCache,
    object: &K,
    owner: &OwnerReference,
    resolved: &ResolvedReferences,
    now: Timestamp,
) -> Option<DesiredObject> {
    let pipeline = object.pipeline();
    let mut record =
        LastValidRecord { at: now, object: spec_identity(object)?, found: recorded_values(&pipeline, resolved) };
    if let Some(old) = load_record(live, &pipeline) {
        record.at = if (&old.object, &old.found) == (&record.object, &record.found) { old.at } else { now };
    }
    let name = secret_name(pipeline.signal, &pipeline.name);
    let data = ByteString(serde_json::to_vec(&record).ok()?);
    let value = json!({
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": name, "labels": names::managed_labels("kubewake-operator", ManagedPart::LastValid), "ownerReferences": [owner]},
        "type": "Opaque",
        "data": {RECORD_KEY: data},
    });
    Some(DesiredObject { kind: ObjectKind::Secret, name, value })
}

/// Loads the last valid spec, if the record is of this pipeline and not of another one that had its name.
pub fn load_last_valid<K: PipelineKind>(live: &ObjectCache, object: &K) -> Option<ValidPipeline> {
    let record = load_record(live, &object.pipeline())?;
    let kept: K = serde_json::from_value(record.object).ok()?;
    let resolved = record.found.into_iter().filter_map(RecordedValue::into_reference).collect();
    let is_same = kept.uid() == object.uid();
    validate(&kept.pipeline(), &resolved, record.at).ok().filter(|_| is_same)
}

/// Whether this is the name of such a Secret.
pub fn is_record_name(name: &str) -> bool {
    name.starts_with(SECRET_NAME_PREFIX)
}

/// The pipeline that a Secret records, as an owner, whether it still owns the Secret or not. `None` if the
/// record cannot be read.
pub fn recorded_owner(secret: &Value) -> Option<OwnerReference> {
    let object = parse_record(secret)?.object;
    let text = |pointer: &str| object_cache::text(&object, pointer).map(str::to_owned);
    Some(OwnerReference {
        api_version: text("/apiVersion")?,
        kind: text("/kind")?,
        name: text("/metadata/name")?,
        uid: text("/metadata/uid")?,
        ..OwnerReference::default()
    })
}

fn load_record(live: &ObjectCache, pipeline: &TelemetryPipeline) -> Option<LastValidRecord> {
    parse_record(&*live.get(ObjectKind::Secret, &secret_name(pipeline.signal, &pipeline.name))?)
}

fn parse_record(secret: &Value) -> Option<LastValidRecord> {
    let data: ByteString = serde_json::from_value(secret.pointer("/data")?.get(RECORD_KEY)?.clone()).ok()?;
    serde_json::from_slice(&data.0).ok()
}

/// The part of a resource that validation depends on.
fn spec_identity<K: PipelineKind>(object: &K) -> Option<Value> {
    let meta = object.meta();
    let spec = serde_json::to_value(object).ok()?.get("spec")?.clone();
    let metadata = json!({"name": meta.name, "uid": meta.uid, "generation": meta.generation});
    Some(json!({"apiVersion": K::api_version(&()), "kind": K::kind(&()), "metadata": metadata, "spec": spec}))
}

fn recorded_values(pipeline: &TelemetryPipeline, resolved: &ResolvedReferences) -> Vec<RecordedValue> {
    let piece = |reference: ValueReference| match resolved.get(&reference) {
        ReferencedValue::Value { text, revision } => Some(RecordedValue {
            kind: reference.kind.as_str().to_owned(),
            text: text.reveal().to_owned(),
            revision: revision.clone(),
            namespace: reference.namespace,
            name: reference.name,
            key: reference.key,
        }),
        _ => None,
    };
    pipeline.references().into_iter().filter_map(piece).collect()
}

impl RecordedValue {
    fn into_reference(self) -> Option<(ValueReference, ReferencedValue)> {
        let kinds = [ReferenceKind::Secret, ReferenceKind::ConfigMap];
        let kind = kinds.into_iter().find(|kind| kind.as_str() == self.kind)?;
        let reference = ValueReference { kind, namespace: self.namespace, name: self.name, key: self.key };
        Some((reference, ReferencedValue::text(self.text, self.revision)))
    }
}

/// A name of bounded length for any name of a pipeline.
fn secret_name(signal: Signal, name: &str) -> String {
    format!("{SECRET_NAME_PREFIX}{signal}-{:016x}", xxh3_64(name.as_bytes()))
}
