//! Nodes that have what a pod needs.

use super::{Ask, Filter};
use crate::{cluster::Place, resources::PODS};

/// Leaves out nodes that have less free than the pod asks for.
pub struct NodeResourcesFit;

impl Filter for NodeResourcesFit {
    fn against(&self, ask: &Ask<'_>, place: &Place) -> Vec<String> {
        let lacks = |name: &str, amount: i64| place.has.get(name).saturating_sub(place.held.get(name)) < amount;
        let lacking = ask.needs.iter().filter(|(name, amount)| *amount > 0 && lacks(name, *amount));
        let say = |name: &str| if name == PODS { "Too many pods".to_owned() } else { format!("Insufficient {name}") };
        lacking.map(|(name, _)| say(name)).collect()
    }
}
