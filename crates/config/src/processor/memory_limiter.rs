//! `memory_limiter`.

use kubewake_otlp::Signal;

use crate::{
    component::{ComponentSettings, ProcessorSettings},
    decode::{Cursor, DecodeReport, processor},
    model::MemoryLimiter,
};

impl ComponentSettings for MemoryLimiter {
    fn decode(at: &Cursor<'_>, report: &DecodeReport) -> Option<Self> {
        processor::memory_limiter(at, report)
    }
}

impl ProcessorSettings for MemoryLimiter {
    fn signals(&self) -> &'static [Signal] {
        &Signal::ALL
    }
}
