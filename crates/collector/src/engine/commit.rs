//! The second phase of a change: swaps, which cannot fail.
//!
//! New components are connected from the end of a pipeline to its beginning. Pipelines that connectors feed come before
//! the pipelines that feed these, and receivers are connected last, so that data never meets a gap. Removed components
//! are disconnected before they are drained.

use std::{cmp::Reverse, collections::BTreeMap, sync::Arc};

use kubewake_config::{ComponentId, PipelineId, model};
use kubewake_otlp::Signal;
use tokio::sync::watch;

use super::{
    plan::{ConnectorPlan, ExporterPlan, GraphPlan, ProcessorPlan, ReceiverPlan},
    retired_components::RetiredComponents,
    running_graph::{
        ConnectorKey, RunningConnector, RunningExporter, RunningGraph, RunningPipeline, RunningProcessor,
        RunningReceiver,
    },
};
use crate::{
    components::{ConnectorInput, ConnectorSite, ExporterSite, ProcessorSite, ReceiverSite},
    core::{Allowance, Budget, ConnectorOutput, Consumer, Pipeline, PipelineSet, StatsRegistry},
};

pub(super) fn commit(running: &mut RunningGraph, plan: GraphPlan, registry: &Arc<StatsRegistry>) -> RetiredComponents {
    let GraphPlan { auth, budgets, processors, pipelines, depths, exporters: outlets, connectors, receivers } = plan;
    let mut retired = RetiredComponents::default();
    let gone = take_removed(running, &pipelines, registry);
    running.auth = auth;
    resize_budgets(&mut running.budgets, &budgets, registry);
    let gone_connectors: Vec<_> = running.connectors.extract_if(.., |key, _| !connectors.contains_key(key)).collect();
    let mut change = GraphCommit {
        running,
        registry,
        wirings: &pipelines,
        processors,
        exporters: outlets,
        connectors,
        retired: &mut retired,
    };
    let mut order: Vec<_> =
        pipelines.iter().map(|(id, wiring)| (depths.get(id).copied().unwrap_or(0), id, wiring)).collect();
    order.sort_by_key(|(depth, ..)| Reverse(*depth));
    for (depth, id, wiring) in order {
        change.commit_pipeline(id, wiring, depth);
    }
    commit_receivers(running, receivers, &pipelines, registry, &mut retired);
    // Shut down now rather than when draining begins: on an address that was handed over, new connections must
    // not meet the old settings.
    retired.receivers.iter().for_each(|gone| gone.shutdown());
    gone.into_iter().for_each(|pipeline| retired.add_pipeline(pipeline));
    gone_connectors.into_iter().for_each(|(_, connector)| retired.add_connector(connector));
    running.budgets.retain(|id, _| budgets.contains_key(id));
    retired
}

fn resize_budgets(
    running: &mut BTreeMap<ComponentId, Arc<Budget>>,
    wanted: &BTreeMap<ComponentId, (u64, u64)>,
    registry: &StatsRegistry,
) {
    for (id, (limit, spike)) in wanted {
        let budget = running.entry(id.clone()).or_insert_with(|| Budget::new(*limit, *spike));
        budget.resize(*limit, *spike);
        registry.watch_budget(id, budget);
    }
}

struct GraphCommit<'a> {
    running: &'a mut RunningGraph,
    registry: &'a Arc<StatsRegistry>,
    wirings: &'a BTreeMap<PipelineId, model::PipelineConfig>,
    processors: BTreeMap<(PipelineId, ComponentId), ProcessorPlan>,
    exporters: BTreeMap<(PipelineId, ComponentId), ExporterPlan>,
    connectors: BTreeMap<ConnectorKey, ConnectorPlan>,
    retired: &'a mut RetiredComponents,
}

