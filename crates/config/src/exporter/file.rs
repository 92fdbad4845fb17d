//! `file`.

use kubewake_otlp::Signal;

use crate::{
    component::{ComponentSettings, ExporterSettings},
    decode::{Cursor, DecodeReport, exporter},
    model::FileExporter,
};

impl ComponentSettings for FileExporter {
    fn decode(at: &Cursor<'_>, report: &DecodeReport) -> Option<Self> {
        exporter::file(at, report)
    }
}

impl ExporterSettings for FileExporter {
    fn signals(&self) -> &'static [Signal] {
        &Signal::ALL
    }
}
