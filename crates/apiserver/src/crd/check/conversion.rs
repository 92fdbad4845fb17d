//! `spec.conversion`.

use std::collections::HashSet;

use serde_json::{Map, Value};

use super::{one_of, shared::texts};
use crate::{
    api::field::{Error, Errors},
    crd::{dns, structural::text},
};

/// Paths are those of the internal form.
pub(super) fn check(spec: &Map<String, Value>, errors: &mut Errors) {
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
            None => errors.push(Error::required(client_path, "required when strategy is set to Webhook")),
            Some(client) => self::client(client, client_path, errors),
        }
        review_versions(webhook, versions_path, errors);
        return;
    }
    let detail = "should not be set when strategy is not set to Webhook";
    if client.is_some() {
        errors.push(Error::forbidden(client_path, detail));
    }
    if texts(webhook, "conversionReviewVersions").next().is_some() {
        errors.push(Error::forbidden(versions_path, detail));
    }
}

fn client(client: &Map<String, Value>, path: &str, errors: &mut Errors) {
    let service = client.get("service").and_then(Value::as_object);
    match (client.get("url").and_then(Value::as_str), service) {
        (None, None) | (Some(_), Some(_)) => {
            errors.push(Error::required(path, "exactly one of url or service is required"));
        }
        (Some(url), None) => self::url(url, &format!("{path}.url"), errors),
        (None, Some(service)) => {
            for field in ["name", "namespace"] {
                if text(service, field).is_empty() {
                    errors.push(Error::required(
                        format!("{path}.service.{field}"),
                        &format!("service {field} is required"),
                    ));
                }
            }
        }
    }
}

fn url(url: &str, path: &str, errors: &mut Errors) {
    const FORM: &str = "; desired format: https://host[/path]";
    let mut report = |value: &str, why: &str| errors.push(Error::invalid(path, &value.into(), &format!("{why}{FORM}")));
    let (scheme, rest) = url.split_once("://").unwrap_or(("", url));
    if scheme != "https" {
        report(scheme, "'https' is the only allowed URL scheme");
    }
    if rest.split(['/', '?', '#']).next().unwrap_or_default().is_empty() {
        report("", "host must be specified");
    }
}

fn review_versions(webhook: &Map<String, Value>, path: &str, errors: &mut Errors) {
    let versions: Vec<&str> = texts(webhook, "conversionReviewVersions").collect();
    if versions.is_empty() {
        errors.push(Error::required(path, ""));
        return;
    }
    let mut seen = HashSet::new();
    for (index, version) in versions.iter().enumerate() {
        if !seen.insert(version) {
            errors.push(Error::invalid(format!("{path}[{index}]"), &(*version).into(), "duplicate version"));
        } else if let Some(why) = dns::label(version) {
            errors.push(Error::invalid(format!("{path}[{index}]"), &(*version).into(), &why));
        }
    }
    if !versions.iter().any(|version| matches!(*version, "v1" | "v1beta1")) {
        errors.push(Error::invalid(path, &versions.as_slice().into(), "must include at least one of v1, v1beta1"));
    }
}
