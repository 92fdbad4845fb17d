//! Cache of each pipeline's last validation. In memory, and filled again after a restart.
//!
//! A pipeline that was valid once and is not now, for example because its Secret is gone, is cached with its
//! last valid spec: what runs continues.

use std::{
    collections::BTreeMap,
    fmt,
    sync::{Arc, MutexGuard},
    time::Duration,
};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kubewake_api::{ResolvedReferences, Signal, SpecProblem, ValidPipeline};
use kubewake_runtime::lock::Mutex;
use tokio::sync::watch;

use crate::pipeline::slot_lock::Slot;

/// The interval at which waiters check whether a pipeline was deleted.
const POLL_INTERVAL: Duration = Duration::from_millis(100);

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PipelineKey {
    /// The signal, which determines the kind.
    pub signal: Signal,
    pub name: String,
}

/// The id in documents: `traces/backend`.
impl fmt::Display for PipelineKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.signal, self.name)
    }
}

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

/// The last validation of each pipeline.
#[derive(Debug)]
pub struct PipelineCache {
    entries: Mutex<BTreeMap<PipelineKey, Arc<PipelineState>>>,
    changes: watch::Sender<u64>,
}

impl Default for PipelineCache {
    fn default() -> Self {
        Self { entries: Mutex::default(), changes: watch::Sender::new(0) }
    }
}

impl PipelineCache {
    /// Stores the validation of a pipeline.
    pub fn insert(&self, id: PipelineKey, entry: PipelineState) {
        self.entries().insert(id, Arc::new(entry));
        self.changes.send_modify(|changes| *changes = changes.wrapping_add(1));
    }

    /// The validation of the pipeline with this uid.
    pub fn get(&self, id: &PipelineKey, uid: &str) -> Option<Arc<PipelineState>> {
        self.entries().get(id).filter(|entry| entry.owner.uid == uid).cloned()
    }

    /// Drops pipelines that are not present, and returns the others.
    pub fn retain_and_list(
        &self,
        present: impl FnOnce() -> BTreeMap<PipelineKey, String>,
    ) -> BTreeMap<PipelineKey, Arc<PipelineState>> {
        let mut entries = self.entries();
        // Called under the lock, when nothing can be inserted: a pipeline is present before it is validated.
        let present = present();
        entries.retain(|id, entry| present.get(id) == Some(&entry.owner.uid));
        entries.clone()
    }

    /// Waits until all present pipelines were validated. Pipelines may come and go meanwhile.
    pub async fn wait_complete(&self, present: impl Fn() -> BTreeMap<PipelineKey, String>) {
        let mut changes = self.changes.subscribe();
        loop {
            changes.mark_unchanged();
            let missing = |(id, uid): (&PipelineKey, &String)| self.get(id, uid).is_none();
            if !present().iter().any(missing) {
                return;
            }
            // A deletion does not notify this channel, hence the interval.
            let _ = tokio::time::timeout(POLL_INTERVAL, changes.changed()).await;
        }
    }

    fn entries(&self) -> MutexGuard<'_, BTreeMap<PipelineKey, Arc<PipelineState>>> {
        self.entries.lock()
    }
}
