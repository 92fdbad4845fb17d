//! Compares an object in the cluster with the viewer's latest generation of it.
//!
//! A change takes effect in the cluster at once, and its first spans reach the viewer a moment later. Until
//! then the newest generation in the viewer is the previous one.
//!
//! *Guaranteed*: a cluster is queried only if an argument names it, or if it is the viewer's according to a
//! running `kubewake up`, on this machine or in the cluster. A cluster that does not respond within
//! [`CLUSTER_TIMEOUT`] is ignored: then the viewer's data is used. Only metadata is read, and an API server
//! that trusts its caller's context does not trace the requests.

use std::time::Duration;

use anyhow::Context;
use kube::{
    Api, Client, Config,
    api::{DynamicObject, ObjectMeta},
    core::GroupVersionKind,
    discovery::{Scope, oneshot},
};
use tokio::time::timeout;

use super::lookup::{GenerationDocument, ObjectDocument};
use crate::{
    discovery::KubeconfigArgs,
    kube_client,
    output::text::sanitize,
    up::instance_record::{self, InstanceRecord},
};

/// Showing a trace must not wait long for a cluster that cannot be reached.
const CLUSTER_TIMEOUT: Duration = Duration::from_secs(2);
const NANOS_PER_SECOND: u64 = 1_000_000_000;

/// A cluster, which may not respond.
pub(super) struct LiveCluster {
    client: Client,
    /// Where the choice of this cluster comes from, for messages.
    source: String,
}

/// A generation that the viewer does not have yet.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct NewerGeneration {
    generation: i64,
    /// The object and its cluster, for messages.
    object: String,
}

impl LiveCluster {
    /// The cluster that an argument names; else that of the viewer. None if neither is known.
    pub(super) async fn find_cluster(args: &KubeconfigArgs, viewer: &str) -> anyhow::Result<Option<Self>> {
        if args.is_named() {
            return Self::new(args.load_config().await?).map(Some);
        }
        if let Some(up) = InstanceRecord::find_newest().filter(|up| up.page.trim_end_matches('/') == viewer) {
            return Ok(config_from_instance(up).await.and_then(Self::new).ok());
        }
        // kubectl's default may be any cluster, with an object of the same name.
        let Ok(live) = args.load_config().await.and_then(Self::new) else { return Ok(None) };
        let told = timeout(CLUSTER_TIMEOUT, instance_record::fetch_advertised_viewer(&live.client))
            .await
            .ok()
            .and_then(Result::ok)
            .flatten();
        Ok(told.filter(|told| told.page.trim_end_matches('/') == viewer).map(|_| live))
    }

    fn new((config, source): (Config, String)) -> anyhow::Result<Self> {
        let client = Client::try_from(kube_client::without_tracing(config))
            .context("failed to create a client for the cluster")?;
        Ok(Self { client, source })
    }

    /// The newer generation in the cluster, if there is one.
    pub(super) async fn find_newer(
        &self,
        known: &ObjectDocument,
        latest: &GenerationDocument,
    ) -> Option<NewerGeneration> {
        let meta = timeout(CLUSTER_TIMEOUT, self.fetch_metadata(known)).await.ok()??;
        let generation = newer_generation(&meta, latest)?;
        Some(NewerGeneration {
            generation,
            object: format!("{}/{} ({})", sanitize(&known.kind), sanitize(&known.name), self.source),
        })
    }

    async fn fetch_metadata(&self, known: &ObjectDocument) -> Option<ObjectMeta> {
        let (group, version) = known.api_version.split_once('/').unwrap_or(("", &known.api_version));
        let kind = GroupVersionKind::gvk(group, version, &known.kind);
        let (resource, can) = oneshot::pinned_kind(&self.client, &kind).await.ok()?;
        let api: Api<DynamicObject> = match can.scope {
            Scope::Namespaced => Api::namespaced_with(self.client.clone(), &known.namespace, &resource),
            Scope::Cluster => Api::all_with(self.client.clone(), &resource),
        };
        api.get_metadata_opt(&known.name).await.ok()?.map(|object| object.metadata)
    }
}

impl NewerGeneration {
    /// A generation that the viewer has from its cluster, without a trace.
    pub(super) fn from_untraced(known: &ObjectDocument, latest: &GenerationDocument) -> Self {
        let object = format!("{}/{} (the viewer's cluster)", sanitize(&known.kind), sanitize(&known.name));
        Self { generation: latest.generation, object }
    }

    /// The message during the wait.
    pub(super) fn waiting_message(&self, url: &str) -> String {
        format!("waiting for spans of generation {} of {}: none arrived at {url} yet", self.generation, self.object)
    }

    /// The message after the wait.
    pub(super) fn timeout_message(&self, url: &str) -> String {
        let Self { generation, object } = self;
        format!("no spans of generation {generation} of {object} arrived at {url} yet")
    }
}

async fn config_from_instance(up: InstanceRecord) -> anyhow::Result<(Config, String)> {
    Ok((kube_client::load_config(Some(&up.kubeconfig)).await?, "kubewake up".to_owned()))
}

/// The generation of an object in the cluster, if it is newer than `latest`. For a different uid the time of
/// creation decides: a cluster that an argument names may not be the viewer's.
fn newer_generation(meta: &ObjectMeta, latest: &GenerationDocument) -> Option<i64> {
    let generation = meta.generation?;
    let is_newer = if latest.uid.is_empty() || Some(&latest.uid) == meta.uid.as_ref() {
        generation > latest.generation
    } else {
        let made = meta.creation_timestamp.as_ref().and_then(|time| u64::try_from(time.0.as_second()).ok());
        made.is_some_and(|made| made >= latest.start / NANOS_PER_SECOND)
    };
    is_newer.then_some(generation)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_later_generation_and_an_object_that_was_made_since_are_newer() {
        let now = |uid: &str, generation: i64| {
            let meta = json!({"uid": uid, "generation": generation, "creationTimestamp": "2026-11-16T12:00:00Z"});
            serde_json::from_value::<ObjectMeta>(meta).unwrap()
        };
        let noon = now("", 1).creation_timestamp.unwrap().0.as_second() as u64;
        let at = |uid: &str, seconds: u64| GenerationDocument {
            generation: 2,
            uid: uid.to_owned(),
            start: seconds * NANOS_PER_SECOND + 5,
            ..GenerationDocument::default()
        };
        assert_eq!(newer_generation(&now("a", 3), &at("a", noon)), Some(3));
        assert_eq!(newer_generation(&now("a", 3), &at("", noon)), Some(3), "no span says which one");
        assert_eq!(newer_generation(&now("a", 2), &at("a", noon)), None);
        assert_eq!(newer_generation(&now("b", 1), &at("a", noon - 60)), Some(1), "it is made again");
        assert_eq!(newer_generation(&now("b", 9), &at("a", noon + 60)), None, "it is of another cluster");
        assert_eq!(newer_generation(&ObjectMeta::default(), &at("a", noon)), None, "a ConfigMap has none");
    }
}
