//! Watches as kube-rs uses them: list and watch, streaming lists, metadata only, one object, reflectors.

use std::pin::pin;

use futures_util::{Stream, StreamExt, TryStreamExt, stream};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{
    Api, ResourceExt,
    api::{DeleteParams, PartialObjectMeta, Patch, PatchParams, PostParams},
    runtime::{
        WatchStreamExt,
        reflector::{self, ObjectRef},
        watcher::{self, Event},
    },
};
use serde_json::json;

use crate::support::{World, config_map, soon};

fn told(event: &Event<impl ResourceExt>) -> String {
    match event {
        Event::Init => "init".into(),
        Event::InitApply(object) => format!("there {}", object.name_any()),
        Event::InitDone => "done".into(),
        Event::Apply(object) => format!("apply {}", object.name_any()),
        Event::Delete(object) => format!("delete {}", object.name_any()),
    }
}

async fn next<K: ResourceExt>(
    events: &mut (impl Stream<Item = watcher::Result<Event<K>>> + Unpin),
    count: usize,
) -> Vec<String> {
    let events = events.by_ref().take(count).map_ok(|event| told(&event));
    soon(events.try_collect()).await.unwrap()
}

async fn create(api: &Api<ConfigMap>, name: &str) {
    api.create(&PostParams::default(), &config_map(name, "1")).await.unwrap();
}

async fn label(api: &Api<ConfigMap>, name: &str, value: Option<&str>) {
    let patch = Patch::Merge(json!({ "metadata": { "labels": { "app": value } } }));
    api.patch(name, &PatchParams::default(), &patch).await.unwrap();
}

#[tokio::test]
async fn a_watcher_lists_in_pages_and_then_watches() {
    follows_everything(watcher::Config::default().page_size(2)).await;
}

#[tokio::test]
async fn a_watcher_starts_from_any_version() {
    follows_everything(watcher::Config::default().any_semantic()).await;
}

#[tokio::test]
async fn a_watcher_gets_what_exists_in_the_stream() {
    follows_everything(watcher::Config::default().streaming_lists()).await;
}

async fn follows_everything(config: watcher::Config) {
    let world = World::new().await;
    let api = world.config_maps();
    for name in ["a", "b", "c"] {
        create(&api, name).await;
    }
    let mut events = pin!(watcher::watcher(api.clone(), config));
    assert_eq!(next(&mut events, 5).await, ["init", "there a", "there b", "there c", "done"]);
    create(&api, "d").await;
    label(&api, "a", Some("x")).await;
    api.delete("b", &DeleteParams::default()).await.unwrap();
    assert_eq!(next(&mut events, 3).await, ["apply d", "apply a", "delete b"]);
}

#[tokio::test]
async fn a_streaming_list_of_nothing_ends_at_once() {
    let world = World::new().await;
    let mut events = pin!(watcher::watcher(world.config_maps(), watcher::Config::default().streaming_lists()));
    assert_eq!(next(&mut events, 2).await, ["init", "done"]);
}

#[tokio::test]
async fn an_object_that_leaves_the_selector_is_deleted_and_one_that_enters_it_applied() {
    let world = World::new().await;
    let api = world.config_maps();
    create(&api, "a").await;
    let mut events = pin!(watcher::watcher(api.clone(), watcher::Config::default().labels("app=x")));
    assert_eq!(next(&mut events, 2).await, ["init", "done"]);
    label(&api, "a", Some("x")).await;
    label(&api, "a", Some("y")).await;
    create(&api, "b").await;
    label(&api, "a", Some("x")).await;
    label(&api, "a", None).await;
    assert_eq!(next(&mut events, 4).await, ["apply a", "delete a", "apply a", "delete a"]);
}

#[tokio::test]
async fn metadata_is_watched_alone() {
    for config in [watcher::Config::default(), watcher::Config::default().streaming_lists()] {
        let world = World::new().await;
        let api = world.config_maps();
        create(&api, "a").await;
        let metadata: Api<PartialObjectMeta<ConfigMap>> = Api::default_namespaced(world.client.clone());
        let mut events = pin!(watcher::watcher(metadata, config));
        assert_eq!(next(&mut events, 3).await, ["init", "there a", "done"]);
        label(&api, "a", Some("x")).await;
        let Event::Apply(changed) = soon(events.next()).await.unwrap().unwrap() else { panic!() };
        assert_eq!(changed.types.as_ref().unwrap().kind, "PartialObjectMetadata");
        assert_eq!(changed.labels()["app"], "x");
        api.delete("a", &DeleteParams::default()).await.unwrap();
        assert_eq!(next(&mut events, 1).await, ["delete a"]);
    }
}

#[tokio::test]
async fn one_object_is_watched_through_its_life() {
    let world = World::new().await;
    let api = world.config_maps();
    let mut object = pin!(watcher::watch_object(api.clone(), "a"));
    assert!(soon(object.next()).await.unwrap().unwrap().is_none());
    create(&api, "a").await;
    create(&api, "b").await;
    assert_eq!(soon(object.next()).await.unwrap().unwrap().unwrap().name_any(), "a");
    api.delete("a", &DeleteParams::default()).await.unwrap();
    assert!(soon(object.next()).await.unwrap().unwrap().is_none());
}

#[tokio::test]
async fn a_reflector_holds_what_the_server_holds() {
    let world = World::new().await;
    let api = world.config_maps();
    create(&api, "a").await;
    create(&api, "b").await;
    let (reader, writer) = reflector::store();
    let stream = watcher::watcher(api.clone(), watcher::Config::default());
    let mut applied = pin!(stream.default_backoff().reflect(writer).touched_objects());
    soon(applied.by_ref().take(2).try_collect::<Vec<_>>()).await.unwrap();
    // Both are emitted only when the list is known to be complete, which the next event indicates.
    label(&api, "a", Some("x")).await;
    soon(applied.next()).await.unwrap().unwrap();
    soon(reader.wait_until_ready()).await.unwrap();
    assert_eq!(reader.len(), 2);
    let held = reader.get(&ObjectRef::new("a").within("default")).unwrap();
    assert_eq!(*held, api.get("a").await.unwrap());
    api.delete("b", &DeleteParams::default()).await.unwrap();
    soon(applied.next()).await.unwrap().unwrap();
    assert_eq!(reader.len(), 1);
}

#[tokio::test]
async fn several_watchers_of_several_kinds_share_a_client() {
    let world = World::with_gardens().await;
    let maps = watcher::watcher(world.config_maps(), watcher::Config::default()).map_ok(|event| told(&event)).boxed();
    let gardens = watcher::watcher(world.gardens(), watcher::Config::default()).map_ok(|event| told(&event)).boxed();
    let mut both = stream::select(maps, gardens);
    for _ in 0..4 {
        soon(both.next()).await.unwrap().unwrap();
    }
    create(&world.config_maps(), "a").await;
    assert_eq!(soon(both.next()).await.unwrap().unwrap(), "apply a");
    world.gardens().create(&PostParams::default(), &crate::support::garden("g", 1)).await.unwrap();
    assert_eq!(soon(both.next()).await.unwrap().unwrap(), "apply g");
}
