//! Scores feasible nodes.
//!
//! As in kube-scheduler, each rule gives 0 to 100 points, multiplied by its weight: for free resources, for few
//! pods of the same controller and spreading, for node and pod preferences, and for few taints of the effect
//! `PreferNoSchedule`.

use std::cmp::Reverse;

use k8s_openapi::api::core::v1::{Pod, PodSpec};
use kube::ResourceExt;

use super::{
    inter_pod_affinity::InterPodAffinity,
    node_eligibility,
    node_selection::NodeInfo,
    resources::{CPU_RESOURCE, MEMORY_RESOURCE, ResourceAmounts},
};
use crate::controller::owner_reference::controller_of;

/// The most points of a rule.
const MAX_NODE_SCORE: i64 = 100;
/// The assumed requests of a container without any, as in kube-scheduler; without them all such pods would get
/// the same node.
const DEFAULT_REQUESTS: [(&str, i64); 2] = [(CPU_RESOURCE, 100), (MEMORY_RESOURCE, 200 << 20)];
const RESOURCES_WEIGHT: i64 = 1;
const SPREAD_WEIGHT: i64 = 2;
const PREFERENCE_WEIGHT: i64 = 2;
const TAINT_WEIGHT: i64 = 3;

/// The name of the best node. Of nodes with equal scores the one with fewer pods wins, then the first by name.
pub fn select_best(
    pod: &Pod,
    spec: &PodSpec,
    asks: &ResourceAmounts,
    neighbours: &InterPodAffinity,
    places: &[&NodeInfo<'_>],
) -> Option<String> {
    let rules = [
        (SPREAD_WEIGHT, normalize_reverse_score(places.iter().map(|place| count_sibling_pods(pod, place)))),
        (SPREAD_WEIGHT, normalize_reverse_score(places.iter().map(|place| neighbours.spread_score(place.node)))),
        (
            PREFERENCE_WEIGHT,
            normalize_score(places.iter().map(|place| node_eligibility::node_affinity_score(spec, place.node))),
        ),
        (PREFERENCE_WEIGHT, normalize_score(places.iter().map(|place| neighbours.preference_score(place.node)))),
        (
            TAINT_WEIGHT,
            normalize_reverse_score(places.iter().map(|place| count_prefer_no_schedule_taints(spec, place))),
        ),
    ];
    let mut points: Vec<i64> = places.iter().map(|place| RESOURCES_WEIGHT * resources_score(asks, place)).collect();
    for (weight, given) in rules {
        points.iter_mut().zip(given).for_each(|(points, given)| *points += weight * given);
    }
    let scores = places.iter().zip(points);
    let scores = scores.map(|(place, points)| (Reverse(points), place.pods.len(), place.node.name_any()));
    scores.min().map(|(_, _, name)| name)
}

/// The free cpu and memory with the pod on the node.
fn resources_score(asks: &ResourceAmounts, place: &NodeInfo<'_>) -> i64 {
    let left = DEFAULT_REQUESTS.map(|(name, usual)| {
        let need = |resources: &ResourceAmounts| match resources.get(name) {
            0 => usual,
            amount => amount,
        };
        let held = place.pods.iter().map(|booking| need(&booking.requests)).fold(need(asks), i64::saturating_add);
        ratio_score(place.allocatable.get(name).saturating_sub(held).max(0), place.allocatable.get(name))
    });
    left.iter().sum::<i64>() / 2
}

/// The number of pods on the node with the same controller.
fn count_sibling_pods(pod: &Pod, place: &NodeInfo<'_>) -> i64 {
    let Some(owner) = controller_of(pod) else { return 0 };
    let same = |other: &Pod| controller_of(other).is_some_and(|other| other.uid == owner.uid);
    count_items(place.pods.iter().filter(|booking| same(&booking.pod)))
}

/// The number of untolerated `PreferNoSchedule` taints.
fn count_prefer_no_schedule_taints(spec: &PodSpec, place: &NodeInfo<'_>) -> i64 {
    count_items(node_eligibility::untolerated(spec, place.node, &["PreferNoSchedule"]))
}

/// Scales to 0–100: all points for the largest number, none for the smallest that is not above zero.
fn normalize_score(numbers: impl Iterator<Item = i64>) -> Vec<i64> {
    let numbers: Vec<i64> = numbers.collect();
    let smallest = numbers.iter().copied().min().unwrap_or(0).min(0);
    let largest = numbers.iter().copied().max().unwrap_or(0);
    numbers.into_iter().map(|number| ratio_score(number - smallest, largest - smallest)).collect()
}

/// All points for zero, none for the largest number.
fn normalize_reverse_score(numbers: impl Iterator<Item = i64>) -> Vec<i64> {
    let numbers: Vec<i64> = numbers.collect();
    let largest = numbers.iter().copied().max().unwrap_or(0);
    numbers
        .into_iter()
        .map(|number| if largest == 0 { MAX_NODE_SCORE } else { ratio_score(largest - number, largest) })
        .collect()
}

/// Points in proportion to a part of a whole.
fn ratio_score(part: i64, whole: i64) -> i64 {
    if whole == 0 {
        0
    } else {
        i64::try_from(i128::from(part) * i128::from(MAX_NODE_SCORE) / i128::from(whole)).unwrap_or(MAX_NODE_SCORE)
    }
}

fn count_items(all: impl Iterator) -> i64 {
    i64::try_from(all.count()).unwrap_or(i64::MAX)
}
