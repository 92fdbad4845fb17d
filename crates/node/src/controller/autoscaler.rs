//! HorizontalPodAutoscaler: as many replicas as what pods really use asks for.
//!
//! The algorithm is kube-controller-manager's: [how many](replicas) replicas each metric asks for, the most of which counts, and
//! [how fast](pace) that may change. *Guarantees.* What cannot be read never takes replicas away. An autoscaler that is new, or
//! comes back after a restart, takes none away before the stabilisation window has passed. *Not done*: metrics other than cpu and
//! memory; scaling to zero.

mod draft;
mod metric;
mod pace;
mod replicas;
mod settings;
mod target;

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use jiff::Timestamp;
use k8s_openapi::api::{
    autoscaling::v2::{HorizontalPodAutoscaler, HorizontalPodAutoscalerSpec, MetricStatus},
    core::v1::{ObjectReference, Pod},
};
use kube::{Client, Resource, ResourceExt};
use kubewake_apiserver::codec::selector::LabelSelector;
use tokio::{task::JoinSet, time::Instant};

pub use self::settings::Settings;
use self::{
    draft::Draft,
    metric::{Readings, Source, Trouble},
    pace::{History, Limits},
    target::Target,
};
use crate::{
    error::Result,
    events::Events,
    key::Key,
    queue::{Again, Queue},
    usage::Usage,
    views::Views,
};

/// In events and logs.
const NAME: &str = "horizontal-pod-autoscaler";
/// Autoscalers at once.
const AT_ONCE: usize = 5;
/// An autoscaler whose pods are not measured yet is looked at again after this time.
const SOON: Duration = Duration::from_secs(1);

/// Starts the controller.
pub fn start(client: &Client, views: &Views, usage: Arc<dyn Usage>, settings: Settings, tasks: &mut JoinSet<()>) {
    let scaler = Arc::new(Autoscaler {
        client: client.clone(),
        views: views.clone(),
        events: Events::new(client.clone(), NAME, None),
        usage,
        settings,
        memory: Mutex::default(),
    });
    let queue = Queue::default();
    let to = queue.clone();
    views.autoscalers.on_change(move |change| {
        // What is written to its status is no news.
        let spec = |autoscaler: &Option<Arc<HorizontalPodAutoscaler>>| {
            autoscaler.as_ref().map(|autoscaler| (autoscaler.uid(), autoscaler.spec.clone()))
        };
        if let Some(autoscaler) = change.latest().filter(|_| spec(&change.old) != spec(&change.new)) {
            to.add(Key::of(&**autoscaler));
        }
    });
    tasks.spawn(queue.run(NAME, AT_ONCE, move |key| {
        let scaler = Arc::clone(&scaler);
        async move { scaler.reconcile(key).await }
    }));
}

struct Autoscaler {
    client: Client,
    views: Views,
    events: Events,
    usage: Arc<dyn Usage>,
    settings: Settings,
    memory: Mutex<HashMap<Key, Memory>>,
}

/// What is remembered of an autoscaler.
#[derive(Default)]
struct Memory {
    /// When it was looked at for the first time.
    begun: Option<Instant>,
    history: History,
    selector: Option<LabelSelector>,
}

/// One look at an autoscaler.
struct Look<'a> {
    key: &'a Key,
    spec: &'a HorizontalPodAutoscalerSpec,
    about: ObjectReference,
    draft: Draft,
    /// It is too early to tell.
    early: bool,
}

impl Look<'_> {
    fn min(&self) -> i32 {
        self.spec.min_replicas.unwrap_or(1)
    }
}

/// How many replicas there will be and why; none if that cannot be told.
type Decision = Option<(i32, String)>;

impl Autoscaler {
    async fn reconcile(&self, key: Key) -> Result<Again> {
        let Some(autoscaler) = self.views.autoscalers.get(&key) else {
            self.memory().remove(&key);
            return Ok(None);
        };
        if let Some(spec) = &autoscaler.spec {
            let draft = Draft::new(&autoscaler, Timestamp::now());
            let mut look = Look { key: &key, spec, about: autoscaler.object_ref(&()), draft, early: false };
            self.look(&mut look).await;
            look.draft.write(&self.client, &self.views.autoscalers, &autoscaler).await?;
            if look.early {
                return Ok(Some(self.settings.period.min(SOON)));
            }
        }
        Ok(Some(self.settings.period))
    }

