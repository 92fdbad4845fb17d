//! Removed components, and how they are drained.
//!
//! Draining follows the flow of data. A pipeline that connectors feed is alive as long as a connector may feed it. It
//! is therefore drained after the pipelines before it: these are waited for and flushed, then the connector is flushed
//! and disconnected, and then nothing more comes. A connector stays until no caller can reach it, also not through a
//! processor that was removed earlier.

use std::{
    future::Future,
    sync::{Arc, Weak},
    time::Duration,
};

use kubewake_runtime::lock::Mutex;
use tokio::{
    task::JoinSet,
    time::{Instant, timeout_at},
};

use super::running_graph::{RunningConnector, RunningExporter, RunningPipeline, RunningProcessor};
use crate::{
    components::{ExporterNode, Receiver},
    core::{PipelineGone, Processor},
};

/// Components that were removed and may still hold data.
#[derive(Default)]
pub(super) struct RetiredComponents {
    pub(super) receivers: Vec<Arc<dyn Receiver>>,
    /// In the order in which data flows through them.
    steps: Vec<DrainStep>,
    exporters: Vec<Arc<dyn ExporterNode>>,
}

struct DrainStep {
    /// The components of a pipeline stand before the connectors that it feeds, and those before the next pipelines.
    position: usize,
    component: RetiredComponent,
}

enum RetiredComponent {
    Pipeline(PipelineGone),
    Processor(RetiredProcessor),
    Connector(RunningConnector),
}

/// A processor that is kept until it is flushed. After that it is alive only as long as a caller with an old reference
/// may use it, and so are the components behind it.
struct RetiredProcessor {
    unflushed: Mutex<Option<Arc<dyn Processor>>>,
    processor: Weak<dyn Processor>,
}

impl RetiredProcessor {
    fn new(processor: Arc<dyn Processor>) -> Self {
        Self { processor: Arc::downgrade(&processor), unflushed: Mutex::new(Some(processor)) }
    }

    async fn flush(&self) {
        let Some(processor) = self.processor.upgrade() else { return };
        processor.retire();
        processor.flush().await;
        *self.unflushed.lock() = None;
    }
}

/// The fraction of the drain time for requests in progress: one third. A slow client must not cost queued data
/// its delivery.
const REQUEST_DRAIN_DIVISOR: u32 = 3;

/// Passing data to consumers that take nothing any more takes no time.
const FINAL_FLUSH_TIMEOUT: Duration = Duration::from_secs(1);

/// The time for receivers to store their state: a few small files.
const FINISH_TIMEOUT: Duration = Duration::from_secs(2);

impl RetiredComponents {
    pub(super) fn is_empty(&self) -> bool {
        self.receivers.is_empty() && self.steps.is_empty() && self.exporters.is_empty()
    }

    pub(super) fn add_pipeline(&mut self, pipeline: RunningPipeline) {
        let position = pipeline_position(pipeline.depth);
        self.add_step(position, RetiredComponent::Pipeline(pipeline.pipeline.watch_gone()));
        if pipeline.depth == 0 {
            pipeline.processors.iter().for_each(|step| step.node.retire());
        }
        // Processors behind a connector work as always until nothing more comes to them.
        self.add_processors(position, pipeline.processors);
        self.add_exporters(pipeline.exporters);
    }

    /// Adds components that a remaining pipeline of this depth no longer uses.
    pub(super) fn add_components(
        &mut self,
        depth: usize,
        processors: Vec<RunningProcessor>,
        exporters: Vec<RunningExporter>,
    ) {
        processors.iter().for_each(|s| s.node.retire());
        self.add_processors(pipeline_position(depth), processors);
        self.add_exporters(exporters);
    }

    fn add_processors(&mut self, position: usize, processors: Vec<RunningProcessor>) {
        for RunningProcessor { node, .. } in processors {
            self.add_step(position, RetiredComponent::Processor(RetiredProcessor::new(node)));
        }
    }

    pub(super) fn add_connector(&mut self, connector: RunningConnector) {
        self.add_step(pipeline_position(connector.depth) + 1, RetiredComponent::Connector(connector));
    }

    fn add_step(&mut self, position: usize, component: RetiredComponent) {
        let place = self.steps.partition_point(|step| step.position <= position);
        self.steps.insert(place, DrainStep { position, component });
    }

    fn add_exporters(&mut self, exporters: Vec<RunningExporter>) {
        exporters.iter().for_each(|o| o.node.retire());
        self.exporters.extend(exporters.into_iter().map(|o| o.node));
    }

