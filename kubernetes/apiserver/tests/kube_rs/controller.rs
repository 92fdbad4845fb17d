//! A controller over a custom resource: owned objects, garbage collection, finalizers, events.

use std::{sync::Arc, time::Duration};

use futures_util::StreamExt;
use k8s_openapi::{
    api::{core::v1::ConfigMap, events::v1::Event},
    apimachinery::pkg::apis::meta::v1::OwnerReference,
};
use kube::{
    Api, Client, Resource, ResourceExt,
    api::{DeleteParams, ListParams, Patch, PatchParams, PostParams, PropagationPolicy},
    runtime::{
        controller::{Action, Controller},
        events::{Event as Told, EventType, Recorder, Reporter},
        finalizer::{self, finalizer},
        wait::{await_condition, conditions::is_deleted},
        watcher,
    },
};
use serde_json::json;
use tokio::{sync::mpsc, task::JoinHandle};

use crate::support::{Garden, World, config_map, garden, soon, until};

const FINALIZER: &str = "example.com/compost";

struct Context {
    client: Client,
    /// Every reconcile of a garden: its number of beds, or none for a cleanup.
    seen: mpsc::UnboundedSender<Option<i32>>,
}

/// Creates a ConfigMap for each garden, and writes the number of beds to its status.
async fn apply(garden: Arc<Garden>, context: &Context) -> Result<Action, kube::Error> {
    let name = garden.name_any();
    let mut owned = config_map(&name, &garden.spec.beds.to_string());
    owned.metadata.owner_references = Some(vec![garden.controller_owner_ref(&()).unwrap()]);
    let maps: Api<ConfigMap> = Api::default_namespaced(context.client.clone());
    let params = PatchParams::apply("gardener").force();
    maps.patch(&name, &params, &Patch::Apply(&owned)).await?;
    let gardens: Api<Garden> = Api::default_namespaced(context.client.clone());
    let status = json!({ "status": { "beds": garden.spec.beds } });
    gardens.patch_status(&name, &PatchParams::default(), &Patch::Merge(status)).await?;
    let _ = context.seen.send(Some(garden.spec.beds));
    Ok(Action::await_change())
}

async fn clean_up(context: &Context) -> Result<Action, kube::Error> {
    let _ = context.seen.send(None);
    Ok(Action::await_change())
}

async fn reconcile(garden: Arc<Garden>, context: Arc<Context>) -> Result<Action, finalizer::Error<kube::Error>> {
    let gardens: Api<Garden> = Api::default_namespaced(context.client.clone());
    finalizer(&gardens, FINALIZER, garden, |event| async {
        match event {
            finalizer::Event::Apply(garden) => apply(garden, &context).await,
            finalizer::Event::Cleanup(_) => clean_up(&context).await,
        }
    })
    .await
}

fn retry(_: Arc<Garden>, error: &finalizer::Error<kube::Error>, _: Arc<Context>) -> Action {
    // A write conflict: the change triggers another reconcile.
    eprintln!("{error}");
    Action::requeue(Duration::from_millis(10))
}

struct Running {
    task: JoinHandle<()>,
    seen: mpsc::UnboundedReceiver<Option<i32>>,
}

impl Running {
    fn start(world: &World) -> Self {
        let (sender, seen) = mpsc::unbounded_channel();
        let context = Arc::new(Context { client: world.client.clone(), seen: sender });
        let maps: Api<ConfigMap> = Api::default_namespaced(world.client.clone());
        let controller = Controller::new(world.gardens(), watcher::Config::default())
            .owns(maps, watcher::Config::default().streaming_lists());
        let run = controller.run(reconcile, retry, context).for_each(|_| std::future::ready(()));
        Self { task: tokio::spawn(run), seen }
    }

    async fn sees(&mut self, wanted: Option<i32>) {
        soon(async { while self.seen.recv().await.unwrap() != wanted {} }).await;
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.task.abort();
    }
}

#[tokio::test]
async fn a_controller_makes_what_it_owns_and_makes_it_again() {
    let world = World::with_gardens().await;
    let mut controller = Running::start(&world);
    world.gardens().create(&PostParams::default(), &garden("g", 2)).await.unwrap();
    controller.sees(Some(2)).await;
    let first = world.config_maps().get("g").await.unwrap();
    let created = world.gardens().get("g").await.unwrap();
    assert_eq!(created.status.unwrap().beds, 2);

    world.config_maps().delete("g", &DeleteParams::default()).await.unwrap();
    let maps = world.config_maps();
    let again = until(|| async { maps.get_opt("g").await.unwrap() }).await;
    assert_ne!(first.uid(), again.uid());

    let patch = Patch::Merge(json!({ "spec": { "beds": 5 } }));
    world.gardens().patch("g", &PatchParams::default(), &patch).await.unwrap();
    controller.sees(Some(5)).await;
    assert_eq!(crate::support::value_of(&world.config_maps().get("g").await.unwrap()), "5");
}

#[tokio::test]
async fn a_garden_goes_after_its_finalizer_and_takes_what_it_owns_along() {
    let world = World::with_gardens().await;
    let mut controller = Running::start(&world);
    world.gardens().create(&PostParams::default(), &garden("g", 2)).await.unwrap();
    controller.sees(Some(2)).await;
    let created = world.gardens().get("g").await.unwrap();
    assert_eq!(created.finalizers(), [FINALIZER]);
    let owned = world.config_maps().get("g").await.unwrap();

    let marked = world.gardens().delete("g", &DeleteParams::default()).await.unwrap().left().unwrap();
    assert!(marked.meta().deletion_timestamp.is_some());
    controller.sees(None).await;
    soon(await_condition(world.gardens(), "g", is_deleted(&created.uid().unwrap()))).await.unwrap();
    soon(await_condition(world.config_maps(), "g", is_deleted(&owned.uid().unwrap()))).await.unwrap();
}