    async fn look(&self, on: &mut Look<'_>) {
        let mut target = match Target::read(&self.client, &on.key.namespace, &on.spec.scale_target_ref).await {
            Ok(target) => target,
            Err(why) => {
                let message = format!("the HPA controller was unable to get the target's current scale: {why}");
                on.draft.condition("AbleToScale", false, "FailedGetScale", message);
                return self.events.warning(on.about.clone(), "FailedGetScale", why);
            }
        };
        let message = "the HPA controller was able to get the target's current scale";
        on.draft.condition("AbleToScale", true, "SucceededGetScale", message);
        let current = target.replicas();
        self.remember(on.key, |memory| memory.history.begin(current, Instant::now()));
        let mut metrics = Vec::new();
        let decision = self.decide(on, &target, &mut metrics);
        let before = on.draft.status.desired_replicas;
        let desired = match decision {
            Some((wanted, reason)) if wanted != current => self.rescale(on, &mut target, wanted, &reason).await,
            decision => decision.map(|(wanted, _)| wanted),
        };
        on.draft.counts(current, desired.unwrap_or(before), metrics);
    }

    fn decide(&self, on: &mut Look<'_>, target: &Target, metrics: &mut Vec<MetricStatus>) -> Decision {
        match target.replicas() {
            0 => {
                let message = "scaling is disabled since the replica count of the target is zero";
                on.draft.condition("ScalingActive", false, "ScalingDisabled", message);
                Some((0, String::new()))
            }
            current if current > on.spec.max_replicas => {
                Some((on.spec.max_replicas, "Current number of replicas above Spec.MaxReplicas".to_owned()))
            }
            current if current < on.min() => {
                Some((on.min(), "Current number of replicas below Spec.MinReplicas".to_owned()))
            }
            current => {
                let (wanted, name) = self.measure(on, target, metrics)?;
                let reason = if wanted > current {
                    format!("{name} above target")
                } else {
                    "All metrics below target".to_owned()
                };
                Some((self.pace(on, current, wanted), reason))
            }
        }
    }

    /// How many replicas the metrics ask for, and which metric asks for the most.
    fn measure(&self, on: &mut Look<'_>, target: &Target, metrics: &mut Vec<MetricStatus>) -> Decision {
        let pods = self.pods(on, target.selector())?;
        let (rules, replicas) = (self.settings.rules(on.spec, Timestamp::now()), target.replicas());
        let source = Source { pods: &pods, usage: &*self.usage, rules, replicas };
        let specs = on.spec.metrics.as_deref().unwrap_or_default();
        let Readings { most, statuses, troubles } = source.read_all(specs);
        *metrics = statuses;
        let measured = || pods.iter().any(|pod| self.usage.of(&Key::of(&**pod)).is_some());
        if troubles.iter().any(Trouble::is_of_measurement) && self.is_new(on.key) && !measured() {
            // Nothing is wrong: what has just begun is not measured yet.
            on.early = true;
            return None;
        }
        for trouble in &troubles {
            self.events.warning(on.about.clone(), trouble.reason, &trouble.message);
        }
        // What cannot be read might ask for more.
        let down = most.as_ref().is_none_or(|(most, _)| *most < replicas);
        if let (Some(first), true) = (troubles.first(), down) {
            let message = format!("the HPA was unable to compute the replica count: {}", first.message);
            on.draft.condition("ScalingActive", false, first.reason, message);
            let (bad, all, first) = (troubles.len(), specs.len(), format!("{}: {}", first.context, first.message));
            let note = format!("invalid metrics ({bad} invalid out of {all}), first error is: {first}");
            self.events.warning(on.about.clone(), "FailedComputeMetricsReplicas", note);
            return None;
        }
        let (_, name) = most.as_ref()?;
        let message = format!("the HPA was able to successfully calculate a replica count from {name}");
        on.draft.condition("ScalingActive", true, "ValidMetricFound", message);
        most
    }

    /// Whether it is looked at for less than a period.
    fn is_new(&self, key: &Key) -> bool {
        let begun = self.remember(key, |memory| *memory.begun.get_or_insert_with(Instant::now));
        begun.elapsed() < self.settings.period
    }

