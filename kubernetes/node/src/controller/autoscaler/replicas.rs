//! The number of replicas that a metric asks for: kube-controller-manager's calculation. No I/O, no clock.
//!
//! The number follows from the ratio of the measured usage to the target. Unknown values never increase the
//! change: a pod without a measurement counts as using its full request when the others are below the target,
//! and nothing when they are above it. The same holds for a pod that is not ready yet.

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;
use kubewake_apiserver::schema::quantity::Quantity;

use crate::{
    controller::pods,
    scheduler::resources::{CPU_RESOURCE, is_sidecar},
};

/// The target for the average usage of pods.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UsageTarget {
    /// In percent of the requests.
    Utilization(i32),
    /// In thousandths of the resource's unit.
    Value(i64),
}

/// A resource of pods or of one of their containers.
#[derive(Clone, Copy, Debug)]
pub struct ResourceMetric<'a> {
    pub resource: &'a str,
    pub container: Option<&'a str>,
    pub target: UsageTarget,
}

/// The tolerance, and when a pod counts as unready.
#[derive(Clone, Copy, Debug)]
pub struct CalculationRules {
    /// Ratios within this range change nothing.
    pub tolerated_ratios: (f64, f64),
    /// The time after the start of a pod in which its cpu usage is not representative.
    pub cpu_initialization: Duration,
    /// A pod that became unready within this time after its start counts as never ready.
    pub readiness_delay: Duration,
    pub now: Timestamp,
}

/// A pod with its usage, if it is known.
#[derive(Clone, Debug)]
pub struct PodMeasurement<'a> {
    pub pod: &'a Pod,
    /// The usage in thousandths of the resource's unit, and the window of the measurement.
    pub used: Option<(i64, Duration)>,
}

/// The replicas that a metric asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReplicaProposal {
    pub replicas: i32,
    /// The usage of ready pods in percent of their requests.
    pub utilization: Option<i32>,
    /// The average usage in thousandths.
    pub average: i64,
}

/// How the measurement of a pod counts.
#[derive(Clone, Copy, PartialEq, Eq)]
enum MeasurementStatus {
    Counted(i64),
    Unready,
    Missing,
    /// The pod is being deleted or has failed.
    Ignored,
}

/// Usage and request of pods.
type UsageShares = Vec<(i64, i64)>;

