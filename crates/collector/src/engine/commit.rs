//! The second phase of a change: swaps, which cannot fail.
//!
//! New things are wired from the end of a pipeline to its beginning, and receivers are pointed at them last, so that
//! data never meets a gap. What went is wired out before it is drained.

use std::{collections::BTreeMap, sync::Arc};

use kubewake_config::{ComponentId, PipelineId, model};
use kubewake_otlp::Signal;

use super::{
    plan::{OutletPlan, Plan, ReceiverPlan},
    running::{Retired, Running, RunningOutlet, RunningPipeline, RunningReceiver, RunningStep},
};
use crate::{
    components::{self, Role, Sink, Step},
    core::{Allowance, Budget, Consumer, Intake, Pipeline, Processor, Registry},
};

pub(super) fn commit(running: &mut Running, plan: Plan, registry: &Arc<Registry>) -> Retired {
    let Plan { auth, budgets, processors, pipelines, outlets, receivers } = plan;
    let mut retired = Retired::default();
    let gone = take_gone(running, &pipelines, registry);
    running.auth = auth;
    resize_budgets(&mut running.budgets, &budgets, registry);
    let mut change = Change { running, registry, processors, outlets, retired: &mut retired };
    for (id, wiring) in &pipelines {
        change.pipeline(id, wiring);
    }
    set_receivers(running, receivers, &pipelines, registry, &mut retired);
    // Now, and not when the draining begins: on an address that was handed over, who comes from here on must not meet
    // the old settings.
    retired.receivers.iter().for_each(|gone| gone.receiver().close());
    gone.into_iter().for_each(|pipeline| retired.add(pipeline));
    running.budgets.retain(|id, _| budgets.contains_key(id));
    retired
}

fn resize_budgets(
    running: &mut BTreeMap<ComponentId, Arc<Budget>>,
    wanted: &BTreeMap<ComponentId, (u64, u64)>,
    registry: &Registry,
) {
    for (id, (limit, spike)) in wanted {
        let budget = running.entry(id.clone()).or_insert_with(|| Budget::new(*limit, *spike));
        budget.resize(*limit, *spike);
        registry.watch_budget(id, budget);
    }
}

struct Change<'a> {
    running: &'a mut Running,
    registry: &'a Arc<Registry>,
    processors: BTreeMap<ComponentId, model::Processor>,
    outlets: BTreeMap<(PipelineId, ComponentId), OutletPlan>,
    retired: &'a mut Retired,
}

impl Change<'_> {
    fn pipeline(&mut self, id: &PipelineId, wiring: &model::Pipeline) {
        let mut old = self.running.pipelines.remove(id);
        let (uid, carries) = (wiring.uid.clone(), wiring.carries.clone());
        let limiter = self.limiter(wiring);
        let pipeline = self.entry(id, old.as_ref(), limiter.as_ref());
        let outlets = self.set_outlets(id, wiring, old.as_mut());
        let steps = self.set_steps(id, wiring, old.as_mut());
        wire(&pipeline, &steps, &outlets);
        if let Some(old) = old {
            self.retired.add_parts(old.steps, old.outlets);
        }
        let running = RunningPipeline { pipeline, uid, carries, limiter, steps, outlets };
        self.running.pipelines.insert(id.clone(), running);
    }

    /// The first limiter of the pipeline.
    fn limiter(&self, wiring: &model::Pipeline) -> Option<ComponentId> {
        let is_limiter = |id: &&ComponentId| {
            self.processors.get(*id).is_some_and(|p| matches!(components::role(p), Role::Budget(..)))
        };
        wiring.processors.iter().find(is_limiter).cloned()
    }

    fn entry(&self, id: &PipelineId, old: Option<&RunningPipeline>, limiter: Option<&ComponentId>) -> Arc<Pipeline> {
        let budget = limiter.and_then(|id| self.running.budgets.get(id)).unwrap_or(&self.running.default_budget);
        let allowance = || Allowance {
            member: budget.join(),
            limiter: limiter.map(|limiter| self.registry.processor(limiter, id.signal)),
        };
        match old {
            Some(old) => {
                if old.limiter.as_ref() != limiter {
                    old.pipeline.draw_on(allowance());
                }
                old.pipeline.clone()
            }
            None => Pipeline::new(id.clone(), allowance(), self.registry.pipeline(id)),
        }
    }

    fn set_outlets(
        &mut self,
        pipeline: &PipelineId,
        wiring: &model::Pipeline,
        mut old: Option<&mut RunningPipeline>,
    ) -> Vec<RunningOutlet> {
        let mut out = Vec::new();
        for id in &wiring.exporters {
            let existing = old.as_mut().and_then(|old| take(&mut old.outlets, |o| o.id == *id));
            let plan = self.outlets.remove(&(pipeline.clone(), id.clone()));
            match (plan, existing) {
                (Some(OutletPlan::Set(set)), Some(existing)) => {
                    let (built, identity) = *set;
                    let destination = built.destination();
                    existing.outlet.reconfigure(id, pipeline, built, self.registry);
                    out.push(RunningOutlet { identity, destination, ..existing });
                }
                (Some(OutletPlan::Set(set)), None) => {
                    let (built, identity) = *set;
                    let destination = built.destination();
                    let outlet = Sink::new(id, pipeline, built, self.registry);
                    out.push(RunningOutlet { id: id.clone(), identity, destination, outlet });
                }
                (_, existing) => out.extend(existing),
            }
        }
        out
    }

    fn set_steps(
        &mut self,
        pipeline: &PipelineId,
        wiring: &model::Pipeline,
        mut old: Option<&mut RunningPipeline>,
    ) -> Vec<RunningStep> {
        let mut out = Vec::new();
        for id in &wiring.processors {
            let Some(settings) = self.processors.get(id) else { continue };
            if !matches!(components::role(settings), Role::Step) {
                continue;
            }
            let existing = old.as_mut().and_then(|old| take(&mut old.steps, |s| s.id == *id));
            match existing {
                Some(existing) => {
                    if existing.settings != *settings {
                        existing.step.reconfigure(id, settings);
                    }
                    out.push(RunningStep { settings: settings.clone(), ..existing });
                }
                // The plan found every step in this build.
                None => {
                    out.extend(Step::build(id, settings, pipeline.signal, self.registry).ok().map(|step| RunningStep {
                        id: id.clone(),
                        settings: settings.clone(),
                        step,
                    }))
                }
            }
        }
        out
    }
}