impl GraphCommit<'_> {
    fn commit_pipeline(&mut self, id: &PipelineId, wiring: &model::PipelineConfig, depth: usize) {
        let mut old = self.running.pipelines.remove(id);
        let uid = wiring.uid.clone();
        let carries = wiring.carries.clone();
        let limiter = self.limiter(id, wiring);
        let pipeline = self.pipeline_entry(id, old.as_ref(), limiter.as_ref());
        let outlets = self.commit_exporters(id, wiring, old.as_mut());
        let connectors = self.commit_connector_inputs(id, wiring, old.as_ref(), depth);
        let steps = self.commit_processors(id, wiring, old.as_mut());
        connect_pipeline(&pipeline, &steps, &outlets, &connectors);
        if let Some(old) = old {
            self.retired.add_components(old.depth, old.processors, old.exporters);
        }
        let running = RunningPipeline {
            pipeline,
            uid,
            carries,
            limiter,
            processors: steps,
            exporters: outlets,
            connectors,
            depth,
        };
        self.running.pipelines.insert(id.clone(), running);
    }

    fn limiter(&self, pipeline: &PipelineId, wiring: &model::PipelineConfig) -> Option<ComponentId> {
        let is_limiter = |id: &&ComponentId| {
            let plan = self.processors.get(&(pipeline.clone(), ComponentId::clone(id)));
            matches!(plan, Some(ProcessorPlan::MemoryBudget))
        };
        wiring.processors.iter().find(is_limiter).cloned()
    }

    fn pipeline_entry(
        &self,
        id: &PipelineId,
        old: Option<&RunningPipeline>,
        limiter: Option<&ComponentId>,
    ) -> Arc<Pipeline> {
        let budget = limiter.and_then(|id| self.running.budgets.get(id)).unwrap_or(&self.running.default_budget);
        let allowance = || Allowance {
            member: budget.join(),
            limiter: limiter.map(|limiter| self.registry.processor(limiter, id.signal)),
        };
        match old {
            Some(old) => {
                if old.limiter.as_ref() != limiter {
                    old.pipeline.set_allowance(allowance());
                }
                old.pipeline.clone()
            }
            None => Pipeline::new(id.clone(), allowance(), self.registry.pipeline(id)),
        }
    }

    fn commit_exporters(
        &mut self,
        pipeline: &PipelineId,
        wiring: &model::PipelineConfig,
        mut old: Option<&mut RunningPipeline>,
    ) -> Vec<RunningExporter> {
        let mut out = Vec::new();
        for id in &wiring.exporters {
            let existing = old.as_mut().and_then(|old| remove_first(&mut old.exporters, |o| o.id == *id));
            let plan = self.exporters.remove(&(pipeline.clone(), id.clone()));
            match (plan, existing) {
                (Some(ExporterPlan::Set(set)), Some(existing)) => {
                    let (built, identity) = *set;
                    let destination = built.destination();
                    built.reconfigure(&existing.node, &ExporterSite { id, pipeline, registry: self.registry });
                    out.push(RunningExporter { identity, destination, ..existing });
                }
                (Some(ExporterPlan::Set(set)), None) => {
                    let (built, identity) = *set;
                    let destination = built.destination();
                    let node = built.start(&ExporterSite { id, pipeline, registry: self.registry });
                    out.push(RunningExporter { id: id.clone(), identity, destination, node });
                }
                (_, existing) => out.extend(existing),
            }
        }
        out
    }

    /// The connectors that a pipeline feeds. An input that stays is the same one, so that a batch which waits in it
    /// goes on waiting.
    fn commit_connector_inputs(
        &mut self,
        pipeline: &PipelineId,
        wiring: &model::PipelineConfig,
        old: Option<&RunningPipeline>,
        depth: usize,
    ) -> Vec<(ComponentId, Arc<ConnectorInput>)> {
        let mut out = Vec::new();
        for id in &wiring.exporters {
            let Some(connector) = self.commit_connector(&(id.clone(), pipeline.signal), depth) else { continue };
            let existing = old.and_then(|old| old.connectors.iter().find(|(_, input)| input.leads_to(&connector.node)));
            let new = || {
                let stats = self.registry.pipeline(pipeline);
                (id.clone(), ConnectorInput::new(connector.node.clone(), stats, &connector.inputs))
            };
            out.push(existing.cloned().unwrap_or_else(new));
        }
        out
    }

    /// Starts, changes or keeps a connector when the first pipeline that feeds it is committed: the deepest one. All
    /// pipelines that it feeds exist by then.
    fn commit_connector(&mut self, key: &ConnectorKey, depth: usize) -> Option<RunningConnector> {
        if let Some(plan) = self.connectors.remove(key) {
            let connector = self.changed_connector(key, plan, depth)?;
            set_connector_pipelines(&connector, key, self.running, self.wirings);
            self.running.connectors.insert(key.clone(), connector);
        }
        self.running.connectors.get(key).cloned()
    }

    fn changed_connector(&mut self, key: &ConnectorKey, plan: ConnectorPlan, depth: usize) -> Option<RunningConnector> {
        let existing = self.running.connectors.remove(key).map(|old| RunningConnector { depth, ..old });
        let ConnectorPlan::Set(set) = plan else { return existing };
        let (prepared, identity) = *set;
        let (id, input) = key;
        let site = |output| ConnectorSite { id, input: *input, output, registry: self.registry };
        Some(match existing {
            Some(old) => {
                prepared.reconfigure(&*old.node, &site(&old.output));
                RunningConnector { identity, ..old }
            }
            None => {
                let output = Arc::new(ConnectorOutput::default());
                let node = prepared.start(&site(&output));
                RunningConnector { identity, node, output, inputs: Arc::new(watch::Sender::new(())), depth }
            }
        })
    }

    fn commit_processors(
        &mut self,
        pipeline: &PipelineId,
        wiring: &model::PipelineConfig,
        mut old: Option<&mut RunningPipeline>,
    ) -> Vec<RunningProcessor> {
        let mut out = Vec::new();
        for id in &wiring.processors {
            let existing = old.as_mut().and_then(|old| remove_first(&mut old.processors, |s| s.id == *id));
            let site = ProcessorSite { id, signal: pipeline.signal, registry: self.registry };
            match (self.processors.remove(&(pipeline.clone(), id.clone())), existing) {
                (Some(ProcessorPlan::Set(prepared, settings)), Some(existing)) => {
                    prepared.reconfigure(&existing.node, &site);
                    out.push(RunningProcessor { settings, ..existing });
                }
                (Some(ProcessorPlan::Set(prepared, settings)), None) => {
                    out.push(RunningProcessor { id: id.clone(), settings, node: prepared.start(&site) });
                }
                (_, existing) => out.extend(existing),
            }
        }
        out
    }
}

