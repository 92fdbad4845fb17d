//! One pipeline: fetch what it names, validate it, take its slot, let the layer be made, and say what came of it.
//!
//! All pipelines are looked at at once, and each waits for the layer. So what sends requests is in boxes, which are there only while it does.
//!
//! *Guaranteed*: only a valid pipeline takes a slot, and nothing else in the cluster is touched before. One that holds a slot and is not valid any more goes on as it was.

use std::{
    collections::HashMap,
    fmt::Debug,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use jiff::Timestamp;
use k8s_openapi::{ClusterResourceScope, api::core::v1::ConfigMap, apimachinery::pkg::apis::meta::v1::OwnerReference};
use kube::{
    Api, Resource, ResourceExt as _,
    api::{Patch, PatchParams},
    core::object::HasStatus,
    runtime::controller::Action,
};
use kubewake_api::{Pipeline, Resolved, Signal, v1alpha1::PipelineStatus, validate};
use kubewake_trail::{Trail, events::Events};
use serde::{Serialize, de::DeserializeOwned};
use tokio::sync::Semaphore;

use crate::{
    apply::Applier,
    cause::Cause,
    context::World,
    desk::{Entry, Id},
    kept,
    kind::Kind,
    layer::{Failure, Runs},
    lock::{self, Lock, Slot},
    losses,
    metrics::Step,
    names,
    news::News,
    ready::Collectors,
    status::{self, Facts},
    written::{self, Written},
};

#[cfg(test)]
mod tests;

/// The first pause after a failure.
const FIRST_PAUSE: Duration = Duration::from_millis(500);
/// The longest: whoever has mended something waits no longer.
const LAST_PAUSE: Duration = Duration::from_secs(60);

/// So many pipelines are written about at once. Each takes a connection of its own, which stays open for a while and costs a tenth of a megabyte.
const AT_ONCE: usize = 8;

/// A kind of pipeline.
pub trait PipelineKind:
    Resource<DynamicType = (), Scope = ClusterResourceScope>
    + HasStatus<Status = PipelineStatus>
    + Clone
    + Debug
    + Serialize
    + DeserializeOwned
    + Send
    + Sync
    + 'static
{
    /// What it is, whatever its kind.
    fn pipeline(&self) -> Pipeline;
}

impl<K> PipelineKind for K
where
    K: Resource<DynamicType = (), Scope = ClusterResourceScope>
        + HasStatus<Status = PipelineStatus>
        + Clone
        + Debug
        + Serialize
        + DeserializeOwned
        + Send
        + Sync
        + 'static,
    for<'a> Pipeline: From<&'a K>,
{
    fn pipeline(&self) -> Pipeline {
        Pipeline::from(self)
    }
}

/// Why a reconcile failed: the step that did not work.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// It is not known whether there is a slot.
    #[error(transparent)]
    Slot(#[from] lock::Error),
    /// The layer is not as it should be; the words are those of the status.
    #[error("{words}", words = .0.words)]
    Layer(Failure),
    /// The status cannot be written.
    #[error("the status cannot be written")]
    Status(#[source] Box<kube::Error>),
}

impl Error {
    /// The step that failed, and why.
    fn class(&self) -> (Step, Cause) {
        match self {
            Self::Slot(error) => (Step::Slot, error.into()),
            Self::Layer(failure) => (Step::Layer, failure.cause),
            Self::Status(source) => (Step::Status, Cause::from(&**source)),
        }
    }
}

/// What reconciles need.
pub struct Context {
    world: Arc<World>,
    runs: Runs,
    trail: Trail,
    events: Events,
    applier: Applier,
    turn: tokio::sync::Mutex<()>,
    writers: Semaphore,
    written: Written<PipelineStatus>,
    failures: Mutex<HashMap<String, u32>>,
}

impl Context {
    /// In this world.
    pub fn new(world: Arc<World>, trail: Trail) -> Self {
        let events = trail.events(world.client.clone(), names::MANAGER).by_note();
        let applier = Applier::new(world.client.clone(), &world.options.namespace, Arc::clone(&world.live));
        let runs = Runs::new(Arc::clone(&world), applier.clone());
        Self {
            runs,
            world,
            trail,
            events,
            applier,
            turn: tokio::sync::Mutex::default(),
            writers: Semaphore::new(AT_ONCE),
            written: Written::default(),
            failures: Mutex::default(),
        }
    }

    /// Publishes events.
    pub fn events(&self) -> &Events {
        &self.events
    }

    /// Waits for a run of the layer, and says whether it is what it should be.
    pub async fn settled(&self) -> bool {
        self.runs.settled().await.failure.is_none()
    }

    /// Looks at a pipeline, and takes a slot if it has reason to.
    async fn examine<K: PipelineKind>(
        &self,
        object: &K,
        pipeline: &Pipeline,
        owner: OwnerReference,
    ) -> (Entry, Result<(), Error>) {
        let references = pipeline.references();
        let resolved = Arc::new(self.world.sources.resolve(&references).await);
        self.world.live.synced().await;
        let before = self.world.desk.get(&id_of(pipeline), &pipeline.uid);
        let again = before.as_ref().and_then(|before| before.again(pipeline.generation, &resolved));
        let checked = again.map_or_else(|| validate(pipeline, &resolved, Timestamp::now()).map(Arc::new), Ok);
        let (valid, problems) = match checked {
            Ok(valid) => (Some(valid), Vec::new()),
            // As it was when it was valid the last time.
            Err(problems) => match before {
                Some(before) => (before.valid.clone(), problems),
                None => (kept::recall(&self.world.live, object).map(Arc::new), problems),
            },
        };
        let (slot, result) = match self.slot(pipeline.signal, &owner, problems.is_empty()).await {
            Ok(slot) => (slot, Ok(())),
            Err(error) => (None, Err(error)),
        };
        if slot == Some(Slot::Held) && problems.is_empty() {
            self.keep(object, &owner, &resolved).await;
        }
        let checked = Some((pipeline.generation, resolved));
        (Entry { owner, valid, problems, slot, checked }, result)
    }

    /// Keeps what is valid for an operator that starts later. Without it everything goes on as long as this one does.
    async fn keep<K: PipelineKind>(&self, object: &K, owner: &OwnerReference, resolved: &Resolved) {
        let Some(desired) = kept::keep(&self.world.live, object, owner, resolved, Timestamp::now()) else { return };
        // It is never closed.
        let _permit = self.writers.acquire().await;
        match Box::pin(self.applier.apply(&desired)).await {
            Ok(true) => self.world.metrics.wrote(desired.kind),
            Ok(false) => {}
            Err(error) => {
                self.world.metrics.failed(Step::Keep, Cause::from(&error));
                let (kind, error) = (K::kind(&()), error.words());
                tracing::warn!(%kind, name = object.name_any(), error, "what it is now cannot be kept");
            }
        }
    }

    /// Whether the pipeline holds a slot. One that is free is taken only if it `may`.
    async fn slot(&self, signal: Signal, owner: &OwnerReference, may: bool) -> Result<Option<Slot>, Error> {
        // One after the other, as those of one operator would only be in each other's way.
        let _turn = self.turn.lock().await;
        let slots = self.world.settings().slots(signal);
        let known = self.world.live.get(Kind::ConfigMap, lock::name(signal));
        let known = known.and_then(|lock| serde_json::from_value::<ConfigMap>((*lock).clone()).ok());
        match known.and_then(|lock| lock::judge(&lock, &owner.uid, slots)) {
            Some(Slot::Held) => Ok(Some(Slot::Held)),
            _ if !may => Ok(None),
            Some(Slot::Full) => Ok(Some(Slot::Full)),
            None => {
                let api = Api::namespaced(self.world.client.clone(), &self.world.options.namespace);
                let taken = Box::pin(Lock::new(api, signal).take(owner, slots)).await?;
                taken.lock.iter().for_each(|lock| self.world.live.note(Kind::ConfigMap, lock));
                Ok(Some(taken.slot))
            }
        }
    }

    /// Writes a status that is not there yet, and tells of what is new in it.
    async fn write<K: PipelineKind>(
        &self,
        object: &K,
        before: Option<&PipelineStatus>,
        status: PipelineStatus,
        is_stuck: bool,
    ) -> Result<(), Error> {
        if before == Some(&status) {
            return Ok(());
        }
        // It is never closed.
        let _permit = self.writers.acquire().await;
        let (api, patch) = (Api::<K>::all(self.world.client.clone()), Patch::Merge(written::patch(before, &status)));
        let answer = Box::pin(self.trail.patch_status(&api, object, &PatchParams::apply(names::MANAGER), &patch)).await;
        let answer = match answer {
            // It was deleted meanwhile.
            Err(kube::Error::Api(answer)) if answer.code == 404 => return Ok(()),
            answer => answer.map_err(|error| Error::Status(Box::new(error)))?,
        };
        self.written.note(&answer, status.clone());
        Box::pin(News::from(&status).stuck(is_stuck).tell(before.map(News::from), &self.events, object)).await;
        Ok(())
    }

    /// How often in a row it failed. Who failed before and is gone is forgotten when somebody else begins to fail.
    fn failed(&self, uid: &str) -> u32 {
        let mut failures = self.failures.lock().unwrap_or_else(PoisonError::into_inner);
        if !failures.contains_key(uid) {
            let there = self.world.uids();
            failures.retain(|uid, _| there.contains(uid));
        }
        let count = failures.entry(uid.to_owned()).or_default();
        *count = count.saturating_add(1);
        *count
    }

    fn succeeded(&self, uid: &str) {
        self.failures.lock().unwrap_or_else(PoisonError::into_inner).remove(uid);
    }
}

/// Brings the layer nearer to what one pipeline asks for.
pub async fn reconcile<K: PipelineKind>(object: Arc<K>, context: Arc<Context>) -> Result<Action, Error> {
    if object.meta().deletion_timestamp.is_some() {
        return terminating(&*object, &context).await;
    }
    let Some(owner) = object.owner_ref(&()) else { return Ok(Action::await_change()) };
    let (pipeline, world) = (object.pipeline(), &context.world);
    let _timer = world.metrics.reconcile(pipeline.signal);
    let id = id_of(&pipeline);
    let (entry, slot) = context.examine(&*object, &pipeline, owner).await;
    // Also if it is not known whether there is a slot, so that nobody waits for it: the layer goes by the locks.
    world.desk.put(id.clone(), entry.clone());
    slot?;
    let outcome = context.runs.settled().await;
    let settings = world.settings();
    let is_sticky = entry.valid.as_ref().is_some_and(|valid| valid.is_sticky());
    let facts = Facts {
        id: &id,
        generation: object.meta().generation,
        backend: entry.valid.as_ref().map(|valid| valid.backend().to_owned()).unwrap_or_default(),
        entry: &entry,
        outcome: &outcome,
        collectors: &Collectors::of(&world.live, is_sticky).with(&world.pods),
        verdict: world.verdicts.get(&id, &pipeline.uid),
        slots: settings.slots(pipeline.signal),
        warnings: settings.warnings(&pipeline),
        losses: world.losses.uncounted(&pipeline.uid),
    };
    let before = context.written.after(&*object).or_else(|| object.status().cloned());
    let status = status::status(before.as_ref(), &facts, Timestamp::now());
    world.metrics.state(&id, status.state);
    let last_loss = status.dropped_at_shutdown.as_ref().map(|drops| drops.last_time.0);
    context.write(&*object, before.as_ref(), status, facts.collectors.are_stuck()).await?;
    world.losses.counted(&pipeline.uid, facts.losses.len());
    if let Some(failure) = outcome.failure.clone() {
        return Err(Error::Layer(failure));
    }
    context.succeeded(&pipeline.uid);
    Ok(Action::requeue(next_look(&entry, last_loss, world.options.resync, Timestamp::now())))
}

/// Says of a pipeline that is being deleted that it is. Nothing else is done for it: it is no holder any more, and the layer goes on without it.
async fn terminating<K: PipelineKind>(object: &K, context: &Context) -> Result<Action, Error> {
    let before = context.written.after(object).or_else(|| object.status().cloned());
    let status = status::terminating(before.as_ref(), object.meta(), Timestamp::now());
    context.write(object, before.as_ref(), status, false).await?;
    Ok(Action::await_change())
}

/// When to look again if nothing happens: at the latest when a certificate is to be warned about, or has expired.
fn next_look(entry: &Entry, last_loss: Option<Timestamp>, resync: Duration, now: Timestamp) -> Duration {
    // What was lost lately is not lately any more after a while.
    let forgotten = last_loss.and_then(|at| at.checked_add(losses::LATELY).ok()).filter(|at| *at > now);
    let recheck = entry.valid.as_ref().and_then(|valid| valid.recheck(now));
    // One that has expired is kept as it was, and is nothing to come back for at once.
    let left =
        [recheck, forgotten].into_iter().flatten().filter_map(|at| Duration::try_from(at.duration_since(now)).ok());
    left.fold(resync, Duration::min)
}

fn id_of(pipeline: &Pipeline) -> Id {
    Id { signal: pipeline.signal, name: pipeline.name.clone() }
}

/// When to try again what failed: ever more rarely.
pub fn again<K: PipelineKind>(object: Arc<K>, error: &Error, context: Arc<Context>) -> Action {
    let (kind, meta) = (K::kind(&()), object.meta());
    let (step, why) = error.class();
    context.world.metrics.failed(step, why);
    let cause = error as &dyn std::error::Error;
    tracing::warn!(%kind, name = ?meta.name, error = cause, "it does not work yet");
    let doublings = context.failed(meta.uid.as_deref().unwrap_or_default()).min(10) - 1;
    Action::requeue((FIRST_PAUSE * 2_u32.pow(doublings)).min(LAST_PAUSE))
}
