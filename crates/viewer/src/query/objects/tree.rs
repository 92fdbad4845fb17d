//! An object with its dependents as a tree.

use super::{ObjectHistory, ObjectId, ObjectIndex};

/// The largest depth of a tree, as for the forest of all objects.
const MAX_DEPTH: usize = 16;
const MAX_NODES: usize = 2000;

/// An object with its dependents.
#[derive(Clone, Debug)]
pub struct ObjectNode<'a> {
    pub key: &'a ObjectId,
    pub known: &'a ObjectHistory,
    pub children: Vec<ObjectNode<'a>>,
}

/// The tree of an object. In a cycle of owners, each object occurs once on a path.
pub fn build_tree<'a>(objects: &'a ObjectIndex, key: &'a ObjectId, known: &'a ObjectHistory) -> ObjectNode<'a> {
    let mut left = MAX_NODES;
    let mut way = Vec::new();
    build_node(objects, key, known, &mut way, &mut left)
}

fn build_node<'a>(
    objects: &'a ObjectIndex,
    key: &'a ObjectId,
    known: &'a ObjectHistory,
    way: &mut Vec<&'a ObjectId>,
    left: &mut usize,
) -> ObjectNode<'a> {
    way.push(key);
    let mut children = Vec::new();
    if way.len() < MAX_DEPTH {
        for child in &known.children {
            let Some(known) = objects.get(child).filter(|_| *left > 0 && !way.contains(&child)) else { continue };
            *left -= 1;
            children.push(build_node(objects, child, known, way, left));
        }
    }
    way.pop();
    ObjectNode { key, known, children }
}
