//! The scheduler: gives the pods that name it a node, by the plugins of its configuration.
//!
//! *Guarantees.* A node never gets more pods than it has room for by what pods request, as long as the plugin that sees to it is configured and no other
//! scheduler gives away the same room. A pod that fits nowhere says why, in its condition `PodScheduled` and in an event, and is tried again when a node, the
//! room on a node or the configuration changes. A configuration that is no good changes nothing. Every attempt that tells something new is a
//! trace, or part of the one that its pod came with, with a link to the span in which the configuration was taken that decided it.
//! *Not done*: preemption, affinity between pods, volumes, host ports.

mod pods;
mod report;
pub mod spans;
mod state;
mod watch;

use std::{
    collections::BTreeMap,
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant, SystemTime},
};

use futures_util::StreamExt;
use k8s_openapi::{
    api::core::v1::{ConfigMap, Pod},
    jiff::Timestamp,
};
use kube::{Client, ResourceExt};
use kubewake_trail::{Trail, in_words};
use opentelemetry::trace::{FutureExt, SpanContext};
use tokio::{sync::watch as latest, task::JoinSet, time};

use self::{
    pods::Pods,
    report::Report,
    spans::{Open, Spans},
    state::State,
    watch::Seen,
};
use crate::{
    api::Refused,
    configuration::{Configuration, Document, KEY},
    cycle::{self, Cycle},
    queue::{Backoff, Turn},
};

/// In whose name the fields are that it writes.
const MANAGER: &str = "demo-scheduler";
/// Requests for pods that are under way at once.
const AT_ONCE: usize = 16;
/// What is under way when it is told to stop has this long.
const LAST_WORDS: Duration = Duration::from_secs(5);
/// Names the configuration that decided where a pod runs.
pub const DECIDED_BY: &str = "demo.kubewake.io/configuration";

/// Who it is.
#[derive(Clone, Debug)]
pub struct Identity {
    /// Where it is at home.
    pub namespace: String,
    /// The Scheduler that it is run for.
    pub scheduler: String,
    /// The name that pods ask for it by.
    pub name: String,
    /// The ConfigMap of its configuration.
    pub config_map: String,
    /// The pod that it is.
    pub pod: String,
}

/// A configuration that was taken, the span in which it was, and when.
struct Taken {
    configuration: Configuration,
    span: SpanContext,
    at: SystemTime,
    /// It has decided where a pod goes that has a trace of its own.
    used: AtomicBool,
}

/// What became of the requests for a pod.
struct Done {
    pod: Arc<Pod>,
    what: What,
}

enum What {
    Bound,
    NotBound,
    Told,
    NotTold,
}

struct Scheduler {
    state: State,
    spans: Spans,
    pods: Pods,
    taken: Option<Arc<Taken>>,
    /// The revision that was not taken last.
    refused: Option<String>,
    reports: latest::Sender<Option<Report>>,
    tasks: JoinSet<Done>,
}

/// Schedules until it is told to stop.
pub async fn run(client: Client, trail: Trail, identity: Identity, stop: impl Future<Output = ()>) {
    let mut seen = watch::everything(&client, &identity.namespace, &identity.config_map);
    let (reports, reported) = latest::channel(None);
    let mut scheduler = Scheduler {
        state: State::new(&identity.name),
        pods: Pods::new(client.clone(), &trail, &identity.name, &identity.pod),
        spans: Spans::new(trail, &identity.name),
        taken: None,
        refused: None,
        reports,
        tasks: JoinSet::new(),
    };
    let writer = tokio::spawn(report::write(client, identity, reported));
    let mut stop = pin!(stop);
    loop {
        let due = scheduler.due().map(time::Instant::from_std);
        tokio::select! {
            () = &mut stop => break,
            Some(seen) = seen.next() => scheduler.see(seen),
            Some(done) = scheduler.tasks.join_next() => done.into_iter().for_each(|done| scheduler.done(&done)),
            () = time::sleep_until(due.unwrap_or_else(time::Instant::now)), if due.is_some() => {}
        }
        scheduler.schedule();
    }
    let Scheduler { mut tasks, reports, .. } = scheduler;
    drop(reports);
    let finish = async {
        while tasks.join_next().await.is_some() {}
        let _ = writer.await;
    };
    let _ = time::timeout(LAST_WORDS, finish).await;
}

impl Scheduler {
    fn see(&mut self, seen: Seen) {
        match seen {
            Seen::Pod(event) => self.state.see_pod(*event, Instant::now()),
            Seen::Node(event) => self.state.see_node(*event, Instant::now()),
            Seen::ConfigMap(config_map) => self.configure(&config_map),
        }
    }

