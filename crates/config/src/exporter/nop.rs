//! `nop`.

use kubewake_otlp::Signal;

use crate::{
    component::{ComponentSettings, ExporterSettings},
    decode::{Cursor, DecodeReport, exporter},
    model::NopExporter,
};

impl ComponentSettings for NopExporter {
    fn decode(at: &Cursor<'_>, report: &DecodeReport) -> Option<Self> {
        exporter::nop(at, report)
    }
}

impl ExporterSettings for NopExporter {
    fn signals(&self) -> &'static [Signal] {
        &Signal::ALL
    }
}
