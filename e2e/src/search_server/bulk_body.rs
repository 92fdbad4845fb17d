//! Reads the request as strictly as the servers do. An error concerns the whole request.

use std::io::Read;

use flate2::read::GzDecoder;
use serde_json::Value;

use super::SearchKind;
use crate::backend::ReceivedRequest;

/// An action with its document.
pub(super) struct BulkLine {
    pub(super) action: &'static str,
    pub(super) index: String,
    pub(super) id: Option<String>,
    pub(super) require_data_stream: bool,
    pub(super) document: Value,
    /// The document as it was written.
    pub(super) text: String,
}

const PARAMETERS: [&str; 9] = [
    "_source",
    "filter_path",
    "pipeline",
    "refresh",
    "require_alias",
    "routing",
    "timeout",
    "wait_for_active_shards",
    "error_trace",
];

const ACTION_FIELDS: [&str; 7] = ["_index", "_id", "routing", "pipeline", "require_alias", "if_seq_no", "version"];

pub(super) fn read(kind: SearchKind, request: &ReceivedRequest) -> Result<Vec<BulkLine>, String> {
    let (path, query) = request.path.split_once('?').unwrap_or((&request.path, ""));
    if request.method != "POST" || path != "/_bulk" {
        return Err(format!("no handler found for uri [{}] and method [{}]", request.path, request.method));
    }
    let known =
        |name: &str| PARAMETERS.contains(&name) || kind == SearchKind::Elasticsearch && name == "require_data_stream";
    let names = query.split('&').filter(|pair| !pair.is_empty()).map(|pair| pair.split('=').next().unwrap_or(pair));
    if let Some(unknown) = names.into_iter().find(|name| !known(name)) {
        return Err(format!("request [/_bulk] contains unrecognized parameter: [{unknown}]"));
    }
    if !["application/x-ndjson", "application/json"].contains(&request.header("content-type")) {
        return Err(format!("Content-Type header [{}] is not supported", request.header("content-type")));
    }
    let body = body(request)?;
    if !body.ends_with('\n') {
        return Err("The bulk request must be terminated by a newline [\\n]".into());
    }
    let lines: Vec<&str> = body.lines().collect();
    lines.chunks(2).map(|pair| line(kind, pair)).collect()
}

fn body(request: &ReceivedRequest) -> Result<String, String> {
    let mut plain = Vec::new();
    match request.header("content-encoding") {
        "" => plain.clone_from(&request.body),
        "gzip" => {
            GzDecoder::new(&request.body[..]).read_to_end(&mut plain).map_err(|error| error.to_string())?;
        }
        other => return Err(format!("Content-Encoding [{other}] is not supported")),
    }
    String::from_utf8(plain).map_err(|error| error.to_string())
}

fn line(kind: SearchKind, pair: &[&str]) -> Result<BulkLine, String> {
    let [action, text] = pair else { return Err("an action without a document".into()) };
    let action: Value = serde_json::from_str(action).map_err(|error| format!("Malformed action line: {error}"))?;
    let members = action.as_object().filter(|members| members.len() == 1).ok_or("Malformed action line")?;
    let name = ["create", "index"].into_iter().find(|name| members.contains_key(*name));
    let name = name.ok_or("Malformed action line, expected field [create] or [index]")?;
    let fields = members[name].as_object().ok_or("Malformed action line, expected an object")?;
    let known = |field: &str| {
        ACTION_FIELDS.contains(&field) || kind == SearchKind::Elasticsearch && field == "require_data_stream"
    };
    if let Some(unknown) = fields.keys().find(|field| !known(field)) {
        return Err(format!("Action/metadata line contains an unknown parameter [{unknown}]"));
    }
    let text_of = |field: &str| fields.get(field).and_then(Value::as_str).map(str::to_owned);
    Ok(BulkLine {
        action: name,
        index: text_of("_index").ok_or("an action without an index")?,
        id: text_of("_id"),
        require_data_stream: fields.get("require_data_stream") == Some(&Value::Bool(true)),
        document: serde_json::from_str(text).map_err(|error| format!("a document that is no JSON: {error}"))?,
        text: (*text).to_owned(),
    })
}
