//! The environment, understood.

use opentelemetry_sdk::{
    Resource,
    trace::{Sampler, SamplingResult, ShouldSample},
};

use super::{Error, resource};
use crate::{operand::env::usual_protocol, sampler::FollowLinks};

mod warnings;

const ENDPOINT: &str = "OTEL_EXPORTER_OTLP_ENDPOINT";
const TRACES_ENDPOINT: &str = "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT";

/// What to export, and how.
#[derive(Clone, Debug)]
pub(super) struct Settings {
    pub(super) protocol: Protocol,
    /// The endpoint is called over TLS.
    pub(super) is_tls: bool,
    /// A PEM file with authorities.
    pub(super) certificate: Option<String>,
    pub(super) sampler: Roots,
    pub(super) resource: Resource,
    /// Where to, without secrets.
    pub(super) shown: String,
    /// What is set and has no effect.
    pub(super) warnings: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Protocol {
    Grpc,
    Http,
}

impl Settings {
    /// Reads the environment; none where nothing is to be exported.
    pub(super) fn read(
        service: &str,
        version: Option<&str>,
        variable: impl Fn(&str) -> Option<String>,
    ) -> Result<Option<Self>, Error> {
        let set = |name: &str| variable(name).map(|value| value.trim().to_owned()).filter(|value| !value.is_empty());
        let otlp = |name: &str| {
            set(&format!("OTEL_EXPORTER_OTLP_TRACES_{name}")).or_else(|| set(&format!("OTEL_EXPORTER_OTLP_{name}")))
        };
        let disabled = set("OTEL_SDK_DISABLED").is_some_and(|value| value.eq_ignore_ascii_case("true"));
        let none = set("OTEL_TRACES_EXPORTER").is_some_and(|value| value == "none");
        let Some(endpoint) = otlp("ENDPOINT").filter(|_| !disabled && !none) else { return Ok(None) };
        let protocol = match otlp("PROTOCOL").as_deref().unwrap_or(usual_protocol(&endpoint)) {
            "grpc" => Protocol::Grpc,
            "http/protobuf" => Protocol::Http,
            other => {
                let (name, value) = ("OTEL_EXPORTER_OTLP_PROTOCOL", other.to_owned());
                return Err(Error::Variable { name, value, expected: "grpc or http/protobuf" });
            }
        };
        let sampler = Roots::read(set("OTEL_TRACES_SAMPLER").as_deref(), set("OTEL_TRACES_SAMPLER_ARG").as_deref())?;
        let resource = resource::of(service, version, &set);
        let name = if set(TRACES_ENDPOINT).is_some() { TRACES_ENDPOINT } else { ENDPOINT };
        let insecure = otlp("INSECURE").filter(|_| protocol == Protocol::Grpc);
        let is_tls = is_tls(name, &endpoint, insecure.as_deref())?;
        let warnings = warnings::of(&endpoint, protocol, &set);
        let (certificate, shown) = (otlp("CERTIFICATE"), shown(&endpoint));
        Ok(Some(Self { protocol, is_tls, certificate, sampler, resource, shown, warnings }))
    }
}

/// Whether the endpoint is called over TLS. One that does not say would be by the specification, and fail in ways that lead nowhere; so it has to say, itself or by
/// `OTEL_EXPORTER_OTLP_INSECURE`.
fn is_tls(name: &'static str, endpoint: &str, insecure: Option<&str>) -> Result<bool, Error> {
    let bad = || {
        let expected = "an address such as http://collector:4317, or https:// for TLS";
        Err(Error::Variable { name, value: shown(endpoint), expected })
    };
    if !has_good_port(endpoint) {
        return bad();
    }
    match (endpoint.to_ascii_lowercase().split_once("://"), insecure) {
        (Some(("https", host)), _) if !host.is_empty() => Ok(true),
        (Some(("http", host)), _) if !host.is_empty() => Ok(false),
        (Some(_), _) => bad(),
        (None, Some(insecure)) => Ok(!insecure.eq_ignore_ascii_case("true")),
        (None, None) => Err(Error::NoScheme { name, value: shown(endpoint) }),
    }
}

/// An endpoint as it may be shown.
fn shown(endpoint: &str) -> String {
    match endpoint.rsplit_once('@') {
        // Somebody's name and password.
        Some((before, rest)) => format!("{}***@{rest}", before.split_once("://").map_or("", |_| "…://")),
        None => endpoint.to_owned(),
    }
}

/// Whether what follows the host, if anything does, is a port. An exporter would take the usual one for any that is none.
fn has_good_port(endpoint: &str) -> bool {
    let rest = endpoint.split_once("://").map_or(endpoint, |(_, rest)| rest);
    let authority = rest.split(['/', '?']).next().unwrap_or_default();
    let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
    let after = host.rsplit_once(']').map_or(host, |(_, after)| after);
    after.split_once(':').is_none_or(|(_, port)| port.parse::<u16>().is_ok_and(|port| port > 0))
}

/// A sampler by name.
#[derive(Clone, Debug)]
pub(super) enum Roots {
    /// Decides about every span alone.
    Each(Sampler),
    /// Decides about roots without links.
    Follow(FollowLinks),
}

impl Roots {
    fn read(name: Option<&str>, argument: Option<&str>) -> Result<Self, Error> {
        let ratio = || match argument.map(str::parse::<f64>) {
            None => Ok(1.0),
            Some(Ok(share)) if (0.0..=1.0).contains(&share) => Ok(share),
            Some(_) => {
                let value = argument.unwrap_or_default().to_owned();
                Err(Error::Variable { name: "OTEL_TRACES_SAMPLER_ARG", value, expected: "a number from 0 to 1" })
            }
        };
        Ok(match name.unwrap_or("parentbased_always_on") {
            "always_on" => Self::Each(Sampler::AlwaysOn),
            "always_off" => Self::Each(Sampler::AlwaysOff),
            "traceidratio" => Self::Each(Sampler::TraceIdRatioBased(ratio()?)),
            "parentbased_always_on" => Self::Follow(FollowLinks::new(Sampler::AlwaysOn)),
            "parentbased_always_off" => Self::Follow(FollowLinks::new(Sampler::AlwaysOff)),
            "parentbased_traceidratio" => Self::Follow(FollowLinks::ratio(ratio()?)),
            other => {
                let expected = "always_on, always_off, traceidratio, or one of them with parentbased_ before it";
                return Err(Error::Variable { name: "OTEL_TRACES_SAMPLER", value: other.to_owned(), expected });
            }
        })
    }
}

impl ShouldSample for Roots {
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
            Self::Each(sampler) => sampler.should_sample(parent, trace, name, kind, attributes, links),
            Self::Follow(sampler) => sampler.should_sample(parent, trace, name, kind, attributes, links),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(variables: &[(&str, &str)]) -> Result<Option<Settings>, Error> {
        let find = |name: &str| variables.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned());
        Settings::read("service", None, find)
    }