    /// Takes the configuration in a ConfigMap, unless it has it already or knows that it is no good.
    fn configure(&mut self, config_map: &ConfigMap) {
        let text = config_map.data.as_ref().and_then(|data| data.get(KEY)).map(String::as_str).unwrap_or_default();
        let revision = Document::revision_of(text);
        let read = Document::read(text);
        let current = self.taken.as_ref().map(|taken| taken.configuration.revision.clone());
        let known = match (&read, &self.refused) {
            (Ok(_), None) => &current,
            // What was refused is put right, be it by the old one: that is worth telling.
            (Ok(_), Some(_)) => &None,
            (Err(_), refused) => refused,
        };
        if known.as_deref() == Some(revision.as_str()) {
            return;
        }
        let before = self.taken.as_ref().map(|taken| &taken.configuration);
        let span = self.spans.take(config_map, &revision, before);
        let report = match read {
            Ok(configuration) => {
                tracing::info!(revision, "a configuration is taken");
                self.spans.taken(&span, &configuration);
                let (at, used) = (SystemTime::now(), AtomicBool::new(false));
                self.taken = Some(Arc::new(Taken { configuration, span: span.id(), at, used }));
                self.refused = None;
                self.state.wake(Instant::now());
                Report { revision: Some(revision), refused: None, span }
            }
            Err(refusal) => {
                tracing::warn!(revision, %refusal, "a configuration is not taken");
                self.refused = Some(revision.clone());
                let refused = Refused { revision, reason: refusal.to_string() };
                Report { revision: current, refused: Some(refused), span }
            }
        };
        self.reports.send_replace(Some(report));
    }

    fn due(&self) -> Option<Instant> {
        self.state.due().filter(|_| self.taken.is_some() && self.tasks.len() < AT_ONCE)
    }

    /// Tries the pods whose turn it is.
    fn schedule(&mut self) {
        let Some(taken) = self.taken.clone() else { return };
        while self.tasks.len() < AT_ONCE
            && let Some(turn) = self.state.next(Instant::now())
        {
            let cycle = cycle::run(&taken.configuration, &turn.pod, &self.state.cluster.places(), &SystemTime::now);
            self.follow_up(Arc::clone(&taken), turn, &cycle);
        }
    }

    /// Does what an attempt came to.
    fn follow_up(&mut self, taken: Arc<Taken>, turn: Turn, cycle: &Cycle) {
        let (pods, spans) = (self.pods.clone(), self.spans.clone());
        let tell = || spans.schedule(&turn, cycle, &taken.configuration.revision, &taken.span);
        match &cycle.outcome {
            Ok(chosen) => {
                let (attempt, node) = (tell(), chosen.node.clone());
                self.state.assume(&turn.pod, &node);
                self.tasks.spawn(async move { bind(&pods, &spans, attempt, &taken, turn.pod, &node).await });
            }
            Err(nowhere) => {
                let why = nowhere.to_string();
                if self.state.nowhere(&turn.pod, &why, taken.configuration.backoff, Instant::now()) {
                    let attempt = tell();
                    self.tasks.spawn(async move { refuse(&pods, attempt, turn.pod, &why).await });
                }
            }
        }
    }

    fn done(&mut self, done: &Done) {
        match done.what {
            What::Bound => self.state.bound(&done.pod),
            What::NotBound => self.state.not_bound(&done.pod, self.backoff(), Instant::now()),
            What::Told => {}
            What::NotTold => self.state.not_told(&done.pod),
        }
    }

    fn backoff(&self) -> Backoff {
        let least = Backoff { first: Duration::from_secs(1), most: Duration::from_secs(1) };
        self.taken.as_ref().map_or(least, |taken| taken.configuration.backoff)
    }
}

/// Gives the pod its node.
async fn bind(pods: &Pods, spans: &Spans, attempt: Open, taken: &Taken, pod: Arc<Pod>, node: &str) -> Done {
    let (cycle, bind) = spans.bind(&attempt);
    let mut annotations = BTreeMap::from([(DECIDED_BY.to_owned(), taken.configuration.revision.clone())]);
    annotations.extend(spans.stamp(&pod, node, &bind));
    let bound = pods.bind(&pod, node, &annotations).with_context(bind.context()).await;
    let result = bound.map_err(|error| {
        tracing::warn!(
            kind = "Pod",
            namespace = pod.namespace(),
            name = pod.name_any(),
            node,
            error = in_words(&error),
            "it is not bound"
        );
        in_words(&error)
    });
    bind.end(result.clone());
    cycle.end(result.clone());
    let (id, context) = (attempt.id(), attempt.context());
    spans.bound(attempt, result.clone());
    if result.is_err() {
        return Done { pod, what: What::NotBound };
    }
    // In one trace nothing needs to be found.
    if id.trace_id() != taken.span.trace_id() && !taken.used.swap(true, Ordering::Relaxed) {
        spans.first(&taken.span, taken.at, &pod, &id);
    }
    pods.tell(&pod, Ok(node)).with_context(context).await;
    Done { pod, what: What::Bound }
}

/// Tells everybody why the pod has no node.
async fn refuse(pods: &Pods, attempt: Open, pod: Arc<Pod>, why: &str) -> Done {
    let context = attempt.context();
    let told = pods.refuse(&pod, why, Timestamp::now()).with_context(context.clone()).await;
    attempt.end(Err(why.to_owned()));
    pods.tell(&pod, Err(why)).with_context(context).await;
    if let Err(error) = told {
        let (namespace, name) = (pod.namespace(), pod.name_any());
        tracing::warn!(kind = "Pod", namespace, name, error = in_words(&error), "its status is not written");
        return Done { pod, what: What::NotTold };
    }
    Done { pod, what: What::Told }
}
