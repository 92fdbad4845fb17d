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
    VolumeError, VolumeErrorCause, atomic_writer,
    projection::{ProjectedFiles, ProjectionContext},
};
use crate::{
    key::NamespacedKey,
    kubelet::{
        sources::{SourceChanges, SourceKind, SourceRef},
        tokens::TokenManager,
    },
};

/// The retry delay after a failure without a change.
const WRITE_RETRY_DELAY: Duration = Duration::from_secs(5);

/// A volume that is written.
#[derive(Clone, Debug)]
pub(super) struct WrittenVolume {
    name: String,
    dir: PathBuf,
    projected_files: ProjectedFiles,
}

impl WrittenVolume {
    pub(super) fn new(name: &str, dir: &Path, projected_files: ProjectedFiles) -> Self {
        Self { name: name.to_owned(), dir: dir.to_owned(), projected_files }
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    pub(super) fn dir(&self) -> &Path {
        &self.dir
    }
}

/// All written volumes of a pod.
pub(super) struct VolumeUpdater {
    pod: Arc<Pod>,
    key: NamespacedKey,
    context: ProjectionContext,
    volumes: Vec<WrittenVolume>,
    tokens: TokenManager,
    /// The last error of each volume, so that it is reported once.
    last_errors: BTreeMap<String, String>,
}

impl VolumeUpdater {
    pub(super) fn new(pod: &Pod, around: ProjectionContext, volumes: Vec<WrittenVolume>, tokens: TokenManager) -> Self {
        let mut upkeep = Self {
            pod: Arc::new(pod.clone()),
            key: NamespacedKey::from_object(pod),
            context: around,
            volumes,
            tokens,
            last_errors: BTreeMap::new(),
        };
        // Use the informer's copy of the pod, to share its memory.
        upkeep.refresh_pod();
        upkeep
    }

    /// Writes the current content of all volumes.
    pub(super) async fn write_all(&mut self) -> Result<(), VolumeError> {
        for volume in &self.volumes {
            let written = write_volume(volume, &self.pod, &self.context, &mut self.tokens).await;
            written.map_err(|cause| cause.for_volume(&volume.name))?;
        }
        Ok(())
    }

    /// Writes every change until the receiver signals the end. A write in progress is completed.
    pub(super) async fn run(mut self, mut changes: SourceChanges, mut ended: oneshot::Receiver<()>) {
        let needs = self.source_refs();
        let mut again = None;
        loop {
            let next = [again, self.tokens.next_renewal()].into_iter().flatten().min();
            tokio::select! {
                () = changes.wait_for_any(&needs) => {}
                () = sleep_until(next) => {}
                _ = &mut ended => return,
            }
            self.refresh_pod();
            again = self.refresh().await.then(|| Instant::now() + WRITE_RETRY_DELAY);
        }
    }

    /// Updates the labels of the pod. A pod that was created again under the same name is another pod.
    fn refresh_pod(&mut self) {
        let now = self.context.sources.cached_pod(&self.key);
        if let Some(now) = now.filter(|now| now.uid() == self.pod.uid()) {
            self.pod = now;
        }
    }

    /// Writes all volumes. Returns whether to retry without a change. A volume that cannot be written keeps its
    /// files and does not block the others.
    async fn refresh(&mut self) -> bool {
        let mut again = false;
        for volume in &self.volumes {
            let Err(cause) = write_volume(volume, &self.pod, &self.context, &mut self.tokens).await else {
                self.last_errors.remove(&volume.name);
                continue;
            };
            let error = cause.for_volume(&volume.name);
            again |= error.missing_source().is_none_or(|needed| needed.kind == SourceKind::ServiceAccount);
            let told = self.last_errors.insert(volume.name.clone(), error.to_string());
            if told == Some(error.to_string()) {
                continue;
            }
            // The source was deleted. Nothing is wrong with the node, and the pod is often about to be deleted,
            // too. A token that expired and cannot be renewed, or a missing key, matters to a pod that
            // continues to run.
            if error.is_missing() {
                tracing::info!(pod = %self.key, %error, "failed to update a volume, keeping its current files");
            } else {
                tracing::warn!(pod = %self.key, %error, "failed to update a volume, keeping its current files");
            }
        }
        again
    }

    fn source_refs(&self) -> BTreeSet<SourceRef> {
        self.volumes
            .iter()
            .flat_map(|volume| volume.projected_files.source_refs(&self.key.namespace, &self.key.name))
            .collect()
    }
}

async fn write_volume(
    volume: &WrittenVolume,
    pod: &Pod,
    around: &ProjectionContext,
    tokens: &mut TokenManager,
) -> Result<(), VolumeErrorCause> {
    let payload = volume.projected_files.read_payload(pod, around, tokens).await?;
    let dir = volume.dir.clone();
    let written = tokio::task::spawn_blocking(move || atomic_writer::write_payload(&dir, &payload));
    let written = written.await.unwrap_or_else(|error| Err(std::io::Error::other(error)));
    written.map(drop).map_err(|source| VolumeErrorCause::io("write", &volume.dir, source))
}

async fn sleep_until(at: Option<Instant>) {
    match at {
        Some(at) => tokio::time::sleep_until(at).await,
        None => std::future::pending().await,
    }
}
