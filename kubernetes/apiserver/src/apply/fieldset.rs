//! Field sets, as trees of path elements.

use std::cmp::Ordering;

use super::element::PathElement;

/// A field set. The elements are sorted; each is in the set or has a descendant in it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FieldSet(Vec<(PathElement, FieldSetNode)>);

/// The part of a set at one element.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FieldSetNode {
    /// Whether the field itself is in the set.
    pub member: bool,
    pub children: FieldSet,
}

impl FieldSetNode {
    /// A field without descendants.
    pub fn leaf() -> Self {
        Self { member: true, children: FieldSet::default() }
    }

    /// Whether neither the field nor any descendant is in the set.
    pub fn is_empty(&self) -> bool {
        !self.member && self.children.is_empty()
    }

    fn union(self, other: &FieldSetNode) -> FieldSetNode {
        FieldSetNode { member: self.member || other.member, children: self.children.union(&other.children) }
    }

    fn intersection(&self, other: &FieldSetNode) -> FieldSetNode {
        let member = self.member && other.member;
        FieldSetNode { member, children: self.children.intersection(&other.children) }
    }

    fn difference(self, other: &FieldSetNode) -> FieldSetNode {
        FieldSetNode { member: self.member && !other.member, children: self.children.difference(&other.children) }
    }

    fn recursive_difference(self, other: &FieldSetNode) -> FieldSetNode {
        if other.member {
            return FieldSetNode::default();
        }
        FieldSetNode { member: self.member, children: self.children.recursive_difference(&other.children) }
    }
}

impl FieldSet {
    /// The set of these paths, which consist of field names.
    pub fn from_paths(paths: &[&[&str]]) -> Self {
        let mut set = Self::default();
        for path in paths {
            let path: Vec<PathElement> = path.iter().map(|name| PathElement::field(name)).collect();
            set.insert(&path);
        }
        set
    }

    /// The set of these elements, in any order and possibly with duplicates.
    pub(super) fn from_entries(mut entries: Vec<(PathElement, FieldSetNode)>) -> Self {
        entries.sort_by(|(left, _), (right, _)| left.cmp(right));
        let mut set = Self::default();
        entries.into_iter().for_each(|(element, node)| set.push(element, node));
        set
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The elements and their nodes, in order.
    pub fn iter(&self) -> impl Iterator<Item = (&PathElement, &FieldSetNode)> {
        self.0.iter().map(|(element, node)| (element, node))
    }

    pub(super) fn into_entries(self) -> impl Iterator<Item = (PathElement, FieldSetNode)> {
        self.0.into_iter()
    }

    /// The node at an element.
    pub fn get(&self, element: &PathElement) -> Option<&FieldSetNode> {
        let at = self.0.binary_search_by(|(other, _)| other.cmp(element)).ok()?;
        self.0.get(at).map(|(_, node)| node)
    }

    /// Adds a node. This is fast if the elements are added in order.
    pub(super) fn push(&mut self, element: PathElement, node: FieldSetNode) {
        if node.is_empty() {
            return;
        }
        let Some((last, _)) = self.0.last().filter(|(last, _)| *last >= element) else {
            self.0.push((element, node));
            return;
        };
        let at = if *last == element {
            Ok(self.0.len() - 1)
        } else {
            self.0.binary_search_by(|(other, _)| other.cmp(&element))
        };
        match at {
            Ok(at) => {
                if let Some((_, known)) = self.0.get_mut(at) {
                    *known = std::mem::take(known).union(&node);
                }
            }
            Err(at) => self.0.insert(at, (element, node)),
        }
    }

    pub fn insert(&mut self, path: &[PathElement]) {
        let Some((first, rest)) = path.split_first() else { return };
        let at = match self.0.binary_search_by(|(other, _)| other.cmp(first)) {
            Ok(at) => at,
            Err(at) => {
                self.0.insert(at, (first.clone(), FieldSetNode::default()));
                at
            }
        };
        if let Some((_, node)) = self.0.get_mut(at) {
            if rest.is_empty() {
                node.member = true;
            } else {
                node.children.insert(rest);
            }
        }
    }

    pub fn has(&self, path: &[PathElement]) -> bool {
        match path.split_first() {
            None => false,
            Some((first, [])) => self.get(first).is_some_and(|node| node.member),
            Some((first, rest)) => self.get(first).is_some_and(|node| node.children.has(rest)),
        }
    }

    /// The paths in either set.
    #[must_use]
    pub fn union(self, other: &FieldSet) -> FieldSet {
        if self.is_empty() {
            return other.clone();
        }
        if other.is_empty() {
            return self;
        }
        let mut all = Vec::with_capacity(self.0.len().max(other.0.len()));
        let mut others = other.0.iter().peekable();
        for (element, mut node) in self.0 {
            while let Some(other) = others.next_if(|(other, _)| *other < element) {
                all.push(other.clone());
            }
            if let Some((_, other)) = others.next_if(|(other, _)| *other == element) {
                node = node.union(other);
            }
            all.push((element, node));
        }
        all.extend(others.cloned());
        FieldSet(all)
    }

    /// The paths in both sets.
    #[must_use]
    pub fn intersection(&self, other: &FieldSet) -> FieldSet {
        let mut both = Vec::new();
        let mut these = self.0.iter().peekable();
        let mut others = other.0.iter().peekable();
        while let (Some((element, node)), Some((other, other_node))) = (these.peek(), others.peek()) {
            match element.cmp(other) {
                Ordering::Less => _ = these.next(),
                Ordering::Greater => _ = others.next(),
                Ordering::Equal => {
                    let node = node.intersection(other_node);
                    if !node.is_empty() {
                        both.push((element.clone(), node));
                    }
                    these.next();
                    others.next();
                }
            }
        }
        FieldSet(both)
    }

    /// The paths of this set that are not in the other. Descendants of the other's paths stay.
    #[must_use]
    pub fn difference(self, other: &FieldSet) -> FieldSet {
        self.subtract(other, FieldSetNode::difference)
    }

    /// The paths of this set that are neither in the other set nor descendants of its paths.
    #[must_use]
    pub fn recursive_difference(self, other: &FieldSet) -> FieldSet {
        self.subtract(other, FieldSetNode::recursive_difference)
    }

    fn subtract(self, other: &FieldSet, less: fn(FieldSetNode, &FieldSetNode) -> FieldSetNode) -> FieldSet {
        if other.is_empty() {
            return self;
        }
        let mut others = other.0.iter().peekable();
        let mut left = Vec::with_capacity(self.0.len());
        for (element, mut node) in self.0 {
            while others.next_if(|(other, _)| *other < element).is_some() {}
            if let Some((_, other)) = others.next_if(|(other, _)| *other == element) {
                node = less(node, other);
            }
            if !node.is_empty() {
                left.push((element, node));
            }
        }
        FieldSet(left)
    }

    /// Calls `call` with the path of every field: at each depth first the fields, then their descendants.
    pub fn for_each<'a>(&'a self, call: &mut impl FnMut(&[&'a PathElement])) {
        self.walk(&mut Vec::new(), call);
    }

    fn walk<'a>(&'a self, path: &mut Vec<&'a PathElement>, call: &mut impl FnMut(&[&'a PathElement])) {
        for (element, _) in self.0.iter().filter(|(_, node)| node.member) {
            path.push(element);
            call(path);
            path.pop();
        }
        for (element, node) in self.0.iter().filter(|(_, node)| !node.children.is_empty()) {
            path.push(element);
            node.children.walk(path, call);
            path.pop();
        }
    }
}
