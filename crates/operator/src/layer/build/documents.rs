//! The collectors' documents, and the Secret with the values that they refer to.

use std::collections::BTreeMap;

use k8s_openapi::{
    ByteString,
    api::core::v1::{ConfigMap, Secret},
};
use kubewake_api::RenderedDocument;
use kubewake_config::SecretString;
use serde_json::json;

use super::{BuildContext, namespaced_object};
use crate::{
    model::{names, object_kind::ObjectKind},
    objects::apply::DesiredObject,
};

pub(super) const CONFIG_DIR: &str = "/etc/kubewake/config";

pub fn document_config_map(around: &BuildContext, name: &str, document: &RenderedDocument) -> DesiredObject {
    namespaced_object(around, ObjectKind::ConfigMap, name, json!({"data": {names::CONFIG_FILE: document.yaml}}))
}

/// The Secret of this name with the values of documents. It also keeps retained values: collectors that have not read
/// the new documents still need them.
pub fn values_secret(
    around: &BuildContext,
    name: &str,
    values: &BTreeMap<String, SecretString>,
    staying: &BTreeMap<String, Vec<u8>>,
) -> DesiredObject {
    let mut data: BTreeMap<&str, ByteString> =
        staying.iter().map(|(key, value)| (key.as_str(), ByteString(value.clone()))).collect();
    data.extend(values.iter().map(|(key, value)| (key.as_str(), ByteString(value.reveal().as_bytes().to_vec()))));
    namespaced_object(around, ObjectKind::Secret, name, json!({"type": "Opaque", "data": data}))
}

/// The values that are retained beside new ones: all of them if they must `stay`, or else those that a
/// current document refers to.
pub fn retained_values<'a>(
    live: Option<&Secret>,
    documents: impl Iterator<Item = &'a ConfigMap>,
    all: bool,
) -> BTreeMap<String, Vec<u8>> {
    let texts: Vec<&String> =
        documents.filter_map(|document| document.data.as_ref()?.get(names::CONFIG_FILE)).collect();
    let stays = |key: &str| all || texts.iter().any(|text| text.contains(key));
    let data = live.and_then(|live| live.data.as_ref()).into_iter().flatten();
    data.filter(|(key, _)| stays(key)).map(|(key, value)| (key.clone(), value.0.clone())).collect()
}
