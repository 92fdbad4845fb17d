//! Watchers that are too late, and restarts.

use std::{pin::pin, time::Duration};

use futures_util::{StreamExt, TryStreamExt};
use kube::{
    ResourceExt,
    api::{DeleteParams, ListParams, Patch, PatchParams, PostParams, WatchParams},
    core::WatchEvent,
    runtime::{
        WatchStreamExt,
        utils::Backoff,
        watcher::{self, Event},
    },
};
use kubewake_apiserver::server::Options;
use serde_json::json;

use crate::support::{World, config_map, define_gardens, garden, refused, soon};

#[tokio::test]
async fn a_version_that_history_has_lost_is_gone() {
    let world = World::with(Options { history_bytes: 4096, ..Options::default() }).await;
    let api = world.config_maps();
    let listed = api.list(&ListParams::default()).await.unwrap();
    let first = listed.metadata.resource_version.unwrap();
    for number in 0..20 {
        api.create(&PostParams::default(), &config_map(&format!("a{number}"), &"x".repeat(500))).await.unwrap();
        api.delete(&format!("a{number}"), &DeleteParams::default()).await.unwrap();
    }
    let events: Vec<_> = soon(api.watch(&WatchParams::default(), &first).await.unwrap().collect()).await;
    let [Ok(WatchEvent::Error(error))] = events.as_slice() else { panic!("{events:?}") };
    assert_eq!((error.code, error.reason.as_str()), (410, "Expired"));
    let old = ListParams::default().at(&first).matching(kube::api::VersionMatch::Exact);
    assert_eq!(refused(api.list(&old).await).code, 410);
}

#[tokio::test]
async fn a_page_of_a_list_that_history_has_lost_is_gone() {
    let world = World::with(Options { history_bytes: 4096, ..Options::default() }).await;
    let api = world.config_maps();
    for number in 0..20 {
        api.create(&PostParams::default(), &config_map(&format!("a{number}"), "1")).await.unwrap();
    }
    let page = api.list(&ListParams::default().limit(5)).await.unwrap();
    for number in 0..20 {
        let patch = Patch::Merge(json!({ "data": { "key": "x".repeat(500) } }));
        api.patch(&format!("a{number}"), &PatchParams::default(), &patch).await.unwrap();
    }
    let mut next = ListParams::default().limit(5);
    next.continue_token = page.metadata.continue_;
    let refusal = refused(api.list(&next).await);
    assert_eq!((refusal.code, refusal.reason.as_str()), (410, "Expired"));
    // The error contains a token for continuing with an inconsistent list.
    let mut next = ListParams::default().limit(500);
    next.continue_token = refusal.metadata.unwrap().continue_;
    assert_eq!(api.list(&next).await.unwrap().items.len(), 15);
}

#[tokio::test]
async fn after_a_restart_everything_is_there_and_a_watcher_recovers() {
    let directory = tempfile::tempdir().unwrap();
    let options = Options { data_dir: Some(directory.path().to_owned()), ..Options::default() };
    let world = World::with(options.clone()).await;
    define_gardens(&world.client).await;
    world.gardens().create(&PostParams::default(), &garden("g", 1)).await.unwrap();
    let kept = world.config_maps().create(&PostParams::default(), &config_map("a", "1")).await.unwrap();

    let watcher = watcher::watcher(world.config_maps(), watcher::Config::default());
    let mut events = pin!(watcher.backoff(Steady));
    soon(events.by_ref().take(3).try_collect::<Vec<_>>()).await.unwrap();

    // The same address, so that the same client can reconnect.
    let listen = world.server.address();
    soon(world.server.stop()).await;
    let server = kubewake_apiserver::server::ApiServer::start(Options { listen, ..options }).await.unwrap();
    let client = server.client().unwrap();
    let again = World { server, client };
    assert_eq!(again.config_maps().get("a").await.unwrap(), kept);
    assert_eq!(again.gardens().get("g").await.unwrap().spec.beds, 1);

    again.config_maps().create(&PostParams::default(), &config_map("b", "1")).await.unwrap();
    soon(async {
        loop {
            match events.next().await.unwrap() {
                Ok(Event::Apply(object) | Event::InitApply(object)) if object.name_any() == "b" => return,
                // Errors of the client while the server is down, and existing objects.
                Ok(_) | Err(_) => {}
            }
        }
    })
    .await;
}

/// Retries at a fixed interval.
struct Steady;

impl Iterator for Steady {
    type Item = Duration;

    fn next(&mut self) -> Option<Duration> {
        Some(Duration::from_millis(20))
    }
}

impl Backoff for Steady {
    fn reset(&mut self) {}
}
