//! The metrics of an autoscaler: which replicas each asks for, and what its status shows.
//!
//! Use of cpu and memory is known here. *Not done*: the metrics of `Pods`, `Object` and `External`, which come from servers that
//! nobody runs beside us.

use std::{sync::Arc, time::Duration};

use k8s_openapi::{
    api::{
        autoscaling::v2::{
            ContainerResourceMetricStatus, MetricSpec, MetricStatus, MetricTarget, MetricValueStatus,
            ResourceMetricStatus,
        },
        core::v1::Pod,
    },
    apimachinery::pkg::api::resource::Quantity as Written,
};
use kubewake_apiserver::schema::quantity::Quantity;

use super::replicas::{self, Goal, Metric, Proposal, Rules, Seen};
use crate::{
    key::Key,
    scheduler::resources::{CPU, MEMORY},
    usage::{ContainerUsage, Usage},
};

/// What a metric asks for.
struct Reading {
    replicas: i32,
    /// The metric, for people.
    name: String,
    status: MetricStatus,
}

/// Why a metric cannot be read.
#[derive(Debug)]
pub struct Trouble {
    /// Of the event and of the condition.
    pub reason: &'static str,
    /// What is wrong.
    pub message: String,
    /// What it means for the metric.
    pub context: String,
}

impl Trouble {
    /// Whether what the node measures is lacking.
    pub(super) fn is_of_measurement(&self) -> bool {
        ["FailedGetResourceMetric", "FailedGetContainerResourceMetric"].contains(&self.reason)
    }
}

/// What a metric is read from.
pub struct Source<'a> {
    /// The target's pods.
    pub pods: &'a [Arc<Pod>],
    /// What they use.
    pub usage: &'a dyn Usage,
    /// How they are judged.
    pub rules: Rules,
    /// How many there should be.
    pub replicas: i32,
}

/// What all metrics ask for.
#[derive(Debug, Default)]
pub struct Readings {
    /// The most replicas that one asks for, and its name.
    pub most: Option<(i32, String)>,
    /// For `currentMetrics`, in the order of the metrics: readers find one by its place.
    pub statuses: Vec<MetricStatus>,
    /// What cannot be read.
    pub troubles: Vec<Trouble>,
}