    /// The target's pods, if they are its own.
    fn pods(&self, on: &mut Look<'_>, text: &str) -> Option<Vec<Arc<Pod>>> {
        let mut invalid = |reason: &str, event: &str, message: String, note: &str| {
            on.draft.condition("ScalingActive", false, reason, message);
            self.events.warning(on.about.clone(), event, note);
            self.events.warning(on.about.clone(), "FailedComputeMetricsReplicas", note);
            None
        };
        if text.is_empty() {
            let message = "the HPA target's scale is missing a selector".to_owned();
            return invalid("InvalidSelector", "SelectorRequired", message, "selector is required");
        }
        let selector = match LabelSelector::parse(text) {
            Ok(selector) => selector,
            Err(error) => {
                let error = error.message;
                let note = format!("couldn't convert selector into a corresponding internal selector object: {error}");
                return invalid("InvalidSelector", "InvalidSelector", note.clone(), &note);
            }
        };
        let mut pods = self.views.pods.within(&on.key.namespace);
        pods.retain(|pod| selects(&selector, pod));
        if let Some(other) = self.claim(on.key, selector, &pods) {
            let (ours, other) = ((&on.key.namespace, &on.key.name), (&other.namespace, &other.name));
            let both = format!("[{{{} {}}} {{{} {}}}]", ours.0, ours.1, other.0, other.1);
            let note = format!("pods by selector {text} are controlled by more than one HPA (e.g. {both})");
            return invalid("AmbiguousSelector", "AmbiguousSelector", note.clone(), &note);
        }
        Some(pods)
    }

    /// Remembers which pods an autoscaler counts. Answers who else counts some of them.
    fn claim(&self, key: &Key, selector: LabelSelector, pods: &[Arc<Pod>]) -> Option<Key> {
        let mut memory = self.memory();
        memory.entry(key.clone()).or_default().selector = Some(selector);
        let others = memory.iter().filter(|(other, _)| *other != key && other.namespace == key.namespace);
        let mut others = others.filter_map(|(other, memory)| Some((other, memory.selector.as_ref()?)));
        others.find(|(_, selector)| pods.iter().any(|pod| selects(selector, pod))).map(|(other, _)| other.clone())
    }

    fn pace(&self, on: &mut Look<'_>, current: i32, wanted: i32) -> i32 {
        let limits = self.limits(on, current);
        let paced = self.remember(on.key, |memory| memory.history.pace(wanted, &limits, Instant::now()));
        on.draft.condition("AbleToScale", true, paced.able.0, paced.able.1);
        on.draft.condition("ScalingLimited", paced.limited, paced.limits.0, paced.limits.1);
        paced.replicas
    }

    /// Answers how many replicas there will be, if that could be written.
    async fn rescale(&self, on: &mut Look<'_>, target: &mut Target, wanted: i32, reason: &str) -> Option<i32> {
        let current = target.replicas();
        if let Err(why) = target.rescale(wanted).await {
            let message = format!("the HPA controller was unable to update the target scale: {why}");
            on.draft.condition("AbleToScale", false, "FailedUpdateScale", message);
            let note = format!("New size: {wanted}; reason: {reason}; error: {why}");
            self.events.warning(on.about.clone(), "FailedRescale", note);
            return None;
        }
        let message = format!("the HPA controller was able to update the target scale to {wanted}");
        on.draft.condition("AbleToScale", true, "SucceededRescale", message);
        on.draft.rescaled();
        let note = format!("New size: {wanted}; reason: {reason}");
        self.events.normal(on.about.clone(), "SuccessfulRescale", note);
        let limits = self.limits(on, current);
        self.remember(on.key, |memory| memory.history.rescaled(current, wanted, &limits, Instant::now()));
        Some(wanted)
    }

    fn limits<'s>(&self, on: &Look<'s>, current: i32) -> Limits<'s> {
        Limits {
            min: on.min(),
            max: on.spec.max_replicas,
            current,
            behavior: on.spec.behavior.as_ref(),
            down_window: self.settings.downscale_stabilization,
        }
    }

    fn memory(&self) -> MutexGuard<'_, HashMap<Key, Memory>> {
        self.memory.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn remember<T>(&self, key: &Key, change: impl FnOnce(&mut Memory) -> T) -> T {
        change(self.memory().entry(key.clone()).or_default())
    }
}

fn selects(selector: &LabelSelector, pod: &Pod) -> bool {
    selector.matches(|label| pod.labels().get(label).map(String::as_str))
}

#[cfg(test)]
mod tests;
