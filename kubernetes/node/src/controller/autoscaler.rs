//! HorizontalPodAutoscaler: the number of replicas that the measured usage of pods requires.
//!
//! The algorithm is kube-controller-manager's: [how many](replicas) replicas each metric asks for, the highest
//! of which counts, and [how fast](stabilization) that may change. *Guaranteed*: an unreadable metric never
//! removes replicas. A new autoscaler, also after a restart, removes none before the stabilization window has
//! passed. *Not done*: metrics other than cpu and memory; scaling to zero.

mod metric;
mod replicas;
mod settings;
mod stabilization;
mod status_builder;
mod target;

use std::{
    collections::HashMap,
    sync::{Arc, MutexGuard},
    time::Duration,
};

use jiff::Timestamp;
use k8s_openapi::api::{
    autoscaling::v2::{HorizontalPodAutoscaler, HorizontalPodAutoscalerSpec, MetricStatus},
    core::v1::{ObjectReference, Pod},
};
use kube::{Client, Resource, ResourceExt};
use kubewake_apiserver::codec::selector::LabelSelector;
use kubewake_runtime::lock::Mutex;
use tokio::{task::JoinSet, time::Instant};

pub use self::settings::AutoscalerSettings;
use self::{
    metric::{MetricError, MetricReader, MetricReadings},
    stabilization::{ScalingHistory, ScalingLimits},
    status_builder::AutoscalerStatusBuilder,
    target::ScaleTarget,
};
use crate::{
    error::Result,
    events::EventRecorder,
    informers::InformerSet,
    key::NamespacedKey,
    queue::{RequeueAfter, WorkQueue},
    usage::UsageProvider,
};

const CONTROLLER_NAME: &str = "horizontal-pod-autoscaler";
const MAX_CONCURRENT_RECONCILES: usize = 5;
/// The retry delay while the pods are not measured yet.
const UNMEASURED_RETRY_DELAY: Duration = Duration::from_secs(1);

pub fn start(
    client: &Client,
    views: &InformerSet,
    usage: Arc<dyn UsageProvider>,
    settings: AutoscalerSettings,
    tasks: &mut JoinSet<()>,
) {
    let scaler = Arc::new(HorizontalController {
        client: client.clone(),
        informers: views.clone(),
        events: EventRecorder::new(client.clone(), CONTROLLER_NAME, None),
        usage,
        settings,
        states: Mutex::default(),
    });
    let queue = WorkQueue::default();
    let to = queue.clone();
    views.autoscalers.on_change(move |change| {
        // A change of the status alone is ignored.
        let spec = |autoscaler: &Option<Arc<HorizontalPodAutoscaler>>| {
            autoscaler.as_ref().map(|autoscaler| (autoscaler.uid(), autoscaler.spec.clone()))
        };
        if let Some(autoscaler) = change.latest().filter(|_| spec(&change.old) != spec(&change.new)) {
            to.add(NamespacedKey::from_object(&**autoscaler));
        }
    });
    tasks.spawn(queue.run_workers(CONTROLLER_NAME, MAX_CONCURRENT_RECONCILES, move |key| {
        let scaler = Arc::clone(&scaler);
        async move { scaler.reconcile(key).await }
    }));
}

struct HorizontalController {
    client: Client,
    informers: InformerSet,
    events: EventRecorder,
    usage: Arc<dyn UsageProvider>,
    settings: AutoscalerSettings,
    states: Mutex<HashMap<NamespacedKey, AutoscalerState>>,
}

/// The state of an autoscaler between syncs.
#[derive(Default)]
struct AutoscalerState {
    /// The time of the first sync.
    first_synced_at: Option<Instant>,
    history: ScalingHistory,
    selector: Option<LabelSelector>,
}

/// One sync of an autoscaler.
struct AutoscalerSync<'a> {
    key: &'a NamespacedKey,
    spec: &'a HorizontalPodAutoscalerSpec,
    about: ObjectReference,
    status: AutoscalerStatusBuilder,
    /// Whether a measurement is still missing because the pods have just started.
    before_first_measurement: bool,
}

impl AutoscalerSync<'_> {
    fn min_replicas(&self) -> i32 {
        self.spec.min_replicas.unwrap_or(1)
    }
}

/// The number of replicas and the reason; none if it cannot be determined.
type ScalingDecision = Option<(i32, String)>;

