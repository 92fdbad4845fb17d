//! From the text of the file to a [`Config`].

use http::{HeaderMap, HeaderName, HeaderValue, header};
use serde_json::{Map, Value, json};

use super::{
    Config, Destination, Endpoint, Protocol, Tls,
    fields::{Fields, Problems, undecodable},
};
use crate::{
    api::field,
    api::go,
    codec::{json, yaml},
};

const GROUP: &str = "apiserver.config.k8s.io";
const VERSIONS: [&str; 3] = ["v1alpha1", "v1beta1", "v1"];
/// kube-apiserver's own default.
const ENDPOINT: &str = "localhost:4317";
const MILLION: i64 = 1_000_000;
/// These belong to the request itself.
const RESERVED: [HeaderName; 6] = [
    header::CONTENT_TYPE,
    header::CONTENT_LENGTH,
    header::TRANSFER_ENCODING,
    header::CONNECTION,
    header::HOST,
    header::TE,
];

/// The two kinds of documents.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Tracing,
    Client,
}

/// Reads a document.
pub(super) fn config(text: &[u8]) -> Result<Config, Vec<String>> {
    let mut problems = Problems::default();
    let one = |why: String| vec![undecodable(&why)];
    let map = decode(text, &mut problems).map_err(one)?;
    let (kind, mut fields) = kind(map).map_err(one)?;
    let config = body(kind, &mut fields, &mut problems);
    fields.end(&mut problems);
    let problems = problems.all();
    match config {
        Some(config) if problems.is_empty() => Ok(config),
        _ => Err(problems),
    }
}

/// JSON where it begins like an object, else YAML.
fn decode(text: &[u8], problems: &mut Problems) -> Result<Map<String, Value>, String> {
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

fn kind(mut map: Map<String, Value>) -> Result<(Kind, Fields), String> {
    let missing = |what: &str| Err(format!("Object '{what}' is missing"));
    let (kind, version) = (map.remove("kind"), map.remove("apiVersion"));
    let Some(kind) = kind.as_ref().and_then(Value::as_str) else { return missing("Kind") };
    let Some(version) = version.as_ref().and_then(Value::as_str) else { return missing("apiVersion") };
    let known = version.split_once('/').is_some_and(|(group, version)| group == GROUP && VERSIONS.contains(&version));
    match kind {
        "TracingConfiguration" if known => Ok((Kind::Tracing, Fields::new("TracingConfiguration", map))),
        "OpenTelemetryClientConfiguration" if known => {
            Ok((Kind::Client, Fields::new("OpenTelemetryClientConfiguration", map)))
        }
        _ => {
            let (kind, version) = (go::quote(kind), go::quote(version));
            let known =
                format!("TracingConfiguration and OpenTelemetryClientConfiguration of {GROUP} {}", VERSIONS.join(", "));
            Err(format!("no kind {kind} is registered for version {version}; known are {known}"))
        }
    }
}

fn body(kind: Kind, fields: &mut Fields, problems: &mut Problems) -> Option<Config> {
    let protocol = protocol(fields, problems);
    let tls = tls(fields, problems);
    let ratio_per_million = ratio(fields, problems);
    let trusted_groups = fields.texts("trustedGroups", problems);
    let joined_authentication = !fields.flag("authenticationRoots", problems).unwrap_or(true);
    let headers = headers(fields, problems);
    // Only a document that goes beyond kube-apiserver's may also name what it does not know.
    let beyond = kind == Kind::Client || protocol.is_some();
    let protocol = protocol.unwrap_or_default();
    let destination = match kind {
        Kind::Tracing => {
            let text = fields.text("endpoint", problems).filter(|text| !text.is_empty());
            direct("endpoint", &text.unwrap_or_else(|| ENDPOINT.to_owned()), protocol, beyond, problems)
        }
        Kind::Client => client_destination(fields, protocol, problems),
    }?;
    let tls = match (&destination, tls) {
        (Destination::Direct(endpoint), Secured::Unsaid) if endpoint.https => Some(Tls::default()),
        (Destination::Direct(endpoint), Secured::Plain) if endpoint.https => {
            problems.other.push(field::Error::forbidden("tls.insecure", "the address is https").to_string());
            None
        }
        (_, Secured::Tls(tls)) => Some(tls),
        _ => None,
    };
    Some(Config { destination, protocol, tls, ratio_per_million, trusted_groups, joined_authentication, headers })
}

fn protocol(fields: &mut Fields, problems: &mut Problems) -> Option<Protocol> {
    match fields.text("protocol", problems)?.as_str() {
        "grpc" => Some(Protocol::Grpc),
        "http/protobuf" => Some(Protocol::HttpProtobuf),
        other => {
            let error = field::Error::not_supported("protocol", &json!(other), &["grpc", "http/protobuf"]);
            problems.other.push(error.to_string());
            Some(Protocol::default())
        }
    }
}

fn ratio(fields: &mut Fields, problems: &mut Problems) -> u32 {
    let path = "samplingRatePerMillion";
    let Some(ratio) = fields.number(path, problems) else { return 0 };
    let wrong = match ratio {
        ..0 => "sampling rate must be positive",
        0..=MILLION => return u32::try_from(ratio).unwrap_or(0),
        _ => "sampling rate per million must be less than or equal to one million",
    };
    problems.other.push(field::Error::invalid(path, &json!(ratio), wrong).to_string());
    0
}

/// What `tls` says.
enum Secured {
    Unsaid,
    Plain,
    Tls(Tls),
}

fn tls(fields: &mut Fields, problems: &mut Problems) -> Secured {
    let Some(mut tls) = fields.object("tls", problems) else { return Secured::Unsaid };
    let mut file = |key: &str| tls.text(key, problems).filter(|path| !path.is_empty());
    let (ca, certificate, key) = (file("caFile"), file("certFile"), file("keyFile"));
    let server_name = file("serverName");
    let plain = tls.flag("insecure", problems) == Some(true);
    tls.end(problems);
    if certificate.is_some() != key.is_some() {
        let path = if certificate.is_some() { "tls.keyFile" } else { "tls.certFile" };
        problems.other.push(field::Error::required(path, "certFile and keyFile belong together").to_string());
    }
    if !plain {
        let [ca, certificate, key] = [ca, certificate, key].map(|path| path.map(Into::into));
        return Secured::Tls(Tls { ca, certificate, key, server_name });
    }
    let said = [("caFile", &ca), ("certFile", &certificate), ("keyFile", &key), ("serverName", &server_name)];
    for (field, _) in said.iter().filter(|(_, value)| value.is_some()) {
        let path = format!("tls.{field}");
        problems.other.push(field::Error::forbidden(path, "may not be set together with insecure").to_string());
    }
    Secured::Plain
}

fn headers(fields: &mut Fields, problems: &mut Problems) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for (name, value) in fields.pairs("headers", problems).unwrap_or_default() {
        let path = format!("headers[{name}]");
        let mut refuse = |why: &str| problems.other.push(field::Error::forbidden(path.as_str(), why).to_string());
        match (HeaderName::try_from(name.as_str()), HeaderValue::try_from(value)) {
            (Ok(name), _) if RESERVED.contains(&name) => refuse("the exporter sets it itself"),
            (Ok(name), Ok(mut value)) => {
                value.set_sensitive(true);
                headers.insert(name, value);
            }
            (Err(_), _) => refuse("not a header's name"),
            (_, Err(_)) => refuse("not a header's value"),
        }
    }
    headers
}

