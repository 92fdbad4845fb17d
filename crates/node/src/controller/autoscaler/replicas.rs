//! How many replicas a metric asks for: kube-controller-manager's calculation. No I/O, no clock.
//!
//! A number of replicas follows from the ratio of what pods use to what they should. What is not known of a pod never makes the
//! change larger: a pod without a measurement is taken to use all that it asks for when others use too little, and nothing when they
//! use too much; so is one that is not ready yet.

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;
use kubewake_apiserver::schema::quantity::Quantity;

use crate::{
    controller::pods,
    scheduler::resources::{CPU, is_sidecar},
};

/// What pods should use on average.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Goal {
    /// In percent of what they ask for.
    Utilization(i32),
    /// In thousandths of the resource's unit.
    Value(i64),
}

/// Which resource of which pods.
#[derive(Clone, Copy, Debug)]
pub struct Metric<'a> {
    /// `cpu` or `memory`.
    pub resource: &'a str,
    /// Of this container alone.
    pub container: Option<&'a str>,
    /// What they should use.
    pub goal: Goal,
}

/// What counts as no change, and as not ready.
#[derive(Clone, Copy, Debug)]
pub struct Rules {
    /// Ratios from here to there change nothing.
    pub tolerated: (f64, f64),
    /// What a pod uses at its start says nothing of what it will use.
    pub cpu_initialization: Duration,
    /// A pod that became unready so soon after its start never was ready.
    pub readiness_delay: Duration,
    /// The time.
    pub now: Timestamp,
}

/// A pod with what it uses, if that is known.
#[derive(Clone, Debug)]
pub struct Seen<'a> {
    /// The pod.
    pub pod: &'a Pod,
    /// In thousandths of the resource's unit, and in how much time that was measured.
    pub used: Option<(i64, Duration)>,
}

/// What a metric asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Proposal {
    /// So many pods.
    pub replicas: i32,
    /// What ready pods use of what they ask for, in percent.
    pub utilization: Option<i32>,
    /// What they use on average, in thousandths.
    pub average: i64,
}

/// What a pod's measurement is worth.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Worth {
    Counted(i64),
    /// Starting, or not ready.
    Unready,
    Missing,
    /// The pod is on its way out.
    Ignored,
}

/// Use and request of pods.
type Shares = Vec<(i64, i64)>;

/// How many replicas there should be, or why that cannot be told, in kube-controller-manager's words.
pub fn propose(metric: &Metric<'_>, rules: &Rules, seen: &[Seen<'_>], current: i32) -> Result<Proposal, String> {
    if seen.iter().all(|seen| seen.used.is_none()) {
        let resource = metric.resource;
        return Err(format!(
            "unable to get metrics for resource {resource}: no metrics returned from resource metrics API"
        ));
    }
    let (mut counted, mut unready, mut missing) = (Shares::new(), Shares::new(), Shares::new());
    for seen in seen {
        let request = request(metric, seen.pod)?;
        match worth(seen, metric.resource, rules) {
            Worth::Counted(used) => counted.push((used, request)),
            Worth::Unready => unready.push((0, request)),
            Worth::Missing => missing.push((0, request)),
            Worth::Ignored => {}
        }
    }
    if counted.is_empty() {
        return Err("did not receive metrics for targeted pods (pods might be unready)".to_owned());
    }
    let first = metric.goal.measure(&counted)?;
    let proposal = |replicas| Proposal { replicas, utilization: first.utilization, average: first.average };
    if missing.is_empty() && (unready.is_empty() || first.ratio <= 1.0) {
        return Ok(proposal(if rules.tolerates(first.ratio) { current } else { first.replicas(counted.len()) }));
    }
    let all = with_unknown(metric.goal, first.ratio, counted, unready, missing);
    let second = metric.goal.measure(&all)?;
    let replicas = second.replicas(all.len());
    let turned = |one: f64, other: f64| (one < 1.0 && other > 1.0) || (one > 1.0 && other < 1.0);
    let backwards = (second.ratio < 1.0 && replicas > current) || (second.ratio > 1.0 && replicas < current);
    let stays = rules.tolerates(second.ratio) || turned(first.ratio, second.ratio) || backwards;
    Ok(proposal(if stays { current } else { replicas }))
}

