//! `redaction`.

use kubewake_otlp::Signal;

use crate::{
    component::{ComponentSettings, ProcessorSettings},
    decode::{Cursor, DecodeReport, redaction},
    model::RedactionProcessor,
};

impl ComponentSettings for RedactionProcessor {
    fn decode(at: &Cursor<'_>, report: &DecodeReport) -> Option<Self> {
        redaction::redaction(at, report)
    }
}

impl ProcessorSettings for RedactionProcessor {
    fn signals(&self) -> &'static [Signal] {
        &Signal::ALL
    }
}
