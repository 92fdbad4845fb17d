//! What collectors read: documents, and the values that stand in none of them.

use std::collections::BTreeMap;

use k8s_openapi::{
    ByteString,
    api::core::v1::{ConfigMap, Secret},
};
use kubewake_api::{Document, Layer};
use serde_json::json;

use super::{Surroundings, namespaced};
use crate::{apply::Desired, kind::Kind, names};

/// The file with the document.
pub const CONFIG: &str = "collector.yaml";
/// Where documents are.
pub(super) const CONFIG_FOLDER: &str = "/etc/kubewake/config";

pub(super) fn document(around: &Surroundings, name: &str, document: &Document) -> Desired {
    namespaced(around, Kind::ConfigMap, name, json!({"data": {CONFIG: document.yaml}}))
}

/// The values that the documents name, and beside them those that stay: collectors that have not read the new documents still need them.
pub fn secret(around: &Surroundings, layer: &Layer, staying: &BTreeMap<String, Vec<u8>>) -> Desired {
    let mut data: BTreeMap<&str, ByteString> =
        staying.iter().map(|(key, value)| (key.as_str(), ByteString(value.clone()))).collect();
    let values = layer.secrets.iter();
    data.extend(values.map(|(key, value)| (key.as_str(), ByteString(value.reveal().as_bytes().to_vec()))));
    namespaced(around, Kind::Secret, names::GATEWAY, json!({"type": "Opaque", "data": data}))
}

/// The values that stay beside new ones: all for a while, and then those that a document as it is names.
pub fn staying<'a>(
    live: Option<&Secret>,
    documents: impl Iterator<Item = &'a ConfigMap>,
    all: bool,
) -> BTreeMap<String, Vec<u8>> {
    let texts: Vec<&String> = documents.filter_map(|document| document.data.as_ref()?.get(CONFIG)).collect();
    let stays = |key: &str| all || texts.iter().any(|text| text.contains(key));
    let data = live.and_then(|live| live.data.as_ref()).into_iter().flatten();
    data.filter(|(key, _)| stays(key)).map(|(key, value)| (key.clone(), value.0.clone())).collect()
}
