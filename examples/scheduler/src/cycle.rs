//! One attempt to find a node for a pod: which plugin said what of which node, when, and what came of it.
//!
//! *Guarantees.* Pure: the same pod, nodes and configuration give the same node, and nothing is looked at but what is given; also the
//! time is asked of the caller. Of nodes with as many points it is the one with fewer pods, then the first by name.
//!
//! As in kube-scheduler a filter plugin sees only the nodes that those before it let through, and no plugin gives points to a node that was left
//! out. Unlike there, points are given even if only one node is left: who asks why a pod is where it is wants to see them.

use std::{cmp::Reverse, collections::BTreeMap, fmt, time::SystemTime};

use k8s_openapi::api::core::v1::{Pod, PodSpec};

use crate::{
    cluster::Place,
    configuration::Configuration,
    plugin::{Ask, FIT},
    resources::Resources,
};

/// As many reasons are told: each node may have a taint of its own, and nobody reads more.
const REASONS: usize = 16;

/// Tells the time.
pub type Clock<'c> = &'c dyn Fn() -> SystemTime;

/// From when to when something was done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// When it began.
    pub start: SystemTime,
    /// When it ended.
    pub end: SystemTime,
}

/// An attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cycle {
    /// When.
    pub span: Span,
    /// How many nodes there are.
    pub nodes: usize,
    /// What the pod needs, and who added it up.
    pub before: Phase<Resources>,
    /// Which plugin left out which nodes, and why.
    pub filter: Phase<Vec<Rejection>>,
    /// Which plugin gave which nodes how many points. None if no node was left.
    pub score: Option<Phase<Scores>>,
    /// What came of it.
    pub outcome: Result<Chosen, Nowhere>,
}

impl Cycle {
    /// How many nodes passed all filters.
    pub fn feasible(&self) -> usize {
        self.nodes.saturating_sub(self.filter.plugins.iter().map(|ran| ran.found.len()).sum())
    }
}

/// All plugins of a sort.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Phase<T> {
    /// When.
    pub span: Span,
    /// In their order.
    pub plugins: Vec<Ran<T>>,
}

/// A plugin that was asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ran<T> {
    /// When.
    pub span: Span,
    /// Which one.
    pub plugin: &'static str,
    /// What it found.
    pub found: T,
}

/// A node that was left out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rejection {
    /// Its name.
    pub node: String,
    /// Why.
    pub reasons: Vec<String>,
}

/// Points of nodes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scores {
    /// They count so often.
    pub weight: i64,
    /// The label that was looked for, if one was.
    pub label: Option<String>,
    /// By the name of the node.
    pub points: Vec<(String, i64)>,
}

/// The best node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chosen {
    /// Its name.
    pub node: String,
    /// The points of all nodes that fit, with their weights.
    pub totals: Vec<(String, i64)>,
}

/// Why a pod has no node, in kube-scheduler's words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Nowhere {
    /// How many nodes there are.
    pub nodes: usize,
    /// On how many of them which reason holds.
    pub reasons: BTreeMap<String, usize>,
}

impl fmt::Display for Nowhere {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.nodes == 0 {
            return f.write_str("no nodes available to schedule pods");
        }
        let mut reasons: Vec<String> = self.reasons.iter().map(|(why, count)| format!("{count} {why}")).collect();
        reasons.sort();
        let more = reasons.len().saturating_sub(REASONS);
        reasons.truncate(REASONS);
        if more > 0 {
            reasons.push(format!("{more} other reasons"));
        }
        write!(f, "0/{} nodes are available: {}.", self.nodes, reasons.join(", "))
    }
}

