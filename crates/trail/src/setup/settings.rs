//! Parses the export settings from the environment.

use opentelemetry_sdk::{
    Resource,
    trace::{Sampler, SamplingResult, ShouldSample},
};

use super::{SetupError, resource};
use crate::{operand::env::default_protocol, sampler::FollowLinks};

mod warnings;

const ENDPOINT: &str = "OTEL_EXPORTER_OTLP_ENDPOINT";
const TRACES_ENDPOINT: &str = "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT";

/// The settings of the export.
#[derive(Clone, Debug)]
pub(super) struct ExportSettings {
    pub(super) protocol: ExportProtocol,
    /// Whether the endpoint uses TLS.
    pub(super) is_tls: bool,
    /// The path of a PEM file with certificate authorities.
    pub(super) certificate: Option<String>,
    pub(super) sampler: ConfiguredSampler,
    pub(super) resource: Resource,
    /// The endpoint without credentials.
    pub(super) redacted_endpoint: String,
    /// Warnings about variables that are set without effect.
    pub(super) warnings: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ExportProtocol {
    Grpc,
    Http,
}

impl ExportSettings {
    /// Reads the environment; none if nothing is to be exported.
    pub(super) fn read(
        service: &str,
        version: Option<&str>,
        variable: impl Fn(&str) -> Option<String>,
    ) -> Result<Option<Self>, SetupError> {
        let set = |name: &str| variable(name).map(|value| value.trim().to_owned()).filter(|value| !value.is_empty());
        let otlp = |name: &str| {
            set(&format!("OTEL_EXPORTER_OTLP_TRACES_{name}")).or_else(|| set(&format!("OTEL_EXPORTER_OTLP_{name}")))
        };
        let disabled = set("OTEL_SDK_DISABLED").is_some_and(|value| value.eq_ignore_ascii_case("true"));
        let none = set("OTEL_TRACES_EXPORTER").is_some_and(|value| value == "none");
        let Some(endpoint) = otlp("ENDPOINT").filter(|_| !disabled && !none) else { return Ok(None) };
        let protocol = match otlp("PROTOCOL").as_deref().unwrap_or(default_protocol(&endpoint)) {
            "grpc" => ExportProtocol::Grpc,
            "http/protobuf" => ExportProtocol::Http,
            other => {
                let name = "OTEL_EXPORTER_OTLP_PROTOCOL";
                let value = other.to_owned();
                return Err(SetupError::Variable { name, value, expected: "grpc or http/protobuf" });
            }
        };
        let sampler =
            ConfiguredSampler::read(set("OTEL_TRACES_SAMPLER").as_deref(), set("OTEL_TRACES_SAMPLER_ARG").as_deref())?;
        let resource = resource::build_resource(service, version, &set);
        let name = if set(TRACES_ENDPOINT).is_some() { TRACES_ENDPOINT } else { ENDPOINT };
        let insecure = otlp("INSECURE").filter(|_| protocol == ExportProtocol::Grpc);
        let is_tls = is_tls(name, &endpoint, insecure.as_deref())?;
        let warnings = warnings::ineffective_variables(&endpoint, protocol, &set);
        let certificate = otlp("CERTIFICATE");
        let shown = redacted_endpoint(&endpoint);
        Ok(Some(Self { protocol, is_tls, certificate, sampler, resource, redacted_endpoint: shown, warnings }))
    }
}

/// Whether the endpoint uses TLS. By the specification an endpoint without a scheme does, which fails with
/// misleading errors; so the scheme or `OTEL_EXPORTER_OTLP_INSECURE` is required.
fn is_tls(name: &'static str, endpoint: &str, insecure: Option<&str>) -> Result<bool, SetupError> {
    let bad = || {
        let expected = "an address such as http://collector:4317, or https:// for TLS";
        Err(SetupError::Variable { name, value: redacted_endpoint(endpoint), expected })
    };
    if !has_good_port(endpoint) {
        return bad();
    }
    match (endpoint.to_ascii_lowercase().split_once("://"), insecure) {
        (Some(("https", host)), _) if !host.is_empty() => Ok(true),
        (Some(("http", host)), _) if !host.is_empty() => Ok(false),
        (Some(_), _) => bad(),
        (None, Some(insecure)) => Ok(!insecure.eq_ignore_ascii_case("true")),
        (None, None) => Err(SetupError::NoScheme { name, value: redacted_endpoint(endpoint) }),
    }
}

/// The endpoint without credentials.
fn redacted_endpoint(endpoint: &str) -> String {
    match endpoint.rsplit_once('@') {
        // User name and password.
        Some((before, rest)) => format!("{}***@{rest}", before.split_once("://").map_or("", |_| "…://")),
        None => endpoint.to_owned(),
    }
}

/// Whether the port, if there is one, is valid. An exporter would silently use the default port instead of an
/// invalid one.
fn has_good_port(endpoint: &str) -> bool {
    let rest = endpoint.split_once("://").map_or(endpoint, |(_, rest)| rest);
    let authority = rest.split(['/', '?']).next().unwrap_or_default();
    let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
    let after = host.rsplit_once(']').map_or(host, |(_, after)| after);
    after.split_once(':').is_none_or(|(_, port)| port.parse::<u16>().is_ok_and(|port| port > 0))
}

/// The sampler that the environment names.
#[derive(Clone, Debug)]
pub(super) enum ConfiguredSampler {
    /// Decides about each span by itself.
    PerSpan(Sampler),
    /// Follows parents and links, and decides about the other roots.
    FollowLinks(FollowLinks),
}

impl ConfiguredSampler {
    fn read(name: Option<&str>, argument: Option<&str>) -> Result<Self, SetupError> {
        let ratio = || match argument.map(str::parse::<f64>) {
            None => Ok(1.0),
            Some(Ok(share)) if (0.0..=1.0).contains(&share) => Ok(share),
            Some(_) => {
                let value = argument.unwrap_or_default().to_owned();
                Err(SetupError::Variable { name: "OTEL_TRACES_SAMPLER_ARG", value, expected: "a number from 0 to 1" })
            }
        };
        Ok(match name.unwrap_or("parentbased_always_on") {
            "always_on" => Self::PerSpan(Sampler::AlwaysOn),
            "always_off" => Self::PerSpan(Sampler::AlwaysOff),
            "traceidratio" => Self::PerSpan(Sampler::TraceIdRatioBased(ratio()?)),
            "parentbased_always_on" => Self::FollowLinks(FollowLinks::new(Sampler::AlwaysOn)),
            "parentbased_always_off" => Self::FollowLinks(FollowLinks::new(Sampler::AlwaysOff)),
            "parentbased_traceidratio" => Self::FollowLinks(FollowLinks::with_ratio(ratio()?)),
            other => {
                let expected = "always_on, always_off, traceidratio, or one of them with parentbased_ before it";
                return Err(SetupError::Variable { name: "OTEL_TRACES_SAMPLER", value: other.to_owned(), expected });
            }
        })
    }
}

impl ShouldSample for ConfiguredSampler {
    fn should_sample(
        &self,
        parent: Option<&opentelemetry::Context>,
        trace: opentelemetry::trace::TraceId,
        name: &str,
        kind: &opentelemetry::trace::SpanKind,
        attributes: &[opentelemetry::KeyValue],
        links: &[opentelemetry::trace::Link],
    ) -> SamplingResult {
        match self {
            Self::PerSpan(sampler) => sampler.should_sample(parent, trace, name, kind, attributes, links),
            Self::FollowLinks(sampler) => sampler.should_sample(parent, trace, name, kind, attributes, links),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(variables: &[(&str, &str)]) -> Result<Option<ExportSettings>, SetupError> {
        let find = |name: &str| variables.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned());
        ExportSettings::read("service", None, find)
    }

    const ENDPOINT: (&str, &str) = (super::ENDPOINT, "http://localhost:4317");

    #[test]
    fn the_port_says_the_protocol_where_nobody_else_does() {
        let protocol = |endpoint: &str| read(&[(super::ENDPOINT, endpoint)]).unwrap().unwrap().protocol;
        assert_eq!(protocol("http://localhost:4317"), ExportProtocol::Grpc);
        assert_eq!(protocol("http://localhost:4318"), ExportProtocol::Http);
        assert_eq!(protocol("https://[::1]:4318/prefix"), ExportProtocol::Http);
        assert_eq!(protocol("https://collector.example.com"), ExportProtocol::Grpc);
        let said = [(super::ENDPOINT, "http://localhost:4318"), ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")];
        assert_eq!(read(&said).unwrap().unwrap().protocol, ExportProtocol::Grpc);
    }

    #[test]
    fn an_endpoint_says_whether_it_is_called_over_tls() {
        let tls = |variables: &[(&str, &str)]| read(variables).map(|settings| settings.unwrap().is_tls);
        assert!(tls(&[(super::ENDPOINT, "HTTPS://a:4317")]).unwrap() && !tls(&[ENDPOINT]).unwrap());
        let bare = (super::ENDPOINT, "collector:4317");
        assert!(!tls(&[bare, ("OTEL_EXPORTER_OTLP_INSECURE", "true")]).unwrap());
        assert!(tls(&[bare, ("OTEL_EXPORTER_OTLP_INSECURE", "false")]).unwrap());
        assert_eq!(
            tls(&[bare]).unwrap_err().to_string(),
            "OTEL_EXPORTER_OTLP_ENDPOINT is \"collector:4317\", which has no scheme: write http://collector:4317, or https://collector:4317 \
             if it speaks TLS"
        );
        let http = [("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "collector:4318"), ("OTEL_EXPORTER_OTLP_INSECURE", "true")];
        assert!(tls(&http).unwrap_err().to_string().starts_with("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT is"));
        for bad in ["ftp://collector", "http://", "://x", "http://collector:99999", "http://[::1]:a", "http://a:0/b"] {
            assert!(tls(&[(super::ENDPOINT, bad)]).unwrap_err().to_string().contains("http://collector:4317"), "{bad}");
        }
        for secret in ["ann:pass@collector:4317", "ftp://ann:pass@collector"] {
            let error = tls(&[(super::ENDPOINT, secret)]).unwrap_err();
            assert!(!format!("{error} {error:?}").contains("pass") && error.to_string().contains("***@"), "{error}");
        }
    }

    #[test]
    fn without_an_endpoint_nothing_happens() {
        assert!(read(&[]).unwrap().is_none());
        assert!(read(&[("OTEL_EXPORTER_OTLP_ENDPOINT", " ")]).unwrap().is_none());
        assert!(read(&[ENDPOINT, ("OTEL_SDK_DISABLED", "TRUE")]).unwrap().is_none());
        assert!(read(&[ENDPOINT, ("OTEL_TRACES_EXPORTER", "none")]).unwrap().is_none());
        assert!(read(&[("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "http://a")]).unwrap().is_some());
    }

    #[test]
    fn the_variable_for_traces_wins() {
        let http = ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "http/protobuf");
        let settings = read(&[ENDPOINT, http, ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")]).unwrap().unwrap();
        assert_eq!(settings.protocol, ExportProtocol::Http);
        assert_eq!(read(&[ENDPOINT]).unwrap().unwrap().protocol, ExportProtocol::Grpc);
    }

    #[test]
    fn what_nobody_understands_is_an_error_that_helps() {
        let message = |pair: (&str, &str)| read(&[ENDPOINT, pair]).unwrap_err().to_string();
        assert_eq!(
            message(("OTEL_EXPORTER_OTLP_PROTOCOL", "http/json")),
            "OTEL_EXPORTER_OTLP_PROTOCOL is \"http/json\"; use grpc or http/protobuf"
        );
        assert!(message(("OTEL_TRACES_SAMPLER", "some")).contains("always_on"));
        let sampler = ("OTEL_TRACES_SAMPLER", "traceidratio");
        assert!(read(&[ENDPOINT, sampler, ("OTEL_TRACES_SAMPLER_ARG", "7")]).is_err());
    }

    #[test]
    fn samplers_have_their_usual_names() {
        let sampler = |name| read(&[ENDPOINT, ("OTEL_TRACES_SAMPLER", name)]).unwrap().unwrap().sampler;
        assert!(matches!(sampler("always_off"), ConfiguredSampler::PerSpan(Sampler::AlwaysOff)));
        assert!(matches!(sampler("parentbased_traceidratio"), ConfiguredSampler::FollowLinks(_)));
        assert!(matches!(read(&[ENDPOINT]).unwrap().unwrap().sampler, ConfiguredSampler::FollowLinks(_)));
    }
}
