//! The metrics of an autoscaler: the replicas that each asks for, and its entry in the status.
//!
//! The usage of cpu and memory is measured here. *Not done*: metrics of the types `Pods`, `Object` and
//! `External`, which need a metrics server.

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

use super::replicas::{self, CalculationRules, PodMeasurement, ReplicaProposal, ResourceMetric, UsageTarget};
use crate::{
    key::NamespacedKey,
    scheduler::resources::{CPU_RESOURCE, MEMORY_RESOURCE},
    usage::{ContainerUsage, UsageProvider},
};

/// The result of one metric.
struct MetricReading {
    replicas: i32,
    name: String,
    status: MetricStatus,
}

/// The reason why a metric cannot be read.
#[derive(Debug)]
pub struct MetricError {
    /// The reason of the Event and of the condition.
    pub reason: &'static str,
    pub message: String,
    /// The prefix that tells what it means for the metric.
    pub context: String,
}

impl MetricError {
    /// Whether a measurement of the node is missing.
    pub(super) fn is_missing_measurement(&self) -> bool {
        ["FailedGetResourceMetric", "FailedGetContainerResourceMetric"].contains(&self.reason)
    }
}

/// The inputs of metrics.
pub struct MetricReader<'a> {
    pub pods: &'a [Arc<Pod>],
    pub usage: &'a dyn UsageProvider,
    pub rules: CalculationRules,
    /// The current number of replicas in `spec`.
    pub replicas: i32,
}

/// The results of all metrics.
#[derive(Debug, Default)]
pub struct MetricReadings {
    /// The highest number of replicas, and the name of the metric that asks for it.
    pub most: Option<(i32, String)>,
    /// The entries of `currentMetrics`, in the order of the metrics: readers find them by index.
    pub statuses: Vec<MetricStatus>,
    pub errors: Vec<MetricError>,
}

impl MetricReader<'_> {
    pub fn read_all(&self, specs: &[MetricSpec]) -> MetricReadings {
        let mut all = MetricReadings::default();
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
                    all.errors.push(trouble);
                }
            }
        }
        all
    }

    fn read(&self, spec: &MetricSpec) -> Result<MetricReading, MetricError> {
        if let Some(source) = &spec.resource {
            let (proposal, current) = self.read_resource(&source.name, None, &source.target).map_err(|message| {
                let context = format!("failed to get {} resource metric value", source.name);
                MetricError { reason: "FailedGetResourceMetric", message, context }
            })?;
            let resource = Some(ResourceMetricStatus { current, name: source.name.clone() });
            let status = MetricStatus { type_: spec.type_.clone(), resource, ..MetricStatus::default() };
            Ok(MetricReading {
                replicas: proposal.replicas,
                name: describe_metric(&source.name, "resource", &proposal),
                status,
            })
        } else if let Some(source) = &spec.container_resource {
            let name = &source.name;
            let container = &source.container;
            let (proposal, current) = self.read_resource(name, Some(container), &source.target).map_err(|message| {
                let context = format!("failed to get {container} container metric value");
                MetricError { reason: "FailedGetContainerResourceMetric", message, context }
            })?;
            let of_container =
                ContainerResourceMetricStatus { container: container.clone(), current, name: name.clone() };
            let container_resource = Some(of_container);
            let status = MetricStatus { type_: spec.type_.clone(), container_resource, ..MetricStatus::default() };
            Ok(MetricReading {
                replicas: proposal.replicas,
                name: describe_metric(name, "container resource", &proposal),
                status,
            })
        } else {
            Err(unsupported_metric(spec))
        }
    }

    fn read_resource(
        &self,
        resource: &str,
        container: Option<&str>,
        target: &MetricTarget,
    ) -> Result<(ReplicaProposal, MetricValueStatus), String> {
        let (goal, what) = match (&target.average_value, target.average_utilization) {
            (Some(value), _) => (UsageTarget::Value(replicas::parse_milli(&value.0)), "usage"),
            (None, Some(percent)) => (UsageTarget::Utilization(percent), "utilization"),
            (None, None) => {
                return Err(
                    "invalid resource metric source: neither an average utilization target nor an average value \
                            (usage) target was set"
                        .to_owned(),
                );
            }
        };
        let seen: Vec<PodMeasurement<'_>> =
            self.pods.iter().map(|pod| self.measured_pod(pod, resource, container)).collect();
        let metric = ResourceMetric { resource, container, target: goal };
        let proposal = replicas::propose_replicas(&metric, &self.rules, &seen, self.replicas)
            .map_err(|error| format!("failed to get {resource} {what}: {error}"))?;
        let average_value = Some(Written(format_milli(resource, proposal.average)));
        let average_utilization = proposal.utilization;
        Ok((proposal, MetricValueStatus { average_utilization, average_value, ..MetricValueStatus::default() }))
    }

    fn measured_pod<'p>(&self, pod: &'p Pod, resource: &str, container: Option<&str>) -> PodMeasurement<'p> {
        let used = self.usage.pod_usage(&NamespacedKey::from_object(pod)).and_then(|usage| {
            let containers = usage.containers.iter().filter(|(name, _)| container.is_none_or(|wanted| wanted == name));
            let used = containers.map(|(_, usage)| Some((usage_milli(resource, usage)?, usage.window)));
            used.reduce(|one, other| {
                let ((used, window), (more, other)): ((i64, Duration), _) = (one?, other?);
                Some((used.saturating_add(more), window.max(other)))
            })?
        });
        PodMeasurement { pod, used }
    }
}

/// The usage of a resource by a container, in thousandths of its unit.
fn usage_milli(resource: &str, usage: &ContainerUsage) -> Option<i64> {
    let milli = match resource {
        CPU_RESOURCE => usage.cpu_nanocores.div_ceil(1_000_000),
        MEMORY_RESOURCE => usage.memory_bytes.saturating_mul(1000),
        _ => return None,
    };
    Some(i64::try_from(milli).unwrap_or(i64::MAX))
}

fn format_milli(resource: &str, milli: i64) -> String {
    let amount =
        if resource == MEMORY_RESOURCE { Quantity::bytes(milli / 1000) } else { Quantity::in_units(milli, -3) };
    amount.to_string()
}

fn describe_metric(resource: &str, kind: &str, proposal: &ReplicaProposal) -> String {
    match proposal.utilization {
        Some(_) => format!("{resource} {kind} utilization (percentage of request)"),
        None => format!("{resource} resource"),
    }
}

/// The error for a metric that needs a metrics server.
fn unsupported_metric(spec: &MetricSpec) -> MetricError {
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
        return MetricError {
            reason: "InvalidMetricSourceType",
            message,
            context: "failed to get metric value".to_owned(),
        };
    };
    MetricError { reason, message: format!("unable to get metric {name}: {why}"), context }
}