fn take<T>(list: &mut Vec<T>, is: impl Fn(&T) -> bool) -> Option<T> {
    let at = list.iter().position(is)?;
    Some(list.remove(at))
}

/// Connects the steps, the last one first.
fn wire(pipeline: &Arc<Pipeline>, steps: &[RunningStep], outlets: &[RunningOutlet]) {
    let mut targets: Vec<Arc<dyn Consumer>> = outlets.iter().map(|o| o.outlet.consumer()).collect();
    for step in steps.iter().rev() {
        let processor: Arc<dyn Processor> = step.step.processor();
        processor.next().point_at(targets);
        targets = vec![processor];
    }
    pipeline.head().point_at(targets);
}

fn set_receivers(
    running: &mut Running,
    plans: BTreeMap<ComponentId, ReceiverPlan>,
    pipelines: &BTreeMap<PipelineId, model::Pipeline>,
    registry: &Registry,
    retired: &mut Retired,
) {
    let gone: Vec<_> = running.receivers.keys().filter(|id| !plans.contains_key(id)).cloned().collect();
    retired.receivers.extend(gone.iter().filter_map(|id| running.receivers.remove(id)).map(|r| r.receiver));
    for (id, plan) in plans {
        let ReceiverPlan::Set(set) = plan else {
            running.receivers.get(&id).inspect(|kept| point(&kept.intake, &id, running, pipelines));
            continue;
        };
        let (prepared, identity) = *set;
        let (old, intake) = match running.receivers.remove(&id) {
            Some(old) => (Some(old.receiver), old.intake),
            None => (None, Arc::new(Intake::default())),
        };
        // Before it accepts: a request must not find that nobody wants it.
        point(&intake, &id, running, pipelines);
        let (receiver, rest) = prepared.start(&id, old, &intake, registry);
        retired.receivers.extend(Some(rest).filter(|rest| !rest.addresses().is_empty()));
        running.receivers.insert(id, RunningReceiver { identity, intake, receiver });
    }
}

fn point(
    intake: &Intake,
    receiver: &ComponentId,
    running: &Running,
    pipelines: &BTreeMap<PipelineId, model::Pipeline>,
) {
    for signal in Signal::ALL {
        let fed = pipelines.iter().filter(|(p, wiring)| p.signal == signal && wiring.receivers.contains(receiver));
        let fed = fed.filter_map(|(p, _)| running.pipelines.get(p)).map(|p| p.pipeline.clone());
        intake.point_at(signal, fed.collect());
    }
}

/// Takes out the pipelines that go, and those whose id is another one's from now on. Whoever has such an id next counts anew.
fn take_gone(
    running: &mut Running,
    wanted: &BTreeMap<PipelineId, model::Pipeline>,
    registry: &Registry,
) -> Vec<RunningPipeline> {
    let stays = |id: &PipelineId, old: &RunningPipeline| wanted.get(id).is_some_and(|wiring| old.is(wiring));
    let gone = running.pipelines.iter().filter(|(id, old)| !stays(id, old));
    let gone: Vec<PipelineId> = gone.map(|(id, _)| id.clone()).collect();
    let gone: Vec<(PipelineId, RunningPipeline)> =
        gone.into_iter().filter_map(|id| running.pipelines.remove(&id).map(|pipeline| (id, pipeline))).collect();
    for (id, pipeline) in &gone {
        registry.end_pipeline(id, pipeline.uid.as_deref(), &pipeline.carries);
    }
    gone.into_iter().map(|(_, pipeline)| pipeline).collect()
}
