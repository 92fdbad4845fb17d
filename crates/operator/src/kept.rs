//! What a pipeline was when it was valid the last time, in a Secret, so that a restart does not lose it.
//!
//! A pipeline that holds a slot and is broken now goes on as it was: its Secret was deleted, or somebody wrote nonsense into it. The desk knows how it was; an operator that has
//! just started looks here. The Secret is the pipeline's, and goes with it: by the garbage collector, or as one of the [`leftovers`](crate::leftovers).

use jiff::Timestamp;
use k8s_openapi::{ByteString, apimachinery::pkg::apis::meta::v1::OwnerReference};
use kube::ResourceExt as _;
use kubewake_api::{Found, Pipeline, Reference, ReferenceKind, Resolved, Signal, Valid, validate};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use xxhash_rust::xxh3::xxh3_64;

use crate::{
    apply::Desired,
    kind::Kind,
    live::{self, Live},
    names::{self, Part},
    reconcile::PipelineKind,
};

#[cfg(test)]
mod tests;

/// The key in the Secret.
const RECORD: &str = "record";
/// What the names of all these Secrets begin with.
const PREFIX: &str = "kubewake-kept-";

/// What is kept.
#[derive(Debug, PartialEq, Deserialize, Serialize)]
struct Record {
    /// When it was found valid: a certificate may have expired since.
    at: Timestamp,
    /// The resource.
    object: Value,
    /// What it named.
    found: Vec<Piece>,
}

#[derive(PartialEq, Deserialize, Serialize)]
struct Piece {
    kind: String,
    namespace: String,
    name: String,
    key: String,
    text: String,
    revision: String,
}

/// It is a secret.
impl std::fmt::Debug for Piece {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}/{} {} at {}", self.kind, self.namespace, self.name, self.key, self.revision)
    }
}

/// The Secret that keeps a pipeline which is valid now. One that keeps the same already is left as it is.
pub fn keep<K: PipelineKind>(
    live: &Live,
    object: &K,
    owner: &OwnerReference,
    resolved: &Resolved,
    now: Timestamp,
) -> Option<Desired> {
    let pipeline = object.pipeline();
    let mut record = Record { at: now, object: essence(object)?, found: pieces(&pipeline, resolved) };
    if let Some(old) = read(live, &pipeline) {
        record.at = if (&old.object, &old.found) == (&record.object, &record.found) { old.at } else { now };
    }
    let name = name(pipeline.signal, &pipeline.name);
    let data = ByteString(serde_json::to_vec(&record).ok()?);
    let value = json!({
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": name, "labels": names::labels("kubewake-operator", Part::Kept), "ownerReferences": [owner]},
        "type": "Opaque",
        "data": {RECORD: data},
    });
    Some(Desired { kind: Kind::Secret, name, value })
}

/// The pipeline as it was, if it is the same one.
pub fn recall<K: PipelineKind>(live: &Live, object: &K) -> Option<Valid> {
    let record = read(live, &object.pipeline())?;
    let kept: K = serde_json::from_value(record.object).ok()?;
    let resolved = record.found.into_iter().filter_map(Piece::into_found).collect();
    let is_same = kept.uid() == object.uid();
    validate(&kept.pipeline(), &resolved, record.at).ok().filter(|_| is_same)
}

/// Whether a Secret of this part has a name that this makes.
pub fn is_name(name: &str) -> bool {
    name.starts_with(PREFIX)
}

/// The pipeline that a Secret keeps, as an owner, also where it is the owner no more. None, if it keeps nothing that anybody could read.
pub fn whose(secret: &Value) -> Option<OwnerReference> {
    let object = record(secret)?.object;
    let text = |pointer: &str| live::text(&object, pointer).map(str::to_owned);
    Some(OwnerReference {
        api_version: text("/apiVersion")?,
        kind: text("/kind")?,
        name: text("/metadata/name")?,
        uid: text("/metadata/uid")?,
        ..OwnerReference::default()
    })
}

fn read(live: &Live, pipeline: &Pipeline) -> Option<Record> {
    record(&*live.get(Kind::Secret, &name(pipeline.signal, &pipeline.name))?)
}

fn record(secret: &Value) -> Option<Record> {
    let data: ByteString = serde_json::from_value(secret.pointer("/data")?.get(RECORD)?.clone()).ok()?;
    serde_json::from_slice(&data.0).ok()
}

/// What makes a resource what it is.
fn essence<K: PipelineKind>(object: &K) -> Option<Value> {
    let meta = object.meta();
    let spec = serde_json::to_value(object).ok()?.get("spec")?.clone();
    let metadata = json!({"name": meta.name, "uid": meta.uid, "generation": meta.generation});
    Some(json!({"apiVersion": K::api_version(&()), "kind": K::kind(&()), "metadata": metadata, "spec": spec}))
}

fn pieces(pipeline: &Pipeline, resolved: &Resolved) -> Vec<Piece> {
    let piece = |reference: Reference| match resolved.get(&reference) {
        Found::Value { text, revision } => Some(Piece {
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

impl Piece {
    fn into_found(self) -> Option<(Reference, Found)> {
        let kinds = [ReferenceKind::Secret, ReferenceKind::ConfigMap];
        let kind = kinds.into_iter().find(|kind| kind.as_str() == self.kind)?;
        let reference = Reference { kind, namespace: self.namespace, name: self.name, key: self.key };
        Some((reference, Found::text(self.text, self.revision)))
    }
}

/// A name that fits, whatever the pipeline is called.
fn name(signal: Signal, name: &str) -> String {
    format!("{PREFIX}{signal}-{:016x}", xxh3_64(name.as_bytes()))
}
