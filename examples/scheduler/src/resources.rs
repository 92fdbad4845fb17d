//! Resource amounts of nodes and pods, by resource name.

use std::{collections::BTreeMap, fmt};

use k8s_openapi::{
    api::core::v1::{Container, Node, Pod, PodSpec, ResourceRequirements},
    apimachinery::pkg::api::resource::Quantity,
};

use crate::quantity::parse_thousandths;

pub const CPU: &str = "cpu";
pub const MEMORY: &str = "memory";
/// The number of pods as a resource: each pod requests one.
pub const PODS: &str = "pods";

/// Amounts by resource: millicores of cpu, whole units of everything else.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ResourceList(BTreeMap<String, i64>);

impl ResourceList {
    /// The allocatable resources of a node.
    pub fn node_allocatable(node: &Node) -> Self {
        Self::from_quantities(node.status.as_ref().and_then(|status| status.allocatable.as_ref()))
    }

    /// The requests of a pod: the sum over its containers or the largest init container, whichever is more.
    /// Requests at pod level take their place where there are any.
    pub fn pod_requests(pod: &Pod) -> Self {
        let mut asked = pod.spec.as_ref().map(spec_requests).unwrap_or_default();
        asked.0.insert(PODS.to_owned(), 1);
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
        self.merge(other, i64::saturating_add);
    }

    fn merge(&mut self, other: &Self, with: impl Fn(i64, i64) -> i64) {
        for (name, amount) in &other.0 {
            let held = self.0.entry(name.clone()).or_default();
            *held = with(*held, *amount);
        }
    }

    fn from_quantities(amounts: Option<&BTreeMap<String, Quantity>>) -> Self {
        let amounts = amounts.into_iter().flatten();
        Self(amounts.map(|(name, written)| (name.clone(), amount_in_unit(name, written))).collect())
    }

    fn requests(resources: Option<&ResourceRequirements>) -> Self {
        Self::from_quantities(resources.and_then(|resources| resources.requests.as_ref()))
    }
}

impl fmt::Display for ResourceList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, (name, amount)) in self.iter().enumerate() {
            let comma = if index == 0 { "" } else { ", " };
            let unit = if name == CPU { "m" } else { "" };
            write!(f, "{comma}{name}={amount}{unit}")?;
        }
        Ok(())
    }
}

/// The amount in the unit of its resource, rounded up. The API server admits only valid quantities.
fn amount_in_unit(resource: &str, written: &Quantity) -> i64 {
    let Some(thousandths) = parse_thousandths(&written.0) else { return 0 };
    let units = if resource == CPU { thousandths } else { (thousandths + 999).div_euclid(1000) };
    i64::try_from(units).unwrap_or(i64::MAX)
}

fn spec_requests(spec: &PodSpec) -> ResourceList {
    let (mut together, mut sidecars, mut most) =
        (ResourceList::default(), ResourceList::default(), ResourceList::default());
    for container in &spec.containers {
        together.add(&ResourceList::requests(container.resources.as_ref()));
    }
    for container in spec.init_containers.iter().flatten() {
        let mut needed = ResourceList::requests(container.resources.as_ref());
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
    together.0.extend(ResourceList::requests(spec.resources.as_ref()).0);
    together.add(&ResourceList::from_quantities(spec.overhead.as_ref()));
    together
}

/// Whether an init container keeps running beside the other containers.
fn is_sidecar(container: &Container) -> bool {
    container.restart_policy.as_deref() == Some("Always")
}
