//! `filter`.

use kubewake_otlp::Signal;

use crate::{
    component::{ComponentSettings, ProcessorSettings},
    decode::{Cursor, DecodeReport, filter},
    model::FilterProcessor,
};

impl ComponentSettings for FilterProcessor {
    fn decode(at: &Cursor<'_>, report: &DecodeReport) -> Option<Self> {
        filter::filter(at, report)
    }
}

impl ProcessorSettings for FilterProcessor {
    fn signals(&self) -> &'static [Signal] {
        &Signal::ALL
    }
}
