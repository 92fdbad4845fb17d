//! What the environment says, read without touching anything else. The variables are OpenTelemetry's.

use super::Error;

/// The port that OTLP has for gRPC.
const GRPC_PORT: &str = ":4317";

/// What to do about spans.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Settings {
    /// Nothing: there is nowhere to send them, or somebody switched it off.
    Off,
    /// Send them.
    On(Export),
}

/// How to send them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Export {
    pub(super) protocol: Protocol,
    /// The share of traces that begin here which is sampled.
    pub(super) ratio: f64,
    /// Whether the endpoint asks for TLS.
    pub(super) is_https: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Protocol {
    Grpc,
    HttpProtobuf,
}

impl Settings {
    /// Reads variables by their names.
    pub(super) fn read(variable: impl Fn(&str) -> Option<String>) -> Result<Self, Error> {
        let get = |name: &str| variable(name).map(|value| value.trim().to_owned()).filter(|value| !value.is_empty());
        // What is said for traces alone counts more than what is said for all signals.
        let either = |name: &str| {
            get(&format!("OTEL_EXPORTER_OTLP_TRACES_{name}")).or_else(|| get(&format!("OTEL_EXPORTER_OTLP_{name}")))
        };
        if get("OTEL_SDK_DISABLED").is_some_and(|value| value.eq_ignore_ascii_case("true")) {
            return Ok(Self::Off);
        }
        match get("OTEL_TRACES_EXPORTER").as_deref() {
            Some("none") => return Ok(Self::Off),
            None | Some("otlp") => {}
            Some(other) => return Err(Error::Exporter(other.to_owned())),
        }
        let Some(endpoint) = either("ENDPOINT") else { return Ok(Self::Off) };
        Ok(Self::On(Export {
            protocol: protocol(either("PROTOCOL").as_deref(), &endpoint)?,
            ratio: ratio(get("OTEL_TRACES_SAMPLER").as_deref(), get("OTEL_TRACES_SAMPLER_ARG").as_deref())?,
            is_https: endpoint.starts_with("https://"),
        }))
    }
}

fn protocol(said: Option<&str>, endpoint: &str) -> Result<Protocol, Error> {
    match said {
        Some("grpc") => Ok(Protocol::Grpc),
        Some("http/protobuf") => Ok(Protocol::HttpProtobuf),
        Some(other) => Err(Error::Protocol(other.to_owned())),
        // The specification's default is HTTP, but who names the port of gRPC means gRPC.
        None if endpoint.trim_end_matches('/').ends_with(GRPC_PORT) => Ok(Protocol::Grpc),
        None => Ok(Protocol::HttpProtobuf),
    }
}

/// Parents and links are followed whatever the sampler is called: only roots are its business here.
fn ratio(sampler: Option<&str>, argument: Option<&str>) -> Result<f64, Error> {
    match sampler.map(|name| name.trim_start_matches("parentbased_")) {
        None | Some("always_on") => Ok(1.0),
        Some("always_off") => Ok(0.0),
        Some("traceidratio") => {
            let Some(text) = argument else { return Ok(1.0) };
            let share = text.parse::<f64>().ok().filter(|share| (0.0..=1.0).contains(share));
            share.ok_or_else(|| Error::Ratio(text.to_owned()))
        }
        Some(other) => Err(Error::Sampler(other.to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(variables: &[(&str, &str)]) -> Result<Settings, Error> {
        Settings::read(|name| variables.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned()))
    }

    fn on(variables: &[(&str, &str)]) -> Export {
        match read(variables).unwrap() {
            Settings::On(export) => export,
            Settings::Off => panic!("{variables:?} switch it off"),
        }
    }

    const ENDPOINT: (&str, &str) = ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://collector:4317");

    #[test]
    fn nothing_happens_without_an_endpoint_or_when_somebody_says_so() {
        for variables in [
            &[][..],
            &[("OTEL_EXPORTER_OTLP_ENDPOINT", " ")],
            &[ENDPOINT, ("OTEL_SDK_DISABLED", "True")],
            &[ENDPOINT, ("OTEL_TRACES_EXPORTER", "none")],
        ] {
            assert_eq!(read(variables).unwrap(), Settings::Off, "{variables:?}");
        }
    }

    #[test]
    fn the_protocol_is_said_or_follows_from_the_port() {
        assert_eq!(on(&[ENDPOINT]).protocol, Protocol::Grpc);
        assert_eq!(on(&[("OTEL_EXPORTER_OTLP_ENDPOINT", "http://c:4318")]).protocol, Protocol::HttpProtobuf);
        let said = ("OTEL_EXPORTER_OTLP_PROTOCOL", "http/protobuf");
        assert_eq!(on(&[ENDPOINT, said]).protocol, Protocol::HttpProtobuf);
        let traces = ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "grpc");
        assert_eq!(on(&[ENDPOINT, said, traces]).protocol, Protocol::Grpc);
        assert!(on(&[("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "https://c")]).is_https);
    }

    #[test]
    fn the_sampler_is_for_roots() {
        let with = |sampler: &str, argument: &str| {
            on(&[ENDPOINT, ("OTEL_TRACES_SAMPLER", sampler), ("OTEL_TRACES_SAMPLER_ARG", argument)]).ratio
        };
        assert_eq!((on(&[ENDPOINT]).ratio, with("parentbased_always_on", "")), (1.0, 1.0));
        assert_eq!((with("always_off", "0.5"), with("parentbased_traceidratio", "0.5")), (0.0, 0.5));
    }

    #[test]
    fn what_is_wrong_is_said_with_what_is_known() {
        let said = |name: &str, value: &str| read(&[ENDPOINT, (name, value)]).unwrap_err().to_string();
        assert!(said("OTEL_EXPORTER_OTLP_PROTOCOL", "http/json").contains("grpc, http/protobuf"));
        assert!(said("OTEL_TRACES_EXPORTER", "zipkin").contains("otlp"));
        assert!(said("OTEL_TRACES_SAMPLER", "jaeger_remote").contains("traceidratio"));
        let wrong = read(&[ENDPOINT, ("OTEL_TRACES_SAMPLER", "traceidratio"), ("OTEL_TRACES_SAMPLER_ARG", "7")]);
        assert!(wrong.unwrap_err().to_string().contains("between 0 and 1"));
    }
}
