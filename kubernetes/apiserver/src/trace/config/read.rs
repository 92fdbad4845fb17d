//! Decodes the file into a [`TracingConfiguration`].

use http::{HeaderMap, HeaderName, HeaderValue, header};
use serde_json::{Map, Value, json};

use super::{
    TracingConfiguration, TracingDestination, TracingEndpoint, TracingProtocol, TracingTlsFiles,
    fields::{ConfigFields, ConfigProblems, undecodable},
};
use crate::{
    api::field,
    api::go_format,
    codec::{json, yaml},
};

const CONFIG_GROUP: &str = "apiserver.config.k8s.io";
const CONFIG_VERSIONS: [&str; 3] = ["v1alpha1", "v1beta1", "v1"];
const DEFAULT_ENDPOINT: &str = "localhost:4317";
const PER_MILLION: i64 = 1_000_000;
/// Headers of the request itself.
const RESERVED_HEADERS: [HeaderName; 6] = [
    header::CONTENT_TYPE,
    header::CONTENT_LENGTH,
    header::TRANSFER_ENCODING,
    header::CONNECTION,
    header::HOST,
    header::TE,
];

/// The two kinds of documents.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ConfigDocumentKind {
    Tracing,
    Client,
}

pub(super) fn parse_config(text: &[u8]) -> Result<TracingConfiguration, Vec<String>> {
    let mut problems = ConfigProblems::default();
    let one = |why: String| vec![undecodable(&why)];
    let map = decode(text, &mut problems).map_err(one)?;
    let (kind, mut fields) = kind(map).map_err(one)?;
    let config = body(kind, &mut fields, &mut problems);
    fields.report_unknown(&mut problems);
    let problems = problems.into_messages();
    match config {
        Some(config) if problems.is_empty() => Ok(config),
        _ => Err(problems),
    }
}

/// Decodes JSON if the text begins like an object, else YAML.
fn decode(text: &[u8], problems: &mut ConfigProblems) -> Result<Map<String, Value>, String> {
    let value = if text.trim_ascii_start().starts_with(b"{") {
        let decoded = json::decode(text).map_err(|error| error.to_string())?;
        problems.strict.extend(decoded.duplicates.iter().map(|path| format!("duplicate field {path:?}")));
        decoded.value
    } else {
        let decoded = yaml::decode(text).map_err(|error| error.to_string())?;
        problems.strict.extend(decoded.duplicates);
        decoded.value
    };
    match value {
        Value::Object(map) => Ok(map),
        Value::Null => Ok(Map::new()),
        _ => Err("couldn't get version/kind; json parse error: it holds no object".to_owned()),
    }
}

fn kind(mut map: Map<String, Value>) -> Result<(ConfigDocumentKind, ConfigFields), String> {
    let missing = |what: &str| Err(format!("Object '{what}' is missing"));
    let kind = map.remove("kind");
    let version = map.remove("apiVersion");
    let Some(kind) = kind.as_ref().and_then(Value::as_str) else { return missing("Kind") };
    let Some(version) = version.as_ref().and_then(Value::as_str) else { return missing("apiVersion") };
    let known = version
        .split_once('/')
        .is_some_and(|(group, version)| group == CONFIG_GROUP && CONFIG_VERSIONS.contains(&version));
    match kind {
        "TracingConfiguration" if known => {
            Ok((ConfigDocumentKind::Tracing, ConfigFields::new("TracingConfiguration", map)))
        }
        "OpenTelemetryClientConfiguration" if known => {
            Ok((ConfigDocumentKind::Client, ConfigFields::new("OpenTelemetryClientConfiguration", map)))
        }
        _ => {
            let kind = go_format::quote(kind);
            let version = go_format::quote(version);
            let known = format!(
                "TracingConfiguration and OpenTelemetryClientConfiguration of {CONFIG_GROUP} {}",
                CONFIG_VERSIONS.join(", ")
            );
            Err(format!("no kind {kind} is registered for version {version}; known are {known}"))
        }
    }
}

fn body(
    kind: ConfigDocumentKind,
    fields: &mut ConfigFields,
    problems: &mut ConfigProblems,
) -> Option<TracingConfiguration> {
    let protocol = protocol(fields, problems);
    let tls = tls(fields, problems);
    let ratio_per_million = ratio(fields, problems);
    let trusted_groups = fields.texts("trustedGroups", problems);
    let joined_authentication = !fields.flag("authenticationRoots", problems).unwrap_or(true);
    let headers = headers(fields, problems);
    // Only a document with extensions may contain further ones.
    let beyond = kind == ConfigDocumentKind::Client || protocol.is_some();
    let protocol = protocol.unwrap_or_default();
    let destination = match kind {
        ConfigDocumentKind::Tracing => {
            let text = fields.text("endpoint", problems).filter(|text| !text.is_empty());
            direct("endpoint", &text.unwrap_or_else(|| DEFAULT_ENDPOINT.to_owned()), protocol, beyond, problems)
        }
        ConfigDocumentKind::Client => client_destination(fields, protocol, problems),
    }?;
    let tls = match (&destination, tls) {
        (TracingDestination::Direct(endpoint), TlsSetting::Unsaid) if endpoint.https => {
            Some(TracingTlsFiles::default())
        }
        (TracingDestination::Direct(endpoint), TlsSetting::Plain) if endpoint.https => {
            problems.other.push(
                field::FieldError::forbidden("tls.insecure", "must not be set for an https endpoint").to_string(),
            );
            None
        }
        (_, TlsSetting::Tls(tls)) => Some(tls),
        _ => None,
    };
    Some(TracingConfiguration {
        destination,
        protocol,
        tls,
        ratio_per_million,
        trusted_groups,
        joined_authentication,
        headers,
    })
}

