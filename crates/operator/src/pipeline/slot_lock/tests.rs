//! The lock against the embedded API server, whose garbage collector frees slots.

use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex},
    time::Duration,
};

use futures_util::{StreamExt as _, future};
use k8s_openapi::api::rbac::v1::ClusterRole;
use kube::{
    Client, Resource as _,
    api::{DeleteParams, ListParams, WatchEvent, WatchParams},
};
use kubewake_apiserver::server::{ApiServer, Options};
use tokio::time::timeout;

use super::*;

/// Far more than any step takes on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// A cluster with cluster-scoped objects that want slots.
struct OperatorState {
    _server: ApiServer,
    client: Client,
    lock: SlotLock,
    /// The objects that were deleted, or are about to be.
    going: Arc<Mutex<BTreeSet<String>>>,
}

impl OperatorState {
    async fn new() -> Self {
        let server = ApiServer::start(Options::default()).await.unwrap();
        let client = server.client().unwrap();
        let lock = SlotLock::new(Api::namespaced(client.clone(), "default"), Signal::Traces);
        Self { _server: server, client, lock, going: Arc::default() }
    }

    fn pipelines(&self) -> Api<ClusterRole> {
        Api::all(self.client.clone())
    }

    async fn pipeline(&self, name: &str) -> OwnerReference {
        let mut new = ClusterRole::default();
        new.metadata.name = Some(name.to_owned());
        let made = self.pipelines().create(&PostParams::default(), &new).await.unwrap();
        made.owner_ref(&()).unwrap()
    }

    async fn delete(&self, pipeline: &OwnerReference) {
        self.going.lock().unwrap().insert(pipeline.uid.clone());
        self.pipelines().delete(&pipeline.name, &DeleteParams::background()).await.unwrap();
    }

    async fn holders(&self) -> BTreeSet<String> {
        self.lock.read().await.unwrap().map(|lock| holders(&lock)).unwrap_or_default()
    }