impl HorizontalController {
    async fn reconcile(&self, key: NamespacedKey) -> Result<RequeueAfter> {
        let Some(autoscaler) = self.informers.autoscalers.get(&key) else {
            self.lock_states().remove(&key);
            return Ok(None);
        };
        if let Some(spec) = &autoscaler.spec {
            let draft = AutoscalerStatusBuilder::new(&autoscaler, Timestamp::now());
            let mut look = AutoscalerSync {
                key: &key,
                spec,
                about: autoscaler.object_ref(&()),
                status: draft,
                before_first_measurement: false,
            };
            self.sync(&mut look).await;
            look.status.write_if_changed(&self.client, &self.informers.autoscalers, &autoscaler).await?;
            if look.before_first_measurement {
                return Ok(Some(self.settings.period.min(UNMEASURED_RETRY_DELAY)));
            }
        }
        Ok(Some(self.settings.period))
    }

    async fn sync(&self, on: &mut AutoscalerSync<'_>) {
        let mut target = match ScaleTarget::read(&self.client, &on.key.namespace, &on.spec.scale_target_ref).await {
            Ok(target) => target,
            Err(why) => {
                let message = format!("the HPA controller was unable to get the target's current scale: {why}");
                on.status.set_condition("AbleToScale", false, "FailedGetScale", message);
                return self.events.record_warning(on.about.clone(), "FailedGetScale", why);
            }
        };
        let message = "the HPA controller was able to get the target's current scale";
        on.status.set_condition("AbleToScale", true, "SucceededGetScale", message);
        let current = target.replicas();
        self.update_state(on.key, |memory| memory.history.record_first_replicas(current, Instant::now()));
        let mut metrics = Vec::new();
        let decision = self.decide_replicas(on, &target, &mut metrics);
        let before = on.status.status.desired_replicas;
        let desired = match decision {
            Some((wanted, reason)) if wanted != current => self.rescale(on, &mut target, wanted, &reason).await,
            decision => decision.map(|(wanted, _)| wanted),
        };
        on.status.set_counts(current, desired.unwrap_or(before), metrics);
    }

    fn decide_replicas(
        &self,
        on: &mut AutoscalerSync<'_>,
        target: &ScaleTarget,
        metrics: &mut Vec<MetricStatus>,
    ) -> ScalingDecision {
        match target.replicas() {
            0 => {
                let message = "scaling is disabled since the replica count of the target is zero";
                on.status.set_condition("ScalingActive", false, "ScalingDisabled", message);
                Some((0, String::new()))
            }
            current if current > on.spec.max_replicas => {
                Some((on.spec.max_replicas, "Current number of replicas above Spec.MaxReplicas".to_owned()))
            }
            current if current < on.min_replicas() => {
                Some((on.min_replicas(), "Current number of replicas below Spec.MinReplicas".to_owned()))
            }
            current => {
                let (wanted, name) = self.replicas_for_metrics(on, target, metrics)?;
                let reason = if wanted > current {
                    format!("{name} above target")
                } else {
                    "All metrics below target".to_owned()
                };
                Some((self.normalize_replicas(on, current, wanted), reason))
            }
        }
    }

    /// The number of replicas that the metrics ask for, and the metric that asks for the most.
    fn replicas_for_metrics(
        &self,
        on: &mut AutoscalerSync<'_>,
        target: &ScaleTarget,
        metrics: &mut Vec<MetricStatus>,
    ) -> ScalingDecision {
        let pods = self.select_target_pods(on, target.selector())?;
        let rules = self.settings.calculation_rules(on.spec, Timestamp::now());
        let replicas = target.replicas();
        let source = MetricReader { pods: &pods, usage: &*self.usage, rules, replicas };
        let specs = on.spec.metrics.as_deref().unwrap_or_default();
        let MetricReadings { most, statuses, errors: troubles } = source.read_all(specs);
        *metrics = statuses;
        let measured = || pods.iter().any(|pod| self.usage.pod_usage(&NamespacedKey::from_object(&**pod)).is_some());
        if troubles.iter().any(MetricError::is_missing_measurement) && self.is_new(on.key) && !measured() {
            // Not an error: pods that have just started are not measured yet.
            on.before_first_measurement = true;
            return None;
        }
        for trouble in &troubles {
            self.events.record_warning(on.about.clone(), trouble.reason, &trouble.message);
        }
        // An unreadable metric might ask for more.
        let down = most.as_ref().is_none_or(|(most, _)| *most < replicas);
        if let (Some(first), true) = (troubles.first(), down) {
            let message = format!("the HPA was unable to compute the replica count: {}", first.message);
            on.status.set_condition("ScalingActive", false, first.reason, message);
            let bad = troubles.len();
            let all = specs.len();
            let first = format!("{}: {}", first.context, first.message);
            let note = format!("invalid metrics ({bad} invalid out of {all}), first error is: {first}");
            self.events.record_warning(on.about.clone(), "FailedComputeMetricsReplicas", note);
            return None;
        }
        let (_, name) = most.as_ref()?;
        let message = format!("the HPA was able to successfully calculate a replica count from {name}");
        on.status.set_condition("ScalingActive", true, "ValidMetricFound", message);
        most
    }

