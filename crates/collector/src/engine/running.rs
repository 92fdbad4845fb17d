//! What runs.

use std::{collections::BTreeMap, sync::Arc};

use kubewake_config::{ComponentId, PipelineId, model};
use tokio::{task::JoinSet, time::Instant};

use super::{Options, Overview};
use crate::{
    components::{AnyReceiver, Auth, Step},
    core::{Budget, Destination, Intake, Outlet, Pipeline},
    telemetry,
};

/// Whether a component is still the same: its settings, its files, and those of the credentials that it uses.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Identity<S> {
    pub(super) settings: S,
    pub(super) print: u64,
    pub(super) auth: Vec<(model::Extension, u64)>,
}

pub(super) struct RunningAuth {
    pub(super) identity: Identity<model::Extension>,
    pub(super) auth: Auth,
}

pub(super) struct RunningStep {
    pub(super) id: ComponentId,
    pub(super) settings: model::Processor,
    pub(super) step: Step,
}

pub(super) struct RunningOutlet {
    pub(super) id: ComponentId,
    pub(super) identity: Identity<model::Exporter>,
    pub(super) destination: Destination,
    pub(super) outlet: Arc<Outlet>,
}

pub(super) struct RunningPipeline {
    pub(super) pipeline: Arc<Pipeline>,
    /// The limiter whose budget it draws on.
    pub(super) limiter: Option<ComponentId>,
    pub(super) steps: Vec<RunningStep>,
    pub(super) outlets: Vec<RunningOutlet>,
}

pub(super) struct RunningReceiver {
    pub(super) identity: Identity<model::Receiver>,
    pub(super) intake: Arc<Intake>,
    pub(super) receiver: AnyReceiver,
}

pub(super) struct Running {
    pub(super) auth: BTreeMap<ComponentId, RunningAuth>,
    pub(super) default_budget: Arc<Budget>,
    pub(super) budgets: BTreeMap<ComponentId, Arc<Budget>>,
    pub(super) pipelines: BTreeMap<PipelineId, RunningPipeline>,
    pub(super) receivers: BTreeMap<ComponentId, RunningReceiver>,
}

impl Running {
    pub(super) fn new(options: &Options) -> Self {
        // A fifth is kept for requests under way, as the Collector's limiter does by default.
        let default_budget = Budget::new(options.default_budget, options.default_budget / 5);
        Self {
            auth: BTreeMap::new(),
            default_budget,
            budgets: BTreeMap::new(),
            pipelines: BTreeMap::new(),
            receivers: BTreeMap::new(),
        }
    }

    pub(super) fn overview(&self) -> Overview {
        let pipelines = self.pipelines.iter().map(|(id, p)| telemetry::RunningPipeline {
            id: id.clone(),
            exporters: p.outlets.iter().map(|o| (o.id.clone(), o.destination.clone())).collect(),
        });
        let listeners = self.receivers.iter().flat_map(|(id, r)| {
            r.receiver.addresses().into_iter().map(move |(protocol, address)| (id.clone(), protocol, address))
        });
        Overview { pipelines: pipelines.collect(), listeners: listeners.collect() }
    }

    /// Takes everything out, to be drained.
    pub(super) fn retire_all(&mut self) -> Retired {
        let mut retired = Retired::default();
        retired.receivers.extend(std::mem::take(&mut self.receivers).into_values().map(|r| r.receiver));
        for pipeline in std::mem::take(&mut self.pipelines).into_values() {
            retired.steps.extend(pipeline.steps.into_iter().map(|s| s.step));
            retired.outlets.extend(pipeline.outlets.into_iter().map(|o| o.outlet));
        }
        retired
    }
}

/// What went and still holds something.
#[derive(Default)]
pub(super) struct Retired {
    pub(super) receivers: Vec<AnyReceiver>,
    /// In the order in which data flows through them.
    pub(super) steps: Vec<Step>,
    pub(super) outlets: Vec<Arc<Outlet>>,
}

impl Retired {
    pub(super) fn is_empty(&self) -> bool {
        self.receivers.is_empty() && self.steps.is_empty() && self.outlets.is_empty()
    }

    /// Lets requests under way end, then hands on what processors hold, then delivers what queues hold.
    pub(super) async fn drain(self, deadline: Instant) {
        let receivers = async {
            for receiver in &self.receivers {
                receiver.stop().await;
            }
        };
        let _ = tokio::time::timeout_at(deadline, receivers).await;
        let steps = async {
            for step in &self.steps {
                step.processor().flush().await;
            }
        };
        let _ = tokio::time::timeout_at(deadline, steps).await;
        let mut outlets: JoinSet<()> =
            self.outlets.into_iter().map(|outlet| async move { outlet.drain(deadline).await }).collect();
        while outlets.join_next().await.is_some() {}
    }
}
