//! Which of several nodes that fit is the best.
//!
//! As in kube-scheduler each rule gives 0 to 100 points, which weigh differently: a node with more room left, with fewer pods of
//! the same owner or that it wants to be spread from, that the pod prefers or whose pods it likes, and whose taints do not ask it to
//! stay away.

use std::cmp::Reverse;

use k8s_openapi::api::core::v1::{Pod, PodSpec};
use kube::ResourceExt;

use super::{
    eligible,
    neighbours::Neighbours,
    place::Place,
    resources::{CPU, MEMORY, Resources},
};
use crate::controller::owner::controller_of;

/// The most that a rule gives.
const MOST: i64 = 100;
/// What a pod that asks for nothing is taken to need, as kube-scheduler does: else all such pods would land on one node.
const USUAL: [(&str, i64); 2] = [(CPU, 100), (MEMORY, 200 << 20)];
/// kube-scheduler's weights.
const ROOM: i64 = 1;
const SPREAD: i64 = 2;
const PREFERENCE: i64 = 2;
const TAINTS: i64 = 3;

/// The name of the best node. Of equals it is the one with fewer pods, then the first by name.
pub fn best(
    pod: &Pod,
    spec: &PodSpec,
    asks: &Resources,
    neighbours: &Neighbours,
    places: &[&Place<'_>],
) -> Option<String> {
    let rules = [
        (SPREAD, fewest(places.iter().map(|place| siblings(pod, place)))),
        (SPREAD, fewest(places.iter().map(|place| neighbours.crowd(place.node)))),
        (PREFERENCE, most(places.iter().map(|place| eligible::preference(spec, place.node)))),
        (PREFERENCE, most(places.iter().map(|place| neighbours.wishes(place.node)))),
        (TAINTS, fewest(places.iter().map(|place| deterrents(spec, place)))),
    ];
    let mut points: Vec<i64> = places.iter().map(|place| ROOM * room(asks, place)).collect();
    for (weight, given) in rules {
        points.iter_mut().zip(given).for_each(|(points, given)| *points += weight * given);
    }
    let scores = places.iter().zip(points);
    let scores = scores.map(|(place, points)| (Reverse(points), place.pods.len(), place.node.name_any()));
    scores.min().map(|(_, _, name)| name)
}

/// How much of cpu and memory is left once the pod runs there.
fn room(asks: &Resources, place: &Place<'_>) -> i64 {
    let left = USUAL.map(|(name, usual)| {
        let need = |resources: &Resources| match resources.get(name) {
            0 => usual,
            amount => amount,
        };
        let held = place.pods.iter().map(|booking| need(&booking.holds)).fold(need(asks), i64::saturating_add);
        share(place.has.get(name).saturating_sub(held).max(0), place.has.get(name))
    });
    left.iter().sum::<i64>() / 2
}

/// Pods on the node that the same controller made.
fn siblings(pod: &Pod, place: &Place<'_>) -> i64 {
    let Some(owner) = controller_of(pod) else { return 0 };
    let same = |other: &Pod| controller_of(other).is_some_and(|other| other.uid == owner.uid);
    count(place.pods.iter().filter(|booking| same(&booking.pod)))
}

/// Taints that ask the pod to stay away if it can.
fn deterrents(spec: &PodSpec, place: &Place<'_>) -> i64 {
    count(eligible::untolerated(spec, place.node, &["PreferNoSchedule"]))
}

/// All points for the largest number, none for the smallest that is not above zero.
fn most(numbers: impl Iterator<Item = i64>) -> Vec<i64> {
    let numbers: Vec<i64> = numbers.collect();
    let smallest = numbers.iter().copied().min().unwrap_or(0).min(0);
    let largest = numbers.iter().copied().max().unwrap_or(0);
    numbers.into_iter().map(|number| share(number - smallest, largest - smallest)).collect()
}

/// All points for zero, none for the largest number.
fn fewest(numbers: impl Iterator<Item = i64>) -> Vec<i64> {
    let numbers: Vec<i64> = numbers.collect();
    let largest = numbers.iter().copied().max().unwrap_or(0);
    numbers.into_iter().map(|number| if largest == 0 { MOST } else { share(largest - number, largest) }).collect()
}

/// Points for a part of a whole.
fn share(part: i64, whole: i64) -> i64 {
    if whole == 0 { 0 } else { i64::try_from(i128::from(part) * i128::from(MOST) / i128::from(whole)).unwrap_or(MOST) }
}

fn count(all: impl Iterator) -> i64 {
    i64::try_from(all.count()).unwrap_or(i64::MAX)
}
