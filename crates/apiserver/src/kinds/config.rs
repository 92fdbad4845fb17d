//! ConfigMap and Secret: data by keys, of limited size, which can be made immutable.

use base64::Engine as _;
use serde_json::{Value, json};

use super::{
    at::At,
    names,
    object::{fill_text, sub},
};
use crate::{
    api::field::{Error, Errors},
    registry::Strategy,
};

/// All values together, in bytes: 1 MiB.
const SIZE_MAX: usize = 1024 * 1024;

/// Rules of ConfigMap.
#[derive(Clone, Copy, Debug)]
pub struct ConfigMap;

/// Rules of Secret.
#[derive(Clone, Copy, Debug)]
pub struct Secret;

impl Strategy for ConfigMap {
    fn validate_create(&self, object: &Value, errors: &mut Errors) {
        let root = At::root(object);
        let (data, binary) = (root.get("data"), root.get("binaryData"));
        let mut size = 0;
        for (key, value) in data.entries() {
            value_key(&value, key, errors);
            if binary.key(key).is_set() {
                value_wrong(&value, key, "duplicate of key present in binaryData", errors);
            }
            size += value.str().len();
        }
        for (key, value) in binary.entries() {
            value_key(&value, key, errors);
            size += decoded_len(value.str());
        }
        if size > SIZE_MAX {
            // All of the data is meant, for which kube-apiserver has no path but this.
            errors.push(Error::too_long("[]", SIZE_MAX));
        }
    }

    fn validate_update(&self, new: &Value, old: &Value, _subresource: &str, errors: &mut Errors) {
        immutable(new, old, &["data", "binaryData"], errors);
        self.validate_create(new, errors);
    }
}

impl Strategy for Secret {
    fn default(&self, object: &mut Value) {
        let Some(object) = object.as_object_mut() else { return };
        fill_text(object, "type", "Opaque");
        let Some(Value::Object(texts)) = object.remove("stringData") else { return };
        if texts.is_empty() {
            return;
        }
        if !object.get("data").is_some_and(Value::is_object) {
            object.insert("data".to_owned(), json!({}));
        }
        let Some(data) = sub(object, "data") else { return };
        for (key, text) in texts {
            let text = base64::engine::general_purpose::STANDARD.encode(text.as_str().unwrap_or_default());
            data.insert(key, text.into());
        }
    }

    fn validate_create(&self, object: &Value, errors: &mut Errors) {
        let root = At::root(object);
        let data = root.get("data");
        let mut size = 0;
        for (key, value) in data.entries() {
            value_key(&value, key, errors);
            size += decoded_len(value.str());
        }
        if size > SIZE_MAX {
            errors.push(Error::too_long("data", SIZE_MAX));
        }
        typed_secret(&root, errors);
    }

    fn validate_update(&self, new: &Value, old: &Value, _subresource: &str, errors: &mut Errors) {
        let (root, old_root) = (At::root(new), At::root(old));
        root.get("type").immutable(errors, &old_root.get("type"));
        immutable(new, old, &["data"], errors);
        self.validate_create(new, errors);
    }
}

/// What the keys of a Secret's own type must be.
fn typed_secret(root: &At<'_>, errors: &mut Errors) {
    let (data, meta) = (root.get("data"), root.get("metadata"));
    let need = |keys: &[&str], errors: &mut Errors| {
        for key in keys.iter().filter(|key| data.value.get(**key).is_none()) {
            data.key(key).required(errors, "");
        }
    };
    match root.get("type").str() {
        "kubernetes.io/tls" => need(&["tls.crt", "tls.key"], errors),
        "kubernetes.io/ssh-auth" => need_content(&data.key("ssh-privatekey"), errors),
        "kubernetes.io/dockercfg" => docker(&data.key(".dockercfg"), errors),
        "kubernetes.io/dockerconfigjson" => docker(&data.key(".dockerconfigjson"), errors),
        "kubernetes.io/basic-auth" if data.key("username").value.is_null() && data.key("password").value.is_null() => {
            need(&["username", "password"], errors);
        }
        "kubernetes.io/service-account-token" => {
            let annotations = meta.get("annotations");
            if annotations.value.get("kubernetes.io/service-account.name").is_none_or(|name| name == "") {
                annotations.key("kubernetes.io/service-account.name").required(errors, "");
            }
        }
        _ => {}
    }
}

fn need_content(at: &At<'_>, errors: &mut Errors) {
    if at.is_empty() {
        at.required(errors, "");
    }
}

fn docker(at: &At<'_>, errors: &mut Errors) {
    if !at.is_set() {
        return at.required(errors, "");
    }
    let decoded = base64::engine::general_purpose::STANDARD.decode(at.str()).unwrap_or_default();
    if let Err(error) = serde_json::from_slice::<serde::de::IgnoredAny>(&decoded) {
        at.invalid_as(errors, "\"<secret contents redacted>\"", &error.to_string());
    }
}

/// Once `immutable` is true it stays so, and what it guards too.
fn immutable(new: &Value, old: &Value, guarded: &[&str], errors: &mut Errors) {
    let (root, old_root) = (At::root(new), At::root(old));
    if !old_root.get("immutable").is_true() {
        return;
    }
    let words = "field is immutable when `immutable` is set";
    if !root.get("immutable").is_true() {
        root.get("immutable").forbidden(errors, words);
    }
    for field in guarded {
        let (now, before) = (root.get(field), old_root.get(field));
        if now.value != before.value && !(now.is_empty() && before.is_empty()) {
            now.forbidden(errors, words);
        }
    }
}

fn value_key(at: &At<'_>, key: &str, errors: &mut Errors) {
    for wrong in names::config_key(key) {
        value_wrong(at, key, &wrong, errors);
    }
}

fn value_wrong(at: &At<'_>, key: &str, detail: &str, errors: &mut Errors) {
    errors.push(Error::invalid(at.path(), &Value::from(key), detail));
}

/// How many bytes base64 text stands for.
fn decoded_len(text: &str) -> usize {
    let padding = text.bytes().rev().take_while(|byte| *byte == b'=').count();
    (text.len() / 4 * 3).saturating_sub(padding)
}
