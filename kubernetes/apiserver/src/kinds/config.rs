//! ConfigMap and Secret: keyed data of limited size, which can be made immutable.

use base64::Engine as _;
use serde_json::{Value, json};

use super::{
    field_value::FieldValue,
    json_object::{nested_object_mut, set_text_if_empty},
    names,
};
use crate::{
    api::field::{FieldError, FieldErrors},
    codec::json,
    registry::Strategy,
};

/// The limit of all values together, in bytes: 1 MiB.
const MAX_DATA_BYTES: usize = 1024 * 1024;

#[derive(Clone, Copy, Debug)]
pub struct ConfigMapStrategy;

#[derive(Clone, Copy, Debug)]
pub struct SecretStrategy;

impl Strategy for ConfigMapStrategy {
    fn validate_create(&self, object: &Value, errors: &mut FieldErrors) {
        let root = FieldValue::root(object);
        let data = root.get("data");
        let binary = root.get("binaryData");
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
        if size > MAX_DATA_BYTES {
            // The error is about the data as a whole, for which kube-apiserver has no other path.
            errors.push(FieldError::too_long("[]", MAX_DATA_BYTES));
        }
    }

    fn validate_update(&self, new: &Value, old: &Value, _subresource: &str, errors: &mut FieldErrors) {
        immutable(new, old, &["data", "binaryData"], errors);
        self.validate_create(new, errors);
    }
}

impl Strategy for SecretStrategy {
    fn default(&self, object: &mut Value) {
        let Some(object) = object.as_object_mut() else { return };
        set_text_if_empty(object, "type", "Opaque");
        let Some(Value::Object(texts)) = object.remove("stringData") else { return };
        if texts.is_empty() {
            return;
        }
        if !object.get("data").is_some_and(Value::is_object) {
            object.insert("data".to_owned(), json!({}));
        }
        let Some(data) = nested_object_mut(object, "data") else { return };
        for (key, text) in texts {
            let text = base64::engine::general_purpose::STANDARD.encode(text.as_str().unwrap_or_default());
            data.insert(key, text.into());
        }
    }

    fn validate_create(&self, object: &Value, errors: &mut FieldErrors) {
        let root = FieldValue::root(object);
        let data = root.get("data");
        let mut size = 0;
        for (key, value) in data.entries() {
            value_key(&value, key, errors);
            size += decoded_len(value.str());
        }
        if size > MAX_DATA_BYTES {
            errors.push(FieldError::too_long("data", MAX_DATA_BYTES));
        }
        typed_secret(&root, errors);
    }

    fn validate_update(&self, new: &Value, old: &Value, _subresource: &str, errors: &mut FieldErrors) {
        let root = FieldValue::root(new);
        let old_root = FieldValue::root(old);
        root.get("type").require_unchanged(errors, &old_root.get("type"));
        immutable(new, old, &["data"], errors);
        self.validate_create(new, errors);
    }
}

/// Validates the keys of a Secret's type.
fn typed_secret(root: &FieldValue<'_>, errors: &mut FieldErrors) {
    let data = root.get("data");
    let meta = root.get("metadata");
    let need = |keys: &[&str], errors: &mut FieldErrors| {
        for key in keys.iter().filter(|key| data.value.get(**key).is_none()) {
            data.key(key).report_required(errors, "");
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
                annotations.key("kubernetes.io/service-account.name").report_required(errors, "");
            }
        }
        _ => {}
    }
}

fn need_content(at: &FieldValue<'_>, errors: &mut FieldErrors) {
    if at.is_empty() {
        at.report_required(errors, "");
    }
}

fn docker(at: &FieldValue<'_>, errors: &mut FieldErrors) {
    if !at.is_set() {
        return at.report_required(errors, "");
    }
    let decoded = base64::engine::general_purpose::STANDARD.decode(at.str()).unwrap_or_default();
    if let Err(error) = json::decode(&decoded) {
        at.report_invalid_as(errors, "\"<secret contents redacted>\"", &error.to_string());
    }
}

/// An object with `immutable: true` keeps that and the guarded fields.
fn immutable(new: &Value, old: &Value, guarded: &[&str], errors: &mut FieldErrors) {
    let root = FieldValue::root(new);
    let old_root = FieldValue::root(old);
    if !old_root.get("immutable").is_true() {
        return;
    }
    let words = "field is immutable when `immutable` is set";
    if !root.get("immutable").is_true() {
        root.get("immutable").report_forbidden(errors, words);
    }
    for field in guarded {
        let now = root.get(field);
        let before = old_root.get(field);
        if now.value != before.value && !(now.is_empty() && before.is_empty()) {
            now.report_forbidden(errors, words);
        }
    }
}

fn value_key(at: &FieldValue<'_>, key: &str, errors: &mut FieldErrors) {
    for wrong in names::config_key(key) {
        value_wrong(at, key, &wrong, errors);
    }
}

fn value_wrong(at: &FieldValue<'_>, key: &str, detail: &str, errors: &mut FieldErrors) {
    errors.push(FieldError::invalid(at.path(), &Value::from(key), detail));
}

/// The decoded length of base64 text.
fn decoded_len(text: &str) -> usize {
    let padding = text.bytes().rev().take_while(|byte| *byte == b'=').count();
    (text.len() / 4 * 3).saturating_sub(padding)
}
