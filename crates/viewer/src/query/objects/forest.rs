//! All objects as a forest: each below its owner.

use std::{cmp::Reverse, collections::HashSet};

use super::{ObjectFilter, ObjectHistory, ObjectId, ObjectIndex};

/// The largest depth, as for a single tree.
const MAX_DEPTH: usize = 16;

/// An object with its depth.
#[derive(Clone, Copy, Debug)]
pub struct PlacedObject<'a> {
    /// How many ancestors it has.
    pub depth: usize,
    pub key: &'a ObjectId,
    pub known: &'a ObjectHistory,
}

/// The objects that match, each once and after its owner if that matches, too. Families with the latest
/// activity come first.
pub fn build_forest<'a>(objects: &'a ObjectIndex, wanted: &ObjectFilter) -> Vec<PlacedObject<'a>> {
    let matching = objects.matching(wanted);
    let shown: HashSet<&ObjectId> = matching.iter().map(|(key, _)| *key).collect();
    let has_owner = |known: &ObjectHistory| known.parents.iter().any(|parent| shown.contains(parent));
    let (below, first): (Vec<_>, Vec<_>) = matching.into_iter().partition(|(_, known)| has_owner(known));
    let mut placed = HashSet::new();
    let mut families = Vec::new();
    // Objects that own each other in a cycle have no root: there the most recently active is the first.
    for (key, known) in first.into_iter().chain(below) {
        let family = place_family(objects, PlacedObject { depth: 0, key, known }, &shown, &mut placed);
        families.push((family.iter().filter_map(|it| it.known.last.map(|(start, _)| start)).max(), family));
    }
    families.sort_by_key(|(last, _)| Reverse(*last));
    families.into_iter().flat_map(|(_, family)| family).collect()
}

/// Places an object with all of its dependents that were not placed before.
fn place_family<'a>(
    objects: &'a ObjectIndex,
    first: PlacedObject<'a>,
    shown: &HashSet<&ObjectId>,
    placed: &mut HashSet<&'a ObjectId>,
) -> Vec<PlacedObject<'a>> {
    let mut family = Vec::new();
    let mut open = vec![first];
    while let Some(next) = open.pop() {
        if !placed.insert(next.key) {
            continue;
        }
        family.push(next);
        let depth = (next.depth + 1).min(MAX_DEPTH);
        let children = next.known.children.iter().rev().filter(|child| shown.contains(child));
        open.extend(children.filter_map(|key| Some(PlacedObject { depth, key, known: objects.get(key)? })));
    }
    family
}
