//! Warnings about variables that are set without effect. OpenTelemetry asks implementations to continue without
//! them. Header values are secrets and never shown.

use http::HeaderName;

use super::ExportProtocol;
use crate::operand::env::default_protocol;

/// Numeric variables that the exporter and its queue read themselves, with the unit of each.
const NUMERIC_VARIABLES: [(&str, &str); 6] = [
    ("OTEL_EXPORTER_OTLP_TIMEOUT", "milliseconds"),
    ("OTEL_EXPORTER_OTLP_TRACES_TIMEOUT", "milliseconds"),
    ("OTEL_BSP_SCHEDULE_DELAY", "milliseconds"),
    ("OTEL_BSP_EXPORT_TIMEOUT", "milliseconds"),
    ("OTEL_BSP_MAX_QUEUE_SIZE", "spans"),
    ("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", "spans"),
];

/// One sentence for each variable without effect.
pub(super) fn ineffective_variables(
    endpoint: &str,
    protocol: ExportProtocol,
    set: &dyn Fn(&str) -> Option<String>,
) -> Vec<String> {
    let mut warnings = Vec::new();
    for (name, unit) in NUMERIC_VARIABLES {
        if let Some(value) = set(name).filter(|value| value.parse::<u64>().is_err()) {
            warnings.push(format!("{name} is ignored: {value:?} is not a number of {unit}"));
        }
    }
    for name in ["OTEL_EXPORTER_OTLP_COMPRESSION", "OTEL_EXPORTER_OTLP_TRACES_COMPRESSION"] {
        let known = |value: &String| ["gzip", "none"].iter().any(|known| value.eq_ignore_ascii_case(known));
        if let Some(value) = set(name).filter(|value| !known(value)) {
            warnings.push(format!("{name} is ignored: {value:?} is neither gzip nor none"));
        }
    }
    for name in ["OTEL_EXPORTER_OTLP_INSECURE", "OTEL_EXPORTER_OTLP_TRACES_INSECURE"] {
        let known = |value: &String| ["true", "false"].iter().any(|known| value.eq_ignore_ascii_case(known));
        if let Some(value) = set(name).filter(|value| !known(value)) {
            warnings.push(format!("{name} counts as false: {value:?} is neither true nor false"));
        }
    }
    for name in ["OTEL_EXPORTER_OTLP_HEADERS", "OTEL_EXPORTER_OTLP_TRACES_HEADERS"] {
        warnings.extend(header_warnings(name, &set(name).unwrap_or_default()));
    }
    warnings.extend(port_warning(endpoint, protocol));
    warnings
}

/// Warnings about malformed headers.
fn header_warnings(name: &str, text: &str) -> Vec<String> {
    let items = text.split_terminator(',').map(str::trim).enumerate();
    let is_bad = |item: &str| match item.split_once('=') {
        Some((key, value)) => key.trim().parse::<HeaderName>().is_err() || value.trim().is_empty(),
        None => true,
    };
    let bad = items.filter(|(_, item)| is_bad(item)).map(|(at, _)| at + 1);
    bad.map(|at| format!("{name}: item {at} is not a valid header of the form KEY=VALUE and is ignored")).collect()
}

/// A warning about a port that usually belongs to the other protocol.
fn port_warning(endpoint: &str, protocol: ExportProtocol) -> Option<String> {
    let rest = endpoint.split_once("://").map_or(endpoint, |(_, rest)| rest);
    let authority = rest.split(['/', '?']).next().unwrap_or_default();
    let (said, other) = match protocol {
        ExportProtocol::Grpc if default_protocol(endpoint) != "grpc" => ("grpc", ("4318", "http/protobuf")),
        ExportProtocol::Http if authority.ends_with(":4317") => ("http/protobuf", ("4317", "grpc")),
        _ => return None,
    };
    let (port, usual) = other;
    Some(format!(
        "OTEL_EXPORTER_OTLP_PROTOCOL is {said}, but port {port} of the endpoint usually serves {usual}; if no spans arrive, change the protocol or the port"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn warned(endpoint: &str, protocol: ExportProtocol, name: &str, value: &str) -> Vec<String> {
        ineffective_variables(endpoint, protocol, &|asked| (asked == name).then(|| value.to_owned()))
    }

    fn grpc(name: &str, value: &str) -> Vec<String> {
        warned("http://a:4317", ExportProtocol::Grpc, name, value)
    }

    #[test]
    fn what_has_no_effect_is_told() {
        let timeout = grpc("OTEL_EXPORTER_OTLP_TIMEOUT", "10s");
        let expected = "OTEL_EXPORTER_OTLP_TIMEOUT is ignored: \"10s\" is not a number of milliseconds";
        assert_eq!(timeout, [expected]);
        assert_eq!(grpc("OTEL_EXPORTER_OTLP_COMPRESSION", "zstd").len(), 1);
        assert_eq!(grpc("OTEL_EXPORTER_OTLP_INSECURE", "yes").len(), 1);
        assert_eq!(grpc("OTEL_BSP_MAX_QUEUE_SIZE", "many").len(), 1);
        for (name, value) in [
            ("OTEL_EXPORTER_OTLP_TIMEOUT", "5000"),
            ("OTEL_EXPORTER_OTLP_COMPRESSION", "GZIP"),
            ("OTEL_EXPORTER_OTLP_HEADERS", "authorization=Bearer%20x, x-key = y,"),
            ("OTEL_EXPORTER_OTLP_INSECURE", "True"),
            ("OTHER", "x"),
        ] {
            assert_eq!(grpc(name, value), Vec::<String>::new(), "{name}");
        }
    }

    #[test]
    fn a_header_that_is_none_is_told_by_its_place() {
        let bad = grpc("OTEL_EXPORTER_OTLP_HEADERS", "good=1,Bearer secret,bad name=secret,empty=");
        assert_eq!(bad.len(), 3);
        assert!(bad[0].contains("item 2") && bad[1].contains("item 3") && bad[2].contains("item 4"), "{bad:?}");
        assert!(bad.iter().all(|warning| !warning.contains("secret")), "{bad:?}");
    }

    #[test]
    fn a_port_of_the_other_protocol_is_told() {
        let warned = |endpoint, protocol| warned(endpoint, protocol, "", "").len();
        assert_eq!(warned("http://a:4318", ExportProtocol::Grpc), 1);
        assert_eq!(warned("http://a:4317/v1/traces", ExportProtocol::Http), 1);
        assert_eq!(warned("http://a:4318", ExportProtocol::Http) + warned("http://a:4317", ExportProtocol::Grpc), 0);
        assert_eq!(warned("https://a", ExportProtocol::Http) + warned("https://a", ExportProtocol::Grpc), 0);
    }
}
