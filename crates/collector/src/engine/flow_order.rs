//! The order of pipelines that connectors join.

use std::collections::BTreeMap;

use kubewake_config::{CollectorDocument, PipelineId, model::PipelineConfig};
use kubewake_otlp::Signal;

use super::running_graph::ConnectorKey;

/// How many connectors data has passed at most when it comes to each pipeline. A pipeline is deeper than every pipeline
/// that feeds it.
pub(super) fn pipeline_depths(document: &CollectorDocument) -> BTreeMap<PipelineId, usize> {
    let pipelines = &document.service.pipelines;
    let mut depths: BTreeMap<PipelineId, usize> = pipelines.keys().map(|id| (id.clone(), 0)).collect();
    // Each round is right about the pipelines behind one more connector. Without cycles, data passes a connector once
    // for each signal at most.
    for _ in 0..document.connectors.len() * Signal::ALL.len() {
        let next = deepen(document, &depths);
        if next == depths {
            break;
        }
        depths = next;
    }
    depths
}

/// The depths that follow from earlier ones by passing each connector once.
fn deepen(document: &CollectorDocument, depths: &BTreeMap<PipelineId, usize>) -> BTreeMap<PipelineId, usize> {
    let pipelines = &document.service.pipelines;
    let mut behind: BTreeMap<ConnectorKey, usize> = BTreeMap::new();
    for (pipeline, wiring) in pipelines {
        let depth = depths.get(pipeline).map_or(1, |depth| depth + 1);
        for id in &wiring.exporters {
            let outputs = document.connectors.get(id).map_or(&[][..], |settings| settings.outputs(pipeline.signal));
            for signal in outputs {
                let deepest = behind.entry((id.clone(), *signal)).or_default();
                *deepest = depth.max(*deepest);
            }
        }
    }
    let depth = |(pipeline, wiring): (&PipelineId, &PipelineConfig)| {
        let before = wiring.receivers.iter().filter_map(|id| behind.get(&(id.clone(), pipeline.signal)));
        (pipeline.clone(), before.max().copied().unwrap_or_default())
    };
    pipelines.iter().map(depth).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pipeline_is_deeper_than_every_pipeline_that_feeds_it() {
        let text = "
receivers: {otlp: {protocols: {grpc: }}}
exporters: {nop: }
connectors: {forward: , forward/2: }
service:
  pipelines:
    traces/z: {receivers: [otlp], exporters: [forward, forward/2]}
    traces/b: {receivers: [forward, otlp], exporters: [forward/2]}
    traces/a: {receivers: [forward/2], exporters: [nop]}
    logs/in: {receivers: [otlp], exporters: [forward/2]}
    logs/out: {receivers: [forward/2], exporters: [nop]}";
        let loaded = kubewake_config::load(text, &kubewake_config::FixedSources::new()).unwrap();
        let depths = pipeline_depths(&loaded.document).into_iter().map(|(id, depth)| (id.to_string(), depth));
        let expected = [("traces/z", 0), ("traces/b", 1), ("traces/a", 2), ("logs/in", 0), ("logs/out", 1)];
        let expected: BTreeMap<String, usize> = expected.map(|(id, depth)| (id.to_owned(), depth)).into();
        assert_eq!(depths.collect::<BTreeMap<_, _>>(), expected);
    }
}