    /// Whether less than one period has passed since the first sync.
    fn is_new(&self, key: &NamespacedKey) -> bool {
        let begun = self.update_state(key, |memory| *memory.first_synced_at.get_or_insert_with(Instant::now));
        begun.elapsed() < self.settings.period
    }

    /// The pods of the target, unless another autoscaler selects some of them.
    fn select_target_pods(&self, on: &mut AutoscalerSync<'_>, text: &str) -> Option<Vec<Arc<Pod>>> {
        let mut invalid = |reason: &str, event: &str, message: String, note: &str| {
            on.status.set_condition("ScalingActive", false, reason, message);
            self.events.record_warning(on.about.clone(), event, note);
            self.events.record_warning(on.about.clone(), "FailedComputeMetricsReplicas", note);
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
        let mut pods = self.informers.pods.in_namespace(&on.key.namespace);
        pods.retain(|pod| selects(&selector, pod));
        if let Some(other) = self.record_selector(on.key, selector, &pods) {
            let ours = (&on.key.namespace, &on.key.name);
            let other = (&other.namespace, &other.name);
            let both = format!("[{{{} {}}} {{{} {}}}]", ours.0, ours.1, other.0, other.1);
            let note = format!("pods by selector {text} are controlled by more than one HPA (e.g. {both})");
            return invalid("AmbiguousSelector", "AmbiguousSelector", note.clone(), &note);
        }
        Some(pods)
    }

    /// Records the selector of an autoscaler. Returns the others that select some of the same pods.
    fn record_selector(
        &self,
        key: &NamespacedKey,
        selector: LabelSelector,
        pods: &[Arc<Pod>],
    ) -> Option<NamespacedKey> {
        let mut memory = self.lock_states();
        memory.entry(key.clone()).or_default().selector = Some(selector);
        let others = memory.iter().filter(|(other, _)| *other != key && other.namespace == key.namespace);
        let mut others = others.filter_map(|(other, memory)| Some((other, memory.selector.as_ref()?)));
        others.find(|(_, selector)| pods.iter().any(|pod| selects(selector, pod))).map(|(other, _)| other.clone())
    }

    fn normalize_replicas(&self, on: &mut AutoscalerSync<'_>, current: i32, wanted: i32) -> i32 {
        let limits = self.scaling_limits(on, current);
        let paced =
            self.update_state(on.key, |memory| memory.history.normalize_replicas(wanted, &limits, Instant::now()));
        on.status.set_condition("AbleToScale", true, paced.able_to_scale.0, paced.able_to_scale.1);
        on.status.set_condition("ScalingLimited", paced.limited, paced.limits.0, paced.limits.1);
        paced.replicas
    }

    /// Scales the target. Returns the new number of replicas if the write succeeded.
    async fn rescale(
        &self,
        on: &mut AutoscalerSync<'_>,
        target: &mut ScaleTarget,
        wanted: i32,
        reason: &str,
    ) -> Option<i32> {
        let current = target.replicas();
        if let Err(why) = target.rescale(wanted).await {
            let message = format!("the HPA controller was unable to update the target scale: {why}");
            on.status.set_condition("AbleToScale", false, "FailedUpdateScale", message);
            let note = format!("New size: {wanted}; reason: {reason}; error: {why}");
            self.events.record_warning(on.about.clone(), "FailedRescale", note);
            return None;
        }
        let message = format!("the HPA controller was able to update the target scale to {wanted}");
        on.status.set_condition("AbleToScale", true, "SucceededRescale", message);
        on.status.set_rescaled_now();
        let note = format!("New size: {wanted}; reason: {reason}");
        self.events.record_normal(on.about.clone(), "SuccessfulRescale", note);
        let limits = self.scaling_limits(on, current);
        self.update_state(on.key, |memory| memory.history.record_rescale(current, wanted, &limits, Instant::now()));
        Some(wanted)
    }

    fn scaling_limits<'s>(&self, on: &AutoscalerSync<'s>, current: i32) -> ScalingLimits<'s> {
        ScalingLimits {
            min: on.min_replicas(),
            max: on.spec.max_replicas,
            current,
            behavior: on.spec.behavior.as_ref(),
            down_window: self.settings.downscale_stabilization,
        }
    }

    fn lock_states(&self) -> MutexGuard<'_, HashMap<NamespacedKey, AutoscalerState>> {
        self.states.lock()
    }

    fn update_state<T>(&self, key: &NamespacedKey, change: impl FnOnce(&mut AutoscalerState) -> T) -> T {
        change(self.lock_states().entry(key.clone()).or_default())
    }
}

fn selects(selector: &LabelSelector, pod: &Pod) -> bool {
    selector.matches(|label| pod.labels().get(label).map(String::as_str))
}

#[cfg(test)]
mod tests;
