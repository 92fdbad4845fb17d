//! What runs.

use std::{collections::BTreeMap, future::Future, sync::Arc, time::Duration};

use kubewake_config::{ComponentId, PipelineId, model};
use tokio::{task::JoinSet, time::Instant};

use super::{Options, Overview};
use crate::{
    components::{AnyReceiver, Auth, Sink, Step},
    core::{Budget, Destination, Gone, Intake, Pipeline},
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
    pub(super) outlet: Sink,
}

pub(super) struct RunningPipeline {
    pub(super) pipeline: Arc<Pipeline>,
    /// Which one it is of all that have had its id, if the document says.
    pub(super) uid: Option<String>,
    /// The uids of the pipelines elsewhere for which it carries data.
    pub(super) carries: Vec<String>,
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
    pub(super) stopped: bool,
}

impl RunningPipeline {
    /// Whether this is the pipeline that a document means by its id. It is not, if both say which one it is, and it is another.
    pub(super) fn is(&self, wiring: &model::Pipeline) -> bool {
        self.uid.is_none() || wiring.uid.is_none() || self.uid == wiring.uid
    }
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
            stopped: false,
        }
    }

    pub(super) fn overview(&self) -> Overview {
        let pipelines = self.pipelines.iter().map(|(id, p)| telemetry::RunningPipeline {
            id: id.clone(),
            uid: p.uid.clone(),
            carries: p.carries.clone(),
            processors: p.steps.iter().map(|step| step.id.clone()).collect(),
            exporters: p.outlets.iter().map(|o| (o.id.clone(), o.destination.clone())).collect(),
        });
        let listeners = self.receivers.iter().flat_map(|(id, r)| {
            r.receiver.addresses().into_iter().map(move |(protocol, address)| (id.clone(), protocol, address))
        });
        Overview { pipelines: pipelines.collect(), listeners: listeners.collect() }
    }

    /// Takes everything out, to be drained. Nothing is put into effect after this.
    pub(super) fn retire_all(&mut self) -> Retired {
        self.stopped = true;
        let mut retired = Retired::default();
        retired.receivers.extend(std::mem::take(&mut self.receivers).into_values().map(|r| r.receiver));
        std::mem::take(&mut self.pipelines).into_values().for_each(|pipeline| retired.add(pipeline));
        retired
    }
}

/// What went and still holds something.
#[derive(Default)]
pub(super) struct Retired {
    pub(super) receivers: Vec<AnyReceiver>,
    pipelines: Vec<Gone>,
    /// In the order in which data flows through them.
    steps: Vec<Step>,
    outlets: Vec<Sink>,
}

/// The part of the time that requests under way may take to end. A slow client must not cost what is held its delivery.
const FOR_REQUESTS: u32 = 3;

/// To hand on to those that take nothing any more takes no time.
const LAST_FLUSH: Duration = Duration::from_secs(1);

impl Retired {
    pub(super) fn is_empty(&self) -> bool {
        self.receivers.is_empty() && self.pipelines.is_empty() && self.steps.is_empty() && self.outlets.is_empty()
    }

    /// Adds a whole pipeline.
    pub(super) fn add(&mut self, pipeline: RunningPipeline) {
        self.pipelines.push(pipeline.pipeline.gone());
        self.add_parts(pipeline.steps, pipeline.outlets);
    }

    /// Adds what a pipeline that stays no longer has.
    pub(super) fn add_parts(&mut self, steps: Vec<RunningStep>, outlets: Vec<RunningOutlet>) {
        steps.iter().for_each(|s| s.step.processor().retire());
        self.steps.extend(steps.into_iter().map(|s| s.step));
        outlets.iter().for_each(|o| o.outlet.retire());
        self.outlets.extend(outlets.into_iter().map(|o| o.outlet));
    }

    /// Adds what went in an earlier change. Its steps come first: they may lead to what goes now.
    pub(super) fn add_earlier(&mut self, earlier: Retired) {
        let Retired { receivers, pipelines, steps, outlets } = earlier;
        self.receivers.extend(receivers);
        self.pipelines.extend(pipelines);
        self.steps.splice(0..0, steps);
        self.outlets.extend(outlets);
    }

    /// After draining: lets go of all but what something may still come to, from whoever had not heard that it went.
    pub(super) fn let_go(&mut self) {
        self.receivers.clear();
        self.pipelines.clear();
        // In the order of the flow, since each of them holds what it leads to.
        self.steps.retain(Step::is_in_use);
        self.outlets.retain(Sink::is_in_use);
    }

    /// Lets requests under way end, then hands on what processors hold, then delivers what queues hold. It can be begun
    /// anew when it was given up half way.
    pub(super) async fn drain(&self, deadline: Instant) {
        let now = Instant::now();
        self.end_requests(now + deadline.saturating_duration_since(now) / FOR_REQUESTS).await;
        let in_time = tokio::time::timeout_at(deadline, self.flush()).await.is_ok();
        self.for_each_outlet(|outlet| async move { outlet.drain(deadline).await }).await;
        if !in_time {
            // What a step still holds has nowhere to go: it is counted by those that can no longer take it.
            self.for_each_outlet(|outlet| async move { outlet.halt().await }).await;
            let _ = tokio::time::timeout(LAST_FLUSH, self.flush()).await;
        }
    }

    async fn end_requests(&self, deadline: Instant) {
        let receivers = || self.receivers.iter().map(AnyReceiver::receiver);
        receivers().for_each(|receiver| receiver.close());
        let closed = async {
            for receiver in receivers() {
                receiver.closed().await;
            }
        };
        if tokio::time::timeout_at(deadline, closed).await.is_err() {
            tracing::warn!("connections that did not end in time are cut");
            receivers().for_each(|receiver| receiver.cut());
        }
        let gone = async {
            for pipeline in &self.pipelines {
                pipeline.wait().await;
            }
        };
        let _ = tokio::time::timeout_at(deadline, gone).await;
    }

    async fn flush(&self) {
        for step in &self.steps {
            step.processor().flush().await;
        }
    }

    async fn for_each_outlet<F>(&self, end: impl Fn(Sink) -> F)
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let mut ends: JoinSet<()> = self.outlets.iter().cloned().map(end).collect();
        while ends.join_next().await.is_some() {}
    }
}
