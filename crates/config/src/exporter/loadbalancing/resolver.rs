//! Decodes `resolver`.

use std::{collections::BTreeSet, time::Duration};

use super::{DnsResolver, PeerResolver, ServiceResolver};
use crate::{
    decode::{Cursor, DecodeReport, FieldReader, scalar},
    encode::YamlMap,
    network,
    service_account::ServiceAccountFiles,
};

/// The port of OTLP over gRPC, for peers without one.
pub(super) const DEFAULT_PEER_PORT: u16 = 4317;
pub(super) const DEFAULT_WATCH_TIMEOUT: Duration = Duration::from_secs(60);

pub(super) fn read(fields: &mut FieldReader<'_, '_>) -> Option<PeerResolver> {
    const HELP: &str = "set one of `static`, `dns` and `k8s`";
    let Some(at) = fields.find("resolver") else {
        fields.require("resolver", "the exporter needs a `resolver`", Some(HELP.into()));
        return None;
    };
    let report = fields.report;
    let mut resolver = FieldReader::new(&at, report);
    let before = report.errors();
    let given = [
        resolver.get("static", static_peers).map(PeerResolver::Static),
        resolver.get("dns", dns).map(PeerResolver::Dns),
        resolver.get("k8s", kubernetes).map(PeerResolver::Kubernetes),
    ];
    resolver.unsupported(&["aws_cloud_map"]);
    let mut given = given.into_iter().flatten();
    let first = given.next();
    if given.next().is_some() {
        report.error(&at, "`resolver` must have one resolver only", Some(HELP.into()));
    } else if first.is_none() && report.errors() == before {
        report.error(&at, "`resolver` must have a resolver", Some(HELP.into()));
    }
    resolver.finish();
    first
}

fn static_peers(at: &Cursor<'_>, report: &DecodeReport) -> Option<Vec<String>> {
    let mut fields = FieldReader::new(at, report);
    let mut peers = BTreeSet::new();
    if let Some(list) = fields.find("hostnames") {
        match list.items() {
            Some(items) => items.for_each(|item| peers.extend(peer(&item, report))),
            None => peers.extend(peer(&list, report)),
        }
    }
    if peers.is_empty() {
        fields.require("hostnames", "`static` needs at least one of `hostnames`", None);
    }
    fields.finish();
    Some(peers.into_iter().collect())
}

fn peer(at: &Cursor<'_>, report: &DecodeReport) -> Option<String> {
    let text = scalar::text(at, report)?;
    let bracketed = text.starts_with('[');
    let address = match text.rsplit_once(':') {
        None => format!("{text}:{DEFAULT_PEER_PORT}"),
        Some(_) if bracketed && text.ends_with(']') => format!("{text}:{DEFAULT_PEER_PORT}"),
        Some(_) => text,
    };
    let checked = network::check_host_port(&address).map_err(|what| what.describe(at, &address));
    match checked.and_then(|()| check_host(at, &address)) {
        Ok(()) => Some(address),
        Err(what) => {
            report.error(
                at,
                format!("the address of a peer is not valid: {what}"),
                Some("write it as host:port".into()),
            );
            None
        }
    }
}

/// Whether the host of an address with a port is a DNS name or an IP address.
fn check_host(at: &Cursor<'_>, address: &str) -> Result<(), String> {
    let host = address.rsplit_once(':').map_or(address, |(host, _)| host);
    if let Some(inner) = host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
        let number = inner.split_once('%').map_or(inner, |(number, _zone)| number);
        let is_address = number.parse::<std::net::Ipv6Addr>().is_ok();
        return is_address.then_some(()).ok_or_else(|| format!("{} is not an IPv6 address", at.quote(inner)));
    }
    match is_name(host) {
        true => Ok(()),
        false if host.is_empty() => Err("the host is missing".to_owned()),
        false => Err(format!("{} is not a host name", at.quote(host))),
    }
}

/// Whether this is a valid DNS name. An IPv4 address passes, too.
fn is_name(host: &str) -> bool {
    let known = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    let name = host.strip_suffix('.').unwrap_or(host);
    name.len() <= 253 && name.split('.').all(|label| !label.is_empty() && label.bytes().all(known))
}

/// The `hostname` of `dns`, which has no port.
fn hostname(at: &Cursor<'_>, report: &DecodeReport) -> Option<String> {
    let text = scalar::text(at, report)?;
    if is_name(&text) || text.parse::<std::net::Ipv6Addr>().is_ok() {
        return Some(text);
    }
    let help = match text.rsplit_once(':') {
        Some((host, port)) if is_name(host) && port.parse::<u16>().is_ok() => "set the port in `port`",
        _ => "write a name, or an address without brackets",
    };
    report.error(at, format!("{} is not a host name", at.quote(&text)), Some(help.into()));
    None
}

