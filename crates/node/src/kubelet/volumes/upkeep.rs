//! Keeps the written volumes of a pod up to date.

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;
use tokio::time::Instant;

use super::{
    Cause, VolumeError, atomic,
    payload::{Recipe, Surroundings},
};
use crate::{
    key::Key,
    kubelet::{
        sources::{Changes, Ref},
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
}

/// All written volumes of a pod.
pub(super) struct Upkeep {
    pod: Arc<Pod>,
    key: Key,
    around: Surroundings,
    volumes: Vec<Written>,
    tokens: Tokens,
}

impl Upkeep {
    pub(super) fn new(pod: &Pod, around: Surroundings, volumes: Vec<Written>, tokens: Tokens) -> Self {
        let mut upkeep = Self { pod: Arc::new(pod.clone()), key: Key::of(pod), around, volumes, tokens };
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

    /// Writes whatever changes, for ever.
    pub(super) async fn run(mut self, mut changes: Changes) {
        let needs = self.needs();
        let mut again = None;
        loop {
            let next = [again, self.tokens.renewal()].into_iter().flatten().min();
            tokio::select! {
                () = changes.any_of(&needs) => {}
                () = sleep_until(next) => {}
            }
            self.refresh_pod();
            again = self.refresh().await.err().map(|()| Instant::now() + PAUSE);
        }
    }

    /// The pod as it is labelled now. One that was made again under the same name is another pod.
    fn refresh_pod(&mut self) {
        let now = self.around.sources.pod(&self.key);
        if let Some(now) = now.filter(|now| now.uid() == self.pod.uid()) {
            self.pod = now;
        }
    }

    /// A volume that cannot be written keeps its files, and holds up no other.
    async fn refresh(&mut self) -> Result<(), ()> {
        let mut outcome = Ok(());
        for volume in &self.volumes {
            if let Err(cause) = write(volume, &self.pod, &self.around, &mut self.tokens).await {
                let error = cause.of(&volume.name);
                tracing::warn!(pod = %self.key, %error, "a volume keeps the files that it has");
                outcome = Err(());
            }
        }
        outcome
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
