//! Sets of fields, as trees of paths.

use std::cmp::Ordering;

use super::element::Element;

/// A set of fields. The elements are sorted, and none is there that is neither in the set nor above something in it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Set(Vec<(Element, Node)>);

/// What a set holds at one element.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Node {
    /// The field itself is in the set.
    pub member: bool,
    /// What is below it.
    pub children: Set,
}

impl Node {
    /// A field with nothing below it.
    pub fn leaf() -> Self {
        Self { member: true, children: Set::default() }
    }

    /// Whether neither the field nor anything below it is in the set.
    pub fn is_empty(&self) -> bool {
        !self.member && self.children.is_empty()
    }

    fn union(self, other: &Node) -> Node {
        Node { member: self.member || other.member, children: self.children.union(&other.children) }
    }

    fn intersection(&self, other: &Node) -> Node {
        let member = self.member && other.member;
        Node { member, children: self.children.intersection(&other.children) }
    }

    fn difference(self, other: &Node) -> Node {
        Node { member: self.member && !other.member, children: self.children.difference(&other.children) }
    }

    fn recursive_difference(self, other: &Node) -> Node {
        if other.member {
            return Node::default();
        }
        Node { member: self.member, children: self.children.recursive_difference(&other.children) }
    }
}

impl Set {
    /// A set of these paths of plain fields.
    pub fn of(paths: &[&[&str]]) -> Self {
        let mut set = Self::default();
        for path in paths {
            let path: Vec<Element> = path.iter().map(|name| Element::field(name)).collect();
            set.insert(&path);
        }
        set
    }

    /// A set of these elements, in any order. An element may be there twice.
    pub(super) fn from_entries(mut entries: Vec<(Element, Node)>) -> Self {
        entries.sort_by(|(left, _), (right, _)| left.cmp(right));
        let mut set = Self::default();
        entries.into_iter().for_each(|(element, node)| set.push(element, node));
        set
    }

    /// Whether nothing is in the set.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// What the set holds at each element, in order.
    pub fn iter(&self) -> impl Iterator<Item = (&Element, &Node)> {
        self.0.iter().map(|(element, node)| (element, node))
    }

    /// The same, taken out.
    pub(super) fn into_entries(self) -> impl Iterator<Item = (Element, Node)> {
        self.0.into_iter()
    }

    /// What the set holds at an element.
    pub fn get(&self, element: &Element) -> Option<&Node> {
        let at = self.0.binary_search_by(|(other, _)| other.cmp(element)).ok()?;
        self.0.get(at).map(|(_, node)| node)
    }

    /// Adds what is at an element. This is fast if the elements come in order.
    pub(super) fn push(&mut self, element: Element, node: Node) {
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

    /// Adds the field at a path.
    pub fn insert(&mut self, path: &[Element]) {
        let Some((first, rest)) = path.split_first() else { return };
        let at = match self.0.binary_search_by(|(other, _)| other.cmp(first)) {
            Ok(at) => at,
            Err(at) => {
                self.0.insert(at, (first.clone(), Node::default()));
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

    /// Whether the field at a path is in the set.
    pub fn has(&self, path: &[Element]) -> bool {
        match path.split_first() {
            None => false,
            Some((first, [])) => self.get(first).is_some_and(|node| node.member),
            Some((first, rest)) => self.get(first).is_some_and(|node| node.children.has(rest)),
        }
    }

    /// What is in either set.
    #[must_use]
    pub fn union(self, other: &Set) -> Set {
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
        Set(all)
    }

    /// What is in both sets.
    #[must_use]
    pub fn intersection(&self, other: &Set) -> Set {
        let mut both = Vec::new();
        let (mut these, mut others) = (self.0.iter().peekable(), other.0.iter().peekable());
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
        Set(both)
    }

    /// What is in this set and not in the other. What is below a field of the other stays.
    #[must_use]
    pub fn difference(self, other: &Set) -> Set {
        self.without(other, Node::difference)
    }

    /// What is in this set, and neither in the other nor below anything in it.
    #[must_use]
    pub fn recursive_difference(self, other: &Set) -> Set {
        self.without(other, Node::recursive_difference)
    }

    fn without(self, other: &Set, less: fn(Node, &Node) -> Node) -> Set {
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
        Set(left)
    }

    /// Calls for the path of every field: at each depth first the fields, then what is below them.
    pub fn for_each<'a>(&'a self, call: &mut impl FnMut(&[&'a Element])) {
        self.walk(&mut Vec::new(), call);
    }

    fn walk<'a>(&'a self, path: &mut Vec<&'a Element>, call: &mut impl FnMut(&[&'a Element])) {
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
