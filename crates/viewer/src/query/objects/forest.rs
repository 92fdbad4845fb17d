//! All objects, each below the one that it belongs to.

use std::{cmp::Reverse, collections::HashSet};

use super::{Key, Known, ObjectFilter, Objects};

/// How far in an object is shown: as deep as a tree is.
const DEPTH: usize = 16;

/// An object in its place.
#[derive(Clone, Copy, Debug)]
pub struct Placed<'a> {
    /// How many others it is below.
    pub depth: usize,
    /// The object.
    pub key: &'a Key,
    /// What is known of it.
    pub known: &'a Known,
}

/// The objects that are wanted, each once, behind the one that it belongs to if that is wanted, too. Families of which something was dealt with last come first.
pub fn forest<'a>(objects: &'a Objects, wanted: &ObjectFilter) -> Vec<Placed<'a>> {
    let matching = objects.matching(wanted);
    let shown: HashSet<&Key> = matching.iter().map(|(key, _)| *key).collect();
    let has_owner = |known: &Known| known.parents.iter().any(|parent| shown.contains(parent));
    let (below, first): (Vec<_>, Vec<_>) = matching.into_iter().partition(|(_, known)| has_owner(known));
    let (mut placed, mut families) = (HashSet::new(), Vec::new());
    // Those that belong to each other in a circle are reached from none: there the last dealt with is the first.
    for (key, known) in first.into_iter().chain(below) {
        let family = family(objects, Placed { depth: 0, key, known }, &shown, &mut placed);
        families.push((family.iter().filter_map(|it| it.known.last.map(|(start, _)| start)).max(), family));
    }
    families.sort_by_key(|(last, _)| Reverse(*last));
    families.into_iter().flat_map(|(_, family)| family).collect()
}

/// One with all below it that were not placed before.
fn family<'a>(
    objects: &'a Objects,
    first: Placed<'a>,
    shown: &HashSet<&Key>,
    placed: &mut HashSet<&'a Key>,
) -> Vec<Placed<'a>> {
    let (mut family, mut open) = (Vec::new(), vec![first]);
    while let Some(next) = open.pop() {
        if !placed.insert(next.key) {
            continue;
        }
        family.push(next);
        let depth = (next.depth + 1).min(DEPTH);
        let children = next.known.children.iter().rev().filter(|child| shown.contains(child));
        open.extend(children.filter_map(|key| Some(Placed { depth, key, known: objects.get(key)? })));
    }
    family
}