fn protocol(fields: &mut ConfigFields, problems: &mut ConfigProblems) -> Option<TracingProtocol> {
    match fields.text("protocol", problems)?.as_str() {
        "grpc" => Some(TracingProtocol::Grpc),
        "http/protobuf" => Some(TracingProtocol::HttpProtobuf),
        other => {
            let error = field::FieldError::not_supported("protocol", &json!(other), &["grpc", "http/protobuf"]);
            problems.other.push(error.to_string());
            Some(TracingProtocol::default())
        }
    }
}

fn ratio(fields: &mut ConfigFields, problems: &mut ConfigProblems) -> u32 {
    let path = "samplingRatePerMillion";
    let Some(ratio) = fields.number(path, problems) else { return 0 };
    let wrong = match ratio {
        ..0 => "sampling rate must be positive",
        0..=PER_MILLION => return u32::try_from(ratio).unwrap_or(0),
        _ => "sampling rate per million must be less than or equal to one million",
    };
    problems.other.push(field::FieldError::invalid(path, &json!(ratio), wrong).to_string());
    0
}

enum TlsSetting {
    Unsaid,
    Plain,
    Tls(TracingTlsFiles),
}

fn tls(fields: &mut ConfigFields, problems: &mut ConfigProblems) -> TlsSetting {
    let Some(mut tls) = fields.object("tls", problems) else { return TlsSetting::Unsaid };
    let mut file = |key: &str| tls.text(key, problems).filter(|path| !path.is_empty());
    let ca = file("caFile");
    let certificate = file("certFile");
    let key = file("keyFile");
    let server_name = file("serverName");
    let plain = tls.flag("insecure", problems) == Some(true);
    tls.report_unknown(problems);
    if certificate.is_some() != key.is_some() {
        let path = if certificate.is_some() { "tls.keyFile" } else { "tls.certFile" };
        problems.other.push(field::FieldError::required(path, "certFile and keyFile must be set together").to_string());
    }
    if !plain {
        let [ca, certificate, key] = [ca, certificate, key].map(|path| path.map(Into::into));
        return TlsSetting::Tls(TracingTlsFiles { ca, certificate, key, server_name });
    }
    let said = [("caFile", &ca), ("certFile", &certificate), ("keyFile", &key), ("serverName", &server_name)];
    for (field, _) in said.iter().filter(|(_, value)| value.is_some()) {
        let path = format!("tls.{field}");
        problems.other.push(field::FieldError::forbidden(path, "may not be set together with insecure").to_string());
    }
    TlsSetting::Plain
}

fn headers(fields: &mut ConfigFields, problems: &mut ConfigProblems) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for (name, value) in fields.pairs("headers", problems).unwrap_or_default() {
        let path = format!("headers[{name}]");
        let mut refuse = |why: &str| problems.other.push(field::FieldError::forbidden(path.as_str(), why).to_string());
        match (HeaderName::try_from(name.as_str()), HeaderValue::try_from(value)) {
            (Ok(name), _) if RESERVED_HEADERS.contains(&name) => refuse("this header is set by the exporter"),
            (Ok(name), Ok(mut value)) => {
                value.set_sensitive(true);
                headers.insert(name, value);
            }
            (Err(_), _) => refuse("invalid header name"),
            (_, Err(_)) => refuse("invalid header value"),
        }
    }
    headers
}

fn direct(
    path: &str,
    text: &str,
    protocol: TracingProtocol,
    beyond: bool,
    problems: &mut ConfigProblems,
) -> Option<TracingDestination> {
    let refuse = |(value, why): (String, String)| {
        problems.other.push(field::FieldError::invalid(path, &json!(value), &why).to_string());
    };
    TracingEndpoint::parse(text, protocol, beyond).map(TracingDestination::Direct).map_err(refuse).ok()
}

fn client_destination(
    fields: &mut ConfigFields,
    protocol: TracingProtocol,
    problems: &mut ConfigProblems,
) -> Option<TracingDestination> {
    let url = fields.text("url", problems);
    let service = fields.object("service", problems);
    let both = "exactly one of url or service is required";
    match (url, service) {
        (Some(url), None) => direct("url", &url, protocol, true, problems),
        (None, Some(service)) => self::service(service, protocol, problems),
        (None, None) => {
            problems.other.push(field::FieldError::required("url", both).to_string());
            None
        }
        (Some(_), Some(mut rest)) => {
            // The Service's own errors are reported as well.
            problems.other.push(field::FieldError::forbidden("service", both).to_string());
            read_service(&mut rest, protocol, problems);
            rest.report_unknown(problems);
            None
        }
    }
}

fn service(
    mut fields: ConfigFields,
    protocol: TracingProtocol,
    problems: &mut ConfigProblems,
) -> Option<TracingDestination> {
    let service = read_service(&mut fields, protocol, problems);
    fields.report_unknown(problems);
    service
}

fn read_service(
    fields: &mut ConfigFields,
    protocol: TracingProtocol,
    problems: &mut ConfigProblems,
) -> Option<TracingDestination> {
    let mut name = |key: &str| {
        let text = fields.text(key, problems).filter(|text| !text.is_empty());
        if text.is_none() {
            problems.other.push(field::FieldError::required(fields.path(key), "").to_string());
        }
        text
    };
    let namespace = name("namespace");
    let name = name("name");
    let port = match fields.number("port", problems) {
        None => Some(protocol.port()),
        Some(port) => {
            let valid = u16::try_from(port).ok().filter(|port| *port > 0);
            if valid.is_none() {
                let why = "must be between 1 and 65535, inclusive";
                problems.other.push(field::FieldError::invalid(fields.path("port"), &json!(port), why).to_string());
            }
            valid
        }
    };
    Some(TracingDestination::Service { namespace: namespace?, name: name?, port: port? })
}
