//! What the cluster has of an object now.
//!
//! A change is in the cluster at once, and its first spans come to the viewer a moment later. Until then the newest generation that the viewer knows is the one before.
//!
//! *Guaranteed*: a cluster is asked only if somebody named it, or it is the viewer's: a running `kubewake up` says so, on this machine or in the cluster. One that
//! does not answer within [`PATIENCE`] counts for nothing: then the viewer's word counts. Only metadata is read, and that leaves no trace where callers are believed.

use std::time::Duration;

use anyhow::Context;
use kube::{
    Api, Client, Config,
    api::{DynamicObject, ObjectMeta},
    core::GroupVersionKind,
    discovery::{Scope, oneshot},
};
use tokio::time::timeout;

use super::find::{Generation, Known};
use crate::{
    client,
    output::text::safe,
    place::KubeconfigArgs,
    up::notice::{self, Notice},
};

/// Who only wants to see a trace does not wait longer for a cluster that is away.
const PATIENCE: Duration = Duration::from_secs(2);
/// Nanoseconds in a second.
const SECOND: u64 = 1_000_000_000;

/// The cluster, which may answer or not.
pub(super) struct Live {
    client: Client,
    /// Who says where it is, in words.
    source: String,
}

/// A generation that the viewer knows nothing of.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Newer {
    generation: i64,
    /// The object and its cluster, in words.
    object: String,
}

impl Live {
    /// The cluster that is named; else that of the viewer. None if neither is known.
    pub(super) async fn find(args: &KubeconfigArgs, viewer: &str) -> anyhow::Result<Option<Self>> {
        if args.is_named() {
            return Self::new(args.config().await?).map(Some);
        }
        if let Some(up) = Notice::find().filter(|up| up.page.trim_end_matches('/') == viewer) {
            return Ok(of_up(up).await.and_then(Self::new).ok());
        }
        // What kubectl means may be any cluster, with an object of the same name.
        let Ok(live) = args.config().await.and_then(Self::new) else { return Ok(None) };
        let told = timeout(PATIENCE, notice::told(&live.client)).await.ok().and_then(Result::ok).flatten();
        Ok(told.filter(|told| told.page.trim_end_matches('/') == viewer).map(|_| live))
    }

    fn new((config, source): (Config, String)) -> anyhow::Result<Self> {
        let client = Client::try_from(client::quiet(config)).context("the cluster cannot be asked")?;
        Ok(Self { client, source })
    }

    /// What it has that is newer than this.
    pub(super) async fn newer(&self, known: &Known, latest: &Generation) -> Option<Newer> {
        let meta = timeout(PATIENCE, self.metadata(known)).await.ok()??;
        let generation = newer(&meta, latest)?;
        Some(Newer { generation, object: format!("{}/{} ({})", safe(&known.kind), safe(&known.name), self.source) })
    }

    async fn metadata(&self, known: &Known) -> Option<ObjectMeta> {
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

impl Newer {
    /// One that the viewer has from its own cluster, without a trace.
    pub(super) fn untold(known: &Known, latest: &Generation) -> Self {
        let object = format!("{}/{} (the viewer's cluster)", safe(&known.kind), safe(&known.name));
        Self { generation: latest.generation, object }
    }

    /// While it is waited for.
    pub(super) fn awaited(&self, url: &str) -> String {
        format!("waiting for generation {} of {}: nothing of it is at {url} yet", self.generation, self.object)
    }

    /// Where nobody waits for it any longer.
    pub(super) fn missed(&self, url: &str) -> String {
        let Self { generation, object } = self;
        format!("there is a generation {generation} of {object}, of which nothing is at {url} yet")
    }
}

async fn of_up(up: Notice) -> anyhow::Result<(Config, String)> {
    Ok((client::config(Some(&up.kubeconfig)).await?, "kubewake up".to_owned()))
}

/// The generation of an object of the cluster, if it is newer than this one. One with another uid is so if it was made since: a cluster that somebody named may
/// be another than the viewer's.
fn newer(meta: &ObjectMeta, latest: &Generation) -> Option<i64> {
    let generation = meta.generation?;
    let is_newer = if latest.uid.is_empty() || Some(&latest.uid) == meta.uid.as_ref() {
        generation > latest.generation
    } else {
        let made = meta.creation_timestamp.as_ref().and_then(|time| u64::try_from(time.0.as_second()).ok());
        made.is_some_and(|made| made >= latest.start / SECOND)
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
        let at = |uid: &str, seconds: u64| Generation {
            generation: 2,
            uid: uid.to_owned(),
            start: seconds * SECOND + 5,
            ..Generation::default()
        };
        assert_eq!(newer(&now("a", 3), &at("a", noon)), Some(3));
        assert_eq!(newer(&now("a", 3), &at("", noon)), Some(3), "no span says which one");
        assert_eq!(newer(&now("a", 2), &at("a", noon)), None);
        assert_eq!(newer(&now("b", 1), &at("a", noon - 60)), Some(1), "it is made again");
        assert_eq!(newer(&now("b", 9), &at("a", noon + 60)), None, "it is of another cluster");
        assert_eq!(newer(&ObjectMeta::default(), &at("a", noon)), None, "a ConfigMap has none");
    }
}