/// Connects a connector to the pipelines that it feeds.
fn set_connector_pipelines(
    connector: &RunningConnector,
    (id, input): &ConnectorKey,
    running: &RunningGraph,
    wirings: &BTreeMap<PipelineId, model::PipelineConfig>,
) {
    for signal in Signal::ALL {
        let makes = connector.identity.settings.outputs(*input).contains(&signal);
        let fed = wirings.iter().filter(|(p, wiring)| makes && p.signal == signal && wiring.receivers.contains(id));
        let fed = fed.filter_map(|(p, _)| running.pipelines.get(p)).map(|p| p.pipeline.clone());
        connector.output.set_pipelines(signal, fed.collect());
    }
}

fn remove_first<T>(list: &mut Vec<T>, is: impl Fn(&T) -> bool) -> Option<T> {
    let at = list.iter().position(is)?;
    Some(list.remove(at))
}

/// Connects the processors, the last one first.
fn connect_pipeline(
    pipeline: &Arc<Pipeline>,
    steps: &[RunningProcessor],
    outlets: &[RunningExporter],
    connectors: &[(ComponentId, Arc<ConnectorInput>)],
) {
    let mut ends: Vec<(ComponentId, Arc<dyn Consumer>)> =
        outlets.iter().map(|o| (o.id.clone(), o.node.clone() as Arc<dyn Consumer>)).collect();
    ends.extend(connectors.iter().map(|(id, input)| (id.clone(), input.clone() as Arc<dyn Consumer>)));
    pipeline.set_outputs(ends.iter().map(|(id, _)| id.clone()).collect());
    let last = steps.last().map_or(pipeline.head(), |step| step.node.output());
    last.set_exporters(pipeline.id(), ends);
    for (step, next) in steps.iter().zip(steps.iter().skip(1)).rev() {
        step.node.output().set_targets(vec![next.node.clone()]);
    }
    if let Some(first) = steps.first() {
        pipeline.head().set_targets(vec![first.node.clone()]);
    }
}

