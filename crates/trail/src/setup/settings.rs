//! The environment, understood.

use opentelemetry_sdk::{
    Resource,
    trace::{Sampler, SamplingResult, ShouldSample},
};

use super::{Error, resource};
use crate::sampler::FollowLinks;

/// What to export, and how.
#[derive(Clone, Debug)]
pub(super) struct Settings {
    pub(super) protocol: Protocol,
    /// The endpoint begins with `https`.
    pub(super) is_tls: bool,
    /// A PEM file with authorities.
    pub(super) certificate: Option<String>,
    pub(super) sampler: Roots,
    pub(super) resource: Resource,
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
        let protocol = match otlp("PROTOCOL").as_deref() {
            None | Some("grpc") => Protocol::Grpc,
            Some("http/protobuf") => Protocol::Http,
            Some(other) => {
                let (name, value) = ("OTEL_EXPORTER_OTLP_PROTOCOL", other.to_owned());
                return Err(Error::Variable { name, value, expected: "grpc or http/protobuf" });
            }
        };
        let sampler = Roots::read(set("OTEL_TRACES_SAMPLER").as_deref(), set("OTEL_TRACES_SAMPLER_ARG").as_deref())?;
        let resource = resource::of(service, version, &set);
        let is_tls = endpoint.to_ascii_lowercase().starts_with("https://");
        Ok(Some(Self { protocol, is_tls, certificate: otlp("CERTIFICATE"), sampler, resource }))
    }
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

    const ENDPOINT: (&str, &str) = ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://localhost:4317");

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