/// What is known, and what the others are taken to use.
fn with_unknown(goal: Goal, ratio: f64, mut all: Shares, unready: Shares, missing: Shares) -> Shares {
    let most = |request: i64| match goal {
        Goal::Utilization(percent) => request.saturating_mul(i64::from(percent.max(100))) / 100,
        Goal::Value(value) => value,
    };
    if ratio < 1.0 {
        all.extend(missing.into_iter().map(|(_, request)| (most(request), request)));
    } else if ratio > 1.0 {
        all.extend(missing);
        all.extend(unready);
    }
    all
}

struct Measured {
    /// Of use to goal.
    ratio: f64,
    utilization: Option<i32>,
    average: i64,
}

impl Measured {
    fn replicas(&self, pods: usize) -> i32 {
        // Casts of floats saturate.
        (self.ratio * pods as f64).ceil() as i32
    }
}

impl Goal {
    fn measure(self, shares: &Shares) -> Result<Measured, String> {
        let sum = |numbers: &mut dyn Iterator<Item = i64>| numbers.map(i128::from).sum::<i128>();
        let (used, asked) = (sum(&mut shares.iter().map(|one| one.0)), sum(&mut shares.iter().map(|one| one.1)));
        let average = used / i128::try_from(shares.len()).unwrap_or(1).max(1);
        let average = i64::try_from(average).unwrap_or(i64::MAX);
        match self {
            Self::Utilization(_) if asked == 0 => Err("no metrics returned matched known pods".to_owned()),
            Self::Utilization(target) => {
                let percent = i32::try_from(used * 100 / asked).unwrap_or(i32::MAX);
                let ratio = f64::from(percent) / f64::from(target);
                Ok(Measured { ratio, utilization: Some(percent), average })
            }
            Self::Value(target) => Ok(Measured { ratio: average as f64 / target as f64, utilization: None, average }),
        }
    }
}

impl Rules {
    fn tolerates(&self, ratio: f64) -> bool {
        self.tolerated.0 <= ratio && ratio <= self.tolerated.1
    }
}

fn worth(seen: &Seen<'_>, resource: &str, rules: &Rules) -> Worth {
    let pod = seen.pod;
    match (pods::phase(pod), seen.used) {
        ("Failed", _) => Worth::Ignored,
        _ if pod.metadata.deletion_timestamp.is_some() => Worth::Ignored,
        ("Pending", _) => Worth::Unready,
        (_, None) => Worth::Missing,
        (_, Some((_, window))) if resource == CPU && is_unready(pod, window, rules) => Worth::Unready,
        (_, Some((used, _))) => Worth::Counted(used),
    }
}

/// Whether what the pod uses of the cpu now says nothing of what it will use.
fn is_unready(pod: &Pod, window: Duration, rules: &Rules) -> bool {
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

/// What the pod asks for, which only shares of it need.
fn request(metric: &Metric<'_>, pod: &Pod) -> Result<i64, String> {
    if !matches!(metric.goal, Goal::Utilization(_)) {
        return Ok(0);
    }
    let (resource, name) = (metric.resource, pod.name_any());
    let Some(spec) = &pod.spec else { return Ok(0) };
    let whole = spec.resources.as_ref().and_then(|resources| resources.requests.as_ref());
    if let (Some(requests), None) = (whole.filter(|requests| !requests.is_empty()), metric.container) {
        let request = requests.get(resource).map(|amount| milli(&amount.0));
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
        let request = requests.and_then(|requests| requests.get(resource)).map(|amount| milli(&amount.0));
        let container = &container.name;
        request.ok_or_else(|| format!("missing request for {resource} in container {container} of Pod {name}"))
    });
    requests.sum()
}

/// In thousandths. The API server lets no unreadable amount in.
pub fn milli(written: &str) -> i64 {
    Quantity::parse(written).map_or(0, |quantity| quantity.units(-3))
}

#[cfg(test)]
mod tests;
