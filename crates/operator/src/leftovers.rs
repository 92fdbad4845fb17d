//! What pipelines leave behind that are gone: their slots, and the Secrets that kept them.
//!
//! The garbage collector takes all of that away with its owner, whether an operator runs or not. It does not where a pipeline was deleted with `--cascade=orphan`: then owners are only taken off, what
//! was made stays, and nobody else would ever look at it. So it is looked at here, when an operator starts and whenever something happens. The collector layer goes by a [run](crate::layer), which is
//! asked for where no pipeline is left whose reconcile would ask.
//!
//! *Guaranteed*: nothing goes that is for a pipeline which exists, also if no watch has shown it yet: the API server is asked. What goes is what was looked at: whoever changes it
//! meanwhile keeps it. Only objects are touched that have a label and a name of ours. *Not done*: what is going already is left to who deletes it.

use std::{collections::BTreeSet, pin::pin, time::Duration};

use futures_util::{StreamExt as _, future};
use k8s_openapi::{api::core::v1::ConfigMap, apimachinery::pkg::apis::meta::v1::OwnerReference};
use kube::{
    Api, ResourceExt as _,
    api::{ApiResource, DynamicObject, ListParams},
};
use kubewake_api::{
    Signal,
    v1alpha1::{LogPipeline, MetricPipeline, TracePipeline},
};
use serde_json::Value;
use tokio::time::sleep;

use crate::{
    apply::{self, Applier},
    cause::Cause,
    context::World,
    kept,
    kind::Kind,
    live,
    lock::{self, Lock},
    metrics::Step,
    names::Part,
    reconcile::Context,
    words::{Discretion, words},
};

/// Before something is tried again that did not work, if nothing happens before.
const PAUSE: Duration = Duration::from_secs(5);

