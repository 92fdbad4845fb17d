//! Checks of connectors: each is used on both sides, for signals that it supports, and data never comes back to a
//! pipeline that it has left.
//!
//! The checks take time and memory proportional to the lists of the pipelines.

mod cycle;

use std::collections::{BTreeMap, BTreeSet};

use kubewake_otlp::Signal;

use super::{
    pipeline::ComponentReference,
    references::DocumentSections,
    report::{DecodeReport, new_finding},
};
use crate::{
    ComponentId, PipelineId,
    component::ComponentKind,
    model::{ConnectorConfig, ExporterConfig, ReceiverConfig},
};

pub(crate) fn check(parts: &DocumentSections<'_>, report: &DecodeReport) {
    for (id, span) in &parts.connectors.declared {
        let receiver = parts.receivers.declared.get(id).map(|_| ReceiverConfig::NOUN);
        let exporter = parts.exporters.declared.get(id).map(|_| ExporterConfig::NOUN);
        for noun in receiver.into_iter().chain(exporter) {
            let message = format!("the connector `{id}` has the id of the {noun} `{id}`");
            let help = format!("give one of them another name, such as `{}/2`", id.kind());
            report.add_error(new_finding(format!("{}::{id}", ConnectorConfig::SECTION), *span, message, Some(help)));
        }
    }
    let uses = ConnectorUses::by_connector(parts);
    for (id, connector) in &parts.connectors.components {
        if let Some(uses) = uses.get(id) {
            uses.check_both_sides(report, id, connector);
        }
    }
    cycle::check(parts, report);
}

/// The pipelines of a connector, each with its reference to the connector.
#[derive(Default)]
struct ConnectorUses<'a> {
    /// The pipelines that it is an exporter of.
    inputs: Vec<(&'a PipelineId, &'a ComponentReference)>,
    /// The pipelines that it is a receiver of.
    outputs: Vec<(&'a PipelineId, &'a ComponentReference)>,
}

impl<'a> ConnectorUses<'a> {
    fn by_connector(parts: &DocumentSections<'a>) -> BTreeMap<&'a ComponentId, Self> {
        let mut uses: BTreeMap<&ComponentId, Self> = BTreeMap::new();
        let is_connector = |reference: &&ComponentReference| parts.connectors.components.contains_key(&reference.id);
        for (pipeline, wiring) in parts.pipelines {
            for reference in wiring.exporters.iter().filter(is_connector) {
                uses.entry(&reference.id).or_default().inputs.push((pipeline, reference));
            }
            for reference in wiring.receivers.iter().filter(is_connector) {
                uses.entry(&reference.id).or_default().outputs.push((pipeline, reference));
            }
        }
        uses
    }

    /// Checks that each pipeline that feeds the connector has a pipeline that it may feed, and the other way around.
    fn check_both_sides(&self, report: &DecodeReport, id: &ComponentId, connector: &ConnectorConfig) {
        let signals =
            |uses: &[(&PipelineId, _)]| -> BTreeSet<Signal> { uses.iter().map(|(id, _)| id.signal).collect() };
        let outputs: BTreeSet<Signal> = signals(&self.outputs);
        let fed: BTreeSet<Signal> =
            signals(&self.inputs).into_iter().flat_map(|input| connector.outputs(input)).copied().collect();
        for (pipeline, reference) in &self.inputs {
            let supported = connector.outputs(pipeline.signal);
            if !supported.iter().any(|signal| outputs.contains(signal)) {
                let message = format!(
                    "the connector `{id}` is an exporter of the pipeline `{pipeline}`, but a receiver of no pipeline \
                     that it can feed"
                );
                let help = match supported {
                    [] => format!("remove it: it does not support {}", pipeline.signal),
                    supported => format!("list `{id}` in `receivers` of a pipeline of {}", join(supported)),
                };
                report.add_error(new_finding(reference.path.clone(), reference.span, message, Some(help)));
            }
        }
        for (pipeline, reference) in self.outputs.iter().filter(|(output, _)| !fed.contains(&output.signal)) {
            let message = format!(
                "the connector `{id}` is a receiver of the pipeline `{pipeline}`, but an exporter of no pipeline that \
                 can feed it"
            );
            let feeds = |input: &Signal| connector.outputs(*input).contains(&pipeline.signal);
            let supported: Vec<Signal> = Signal::ALL.into_iter().filter(feeds).collect();
            let help = match supported.as_slice() {
                [] => format!("remove it: it makes no {}", pipeline.signal),
                supported => format!("list `{id}` in `exporters` of a pipeline of {}", join(supported)),
            };
            report.add_error(new_finding(reference.path.clone(), reference.span, message, Some(help)));
        }
    }
}

fn join(signals: &[Signal]) -> String {
    let names: Vec<&str> = signals.iter().map(|signal| signal.name()).collect();
    names.join(" or ")
}