impl Source<'_> {
    /// Reads all metrics of an autoscaler.
    pub fn read_all(&self, specs: &[MetricSpec]) -> Readings {
        let mut all = Readings::default();
        for spec in specs {
            match self.read(spec) {
                Ok(reading) => {
                    if all.most.as_ref().is_none_or(|(most, _)| reading.replicas > *most) {
                        all.most = Some((reading.replicas, reading.name));
                    }
                    all.statuses.push(reading.status);
                }
                Err(trouble) => {
                    all.statuses.push(MetricStatus { type_: spec.type_.clone(), ..MetricStatus::default() });
                    all.troubles.push(trouble);
                }
            }
        }
        all
    }

    fn read(&self, spec: &MetricSpec) -> Result<Reading, Trouble> {
        if let Some(source) = &spec.resource {
            let (proposal, current) = self.resource(&source.name, None, &source.target).map_err(|message| {
                let context = format!("failed to get {} resource metric value", source.name);
                Trouble { reason: "FailedGetResourceMetric", message, context }
            })?;
            let resource = Some(ResourceMetricStatus { current, name: source.name.clone() });
            let status = MetricStatus { type_: spec.type_.clone(), resource, ..MetricStatus::default() };
            Ok(Reading { replicas: proposal.replicas, name: title(&source.name, "resource", &proposal), status })
        } else if let Some(source) = &spec.container_resource {
            let (name, container) = (&source.name, &source.container);
            let (proposal, current) = self.resource(name, Some(container), &source.target).map_err(|message| {
                let context = format!("failed to get {container} container metric value");
                Trouble { reason: "FailedGetContainerResourceMetric", message, context }
            })?;
            let of_container =
                ContainerResourceMetricStatus { container: container.clone(), current, name: name.clone() };
            let container_resource = Some(of_container);
            let status = MetricStatus { type_: spec.type_.clone(), container_resource, ..MetricStatus::default() };
            Ok(Reading { replicas: proposal.replicas, name: title(name, "container resource", &proposal), status })
        } else {
            Err(unknown(spec))
        }
    }

    fn resource(
        &self,
        resource: &str,
        container: Option<&str>,
        target: &MetricTarget,
    ) -> Result<(Proposal, MetricValueStatus), String> {
        let (goal, what) = match (&target.average_value, target.average_utilization) {
            (Some(value), _) => (Goal::Value(replicas::milli(&value.0)), "usage"),
            (None, Some(percent)) => (Goal::Utilization(percent), "utilization"),
            (None, None) => {
                return Err(
                    "invalid resource metric source: neither an average utilization target nor an average value \
                            (usage) target was set"
                        .to_owned(),
                );
            }
        };
        let seen: Vec<Seen<'_>> = self.pods.iter().map(|pod| self.seen(pod, resource, container)).collect();
        let metric = Metric { resource, container, goal };
        let proposal = replicas::propose(&metric, &self.rules, &seen, self.replicas)
            .map_err(|error| format!("failed to get {resource} {what}: {error}"))?;
        let average_value = Some(Written(written(resource, proposal.average)));
        let average_utilization = proposal.utilization;
        Ok((proposal, MetricValueStatus { average_utilization, average_value, ..MetricValueStatus::default() }))
    }

    fn seen<'p>(&self, pod: &'p Pod, resource: &str, container: Option<&str>) -> Seen<'p> {
        let used = self.usage.of(&Key::of(pod)).and_then(|usage| {
            let containers = usage.containers.iter().filter(|(name, _)| container.is_none_or(|wanted| wanted == name));
            let used = containers.map(|(_, usage)| Some((milli(resource, usage)?, usage.window)));
            used.reduce(|one, other| {
                let ((used, window), (more, other)): ((i64, Duration), _) = (one?, other?);
                Some((used.saturating_add(more), window.max(other)))
            })?
        });
        Seen { pod, used }
    }
}

/// What a container uses of a resource, in thousandths of its unit.
fn milli(resource: &str, usage: &ContainerUsage) -> Option<i64> {
    let milli = match resource {
        CPU => usage.cpu_nanocores.div_ceil(1_000_000),
        MEMORY => usage.memory_bytes.saturating_mul(1000),
        _ => return None,
    };
    Some(i64::try_from(milli).unwrap_or(i64::MAX))
}

fn written(resource: &str, milli: i64) -> String {
    let amount = if resource == MEMORY { Quantity::bytes(milli / 1000) } else { Quantity::in_units(milli, -3) };
    amount.to_string()
}

fn title(resource: &str, kind: &str, proposal: &Proposal) -> String {
    match proposal.utilization {
        Some(_) => format!("{resource} {kind} utilization (percentage of request)"),
        None => format!("{resource} resource"),
    }
}

/// Of a metric that another server would have to tell.
fn unknown(spec: &MetricSpec) -> Trouble {
    let custom =
        "unable to fetch metrics from custom metrics API: no custom metrics API (custom.metrics.k8s.io) registered";
    let external = "unable to fetch metrics from external metrics API: no external metrics API (external.metrics.k8s.io) registered";
    let (reason, name, context, why) = if let Some(pods) = &spec.pods {
        ("FailedGetPodsMetric", &pods.metric.name, "failed to get pods metric value".to_owned(), custom)
    } else if let Some(object) = &spec.object {
        ("FailedGetObjectMetric", &object.metric.name, "failed to get object metric value".to_owned(), custom)
    } else if let Some(source) = &spec.external {
        let context = format!("failed to get {} external metric value", source.metric.name);
        ("FailedGetExternalMetric", &source.metric.name, context, external)
    } else {
        let message = format!("unknown metric source type {:?}", spec.type_);
        return Trouble {
            reason: "InvalidMetricSourceType",
            message,
            context: "failed to get metric value".to_owned(),
        };
    };
    Trouble { reason, message: format!("unable to get metric {name}: {why}"), context }
}
