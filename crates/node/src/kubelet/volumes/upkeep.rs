//! Keeps the written volumes of a pod up to date.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;
use tokio::{sync::oneshot, time::Instant};

use super::{
    Cause, VolumeError, atomic,
    payload::{Recipe, Surroundings},
};
use crate::{
    key::Key,
    kubelet::{
        sources::{Changes, Kind, Ref},
        tokens::Tokens,
    },
};

/// When to try again what failed although nothing changed.
const PAUSE: Duration = Duration::from_secs(5);

/// A volume that is written.
#[derive(Clone, Debug)]
pub(super) struct Written {
    name: String,
    dir: PathBuf,
    recipe: Recipe,
}

impl Written {
    pub(super) fn new(name: &str, dir: &Path, recipe: Recipe) -> Self {
        Self { name: name.to_owned(), dir: dir.to_owned(), recipe }
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    pub(super) fn dir(&self) -> &Path {
        &self.dir
    }
}

/// All written volumes of a pod.
pub(super) struct Upkeep {
    pod: Arc<Pod>,
    key: Key,
    around: Surroundings,
    volumes: Vec<Written>,
    tokens: Tokens,
    /// What went wrong last, by volume: it is told once.
    wrong: BTreeMap<String, String>,
}

impl Upkeep {
    pub(super) fn new(pod: &Pod, around: Surroundings, volumes: Vec<Written>, tokens: Tokens) -> Self {
        let mut upkeep =
            Self { pod: Arc::new(pod.clone()), key: Key::of(pod), around, volumes, tokens, wrong: BTreeMap::new() };
        // To share the copy that the view has.
        upkeep.refresh_pod();
        upkeep
    }

    /// Writes all volumes as they are to be now.
    pub(super) async fn write(&mut self) -> Result<(), VolumeError> {
        for volume in &self.volumes {
            let written = write(volume, &self.pod, &self.around, &mut self.tokens).await;
            written.map_err(|cause| cause.of(&volume.name))?;
        }
        Ok(())
    }

    /// Writes whatever changes, until nobody wants it. What is being written then is written to its end.
    pub(super) async fn run(mut self, mut changes: Changes, mut ended: oneshot::Receiver<()>) {
        let needs = self.needs();
        let mut again = None;
        loop {
            let next = [again, self.tokens.renewal()].into_iter().flatten().min();
            tokio::select! {
                () = changes.any_of(&needs) => {}
                () = sleep_until(next) => {}
                _ = &mut ended => return,
            }
            self.refresh_pod();
            again = self.refresh().await.then(|| Instant::now() + PAUSE);
        }
    }

    /// The pod as it is labelled now. One that was made again under the same name is another pod.
    fn refresh_pod(&mut self) {
        let now = self.around.sources.pod(&self.key);
        if let Some(now) = now.filter(|now| now.uid() == self.pod.uid()) {
            self.pod = now;
        }
    }

    /// Whether to try again although nothing changes. A volume that cannot be written keeps its files, and holds up no other.
    async fn refresh(&mut self) -> bool {
        let mut again = false;
        for volume in &self.volumes {
            let Err(cause) = write(volume, &self.pod, &self.around, &mut self.tokens).await else {
                self.wrong.remove(&volume.name);
                continue;
            };
            let error = cause.of(&volume.name);
            again |= error.needs().is_none_or(|needed| needed.kind == Kind::ServiceAccount);
            let told = self.wrong.insert(volume.name.clone(), error.to_string());
            if told == Some(error.to_string()) {
                continue;
            }
            // Somebody deleted what it shows: nothing is wrong with the node, and the pod is often about to follow. A token that has ended and is not renewed, or a key
            // that is gone, is missed by a pod that stays.
            if error.is_missing() {
                tracing::info!(pod = %self.key, %error, "a volume keeps the files that it has");
            } else {
                tracing::warn!(pod = %self.key, %error, "a volume keeps the files that it has");
            }
        }
        again
    }

    fn needs(&self) -> BTreeSet<Ref> {
        self.volumes.iter().flat_map(|volume| volume.recipe.needs(&self.key.namespace, &self.key.name)).collect()
    }
}

async fn write(volume: &Written, pod: &Pod, around: &Surroundings, tokens: &mut Tokens) -> Result<(), Cause> {
    let payload = volume.recipe.payload(pod, around, tokens).await?;
    let dir = volume.dir.clone();
    let written = tokio::task::spawn_blocking(move || atomic::write(&dir, &payload));
    let written = written.await.unwrap_or_else(|error| Err(std::io::Error::other(error)));
    written.map(drop).map_err(|source| Cause::io("write", &volume.dir, source))
}

async fn sleep_until(at: Option<Instant>) {
    match at {
        Some(at) => tokio::time::sleep_until(at).await,
        None => std::future::pending().await,
    }
}