/// Finds a node.
pub fn run(configuration: &Configuration, pod: &Pod, places: &[Place], clock: Clock<'_>) -> Cycle {
    let start = clock();
    let none = PodSpec::default();
    let (needs, before) = prepare(configuration, pod, clock);
    let ask = Ask { spec: pod.spec.as_ref().unwrap_or(&none), needs };
    let (fitting, filter) = filter(configuration, &ask, places, clock);
    let scored = (!fitting.is_empty()).then(|| score(configuration, &ask, &fitting, clock));
    let (score, chosen) = scored.map_or((None, None), |(phase, chosen)| (Some(phase), chosen));
    let outcome = chosen.ok_or_else(|| nowhere(places.len(), &filter));
    Cycle { span: Span { start, end: clock() }, nodes: places.len(), before, filter, score, outcome }
}

fn timed<T>(clock: Clock<'_>, work: impl FnOnce() -> T) -> (T, Span) {
    let start = clock();
    let done = work();
    (done, Span { start, end: clock() })
}

/// Adds up what the pod needs, once for all nodes.
fn prepare(configuration: &Configuration, pod: &Pod, clock: Clock<'_>) -> (Resources, Phase<Resources>) {
    let ((needs, plugins), span) = timed(clock, || {
        let (needs, span) = timed(clock, || Resources::of_pod(pod));
        let asked = configuration.filters.iter().any(|(name, _)| *name == FIT);
        let told = asked.then(|| Ran { span, plugin: FIT, found: needs.clone() });
        (needs, told.into_iter().collect())
    });
    (needs, Phase { span, plugins })
}

fn filter<'a>(
    configuration: &Configuration,
    ask: &Ask<'_>,
    places: &'a [Place],
    clock: Clock<'_>,
) -> (Vec<&'a Place>, Phase<Vec<Rejection>>) {
    let mut fitting: Vec<&Place> = places.iter().collect();
    let (plugins, span) = timed(clock, || {
        let mut plugins = Vec::new();
        for (name, plugin) in &configuration.filters {
            if fitting.is_empty() {
                break;
            }
            let (found, span) = timed(clock, || {
                let mut rejections = Vec::new();
                fitting.retain(|place| {
                    let reasons = plugin.against(ask, place);
                    let fits = reasons.is_empty();
                    if !fits {
                        rejections.push(Rejection { node: place.name().to_owned(), reasons });
                    }
                    fits
                });
                rejections
            });
            plugins.push(Ran { span, plugin: name, found });
        }
        plugins
    });
    (fitting, Phase { span, plugins })
}

fn score(
    configuration: &Configuration,
    ask: &Ask<'_>,
    fitting: &[&Place],
    clock: Clock<'_>,
) -> (Phase<Scores>, Option<Chosen>) {
    let mut totals = vec![0_i64; fitting.len()];
    let (plugins, span) = timed(clock, || {
        let mut plugins = Vec::new();
        for scorer in &configuration.scores {
            let Some(plugin) = scorer.plugin() else { continue };
            let (points, span) = timed(clock, || plugin.points(ask, fitting));
            totals.iter_mut().zip(&points).for_each(|(total, points)| *total += scorer.weight * points);
            let points = fitting.iter().zip(points).map(|(place, points)| (place.name().to_owned(), points)).collect();
            let label = scorer.label.as_ref().map(ToString::to_string);
            plugins.push(Ran { span, plugin: scorer.name, found: Scores { weight: scorer.weight, label, points } });
        }
        plugins
    });
    let ranked =
        fitting.iter().zip(&totals).map(|(place, total)| (Reverse(*total), place.holdings.len(), place.name()));
    let best = ranked.min().map(|(_, _, node)| node.to_owned());
    let totals = fitting.iter().zip(&totals).map(|(place, total)| (place.name().to_owned(), *total)).collect();
    (Phase { span, plugins }, best.map(|node| Chosen { node, totals }))
}

fn nowhere(nodes: usize, filter: &Phase<Vec<Rejection>>) -> Nowhere {
    let mut reasons = BTreeMap::new();
    for reason in filter.plugins.iter().flat_map(|ran| &ran.found).flat_map(|rejection| &rejection.reasons) {
        *reasons.entry(reason.clone()).or_default() += 1;
    }
    Nowhere { nodes, reasons }
}

#[cfg(test)]
mod tests;
