//! A scheduling cycle: one attempt to find a node for a pod, with the result and time of each plugin.
//!
//! *Guaranteed*: a cycle is pure. The same pod, nodes and configuration give the same node; even the clock is
//! an argument. Of nodes with equal points the one with fewer pods wins, then the first by name.
//!
//! As in kube-scheduler, a filter plugin sees only the nodes that passed the filters before it, and score
//! plugins see only feasible nodes. Unlike kube-scheduler, nodes are scored even if only one is feasible, so
//! that the trace always shows the points.

use std::{cmp::Reverse, collections::BTreeMap, fmt, time::SystemTime};

use k8s_openapi::api::core::v1::{Pod, PodSpec};

use crate::{
    cluster::NodeAllocation,
    configuration::SchedulerConfiguration,
    plugin::{NODE_RESOURCES_FIT, PodInfo},
    resources::ResourceList,
};

/// The most reasons that are listed: each node may have a taint of its own, and nobody reads more.
const MAX_LISTED_REASONS: usize = 16;

pub type ClockFn<'c> = &'c dyn Fn() -> SystemTime;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimeInterval {
    pub start: SystemTime,
    pub end: SystemTime,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SchedulingCycle {
    pub interval: TimeInterval,
    /// The number of nodes.
    pub nodes: usize,
    /// The requests of the pod, by the plugin that computes them.
    pub pre_filter: PluginPhase<ResourceList>,
    /// The nodes that each filter plugin rejected, with reasons.
    pub filter: PluginPhase<Vec<NodeRejection>>,
    /// The points of each score plugin; none if no node was feasible.
    pub score: Option<PluginPhase<NodeScores>>,
    pub outcome: Result<SelectedNode, NoFeasibleNode>,
}

impl SchedulingCycle {
    /// The number of nodes that passed all filters.
    pub fn feasible_nodes(&self) -> usize {
        self.nodes.saturating_sub(self.filter.plugins.iter().map(|ran| ran.result.len()).sum())
    }
}

/// All plugins of one extension point.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PluginPhase<T> {
    pub interval: TimeInterval,
    /// In the order in which they ran.
    pub plugins: Vec<PluginRun<T>>,
}

/// The run of a plugin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PluginRun<T> {
    pub interval: TimeInterval,
    pub plugin: &'static str,
    pub result: T,
}

/// A rejected node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeRejection {
    pub node: String,
    pub reasons: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeScores {
    pub weight: i64,
    /// The preferred label, for `NodeLabel`.
    pub label: Option<String>,
    /// The points by node name.
    pub points: Vec<(String, i64)>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SelectedNode {
    pub node: String,
    /// The weighted points of all feasible nodes.
    pub totals: Vec<(String, i64)>,
}

/// The reason why no node is feasible, in kube-scheduler's format.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoFeasibleNode {
    /// The number of nodes.
    pub nodes: usize,
    /// The number of nodes by reason.
    pub reasons: BTreeMap<String, usize>,
}

impl fmt::Display for NoFeasibleNode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.nodes == 0 {
            return f.write_str("no nodes available to schedule pods");
        }
        let mut reasons: Vec<String> = self.reasons.iter().map(|(why, count)| format!("{count} {why}")).collect();
        reasons.sort();
        let more = reasons.len().saturating_sub(MAX_LISTED_REASONS);
        reasons.truncate(MAX_LISTED_REASONS);
        if more > 0 {
            reasons.push(format!("{more} other reasons"));
        }
        write!(f, "0/{} nodes are available: {}.", self.nodes, reasons.join(", "))
    }
}

pub fn run_cycle(
    configuration: &SchedulerConfiguration,
    pod: &Pod,
    nodes: &[NodeAllocation],
    clock: ClockFn<'_>,
) -> SchedulingCycle {
    let start = clock();
    let none = PodSpec::default();
    let (requests, before) = run_pre_filter(configuration, pod, clock);
    let pod_info = PodInfo { spec: pod.spec.as_ref().unwrap_or(&none), requests };
    let (fitting, filter) = run_filters(configuration, &pod_info, nodes, clock);
    let scored = (!fitting.is_empty()).then(|| run_scores(configuration, &pod_info, &fitting, clock));
    let (score, chosen) = scored.map_or((None, None), |(phase, chosen)| (Some(phase), chosen));
    let outcome = chosen.ok_or_else(|| no_feasible_node(nodes.len(), &filter));
    SchedulingCycle {
        interval: TimeInterval { start, end: clock() },
        nodes: nodes.len(),
        pre_filter: before,
        filter,
        score,
        outcome,
    }
}

