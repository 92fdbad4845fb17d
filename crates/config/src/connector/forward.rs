//! `forward`, which passes data on as it is.

use kubewake_otlp::Signal;

use crate::{
    component::{ComponentSettings, ConnectorSettings},
    decode::{Cursor, DecodeReport, FieldReader},
    encode::YamlMap,
};

/// `forward`, which has no settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct ForwardConnector;

impl ComponentSettings for ForwardConnector {
    fn decode(at: &Cursor<'_>, report: &DecodeReport) -> Option<Self> {
        FieldReader::new(at, report).finish();
        Some(Self)
    }

    fn encode(&self) -> YamlMap {
        YamlMap::default()
    }
}

impl ConnectorSettings for ForwardConnector {
    fn outputs(&self, input: Signal) -> &'static [Signal] {
        match input {
            Signal::Traces => &[Signal::Traces],
            Signal::Metrics => &[Signal::Metrics],
            Signal::Logs => &[Signal::Logs],
        }
    }
}
