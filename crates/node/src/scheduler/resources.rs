//! What a node has and what a pod asks for, by the name of the resource.

use std::collections::BTreeMap;

use k8s_openapi::{
    api::core::v1::{Container, Node, Pod, PodSpec, ResourceRequirements},
    apimachinery::pkg::api::resource::Quantity as Written,
};
use kubewake_apiserver::schema::quantity::Quantity;

/// As a resource.
pub const CPU: &str = "cpu";
/// As a resource.
pub const MEMORY: &str = "memory";
/// As a resource: a node has room for so many, and each pod asks for one.
pub const PODS: &str = "pods";

/// Amounts by resource: thousandths of a core of cpu, whole units of everything else.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Resources(BTreeMap<String, i64>);

impl Resources {
    /// What pods may use of a node.
    pub fn of_node(node: &Node) -> Self {
        Self::read(node.status.as_ref().and_then(|status| status.allocatable.as_ref()))
    }

    /// What a node must have free to run the pod: what its containers ask for together, or one of the init containers while
    /// it runs, whichever is more; what is asked for the pod as a whole instead, if anything is.
    pub fn of_pod(pod: &Pod) -> Self {
        let mut asked = pod.spec.as_ref().map(of_spec).unwrap_or_default();
        asked.0.insert(PODS.to_owned(), 1);
        asked
    }

    /// How much of one; none of what is not named.
    pub fn get(&self, name: &str) -> i64 {
        self.0.get(name).copied().unwrap_or(0)
    }

    /// By name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, i64)> {
        self.0.iter().map(|(name, amount)| (name.as_str(), *amount))
    }

    /// Adds what the other has.
    pub fn add(&mut self, other: &Self) {
        self.merge(other, i64::saturating_add);
    }

    fn merge(&mut self, other: &Self, with: impl Fn(i64, i64) -> i64) {
        for (name, amount) in &other.0 {
            let held = self.0.entry(name.clone()).or_default();
            *held = with(*held, *amount);
        }
    }

    /// As a list of the API has them.
    pub fn read(amounts: Option<&BTreeMap<String, Written>>) -> Self {
        let amounts = amounts.into_iter().flatten();
        Self(amounts.map(|(name, written)| (name.clone(), amount(name, written))).collect())
    }

    fn requests(resources: Option<&ResourceRequirements>) -> Self {
        Self::read(resources.and_then(|resources| resources.requests.as_ref()))
    }
}

/// An amount in the unit of its resource. The API server lets no unreadable one in.
pub fn amount(resource: &str, written: &Written) -> i64 {
    let unit = if resource == CPU { -3 } else { 0 };
    Quantity::parse(&written.0).map_or(0, |quantity| quantity.units(unit))
}

/// Whether an init container goes on running beside the others.
pub fn is_sidecar(container: &Container) -> bool {
    container.restart_policy.as_deref() == Some("Always")
}

fn of_spec(spec: &PodSpec) -> Resources {
    let (mut together, mut sidecars, mut most) = (Resources::default(), Resources::default(), Resources::default());
    for container in &spec.containers {
        together.add(&Resources::requests(container.resources.as_ref()));
    }
    for container in spec.init_containers.iter().flatten() {
        let mut needed = Resources::requests(container.resources.as_ref());
        if is_sidecar(container) {
            together.add(&needed);
            sidecars.add(&needed);
            needed = sidecars.clone();
        } else {
            needed.add(&sidecars);
        }
        most.merge(&needed, i64::max);
    }
    together.merge(&most, i64::max);
    together.0.extend(Resources::requests(spec.resources.as_ref()).0);
    together.add(&Resources::read(spec.overhead.as_ref()));
    together
}

#[cfg(test)]
mod tests;
