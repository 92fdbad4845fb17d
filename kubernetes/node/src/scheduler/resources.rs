//! Resource amounts of nodes and pods, by resource name.

use std::collections::BTreeMap;

use k8s_openapi::{
    api::core::v1::{Container, Node, Pod, PodSpec, ResourceRequirements},
    apimachinery::pkg::api::resource::Quantity as Written,
};
use kubewake_apiserver::schema::quantity::Quantity;

pub const CPU_RESOURCE: &str = "cpu";
pub const MEMORY_RESOURCE: &str = "memory";
/// The number of pods as a resource: each pod requests one.
pub const PODS_RESOURCE: &str = "pods";

/// Amounts by resource: millicores of cpu, whole units of everything else.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ResourceAmounts(BTreeMap<String, i64>);

impl ResourceAmounts {
    /// The allocatable resources of a node.
    pub fn allocatable_of_node(node: &Node) -> Self {
        Self::from_quantities(node.status.as_ref().and_then(|status| status.allocatable.as_ref()))
    }

    /// The requests of a pod: the sum over its containers or the largest init container, whichever is more.
    /// Requests at pod level take their place where there are any.
    pub fn requested_by_pod(pod: &Pod) -> Self {
        let mut asked = pod.spec.as_ref().map(requested_by_spec).unwrap_or_default();
        asked.0.insert(PODS_RESOURCE.to_owned(), 1);
        asked
    }

    /// The amount of a resource; 0 if it is not listed.
    pub fn get(&self, name: &str) -> i64 {
        self.0.get(name).copied().unwrap_or(0)
    }

    pub fn iter(&self) -> impl Iterator<Item = (&str, i64)> {
        self.0.iter().map(|(name, amount)| (name.as_str(), *amount))
    }

    pub fn add(&mut self, other: &Self) {
        self.merge_with(other, i64::saturating_add);
    }

    fn merge_with(&mut self, other: &Self, with: impl Fn(i64, i64) -> i64) {
        for (name, amount) in &other.0 {
            let held = self.0.entry(name.clone()).or_default();
            *held = with(*held, *amount);
        }
    }

    /// Converts a resource list of the API.
    pub fn from_quantities(amounts: Option<&BTreeMap<String, Written>>) -> Self {
        let amounts = amounts.into_iter().flatten();
        Self(amounts.map(|(name, written)| (name.clone(), parse_amount(name, written))).collect())
    }

    fn requests(resources: Option<&ResourceRequirements>) -> Self {
        Self::from_quantities(resources.and_then(|resources| resources.requests.as_ref()))
    }
}

/// The amount in the unit of its resource. The API server admits only valid quantities.
pub fn parse_amount(resource: &str, written: &Written) -> i64 {
    let unit = if resource == CPU_RESOURCE { -3 } else { 0 };
    Quantity::parse(&written.0).map_or(0, |quantity| quantity.units(unit))
}

/// Whether an init container keeps running beside the main containers.
pub fn is_sidecar(container: &Container) -> bool {
    container.restart_policy.as_deref() == Some("Always")
}

fn requested_by_spec(spec: &PodSpec) -> ResourceAmounts {
    let (mut together, mut sidecars, mut most) =
        (ResourceAmounts::default(), ResourceAmounts::default(), ResourceAmounts::default());
    for container in &spec.containers {
        together.add(&ResourceAmounts::requests(container.resources.as_ref()));
    }
    for container in spec.init_containers.iter().flatten() {
        let mut needed = ResourceAmounts::requests(container.resources.as_ref());
        if is_sidecar(container) {
            together.add(&needed);
            sidecars.add(&needed);
            needed = sidecars.clone();
        } else {
            needed.add(&sidecars);
        }
        most.merge_with(&needed, i64::max);
    }
    together.merge_with(&most, i64::max);
    together.0.extend(ResourceAmounts::requests(spec.resources.as_ref()).0);
    together.add(&ResourceAmounts::from_quantities(spec.overhead.as_ref()));
    together
}

#[cfg(test)]
mod tests;
