//! Cache of each pipeline's last validation. In memory, and filled again after a restart.
//!
//! A pipeline that was valid once and is not now, for example because its Secret is gone, is cached with its
//! last valid spec: what runs continues.

use std::{
    collections::BTreeMap,
    sync::{Arc, MutexGuard},
};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kubewake_api::{ResolvedReferences, SpecProblem, ValidPipeline};
use kubewake_runtime::lock::Mutex;
use tokio::sync::watch;

use crate::{model::pipeline_key::PipelineKey, pipeline::slot_lock::Slot};

#[derive(Clone, Debug)]
pub struct PipelineState {
    /// The pipeline as an owner of other objects.
    pub owner: OwnerReference,
    /// The spec that may be rendered: the current one, or the last valid one.
    pub valid: Option<Arc<ValidPipeline>>,
    /// The problems of the current spec.
    pub problems: Vec<SpecProblem>,
    /// Whether the pipeline holds a slot; `None` if it did not try to take one, or if that failed.
    pub slot: Option<Slot>,
    /// The input of the validation: the generation, and the referenced values.
    pub checked: Option<(i64, Arc<ResolvedReferences>)>,
}

impl PipelineState {
    /// The last validation, if the input is the same. One that depends on the time is never reused.
    pub fn reusable_validation(&self, generation: i64, resolved: &ResolvedReferences) -> Option<Arc<ValidPipeline>> {
        let valid = self.valid.as_ref().filter(|valid| self.problems.is_empty() && valid.expires().is_none())?;
        let (of, with) = self.checked.as_ref()?;
        (*of == generation && **with == *resolved).then(|| Arc::clone(valid))
    }
}

/// How waiting for the validation of all pipelines ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CacheCompletion {
    Complete,
    /// The pipeline of the waiting run is not live any more.
    Ended,
}

/// The last validation of each pipeline, for readers.
#[derive(Debug)]
pub struct PipelineCache {
    entries: Mutex<BTreeMap<PipelineKey, Arc<PipelineState>>>,
    /// Grows when a pipeline was validated, or may have been deleted.
    changes: watch::Sender<u64>,
}

/// The right to change a [`PipelineCache`]: for reconciles, and for the cleanup after deleted pipelines.
#[derive(Clone, Debug)]
pub struct PipelineCacheWriter(Arc<PipelineCache>);

impl PipelineCache {
    /// The validation of the pipeline with this uid.
    pub fn get(&self, id: &PipelineKey, uid: &str) -> Option<Arc<PipelineState>> {
        self.entries().get(id).filter(|entry| entry.owner.uid == uid).cloned()
    }

    /// The validations of those pipelines.
    pub fn list(&self, live_uids: &BTreeMap<PipelineKey, String>) -> BTreeMap<PipelineKey, Arc<PipelineState>> {
        let entries = self.entries();
        let is_live = |id: &PipelineKey, entry: &PipelineState| live_uids.get(id) == Some(&entry.owner.uid);
        let live = entries.iter().filter(|(id, entry)| is_live(id, entry));
        live.map(|(id, entry)| (id.clone(), Arc::clone(entry))).collect()
    }

    /// Waits until all live pipelines were validated. Pipelines may come and go meanwhile.
    ///
    /// A run names its own pipeline, and gets `Ended` as soon as that one is not live any more. A pipeline that was
    /// created again under the same name is validated only after that run, which would otherwise wait for ever.
    pub async fn wait_complete(
        &self,
        live_uids: impl Fn() -> BTreeMap<PipelineKey, String>,
        own: Option<(&PipelineKey, &str)>,
    ) -> CacheCompletion {
        let mut changes = self.changes.subscribe();
        loop {
            changes.mark_unchanged();
            let live = live_uids();
            if own.is_some_and(|(id, uid)| live.get(id).is_none_or(|live| live != uid)) {
                return CacheCompletion::Ended;
            }
            let missing = |(id, uid): (&PipelineKey, &String)| self.get(id, uid).is_none();
            if !live.iter().any(missing) {
                return CacheCompletion::Complete;
            }
            // The sender is a field of this value, so the wait cannot fail.
            let _ = changes.changed().await;
        }
    }

    fn entries(&self) -> MutexGuard<'_, BTreeMap<PipelineKey, Arc<PipelineState>>> {
        self.entries.lock()
    }
}

impl Default for PipelineCacheWriter {
    fn default() -> Self {
        Self(Arc::new(PipelineCache { entries: Mutex::default(), changes: watch::Sender::new(0) }))
    }
}