fn dns(at: &Cursor<'_>, report: &DecodeReport) -> Option<DnsResolver> {
    let mut fields = FieldReader::new(at, report);
    let hostname = fields.get("hostname", hostname);
    if hostname.is_none() {
        fields.require("hostname", "`dns` needs a `hostname`", None);
    }
    // The port is text in the Collector.
    let port = fields.get("port", |at, report| match scalar::text(at, report)?.parse() {
        Ok(0) | Err(_) => {
            report.error(at, "`port` is not a valid port", Some("write a number from 1 to 65535, in quotes".into()));
            None
        }
        Ok(port) => Some(port),
    });
    let span = |value: Option<Duration>, default: u64| {
        value.filter(|value| !value.is_zero()).unwrap_or(Duration::from_secs(default))
    };
    let resolver = DnsResolver {
        hostname: hostname.unwrap_or_default(),
        port: port.unwrap_or(DEFAULT_PEER_PORT),
        interval: span(fields.get("interval", scalar::duration), 5),
        timeout: span(fields.get("timeout", scalar::duration), 1),
    };
    fields.finish();
    Some(resolver)
}

/// `k8s`
fn kubernetes(at: &Cursor<'_>, report: &DecodeReport) -> Option<ServiceResolver> {
    let mut fields = FieldReader::new(at, report);
    let service = fields.find("service");
    if service.is_none() {
        let help = "write it as name.namespace";
        fields.require("service", "`k8s` needs a `service`", Some(help.into()));
    }
    let (name, namespace) = service.and_then(|at| self::service_name(&at, report)).unwrap_or_default();
    let ports = fields.find("ports").map(|at| {
        let port = |item: &Cursor<'_>| scalar::integer_in_range(item, report, 1, u16::MAX.into());
        let ports = match at.items() {
            Some(items) => items.filter_map(|item| port(&item)).collect(),
            None => port(&at).into_iter().collect::<Vec<_>>(),
        };
        ports.into_iter().filter_map(|port| port.try_into().ok()).collect::<BTreeSet<u16>>()
    });
    let ports: Vec<u16> = ports.unwrap_or_default().into_iter().collect();
    let timeout = fields.get("timeout", scalar::duration).filter(|timeout| !timeout.is_zero());
    let resolver = ServiceResolver {
        name,
        namespace,
        ports: if ports.is_empty() { vec![DEFAULT_PEER_PORT] } else { ports },
        timeout: timeout.unwrap_or(DEFAULT_WATCH_TIMEOUT),
        return_hostnames: fields.flag("return_hostnames"),
        service_account: ServiceAccountFiles::located_by(|path| report.locate(path)),
    };
    fields.finish();
    Some(resolver)
}

fn service_name(at: &Cursor<'_>, report: &DecodeReport) -> Option<(String, Option<String>)> {
    let text = scalar::text(at, report)?;
    let mut labels = text.split('.');
    let name = labels.next().unwrap_or_default();
    let namespace = labels.next();
    let rest: Vec<&str> = labels.collect();
    let label = |text: &str| {
        let inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
        !text.is_empty()
            && text.len() <= 63
            && text.bytes().all(inner)
            && !text.starts_with('-')
            && !text.ends_with('-')
    };
    let known_rest = matches!(rest.as_slice(), [] | ["svc", _, ..]);
    if !label(name) || !namespace.is_none_or(label) || !known_rest {
        let message = format!("{} is not the name of a Service", at.subject(&text));
        report.error(at, message, Some("write it as name.namespace".into()));
        return None;
    }
    Some((name.to_owned(), namespace.map(str::to_owned)))
}

impl PeerResolver {
    pub(super) fn encode(&self) -> YamlMap {
        match self {
            Self::Static(peers) => {
                YamlMap::default().with_field("static", YamlMap::default().with_list("hostnames", peers))
            }
            Self::Dns(dns) => YamlMap::default().with_field("dns", dns.encode()),
            Self::Kubernetes(service) => YamlMap::default().with_field("k8s", service.encode()),
        }
    }
}

impl DnsResolver {
    fn encode(&self) -> YamlMap {
        YamlMap::default()
            .with_field("hostname", &self.hostname)
            .with_field("port", self.port.to_string().as_str())
            .with_field("interval", self.interval)
            .with_field("timeout", self.timeout)
    }
}

impl ServiceResolver {
    fn encode(&self) -> YamlMap {
        let service = self.namespace.iter().fold(self.name.clone(), |name, namespace| format!("{name}.{namespace}"));
        YamlMap::default()
            .with_field("service", &service)
            .with_list("ports", self.ports.iter().copied())
            .with_changed("timeout", self.timeout, DEFAULT_WATCH_TIMEOUT)
            .with_flag("return_hostnames", self.return_hostnames)
    }
}