/// What did not work.
#[derive(Debug, thiserror::Error)]
enum Error {
    #[error(transparent)]
    Lock(#[from] lock::Error),
    #[error(transparent)]
    Delete(#[from] apply::Error),
    #[error("it is not known whether a pipeline is gone")]
    Ask(#[source] Box<kube::Error>),
}

impl Error {
    fn cause(&self) -> Cause {
        match self {
            Self::Lock(error) => error.into(),
            Self::Delete(error) => error.into(),
            Self::Ask(error) => Cause::from(&**error),
        }
    }

    /// What a log may say of it.
    fn words(&self) -> String {
        match self {
            Self::Delete(error) => error.words(),
            Self::Lock(lock::Error::Api { source, .. }) | Self::Ask(source) => {
                format!("{self}: {}", words(source, Discretion::Open))
            }
            Self::Lock(lock::Error::Contended(_)) => self.to_string(),
        }
    }
}

/// Clears away, for ever.
pub async fn follow(world: &World, context: &Context) {
    let applier = Applier::new(world.client.clone(), &world.options.namespace, world.live.clone());
    let mut strokes = pin!(world.bell.strokes());
    loop {
        let is_nobodys = !world.has_pipelines() && !world.live.keys(Part::Layer).is_empty();
        let is_swept = !is_nobodys || context.settled().await;
        let is_cleared = clear(world, &applier).await;
        let again = async {
            match is_swept && is_cleared {
                true => future::pending().await,
                false => sleep(PAUSE).await,
            }
        };
        tokio::select! {
            _ = strokes.next() => {}
            () = again => {}
        }
    }
}

/// Whether there is a pipeline, and not a going one, that no watch has shown yet.
///
/// # Errors
/// What the API server says.
pub async fn has_unseen(world: &World) -> Result<bool, kube::Error> {
    for resource in resources() {
        let api: Api<DynamicObject> = Api::all_with(world.client.clone(), &resource);
        let there = match api.list_metadata(&ListParams::default()).await {
            // Where there is no such kind there is no such pipeline.
            Err(kube::Error::Api(status)) if status.code == 404 => continue,
            there => there?,
        };
        let (staying, seen) = (there.iter().filter(|it| it.metadata.deletion_timestamp.is_none()), world.uids());
        if staying.filter_map(|it| it.metadata.uid.as_ref()).any(|uid| !seen.contains(uid)) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Clears away what there is. Whether all of it worked.
async fn clear(world: &World, applier: &Applier) -> bool {
    let there = world.all_uids();
    let mut is_done = true;
    let mut note = |kind: Kind, name: &str, result: Result<bool, Error>| match result {
        Ok(true) => {
            tracing::info!(?kind, name, "its pipeline is gone, and it is cleared away");
            world.metrics.wrote(kind);
        }
        Ok(false) => {}
        Err(error) => {
            is_done = false;
            world.metrics.failed(Step::Clear, error.cause());
            tracing::warn!(?kind, name, error = error.words(), "what a pipeline left cannot be cleared away");
        }
    };
    for signal in Signal::ALL {
        note(Kind::ConfigMap, lock::name(signal), free(world, signal, &there).await);
    }
    for (kind, name) in world.live.keys(Part::Kept) {
        if kind == Kind::Secret && kept::is_name(&name) {
            note(kind, &name, forget(world, applier, &name, &there).await);
        }
    }
    is_done
}

/// Frees the slots of those who are gone.
async fn free(world: &World, signal: Signal, there: &BTreeSet<String>) -> Result<bool, Error> {
    let live = world.live.get(Kind::ConfigMap, lock::name(signal));
    let lock = live.and_then(|live| serde_json::from_value::<ConfigMap>((*live).clone()).ok());
    let Some(lock) = lock else { return Ok(false) };
    let mut gone = BTreeSet::new();
    for owner in lock.owner_references() {
        if is_gone(world, owner, there).await? {
            gone.insert(owner.uid.clone());
        }
    }
    if gone.is_empty() && !lock.owner_references().is_empty() {
        return Ok(false);
    }
    let api = Api::namespaced(world.client.clone(), &world.options.namespace);
    Ok(Lock::new(api, signal).release(&gone).await?)
}

/// Removes what was kept of a pipeline that is gone.
async fn forget(world: &World, applier: &Applier, name: &str, there: &BTreeSet<String>) -> Result<bool, Error> {
    let Some(secret) = world.live.get(Kind::Secret, name).filter(|secret| !is_owned(secret, there)) else {
        return Ok(false);
    };
    let is_left = match kept::whose(&secret) {
        Some(owner) => is_gone(world, &owner, there).await?,
        // Nobody can read it.
        None => true,
    };
    Ok(is_left && applier.delete_unchanged(Kind::Secret, name).await?)
}

/// Whether it has an owner that is there: most have, and need not be looked at any closer.
fn is_owned(object: &Value, there: &BTreeSet<String>) -> bool {
    let owners = object.pointer("/metadata/ownerReferences").and_then(Value::as_array).into_iter().flatten();
    owners.filter_map(|owner| live::text(owner, "/uid")).any(|uid| there.contains(uid))
}

/// Whether this is a pipeline that does not exist any more.
async fn is_gone(world: &World, owner: &OwnerReference, there: &BTreeSet<String>) -> Result<bool, Error> {
    let Some(resource) = resource_of(owner).filter(|_| !there.contains(&owner.uid)) else { return Ok(false) };
    let api: Api<DynamicObject> = Api::all_with(world.client.clone(), &resource);
    let found = api.get_metadata_opt(&owner.name).await.map_err(|error| Error::Ask(Box::new(error)))?;
    Ok(found.is_none_or(|found| found.metadata.uid.as_ref() != Some(&owner.uid)))
}

/// The kind of an owner, if it is one of pipelines.
fn resource_of(owner: &OwnerReference) -> Option<ApiResource> {
    let group = owner.api_version.split('/').next();
    resources().into_iter().find(|resource| resource.kind == owner.kind && Some(&*resource.group) == group)
}

fn resources() -> [ApiResource; 3] {
    [
        ApiResource::erase::<TracePipeline>(&()),
        ApiResource::erase::<LogPipeline>(&()),
        ApiResource::erase::<MetricPipeline>(&()),
    ]
}
