//! `verify_senders`: a pod cannot pass as another.
//!
//! Where a connection comes from the address of a known pod, that pod is the sender, whatever its resources
//! claim. The attributes that identify the pod, its workload and its node are taken from the cluster: they
//! overwrite existing ones, and are removed where the cluster has no value. Attributes that tell containers of
//! a pod apart, and all others, stay the sender's.
//!
//! *Not verified*, and so handled as without this setting: pods that `trusted_relays` lists, which forward data
//! of others; addresses that belong to no single pod, such as those of nodes, and so all pods with
//! `hostNetwork`; pods that the API server has not reported yet, and deleted ones: their address may be
//! another's.
//!
//! A relay speaks for other pods: where one of its resources names its pod or namespace, nothing of the relay's
//! own pod is added, not even if the named pod is unknown. A resource that names none is the relay's.
//!
//! The pod is looked up once for a request. A resource costs a few comparisons for each of its attributes that
//! is written.

use std::{
    net::IpAddr,
    sync::{Arc, atomic::Ordering},
};

use kubewake_config::model::Field;
use kubewake_otlp::{
    MessageEdit, Value,
    view::{self, AnyValue},
};

use super::{
    AttributeWriter, KubernetesEnrichmentTransform,
    cluster_cache::ClusterCache,
    cluster_state::ClusterObjects,
    extraction_rules::{self, PodRecord},
    write_pod_attributes,
};

/// Fields that identify the sender. The first four are a pod's own identity, which is verified whether it is
/// extracted or not.
const IDENTITY_FIELDS: [Field; 19] = [
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
const OWN_IDENTITY_FIELDS: usize = 4;

/// Which attributes of [`IDENTITY_FIELDS`] were written, a bit for each.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct WrittenIdentity(u32);

/// Whether an attribute that identifies the sender was written before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FieldClaim {
    First,
    Repeated,
}

impl WrittenIdentity {
    /// `None` if the key does not identify the sender. Otherwise the key counts as written from now on.
    pub(super) fn record_write(&mut self, key: &[u8]) -> Option<FieldClaim> {
        let place = IDENTITY_FIELDS.iter().position(|field| field.name().as_bytes() == key)?;
        let claim = if self.has(place) { FieldClaim::Repeated } else { FieldClaim::First };
        self.0 |= 1 << place;
        Some(claim)
    }

    fn has(self, place: usize) -> bool {
        self.0 & (1 << place) != 0
    }
}

impl KubernetesEnrichmentTransform {
    /// The pod with this address, if resources from there must carry its identity.
    pub(super) fn verified_sender(&self, state: &ClusterObjects, address: IpAddr) -> Option<Arc<PodRecord>> {
        self.settings.verify_senders.as_ref()?;
        let pod = state.find_pod(&extraction_rules::address_identifier(&address.to_string()))?;
        (!pod.is_relay && !pod.is_gone.load(Ordering::Relaxed)).then(|| Arc::clone(pod))
    }

    /// Whether the address belongs to a trusted relay.
    pub(super) fn is_relay(&self, state: &ClusterObjects, address: IpAddr) -> bool {
        self.settings.verify_senders.is_some()
            && state
                .find_pod(&extraction_rules::address_identifier(&address.to_string()))
                .is_some_and(|pod| pod.is_relay)
    }
}

/// Whether a resource names its pod or its namespace.
pub(super) fn claims_identity(attributes: view::AttributesView<'_>) -> bool {
    IDENTITY_FIELDS.iter().take(OWN_IDENTITY_FIELDS).any(|field| {
        let claimed = attributes.get(field.name());
        !matches!(claimed, None | Some(AnyValue::None | AnyValue::String(b"")))
    })
}

/// Writes the known attributes of the sending pod over those that the resource claims.
pub(super) fn write_verified_attributes(
    cluster: &ClusterCache,
    state: &ClusterObjects,
    pod: &Arc<PodRecord>,
    address: Option<IpAddr>,
    mut writer: AttributeWriter<'_, '_>,
) {
    writer.verified = Some(WrittenIdentity::default());
    if !pod.is_ignored {
        write_pod_attributes(cluster, state, Some(pod), &mut writer);
    }
    let written = writer.verified.unwrap_or_default();
    for (place, field) in IDENTITY_FIELDS.into_iter().enumerate().filter(|(place, _)| !written.has(*place)) {
        let own = match field {
            _ if pod.is_ignored || place >= OWN_IDENTITY_FIELDS => None,
            Field::NamespaceName => Some(pod.namespace.clone()),
            Field::PodName => Some(pod.name.clone()),
            Field::PodUid => Some(pod.uid.clone()),
            _ => address.map(|address| address.to_string()),
        };
        let is_claimed = writer.attributes.get(field.name()).is_some();
        match own {
            Some(own) if is_claimed => {
                writer.edits.push(MessageEdit::set(extraction_rules::attribute_key(field), Value::String(own)))
            }
            // The cluster cache has only extracted fields, and the pod's own identity.
            None if is_claimed && (place < OWN_IDENTITY_FIELDS || cluster.rules.wants(field)) => {
                writer.edits.push(MessageEdit::remove(extraction_rules::attribute_key(field)));
            }
            _ => {}
        }
    }
}
