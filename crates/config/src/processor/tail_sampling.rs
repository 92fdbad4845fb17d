//! `tail_sampling`.

use kubewake_otlp::Signal;

use crate::{
    component::{ComponentSettings, ProcessorSettings},
    decode::{Cursor, DecodeReport, tail_sampling},
    model::TailSamplingProcessor,
};

impl ComponentSettings for TailSamplingProcessor {
    fn decode(at: &Cursor<'_>, report: &DecodeReport) -> Option<Self> {
        tail_sampling::tail_sampling(at, report)
    }

    fn public_fields() -> &'static [&'static str] {
        &["policies"]
    }
}

impl ProcessorSettings for TailSamplingProcessor {
    fn signals(&self) -> &'static [Signal] {
        &[Signal::Traces]
    }

    fn keeps_requests(&self) -> bool {
        false
    }
}