    /// Waits until the holders satisfy a condition.
    async fn until(&self, what: &str, holds: impl Fn(&BTreeSet<String>) -> bool) {
        let wait = async {
            while !holds(&self.holders().await) {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        timeout(PATIENCE, wait).await.unwrap_or_else(|_| panic!("never: {what}"));
    }

    /// Checks every revision of the lock: never too many owners, and only deleted objects lose a slot.
    async fn watch(&self, slots: usize) -> tokio::task::JoinHandle<()> {
        let api = self.lock.api.clone();
        let version = api.list(&ListParams::default()).await.unwrap().metadata.resource_version.unwrap();
        let going = Arc::clone(&self.going);
        let mut events = api.watch(&WatchParams::default(), &version).await.unwrap().boxed();
        tokio::spawn(async move {
            let mut before = BTreeSet::new();
            while let Some(event) = events.next().await {
                let now = match event.unwrap() {
                    WatchEvent::Added(lock) | WatchEvent::Modified(lock) if is_lock(&lock) => holders(&lock),
                    WatchEvent::Deleted(lock) if is_lock(&lock) => BTreeSet::new(),
                    _ => continue,
                };
                assert!(now.len() <= slots, "{now:?}");
                assert!(before.difference(&now).all(|uid| going.lock().unwrap().contains(uid)), "{before:?} → {now:?}");
                before = now;
            }
        })
    }
}

fn is_lock(object: &ConfigMap) -> bool {
    object.name_any() == name(Signal::Traces)
}

fn holders(lock: &ConfigMap) -> BTreeSet<String> {
    lock.owner_references().iter().map(|owner| owner.uid.clone()).collect()
}

#[tokio::test]
async fn of_many_who_come_at_once_as_many_as_there_are_slots_get_one() {
    for slots in [1, 3] {
        let world = OperatorState::new().await;
        let watch = world.watch(slots).await;
        let pipelines =
            future::join_all((0..10).map(|n| format!("p{n}")).map(async |name| world.pipeline(&name).await)).await;
        let taken = future::join_all(pipelines.iter().map(async |pipeline| take(&world, pipeline, slots).await)).await;
        assert_eq!(taken.iter().filter(|slot| **slot == Slot::Held).count(), slots);
        for (pipeline, slot) in pipelines.iter().zip(taken) {
            assert_eq!(take(&world, pipeline, slots).await, slot, "to ask again changes nothing");
            assert_eq!(world.holders().await.contains(&pipeline.uid), slot == Slot::Held);
        }
        assert!(!watch.is_finished());
        watch.abort();
    }
}

/// Retries a lock in contention, as a reconcile does.
async fn take(world: &OperatorState, pipeline: &OwnerReference, slots: usize) -> Slot {
    loop {
        match world.lock.take(pipeline, slots).await {
            Err(SlotLockError::Contended(_)) => {}
            answer => return answer.unwrap().slot,
        }
    }
}

#[tokio::test]
async fn a_slot_is_freed_when_its_holder_is_deleted_and_the_lock_goes_with_the_last() {
    let world = OperatorState::new().await;
    let watch = world.watch(2).await;
    let [one, two, three] = [world.pipeline("one").await, world.pipeline("two").await, world.pipeline("three").await];
    assert_eq!(take(&world, &one, 2).await, Slot::Held);
    assert_eq!(take(&world, &two, 2).await, Slot::Held);
    assert_eq!(take(&world, &three, 2).await, Slot::Full);
    assert_eq!(take(&world, &two, 1).await, Slot::Held, "fewer slots take nothing from who holds one");
    world.delete(&one).await;
    world.until("the slot is free", |holders| !holders.contains(&one.uid)).await;
    assert_eq!(take(&world, &three, 2).await, Slot::Held);
    world.delete(&two).await;
    world.delete(&three).await;
    world.until("nobody holds it", BTreeSet::is_empty).await;
    let gone = async { while world.lock.read().await.unwrap().is_some() {} };
    timeout(PATIENCE, gone).await.unwrap();
    let late = world.pipeline("late").await;
    assert_eq!(take(&world, &late, 0).await, Slot::Full);
    assert_eq!(take(&world, &late, 1).await, Slot::Held);
    assert!(!watch.is_finished());
    watch.abort();
}

#[tokio::test]
async fn a_pipeline_that_was_deleted_before_it_took_its_slot_leaves_no_lock() {
    let world = OperatorState::new().await;
    let late = world.pipeline("late").await;
    world.delete(&late).await;
    // Whether it held a slot for a moment or not, nothing is left.
    take(&world, &late, 1).await;
    let gone = async { while world.lock.read().await.unwrap().is_some() {} };
    timeout(PATIENCE, gone).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn whatever_comes_and_goes_there_are_never_too_many() {
    let world = Arc::new(OperatorState::new().await);
    let watch = world.watch(2).await;
    let lives = (0..6).map(|n| {
        let world = Arc::clone(&world);
        tokio::spawn(async move {
            for round in 0..6 {
                let pipeline = world.pipeline(&format!("p{n}-{round}")).await;
                let slot = take(&world, &pipeline, 2).await;
                if slot == Slot::Full {
                    // Another task's deletion frees a slot, or this deletion finds none.
                    take(&world, &pipeline, 2).await;
                }
                world.delete(&pipeline).await;
            }
        })
    });
    for life in future::join_all(lives).await {
        life.unwrap();
    }
    world.until("nobody holds it", BTreeSet::is_empty).await;
    assert!(!watch.is_finished(), "every revision was as it should be");
    watch.abort();
}

#[tokio::test]
async fn who_is_gone_for_good_is_released_and_nobody_else() {
    let world = OperatorState::new().await;
    let one = world.pipeline("one").await;
    let two = world.pipeline("two").await;
    let gone = |all: &[&OwnerReference]| all.iter().map(|it| it.uid.clone()).collect::<BTreeSet<_>>();
    take(&world, &one, 2).await;
    take(&world, &two, 2).await;
    assert!(!world.lock.release_owners(&BTreeSet::new()).await.unwrap(), "both are there");
    assert!(world.lock.release_owners(&gone(&[&one])).await.unwrap());
    assert_eq!(world.holders().await, gone(&[&two]));
    assert!(!world.lock.release_owners(&gone(&[&one])).await.unwrap(), "it is done");
    assert!(world.lock.release_owners(&gone(&[&one, &two])).await.unwrap());
    assert!(world.lock.read().await.unwrap().is_none(), "nobody is left to own it");
    assert!(!world.lock.release_owners(&BTreeSet::new()).await.unwrap());
}

#[tokio::test]
async fn what_somebody_else_made_is_not_released() {
    let world = OperatorState::new().await;
    let mut theirs = ConfigMap::default();
    theirs.metadata.name = Some(name(Signal::Traces).to_owned());
    world.lock.api.create(&PostParams::default(), &theirs).await.unwrap();
    assert!(!world.lock.release_owners(&BTreeSet::new()).await.unwrap());
    assert!(world.lock.read().await.unwrap().is_some());
}
