//! `debug`.

use kubewake_otlp::Signal;

use crate::{
    component::{ComponentSettings, ExporterSettings},
    decode::{Cursor, DecodeReport, exporter},
    model::DebugExporter,
};

impl ComponentSettings for DebugExporter {
    fn decode(at: &Cursor<'_>, report: &DecodeReport) -> Option<Self> {
        exporter::debug(at, report)
    }
}

impl ExporterSettings for DebugExporter {
    fn signals(&self) -> &'static [Signal] {
        &Signal::ALL
    }
}