fn measure<T>(clock: ClockFn<'_>, work: impl FnOnce() -> T) -> (T, TimeInterval) {
    let start = clock();
    let done = work();
    (done, TimeInterval { start, end: clock() })
}

/// Computes the requests of the pod, once for all nodes.
fn run_pre_filter(
    configuration: &SchedulerConfiguration,
    pod: &Pod,
    clock: ClockFn<'_>,
) -> (ResourceList, PluginPhase<ResourceList>) {
    let ((requests, plugins), interval) = measure(clock, || {
        let (requests, interval) = measure(clock, || ResourceList::pod_requests(pod));
        let asked = configuration.filters.iter().any(|(name, _)| *name == NODE_RESOURCES_FIT);
        let runs = asked.then(|| PluginRun { interval, plugin: NODE_RESOURCES_FIT, result: requests.clone() });
        (requests, runs.into_iter().collect())
    });
    (requests, PluginPhase { interval, plugins })
}

fn run_filters<'a>(
    configuration: &SchedulerConfiguration,
    pod_info: &PodInfo<'_>,
    nodes: &'a [NodeAllocation],
    clock: ClockFn<'_>,
) -> (Vec<&'a NodeAllocation>, PluginPhase<Vec<NodeRejection>>) {
    let mut fitting: Vec<&NodeAllocation> = nodes.iter().collect();
    let (plugins, interval) = measure(clock, || {
        let mut plugins = Vec::new();
        for (name, plugin) in &configuration.filters {
            if fitting.is_empty() {
                break;
            }
            let (found, interval) = measure(clock, || {
                let mut rejections = Vec::new();
                fitting.retain(|node| {
                    let reasons = plugin.rejection_reasons(pod_info, node);
                    let fits = reasons.is_empty();
                    if !fits {
                        rejections.push(NodeRejection { node: node.name().to_owned(), reasons });
                    }
                    fits
                });
                rejections
            });
            plugins.push(PluginRun { interval, plugin: name, result: found });
        }
        plugins
    });
    (fitting, PluginPhase { interval, plugins })
}

fn run_scores(
    configuration: &SchedulerConfiguration,
    pod_info: &PodInfo<'_>,
    fitting: &[&NodeAllocation],
    clock: ClockFn<'_>,
) -> (PluginPhase<NodeScores>, Option<SelectedNode>) {
    let mut totals = vec![0_i64; fitting.len()];
    let (plugins, interval) = measure(clock, || {
        let mut plugins = Vec::new();
        for scorer in &configuration.scores {
            let Some(plugin) = scorer.plugin() else { continue };
            let (points, interval) = measure(clock, || plugin.score_nodes(pod_info, fitting));
            totals.iter_mut().zip(&points).for_each(|(total, points)| *total += scorer.weight * points);
            let points = fitting.iter().zip(points).map(|(node, points)| (node.name().to_owned(), points)).collect();
            let label = scorer.label.as_ref().map(ToString::to_string);
            plugins.push(PluginRun {
                interval,
                plugin: scorer.name,
                result: NodeScores { weight: scorer.weight, label, points },
            });
        }
        plugins
    });
    let ranked =
        fitting.iter().zip(&totals).map(|(node, total)| (Reverse(*total), node.pod_requests.len(), node.name()));
    let best = ranked.min().map(|(_, _, node)| node.to_owned());
    let totals = fitting.iter().zip(&totals).map(|(node, total)| (node.name().to_owned(), *total)).collect();
    (PluginPhase { interval, plugins }, best.map(|node| SelectedNode { node, totals }))
}

fn no_feasible_node(nodes: usize, filter: &PluginPhase<Vec<NodeRejection>>) -> NoFeasibleNode {
    let mut reasons = BTreeMap::new();
    for reason in filter.plugins.iter().flat_map(|ran| &ran.result).flat_map(|rejection| &rejection.reasons) {
        *reasons.entry(reason.clone()).or_default() += 1;
    }
    NoFeasibleNode { nodes, reasons }
}

#[cfg(test)]
mod tests;