fn commit_receivers(
    running: &mut RunningGraph,
    plans: BTreeMap<ComponentId, ReceiverPlan>,
    pipelines: &BTreeMap<PipelineId, model::PipelineConfig>,
    registry: &StatsRegistry,
    retired: &mut RetiredComponents,
) {
    let gone: Vec<_> = running.receivers.keys().filter(|id| !plans.contains_key(id)).cloned().collect();
    retired.receivers.extend(gone.iter().filter_map(|id| running.receivers.remove(id)).map(|r| r.node));
    for (id, plan) in plans {
        let ReceiverPlan::Set(set) = plan else {
            running.receivers.get(&id).inspect(|kept| set_receiver_pipelines(&kept.pipelines, &id, running, pipelines));
            continue;
        };
        let (prepared, identity) = *set;
        let (old, intake) = match running.receivers.remove(&id) {
            Some(old) => (Some(old.node), old.pipelines),
            None => (None, Arc::new(PipelineSet::default())),
        };
        // Connected before it accepts, so that no request finds a receiver without pipelines.
        set_receiver_pipelines(&intake, &id, running, pipelines);
        let site = ReceiverSite { id: &id, pipelines: &intake, registry };
        let receiver = prepared.start(old.as_deref(), &site);
        // Whatever the successor has not taken over ends, whether it listens or not.
        retired.receivers.extend(old);
        running.receivers.insert(id, RunningReceiver { identity, pipelines: intake, node: receiver });
    }
}

fn set_receiver_pipelines(
    intake: &PipelineSet,
    receiver: &ComponentId,
    running: &RunningGraph,
    pipelines: &BTreeMap<PipelineId, model::PipelineConfig>,
) {
    for signal in Signal::ALL {
        let fed = pipelines.iter().filter(|(p, wiring)| p.signal == signal && wiring.receivers.contains(receiver));
        let fed = fed.filter_map(|(p, _)| running.pipelines.get(p)).map(|p| p.pipeline.clone());
        intake.set_pipelines(signal, fed.collect());
    }
}

/// Takes out removed pipelines, and pipelines whose id now belongs to another one. The next pipeline of the
/// same id starts its counters at zero.
fn take_removed(
    running: &mut RunningGraph,
    wanted: &BTreeMap<PipelineId, model::PipelineConfig>,
    registry: &StatsRegistry,
) -> Vec<RunningPipeline> {
    let stays =
        |id: &PipelineId, old: &RunningPipeline| wanted.get(id).is_some_and(|wiring| old.is_same_pipeline(wiring));
    let gone = running.pipelines.iter().filter(|(id, old)| !stays(id, old));
    let gone: Vec<PipelineId> = gone.map(|(id, _)| id.clone()).collect();
    let gone: Vec<(PipelineId, RunningPipeline)> =
        gone.into_iter().filter_map(|id| running.pipelines.remove(&id).map(|pipeline| (id, pipeline))).collect();
    for (id, pipeline) in &gone {
        registry.end_pipeline(id, pipeline.uid.as_deref(), &pipeline.carries);
    }
    gone.into_iter().map(|(_, pipeline)| pipeline).collect()
}
