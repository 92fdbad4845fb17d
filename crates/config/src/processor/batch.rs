//! `batch`.

use kubewake_otlp::Signal;

use crate::{
    component::{ComponentSettings, ProcessorSettings},
    decode::{Cursor, DecodeReport, processor},
    model::BatchProcessor,
};

impl ComponentSettings for BatchProcessor {
    fn decode(at: &Cursor<'_>, report: &DecodeReport) -> Option<Self> {
        processor::batch(at, report)
    }
}

impl ProcessorSettings for BatchProcessor {
    fn signals(&self) -> &'static [Signal] {
        &Signal::ALL
    }
}
