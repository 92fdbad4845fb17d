//! `otlp`, `otlp_grpc`.

use std::time::Duration;

use super::sending;
use crate::{
    decode::{
        cursor::Cursor,
        fields::Fields,
        network,
        report::{Report, Side},
        scalar, tls,
    },
    model::{ClientTls, Compression, Exporter, OtlpGrpcExporter},
};

/// `otlp`, `otlp_grpc`
pub(crate) fn grpc(at: &Cursor<'_>, report: &Report) -> Option<Exporter> {
    let mut fields = Fields::of(at, report);
    let target = fields.get("endpoint", target);
    if target.is_none() {
        fields.require("endpoint", "the exporter needs an `endpoint`", Some(ENDPOINT_HELP.into()));
    }
    let target = target.unwrap_or_default();
    let mut tls = fields.get("tls", tls::client).unwrap_or_default();
    match target.scheme {
        Some(Scheme::Http) => {
            if !tls.insecure {
                let help =
                    "write `tls: {insecure: true}` if that is meant: the OpenTelemetry Collector uses TLS without it";
                report.warning(&fields.place("endpoint"), "`http://` switches TLS off", Some(help.into()));
            }
            tls.insecure = true;
        }
        Some(Scheme::Https) => tls.insecure = false,
        None => {}
    }
    let exporter = client(&mut fields, target.address, tls);
    fields.finish();
    Some(Exporter::OtlpGrpc(exporter))
}

/// The settings of a client that is told elsewhere where to connect.
pub(super) fn template(at: &Cursor<'_>, report: &Report) -> Option<OtlpGrpcExporter> {
    let mut fields = Fields::of(at, report);
    fields.ineffective("endpoint", "the resolver says where the peers are", scalar::text);
    let tls = fields.get("tls", tls::client).unwrap_or_default();
    let exporter = client(&mut fields, String::new(), tls);
    fields.finish();
    Some(exporter)
}

fn client(fields: &mut Fields<'_, '_>, endpoint: String, tls: ClientTls) -> OtlpGrpcExporter {
    without_effect(fields);
    OtlpGrpcExporter {
        endpoint,
        tls,
        compression: fields.get_or("compression", Compression::Gzip, network::grpc_compression),
        headers: fields.get("headers", network::headers).unwrap_or_default(),
        authority: fields.text("authority"),
        auth: network::auth(fields, Side::Client),
        keepalive: fields.get("keepalive", network::client_keepalive),
        timeout: sending::timeout(fields, Duration::from_secs(5)),
        retry: sending::retry(fields),
        queue: sending::queue(fields),
    }
}

const ENDPOINT_HELP: &str = "write it as host:port, such as backend.example.com:4317";

fn without_effect(fields: &mut Fields<'_, '_>) {
    fields.idle(&["read_buffer_size", "write_buffer_size"], scalar::integer);
    fields.idle(&["wait_for_ready"], scalar::boolean);
    let balancers = [("round_robin", ()), ("pick_first", ()), ("", ())];
    fields.get("balancer_name", |at, report| scalar::keyword(at, report, &balancers));
    fields.unsupported(&["middlewares", "user_agent"]);
}

/// What an endpoint says: an address, and perhaps whether to use TLS.
#[derive(Default)]
struct Target {
    address: String,
    scheme: Option<Scheme>,
}

#[derive(Clone, Copy)]
enum Scheme {
    Http,
    Https,
}

fn target(at: &Cursor<'_>, report: &Report) -> Option<Target> {
    let text = scalar::text(at, report)?;
    let (scheme, address) = strip(at, report, &text)?;
    if address.is_empty() {
        let message = match at.node.origin {
            None => "the `endpoint` is empty".to_owned(),
            Some(_) => format!("`endpoint`: {} is empty", at.subject(address)),
        };
        report.error(at, message, Some(ENDPOINT_HELP.into()));
        return None;
    }
    match port(address) {
        Ok(()) => Some(Target { address: address.to_owned(), scheme }),
        Err(what) => {
            report.error(at, format!("`endpoint`: {}", what.describe(at, address)), Some(ENDPOINT_HELP.into()));
            None
        }
    }
}

/// Takes the scheme off. gRPC's resolvers `dns` and `passthrough` are what happens anyway.
fn strip<'t>(at: &Cursor<'_>, report: &Report, text: &'t str) -> Option<(Option<Scheme>, &'t str)> {
    if let Some(address) = text.strip_prefix("http://") {
        return Some((Some(Scheme::Http), address));
    }
    if let Some(address) = text.strip_prefix("https://") {
        return Some((Some(Scheme::Https), address));
    }
    if text.starts_with("unix:") || text.starts_with("unix-abstract:") {
        report.error(at, "Unix sockets are not supported by this build", Some(ENDPOINT_HELP.into()));
        return None;
    }
    let Some((scheme, rest)) = text.split_once("://") else {
        return Some((None, text));
    };
    if !matches!(scheme, "dns" | "passthrough") {
        let message = format!("`endpoint`: the scheme of {} is not supported by this build", at.subject(text));
        report.error(at, message, Some("the known schemes are: dns, http, https, passthrough".into()));
        return None;
    }
    // `dns://authority/host:port`; without an authority there are three slashes. The Collector also takes two.
    Some((None, rest.split_once('/').map_or(rest, |(_, address)| address)))
}

pub(super) enum BadAddress {
    NoPort,
    TooManyColons,
    Port,
}

impl BadAddress {
    pub(super) fn describe(&self, at: &Cursor<'_>, address: &str) -> String {
        match self {
            Self::NoPort => format!("{} has no port: missing port in address", at.subject(address)),
            Self::TooManyColons => {
                format!("{} has too many colons; an IPv6 address goes in brackets", at.subject(address))
            }
            Self::Port => {
                let port = address.rsplit_once(':').map_or("", |(_, port)| port);
                format!("invalid port {}", at.quote(port))
            }
        }
    }
}

/// Checks an address as Go's `SplitHostPort` does, and that its port is a number.
pub(super) fn port(address: &str) -> Result<(), BadAddress> {
    let (host, port) = match address.strip_prefix('[') {
        Some(rest) => {
            let (host, after) = rest.split_once(']').ok_or(BadAddress::NoPort)?;
            (host, after.strip_prefix(':').ok_or(BadAddress::NoPort)?)
        }
        None => {
            let (host, port) = address.rsplit_once(':').ok_or(BadAddress::NoPort)?;
            if host.contains(':') {
                return Err(BadAddress::TooManyColons);
            }
            (host, port)
        }
    };
    let valid = !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit()) && port.parse::<u16>().is_ok();
    if valid && !host.contains(['[', ']']) { Ok(()) } else { Err(BadAddress::Port) }
}
