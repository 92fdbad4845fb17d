//! An object with all that belongs to it.

use super::{Key, Known, Objects};

/// How deep a tree is shown, and how many objects of it.
const DEPTH: usize = 16;
const NODES: usize = 2000;

/// An object with what belongs to it.
#[derive(Clone, Debug)]
pub struct Node<'a> {
    /// The object.
    pub key: &'a Key,
    /// What is known of it.
    pub known: &'a Known,
    /// What belongs to it.
    pub children: Vec<Node<'a>>,
}

/// An object with what belongs to it. One that belongs to itself by some way is shown once on that way.
pub fn tree<'a>(objects: &'a Objects, key: &'a Key, known: &'a Known) -> Node<'a> {
    let mut left = NODES;
    let mut way = Vec::new();
    node(objects, key, known, &mut way, &mut left)
}

fn node<'a>(
    objects: &'a Objects,
    key: &'a Key,
    known: &'a Known,
    way: &mut Vec<&'a Key>,
    left: &mut usize,
) -> Node<'a> {
    way.push(key);
    let mut children = Vec::new();
    if way.len() < DEPTH {
        for child in &known.children {
            let Some(known) = objects.get(child).filter(|_| *left > 0 && !way.contains(&child)) else { continue };
            *left -= 1;
            children.push(node(objects, child, known, way, left));
        }
    }
    way.pop();
    Node { key, known, children }
}
