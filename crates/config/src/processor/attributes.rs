//! `attributes` and `resource`.

use kubewake_otlp::Signal;

use crate::{
    component::{ComponentSettings, PipelinePlace, PlaceProblem, ProcessorSettings},
    decode::{Cursor, DecodeReport, attributes},
    model::{AttributesProcessor, ResourceProcessor},
};

impl ComponentSettings for AttributesProcessor {
    fn decode(at: &Cursor<'_>, report: &DecodeReport) -> Option<Self> {
        attributes::attributes(at, report)
    }

    fn public_fields() -> &'static [&'static str] {
        &["actions"]
    }
}

impl ProcessorSettings for AttributesProcessor {
    fn signals(&self) -> &'static [Signal] {
        &Signal::ALL
    }

    /// Refuses conditions that do not apply to records of the signal.
    fn check_place(&self, place: &PipelinePlace<'_>) -> Vec<PlaceProblem> {
        let PipelinePlace { signal, id, .. } = place;
        let matches = [&self.include, &self.exclude].into_iter().flatten();
        let unsupported = matches.filter_map(|found| found.unsupported_condition(*signal));
        let describe = |field: &str| {
            PlaceProblem::error(
                format!("the processor `{id}` matches by `{field}`, which {signal} do not have"),
                format!("define a separate processor for {signal}"),
            )
        };
        unsupported.map(describe).collect()
    }
}

impl ComponentSettings for ResourceProcessor {
    fn decode(at: &Cursor<'_>, report: &DecodeReport) -> Option<Self> {
        attributes::resource(at, report)
    }
}

impl ProcessorSettings for ResourceProcessor {
    fn signals(&self) -> &'static [Signal] {
        &Signal::ALL
    }
}