fn direct(path: &str, text: &str, protocol: Protocol, beyond: bool, problems: &mut Problems) -> Option<Destination> {
    let refuse = |(value, why): (String, String)| {
        problems.other.push(field::Error::invalid(path, &json!(value), &why).to_string());
    };
    Endpoint::parse(text, protocol, beyond).map(Destination::Direct).map_err(refuse).ok()
}

fn client_destination(fields: &mut Fields, protocol: Protocol, problems: &mut Problems) -> Option<Destination> {
    let url = fields.text("url", problems);
    let service = fields.object("service", problems);
    let both = "exactly one of url or service is required";
    match (url, service) {
        (Some(url), None) => direct("url", &url, protocol, true, problems),
        (None, Some(service)) => self::service(service, protocol, problems),
        (None, None) => {
            problems.other.push(field::Error::required("url", both).to_string());
            None
        }
        (Some(_), Some(mut rest)) => {
            // Its own errors are told as well.
            problems.other.push(field::Error::forbidden("service", both).to_string());
            read_service(&mut rest, protocol, problems);
            rest.end(problems);
            None
        }
    }
}

fn service(mut fields: Fields, protocol: Protocol, problems: &mut Problems) -> Option<Destination> {
    let service = read_service(&mut fields, protocol, problems);
    fields.end(problems);
    service
}

fn read_service(fields: &mut Fields, protocol: Protocol, problems: &mut Problems) -> Option<Destination> {
    let mut name = |key: &str| {
        let text = fields.text(key, problems).filter(|text| !text.is_empty());
        if text.is_none() {
            problems.other.push(field::Error::required(fields.path(key), "").to_string());
        }
        text
    };
    let (namespace, name) = (name("namespace"), name("name"));
    let port = match fields.number("port", problems) {
        None => Some(protocol.port()),
        Some(port) => {
            let valid = u16::try_from(port).ok().filter(|port| *port > 0);
            if valid.is_none() {
                let why = "must be between 1 and 65535, inclusive";
                problems.other.push(field::Error::invalid(fields.path("port"), &json!(port), why).to_string());
            }
            valid
        }
    };
    Some(Destination::Service { namespace: namespace?, name: name?, port: port? })
}
