//! `nop`, which drops all data.

use kubewake_otlp::Signal;

use crate::{
    component::{ComponentSettings, ExporterSettings},
    decode::{Cursor, DecodeReport, FieldReader},
    encode::YamlMap,
};

/// `nop`, which has no settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct NopExporter;

impl ComponentSettings for NopExporter {
    fn decode(at: &Cursor<'_>, report: &DecodeReport) -> Option<Self> {
        FieldReader::new(at, report).finish();
        Some(Self)
    }

    fn encode(&self) -> YamlMap {
        YamlMap::default()
    }
}

impl ExporterSettings for NopExporter {
    fn signals(&self) -> &'static [Signal] {
        &Signal::ALL
    }
}