    /// Adds components of an earlier change. Their processors come first, since they may lead to the ones
    /// removed now.
    pub(super) fn add_earlier(&mut self, earlier: RetiredComponents) {
        let RetiredComponents { receivers, steps, exporters } = earlier;
        self.receivers.extend(receivers);
        self.steps.splice(0..0, steps);
        self.exporters.extend(exporters);
    }

    /// Called after draining: releases all components except those that callers with an old reference may still
    /// use.
    pub(super) fn release_unused(&mut self) {
        self.receivers.clear();
        // In the order of the flow, since each processor holds a reference to the next.
        self.steps.retain_mut(|step| match &mut step.component {
            RetiredComponent::Processor(retired) => {
                *retired.unflushed.lock() = None;
                retired.processor.strong_count() > 0
            }
            RetiredComponent::Pipeline(_) | RetiredComponent::Connector(_) => false,
        });
        self.exporters.retain(|exporter| Arc::strong_count(exporter) > 1);
    }

    /// Lets requests in progress end, then flushes processors and connectors, then drains exporter queues. It can be
    /// started again after it was cancelled.
    pub(super) async fn drain(&self, deadline: Instant) {
        self.drain_receivers(request_deadline(deadline)).await;
        let in_time = timeout_at(deadline, self.drain_steps(deadline)).await.is_ok();
        self.for_each_exporter(|outlet| async move { outlet.drain(deadline).await }).await;
        if !in_time {
            // Data left in a processor has nowhere to go: the halted exporters count it as dropped.
            self.for_each_exporter(|outlet| async move { outlet.halt().await }).await;
            let now = Instant::now();
            let steps = self.drain_steps(now + FINAL_FLUSH_TIMEOUT / 2);
            let _ = timeout_at(now + FINAL_FLUSH_TIMEOUT, steps).await;
        }
        self.finish_receivers().await;
    }

    /// Lets receivers store what they keep, now that they have all receipts.
    async fn finish_receivers(&self) {
        let finished = async {
            for receiver in &self.receivers {
                receiver.finish().await;
            }
        };
        if timeout_at(Instant::now() + FINISH_TIMEOUT, finished).await.is_err() {
            tracing::warn!("a receiver did not store its state in time");
        }
    }

    async fn drain_receivers(&self, deadline: Instant) {
        self.receivers.iter().for_each(|receiver| receiver.shutdown());
        let closed = async {
            for receiver in &self.receivers {
                receiver.wait_closed().await;
            }
        };
        if timeout_at(deadline, closed).await.is_err() {
            tracing::warn!("closing the connections that did not end in time");
            self.receivers.iter().for_each(|receiver| receiver.abort());
        }
        let gone = async {
            for step in self.steps.iter().filter(|step| step.position == 0) {
                if let RetiredComponent::Pipeline(pipeline) = &step.component {
                    pipeline.wait().await;
                }
            }
        };
        let _ = timeout_at(deadline, gone).await;
    }

    /// Flushes components in the order of the flow. Each wait for what may still feed a component leaves most of the
    /// time until `deadline` to the rest. Pipelines that only receivers feed were waited for before.
    async fn drain_steps(&self, deadline: Instant) {
        for step in &self.steps {
            match &step.component {
                RetiredComponent::Pipeline(_) if step.position == 0 => {}
                RetiredComponent::Pipeline(pipeline) => {
                    let _ = timeout_at(request_deadline(deadline), pipeline.wait()).await;
                }
                RetiredComponent::Processor(processor) => processor.flush().await,
                RetiredComponent::Connector(connector) => {
                    let _ = timeout_at(request_deadline(deadline), connector.inputs.closed()).await;
                    connector.node.flush().await;
                    connector.output.clear();
                }
            }
        }
    }

    async fn for_each_exporter<F>(&self, end: impl Fn(Arc<dyn ExporterNode>) -> F)
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let mut ends: JoinSet<()> = self.exporters.iter().cloned().map(end).collect();
        while ends.join_next().await.is_some() {}
    }
}

/// Even, so that connectors fit in between.
fn pipeline_position(depth: usize) -> usize {
    depth * 2
}

/// The end of the time for requests in progress.
fn request_deadline(deadline: Instant) -> Instant {
    let now = Instant::now();
    now + deadline.saturating_duration_since(now) / REQUEST_DRAIN_DIVISOR
}
