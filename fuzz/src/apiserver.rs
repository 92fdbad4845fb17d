//! Fuzz targets of the API server: bodies, patches, expressions, parameters, credentials, and the store's log.

pub mod cel;
mod codec;
mod credentials;
mod definitions;
mod parameters;
mod patch;
mod store;

use serde_json::Value;

use crate::Target;

pub const TARGETS: [Target; 26] = [
    Target { name: "json", body: codec::json },
    Target { name: "yaml", body: codec::yaml },
    Target { name: "protobuf", body: codec::protobuf },
    Target { name: "typed-body", body: codec::typed_body },
    Target { name: "patch-json", body: patch::json },
    Target { name: "patch-merge", body: patch::merge },
    Target { name: "patch-strategic", body: patch::strategic },
    Target { name: "fields-v1", body: patch::fields_v1 },
    Target { name: "cel", body: cel::cost_and_memory },
    Target { name: "recover-damaged", body: store::damaged_log },
    Target { name: "recover-any", body: store::any_log },
    Target { name: "label-selector", body: parameters::label_selector },
    Target { name: "field-selector", body: parameters::field_selector },
    Target { name: "query", body: parameters::query },
    Target { name: "continue-token", body: parameters::continue_token },
    Target { name: "accept", body: parameters::accept },
    Target { name: "quantity", body: parameters::quantity },
    Target { name: "json-path", body: parameters::json_path },
    Target { name: "cron", body: parameters::cron },
    Target { name: "trace-headers", body: parameters::trace_headers },
    Target { name: "go-pattern", body: definitions::go_pattern },
    Target { name: "crd", body: definitions::crd },
    Target { name: "jwt", body: credentials::jwt },
    Target { name: "certificate", body: credentials::certificate },
    Target { name: "webhook-answers", body: credentials::webhook_answers },
    Target { name: "token-review", body: credentials::token_review },
];

/// The depth of nested values.
fn depth(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(depth).max().unwrap_or(0),
        Value::Object(members) => 1 + members.values().map(depth).max().unwrap_or(0),
        _ => 0,
    }
}