    const ENDPOINT: (&str, &str) = (super::ENDPOINT, "http://localhost:4317");

    #[test]
    fn the_port_says_the_protocol_where_nobody_else_does() {
        let protocol = |endpoint: &str| read(&[(super::ENDPOINT, endpoint)]).unwrap().unwrap().protocol;
        assert_eq!(protocol("http://localhost:4317"), Protocol::Grpc);
        assert_eq!(protocol("http://localhost:4318"), Protocol::Http);
        assert_eq!(protocol("https://[::1]:4318/prefix"), Protocol::Http);
        assert_eq!(protocol("https://collector.example.com"), Protocol::Grpc);
        let said = [(super::ENDPOINT, "http://localhost:4318"), ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")];
        assert_eq!(read(&said).unwrap().unwrap().protocol, Protocol::Grpc);
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
        assert_eq!(settings.protocol, Protocol::Http);
        assert_eq!(read(&[ENDPOINT]).unwrap().unwrap().protocol, Protocol::Grpc);
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
        assert!(matches!(sampler("always_off"), Roots::Each(Sampler::AlwaysOff)));
        assert!(matches!(sampler("parentbased_traceidratio"), Roots::Follow(_)));
        assert!(matches!(read(&[ENDPOINT]).unwrap().unwrap().sampler, Roots::Follow(_)));
    }
}