#[tokio::test]
async fn deletion_in_the_foreground_waits_for_dependents_and_orphaning_spares_them() {
    let world = World::with_gardens().await;
    let owned_by = |garden: &Garden, name: &str| {
        let mut map = config_map(name, "1");
        let owner = garden.controller_owner_ref(&()).unwrap();
        map.metadata.owner_references = Some(vec![OwnerReference { block_owner_deletion: Some(true), ..owner }]);
        map
    };
    for (name, policy) in [("front", PropagationPolicy::Foreground), ("orphan", PropagationPolicy::Orphan)] {
        let garden = world.gardens().create(&PostParams::default(), &garden(name, 1)).await.unwrap();
        let mut map = owned_by(&garden, name);
        map.metadata.finalizers = Some(vec!["example.com/wait".into()]);
        let map = world.config_maps().create(&PostParams::default(), &map).await.unwrap();
        let params = DeleteParams { propagation_policy: Some(policy.clone()), ..DeleteParams::default() };
        world.gardens().delete(name, &params).await.unwrap();
        let maps = world.config_maps();
        if policy == PropagationPolicy::Foreground {
            until(|| async { maps.get(name).await.unwrap().metadata.deletion_timestamp }).await;
            // The owner waits for its dependents.
            assert!(world.gardens().get(name).await.unwrap().metadata.deletion_timestamp.is_some());
            let patch = Patch::Merge(json!({ "metadata": { "finalizers": null } }));
            maps.patch(name, &PatchParams::default(), &patch).await.unwrap();
            soon(await_condition(maps, name, is_deleted(&map.uid().unwrap()))).await.unwrap();
        }
        soon(await_condition(world.gardens(), name, is_deleted(&garden.uid().unwrap()))).await.unwrap();
    }
    let spared = world.config_maps().get("orphan").await.unwrap();
    assert!(spared.owner_references().is_empty() && spared.metadata.deletion_timestamp.is_none());
}

#[tokio::test]
async fn an_object_with_two_owners_outlives_one_of_them() {
    let world = World::with_gardens().await;
    let mut owners = Vec::new();
    for name in ["one", "two"] {
        let garden = world.gardens().create(&PostParams::default(), &garden(name, 1)).await.unwrap();
        owners.push(garden.owner_ref(&()).unwrap());
    }
    let mut map = config_map("shared", "1");
    map.metadata.owner_references = Some(owners.clone());
    let map = world.config_maps().create(&PostParams::default(), &map).await.unwrap();
    world.gardens().delete("one", &DeleteParams::default()).await.unwrap();
    let maps = world.config_maps();
    let one_left = |map: &ConfigMap| map.owner_references().len() == 1;
    let left = until(|| async { maps.get("shared").await.ok().filter(one_left) }).await;
    assert_eq!(left.owner_references()[0].uid, owners[1].uid);
    world.gardens().delete("two", &DeleteParams::default()).await.unwrap();
    soon(await_condition(maps, "shared", is_deleted(&map.uid().unwrap()))).await.unwrap();
}

#[tokio::test]
async fn a_recorder_publishes_events_and_counts_repetitions() {
    let world = World::with_gardens().await;
    let garden = world.gardens().create(&PostParams::default(), &garden("g", 1)).await.unwrap();
    let reporter = Reporter { controller: "gardener".into(), instance: Some("gardener-1".into()) };
    let recorder = Recorder::new(world.client.clone(), reporter);
    let told = Told {
        type_: EventType::Normal,
        reason: "Planted".into(),
        note: Some("all beds are full".into()),
        action: "Planting".into(),
        secondary: None,
    };
    recorder.publish(&told, &garden.object_ref(&())).await.unwrap();
    recorder.publish(&told, &garden.object_ref(&())).await.unwrap();
    let events: Api<Event> = Api::default_namespaced(world.client.clone());
    let listed = events.list(&ListParams::default()).await.unwrap().items;
    assert_eq!(listed.len(), 1);
    let event = &listed[0];
    assert_eq!((event.reason.as_deref(), event.note.as_deref()), (Some("Planted"), Some("all beds are full")));
    assert_eq!(event.series.as_ref().unwrap().count, 2);
    assert_eq!(event.regarding.as_ref().unwrap().uid, garden.uid());
    // The same event in the older group, as `kubectl get events` shows it.
    let older: Api<k8s_openapi::api::core::v1::Event> = Api::default_namespaced(world.client.clone());
    let listed = older.list(&ListParams::default().fields("involvedObject.name=g,reason=Planted")).await.unwrap().items;
    assert_eq!(listed[0].message.as_deref(), Some("all beds are full"));
}

#[tokio::test]
async fn an_absent_owner_makes_an_object_go() {
    let world = World::with_gardens().await;
    let mut gone = garden("gone", 1);
    gone.metadata.uid = Some("6b3b4b1c-0000-4000-8000-000000000000".into());
    let mut map = config_map("left", "1");
    map.metadata.owner_references = Some(vec![gone.owner_ref(&()).unwrap()]);
    let map = world.config_maps().create(&PostParams::default(), &map).await.unwrap();
    soon(await_condition(world.config_maps(), "left", is_deleted(&map.uid().unwrap()))).await.unwrap();
}