impl PipelineCacheWriter {
    pub fn reader(&self) -> Arc<PipelineCache> {
        Arc::clone(&self.0)
    }

    /// Stores the validation of a pipeline.
    pub fn insert(&self, id: PipelineKey, entry: PipelineState) {
        self.0.entries().insert(id, Arc::new(entry));
        self.wake_waiters();
    }

    /// Drops a pipeline that is being deleted: nobody waits for its validation any more.
    pub fn remove(&self, id: &PipelineKey, uid: &str) {
        self.0.entries().retain(|key, entry| key != id || entry.owner.uid != uid);
        self.wake_waiters();
    }

    /// Drops all pipelines that are not live.
    pub fn retain_live(&self, live_uids: impl FnOnce() -> BTreeMap<PipelineKey, String>) {
        let mut entries = self.0.entries();
        // Called under the lock, when nothing can be inserted: a pipeline is in its store before it is validated.
        let live_uids = live_uids();
        entries.retain(|id, entry| live_uids.get(id) == Some(&entry.owner.uid));
    }

    /// Wakes the waiters each time that pipelines may have been deleted, until the sender is dropped.
    pub async fn follow_deletions(self, mut deletions: watch::Receiver<u64>) {
        while deletions.changed().await.is_ok() {
            self.wake_waiters();
        }
    }

    fn wake_waiters(&self) {
        self.0.changes.send_modify(|changes| *changes = changes.wrapping_add(1));
    }
}

#[cfg(test)]
mod tests {
    use std::{sync::atomic::AtomicBool, sync::atomic::Ordering, time::Duration};

    use futures_util::FutureExt as _;
    use kubewake_api::Signal;
    use tokio::time::timeout;

    use super::*;

    fn key(name: &str) -> PipelineKey {
        PipelineKey { signal: Signal::Traces, name: name.to_owned() }
    }

    fn validated(uid: &str) -> PipelineState {
        let owner = OwnerReference { uid: uid.to_owned(), ..OwnerReference::default() };
        PipelineState { owner, valid: None, problems: Vec::new(), slot: None, checked: None }
    }

    #[tokio::test]
    async fn cache_is_complete_when_every_live_pipeline_was_validated() {
        let writer = PipelineCacheWriter::default();
        let cache = writer.reader();
        let live = || BTreeMap::from([(key("a"), "new".to_owned())]);
        assert!(cache.wait_complete(live, None).now_or_never().is_none());
        writer.insert(key("a"), validated("old"));
        assert!(cache.wait_complete(live, None).now_or_never().is_none(), "that one had the name before");
        writer.insert(key("a"), validated("new"));
        assert!(cache.wait_complete(live, None).now_or_never().is_some());
        assert_eq!(cache.list(&live()).len(), 1);
        writer.remove(&key("a"), "new");
        assert!(cache.list(&live()).is_empty());
    }

    #[tokio::test]
    async fn run_of_a_pipeline_that_was_created_again_waits_for_nobody() {
        let writer = PipelineCacheWriter::default();
        writer.insert(key("a"), validated("old"));
        let cache = writer.reader();
        let live = || BTreeMap::from([(key("a"), "new".to_owned())]);
        let of_run = cache.wait_complete(live, Some((&key("a"), "old"))).now_or_never();
        assert_eq!(of_run, Some(CacheCompletion::Ended));
        assert_eq!(cache.wait_complete(live, None).now_or_never(), None);
    }

    /// Time stands still, so that nothing that polls would ever notice.
    #[tokio::test(start_paused = true)]
    async fn waiters_are_woken_when_the_missing_pipeline_is_deleted() {
        let writer = PipelineCacheWriter::default();
        let (deleted, deletions) = watch::channel(0);
        tokio::spawn(writer.clone().follow_deletions(deletions));
        let is_there = Arc::new(AtomicBool::new(true));
        let uids = {
            let is_there = Arc::clone(&is_there);
            move || is_there.load(Ordering::SeqCst).then(|| (key("a"), "uid".to_owned())).into_iter().collect()
        };
        let cache = writer.reader();
        let waiter = tokio::spawn(async move { cache.wait_complete(uids, None).await });
        tokio::task::yield_now().await;
        is_there.store(false, Ordering::SeqCst);
        let before = tokio::time::Instant::now();
        deleted.send_modify(|count| *count += 1);
        timeout(Duration::from_secs(60), waiter).await.unwrap().unwrap();
        assert_eq!(before.elapsed(), Duration::ZERO);
    }
}
