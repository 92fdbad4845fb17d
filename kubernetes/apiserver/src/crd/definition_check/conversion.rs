//! Validates `spec.conversion`.

use std::collections::HashSet;

use serde_json::{Map, Value};

use super::{one_of, version_fields::texts};
use crate::{
    api::{
        field::{FieldError, FieldErrors},
        webhook_client,
    },
    crd::{name_checks, structural::text},
};

/// Paths are those of the internal form.
pub(super) fn check(spec: &Map<String, Value>, errors: &mut FieldErrors) {
    let Some(conversion) = spec.get("conversion").and_then(Value::as_object) else { return };
    let strategy = text(conversion, "strategy");
    one_of("spec.conversion.strategy", strategy, &["None", "Webhook"], errors);
    let empty = Map::new();
    let webhook = conversion.get("webhook").and_then(Value::as_object).unwrap_or(&empty);
    let client = webhook.get("clientConfig").and_then(Value::as_object);
    let (client_path, versions_path) =
        ("spec.conversion.webhookClientConfig", "spec.conversion.conversionReviewVersions");
    if strategy == "Webhook" {
        match client {
            None => errors.push(FieldError::required(client_path, "required when strategy is set to Webhook")),
            Some(client) => self::client(client, client_path, errors),
        }
        review_versions(webhook, versions_path, errors);
        return;
    }
    let detail = "should not be set when strategy is not set to Webhook";
    if client.is_some() {
        errors.push(FieldError::forbidden(client_path, detail));
    }
    if texts(webhook, "conversionReviewVersions").next().is_some() {
        errors.push(FieldError::forbidden(versions_path, detail));
    }
}

fn client(client: &Map<String, Value>, path: &str, errors: &mut FieldErrors) {
    let service = client.get("service").filter(|service| service.is_object());
    match (client.get("url").and_then(Value::as_str), service) {
        (None, None) | (Some(_), Some(_)) => {
            errors.push(FieldError::required(path, "exactly one of url or service is required"));
        }
        (Some(url), None) => webhook_client::check_url(url, &format!("{path}.url"), errors),
        (None, Some(service)) => webhook_client::check_service(service, &format!("{path}.service"), errors),
    }
}

fn review_versions(webhook: &Map<String, Value>, path: &str, errors: &mut FieldErrors) {
    let versions: Vec<&str> = texts(webhook, "conversionReviewVersions").collect();
    if versions.is_empty() {
        errors.push(FieldError::required(path, ""));
        return;
    }
    let mut seen = HashSet::new();
    for (index, version) in versions.iter().enumerate() {
        if !seen.insert(version) {
            errors.push(FieldError::invalid(format!("{path}[{index}]"), &(*version).into(), "duplicate version"));
        } else if let Some(why) = name_checks::label(version) {
            errors.push(FieldError::invalid(format!("{path}[{index}]"), &(*version).into(), &why));
        }
    }
    if !versions.iter().any(|version| matches!(*version, "v1" | "v1beta1")) {
        errors.push(FieldError::invalid(path, &versions.as_slice().into(), "must include at least one of v1, v1beta1"));
    }
}