/// The number of replicas, or an error in kube-controller-manager's words.
pub fn propose_replicas(
    metric: &ResourceMetric<'_>,
    rules: &CalculationRules,
    seen: &[PodMeasurement<'_>],
    current: i32,
) -> Result<ReplicaProposal, String> {
    if seen.iter().all(|seen| seen.used.is_none()) {
        let resource = metric.resource;
        return Err(format!(
            "unable to get metrics for resource {resource}: no metrics returned from resource metrics API"
        ));
    }
    let mut counted = UsageShares::new();
    let mut unready = UsageShares::new();
    let mut missing = UsageShares::new();
    for seen in seen {
        let request = requested_milli(metric, seen.pod)?;
        match measurement_status(seen, metric.resource, rules) {
            MeasurementStatus::Counted(used) => counted.push((used, request)),
            MeasurementStatus::Unready => unready.push((0, request)),
            MeasurementStatus::Missing => missing.push((0, request)),
            MeasurementStatus::Ignored => {}
        }
    }
    if counted.is_empty() {
        return Err("did not receive metrics for targeted pods (pods might be unready)".to_owned());
    }
    let first = metric.target.usage_ratio(&counted)?;
    let proposal = |replicas| ReplicaProposal { replicas, utilization: first.utilization, average: first.average };
    if missing.is_empty() && (unready.is_empty() || first.ratio <= 1.0) {
        return Ok(proposal(if rules.tolerates(first.ratio) { current } else { first.replicas(counted.len()) }));
    }
    let all = assume_unknown_usage(metric.target, first.ratio, counted, unready, missing);
    let second = metric.target.usage_ratio(&all)?;
    let replicas = second.replicas(all.len());
    let turned = |one: f64, other: f64| (one < 1.0 && other > 1.0) || (one > 1.0 && other < 1.0);
    let backwards = (second.ratio < 1.0 && replicas > current) || (second.ratio > 1.0 && replicas < current);
    let stays = rules.tolerates(second.ratio) || turned(first.ratio, second.ratio) || backwards;
    Ok(proposal(if stays { current } else { replicas }))
}

/// The measured usage, completed by assumptions for the other pods.
fn assume_unknown_usage(
    goal: UsageTarget,
    ratio: f64,
    mut all: UsageShares,
    unready: UsageShares,
    missing: UsageShares,
) -> UsageShares {
    let most = |request: i64| match goal {
        UsageTarget::Utilization(percent) => request.saturating_mul(i64::from(percent.max(100))) / 100,
        UsageTarget::Value(value) => value,
    };
    if ratio < 1.0 {
        all.extend(missing.into_iter().map(|(_, request)| (most(request), request)));
    } else if ratio > 1.0 {
        all.extend(missing);
        all.extend(unready);
    }
    all
}

struct UsageRatio {
    ratio: f64,
    utilization: Option<i32>,
    average: i64,
}

impl UsageRatio {
    fn replicas(&self, pods: usize) -> i32 {
        // A cast from a float saturates.
        (self.ratio * pods as f64).ceil() as i32
    }
}

impl UsageTarget {
    fn usage_ratio(self, shares: &UsageShares) -> Result<UsageRatio, String> {
        let sum = |numbers: &mut dyn Iterator<Item = i64>| numbers.map(i128::from).sum::<i128>();
        let used = sum(&mut shares.iter().map(|one| one.0));
        let asked = sum(&mut shares.iter().map(|one| one.1));
        let average = used / i128::try_from(shares.len()).unwrap_or(1).max(1);
        let average = i64::try_from(average).unwrap_or(i64::MAX);
        match self {
            Self::Utilization(_) if asked == 0 => Err("no metrics returned matched known pods".to_owned()),
            Self::Utilization(target) => {
                let percent = i32::try_from(used * 100 / asked).unwrap_or(i32::MAX);
                let ratio = f64::from(percent) / f64::from(target);
                Ok(UsageRatio { ratio, utilization: Some(percent), average })
            }
            Self::Value(target) => Ok(UsageRatio { ratio: average as f64 / target as f64, utilization: None, average }),
        }
    }
}

impl CalculationRules {
    fn tolerates(&self, ratio: f64) -> bool {
        self.tolerated_ratios.0 <= ratio && ratio <= self.tolerated_ratios.1
    }
}

fn measurement_status(seen: &PodMeasurement<'_>, resource: &str, rules: &CalculationRules) -> MeasurementStatus {
    let pod = seen.pod;
    match (pods::phase(pod), seen.used) {
        ("Failed", _) => MeasurementStatus::Ignored,
        _ if pod.metadata.deletion_timestamp.is_some() => MeasurementStatus::Ignored,
        ("Pending", _) => MeasurementStatus::Unready,
        (_, None) => MeasurementStatus::Missing,
        (_, Some((_, window))) if resource == CPU_RESOURCE && is_unready(pod, window, rules) => {
            MeasurementStatus::Unready
        }
        (_, Some((used, _))) => MeasurementStatus::Counted(used),
    }
}

/// Whether the cpu usage of the pod is not representative yet.
fn is_unready(pod: &Pod, window: Duration, rules: &CalculationRules) -> bool {
    let started = pod.status.as_ref().and_then(|status| status.start_time.as_ref());
    let (Some(ready), Some(started)) = (pods::condition(pod, "Ready"), started) else { return true };
    let changed = ready.last_transition_time.as_ref().map_or(Timestamp::UNIX_EPOCH, |time| time.0);
    let after = |time: Timestamp, more: Duration| time.saturating_add(more).unwrap_or(Timestamp::MAX);
    if after(started.0, rules.cpu_initialization) > rules.now {
        ready.status == "False" || rules.now < after(changed, window)
    } else {
        ready.status == "False" && after(started.0, rules.readiness_delay) > changed
    }
}

/// The request of the pod; only utilization targets need it.
fn requested_milli(metric: &ResourceMetric<'_>, pod: &Pod) -> Result<i64, String> {
    if !matches!(metric.target, UsageTarget::Utilization(_)) {
        return Ok(0);
    }
    let resource = metric.resource;
    let name = pod.name_any();
    let Some(spec) = &pod.spec else { return Ok(0) };
    let whole = spec.resources.as_ref().and_then(|resources| resources.requests.as_ref());
    if let (Some(requests), None) = (whole.filter(|requests| !requests.is_empty()), metric.container) {
        let request = requests.get(resource).map(|amount| parse_milli(&amount.0));
        return request.ok_or_else(|| format!("missing pod-level request for {resource} in Pod {name}"));
    }
    let sidecars = spec.init_containers.iter().flatten().filter(|container| is_sidecar(container));
    let meant = |one: &&k8s_openapi::api::core::v1::Container| metric.container.is_none_or(|name| name == one.name);
    let mut containers = spec.containers.iter().chain(sidecars).filter(meant).peekable();
    if let (Some(container), None) = (metric.container, containers.peek()) {
        return Err(format!("container {container} not found in Pod {name}"));
    }
    let requests = containers.map(|container| {
        let requests = container.resources.as_ref().and_then(|resources| resources.requests.as_ref());
        let request = requests.and_then(|requests| requests.get(resource)).map(|amount| parse_milli(&amount.0));
        let container = &container.name;
        request.ok_or_else(|| format!("missing request for {resource} in container {container} of Pod {name}"))
    });
    requests.sum()
}

/// The amount in thousandths. The API server admits only valid quantities.
pub fn parse_milli(written: &str) -> i64 {
    Quantity::parse(written).map_or(0, |quantity| quantity.units(-3))
}

#[cfg(test)]
mod tests;
