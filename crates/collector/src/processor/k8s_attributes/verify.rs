//! `verify_senders`: a pod cannot pass as another.
//!
//! Where a connection comes from the address of a pod that is known, that pod is the sender, whatever its resources say. The attributes that say which
//! pod it is, of which workload and on which node, are the cluster's. They are written over what is there, and removed where the cluster knows of none.
//! What tells containers of a pod apart, and everything else, stays the sender's.
//!
//! *Not verified*, and so taken as without this setting: pods that `trusted_relays` lists, which forward what others sent; addresses that belong to no single
//! pod, such as those of nodes, and so all pods with `hostNetwork`; pods that the API server has not told of yet, or that are gone: their address may be another's.
//!
//! The pod is looked up once for a request. A resource costs a few comparisons for each of its attributes that is written.

use std::{
    net::IpAddr,
    sync::{Arc, atomic::Ordering},
};

use kubewake_config::model::Field;
use kubewake_otlp::{Edit, Value};

use super::{
    Enrich, Writer,
    cluster::Cluster,
    give,
    rules::{self, Known},
    state::State,
};

/// What says who the sender is. The first four are a pod's own identity, which is verified whether it is extracted or not.
const IDENTITY: [Field; 19] = [
    Field::NamespaceName,
    Field::PodName,
    Field::PodUid,
    Field::PodIp,
    Field::PodStartTime,
    Field::PodHostname,
    Field::NodeName,
    Field::DeploymentName,
    Field::DeploymentUid,
    Field::ReplicaSetName,
    Field::ReplicaSetUid,
    Field::StatefulSetName,
    Field::StatefulSetUid,
    Field::DaemonSetName,
    Field::DaemonSetUid,
    Field::JobName,
    Field::JobUid,
    Field::CronJobName,
    Field::CronJobUid,
];
const OWN: usize = 4;

/// Which attributes of [`IDENTITY`] were written, a bit for each.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Written(u32);

/// Whether an attribute that says who the sender is was written before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Claim {
    First,
    Again,
}

impl Written {
    /// Nothing, if this key does not say who the sender is. If it does, it counts as written from now on.
    pub(super) fn claim(&mut self, key: &[u8]) -> Option<Claim> {
        let place = IDENTITY.iter().position(|field| field.name().as_bytes() == key)?;
        let claim = if self.has(place) { Claim::Again } else { Claim::First };
        self.0 |= 1 << place;
        Some(claim)
    }

    fn has(self, place: usize) -> bool {
        self.0 & (1 << place) != 0
    }
}

impl Enrich {
    /// The pod that an address belongs to, if resources that come from there are to say so.
    pub(super) fn sender(&self, state: &State, address: IpAddr) -> Option<Arc<Known>> {
        self.settings.verify_senders.as_ref()?;
        let pod = state.find(&rules::by_address(&address.to_string()))?;
        (!pod.is_relay && !pod.is_gone.load(Ordering::Relaxed)).then(|| Arc::clone(pod))
    }
}

/// Gives a resource what is known of the pod that sent it, in place of what it says of itself.
pub(super) fn give_verified(
    cluster: &Cluster,
    state: &State,
    pod: &Arc<Known>,
    address: Option<IpAddr>,
    mut writer: Writer<'_, '_>,
) {
    writer.verified = Some(Written::default());
    if !pod.is_ignored {
        give(cluster, state, Some(pod), &mut writer);
    }
    let written = writer.verified.unwrap_or_default();
    for (place, field) in IDENTITY.into_iter().enumerate().filter(|(place, _)| !written.has(*place)) {
        let own = match field {
            _ if pod.is_ignored || place >= OWN => None,
            Field::NamespaceName => Some(pod.namespace.clone()),
            Field::PodName => Some(pod.name.clone()),
            Field::PodUid => Some(pod.uid.clone()),
            _ => address.map(|address| address.to_string()),
        };
        let is_claimed = writer.attributes.get(field.name()).is_some();
        match own {
            Some(own) if is_claimed => writer.edits.push(Edit::set(rules::key(field), Value::String(own))),
            // Of what is not extracted nothing is known, unless it is the pod's own.
            None if is_claimed && (place < OWN || cluster.rules.wants(field)) => {
                writer.edits.push(Edit::remove(rules::key(field)));
            }
            _ => {}
        }
    }
}
