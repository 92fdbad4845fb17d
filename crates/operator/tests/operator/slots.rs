//! Slots while operators are killed at any moment.

use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex},
    time::Duration,
};

use futures_util::{StreamExt as _, future};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{
    ResourceExt as _,
    api::{ListParams, WatchEvent, WatchParams},
};

use crate::world::{TestCluster, to, until};

/// The pipelines that a document has exporters for.
fn active(document: &ConfigMap) -> BTreeSet<String> {
    let text = document.data.iter().flatten().map(|(_, text)| text.as_str()).collect::<String>();
    let names = text.lines().filter_map(|line| line.trim().trim_matches(['"', ':', '\'']).strip_prefix("traces/"));
    names.filter(|name| !name.starts_with('_')).map(|name| name.trim_matches(['"', ':']).to_owned()).collect()
}

/// Checks every revision of the lock and of the document.
async fn watch(world: &TestCluster, seen: Arc<Mutex<BTreeSet<String>>>) -> tokio::task::JoinHandle<()> {
    let api = world.config_maps();
    let version = api.list(&ListParams::default()).await.unwrap().metadata.resource_version.unwrap();
    let mut events = api.watch(&WatchParams::default(), &version).await.unwrap().boxed();
    tokio::spawn(async move {
        while let Some(event) = events.next().await {
            let (WatchEvent::Added(map) | WatchEvent::Modified(map)) = event.unwrap() else { continue };
            match map.name_any().as_str() {
                "kubewake-tracepipeline-lock" => assert!(map.owner_references().len() <= 1, "{map:?}"),
                "kubewake-gateway" => {
                    let active = active(&map);
                    assert_eq!(active.len(), 1, "{active:?} in {map:?}");
                    seen.lock().unwrap().extend(active);
                }
                _ => {}
            }
        }
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn of_ten_at_once_one_is_active_whatever_dies_when() {
    let world = TestCluster::start().await;
    let seen = Arc::default();
    let watch = watch(&world, Arc::clone(&seen)).await;
    let names: Vec<String> = (0..10).map(|n| format!("p{n}")).collect();
    let create =
        future::join_all(names.iter().map(async |name| world.apply(name, to("backend.example.com:4317")).await));
    let kills = async {
        for round in 0..12 {
            let operator = world.operator();
            // The operator is killed at an arbitrary point.
            tokio::time::sleep(Duration::from_millis(round * 35)).await;
            operator.kill().await;
        }
    };
    future::join(create, kills).await;
    let operator = world.operator();
    let holder = settled(&world, &names, None).await;
    let before = seen.lock().unwrap().clone();
    assert_eq!(before, BTreeSet::from([holder.clone()]), "nobody else was ever active");

    world.delete(&holder).await;
    let next = settled(&world, &names, Some(&holder)).await;
    assert_ne!(next, holder);
    assert_eq!(*seen.lock().unwrap(), BTreeSet::from([holder, next]));
    assert!(!watch.is_finished(), "every revision was as it should be");
    watch.abort();
    operator.stop().await;
}

/// Waits until exactly one pipeline is active and all others wait, and returns the active one.
async fn settled(world: &TestCluster, names: &[String], gone: Option<&String>) -> String {
    let names: Vec<&String> = names.iter().filter(|name| Some(*name) != gone).collect();
    until("one is active, and all others wait", async || {
        let mut holders = Vec::new();
        for name in &names {
            let reason = world.status(name).await.reason?;
            if reason != "Pending" {
                holders.push((*name).clone());
            }
        }
        let [holder] = holders.as_slice() else { return None };
        let (_, document) = world.document("kubewake-gateway").await?;
        (active(&document) == BTreeSet::from([holder.clone()])).then(|| holder.clone())
    })
    .await
}

#[tokio::test]
async fn more_slots_let_more_in_and_fewer_take_nothing_away() {
    let world = TestCluster::start().await;
    let operator = world.operator();
    for name in ["one", "two", "three"] {
        world.apply(name, to("backend.example.com:4317")).await;
    }
    let count = async |wanted: usize| {
        until(&format!("{wanted} are active"), async || {
            let (_, document) = world.document("kubewake-gateway").await?;
            (active(&document).len() == wanted).then_some(())
        })
        .await;
    };
    count(1).await;
    world.telemetry(serde_json::json!({"slots": {"traces": 3}})).await;
    count(3).await;
    world.telemetry(serde_json::json!({"slots": {"traces": 1}})).await;
    world.apply("four", to("backend.example.com:4317")).await;
    world.until_reason("four", "Pending").await;
    count(3).await;
    operator.stop().await;
}

#[tokio::test]
async fn a_pipeline_that_was_never_valid_takes_no_slot() {
    let world = TestCluster::start().await;
    let operator = world.operator();
    world.apply("broken", to("not an endpoint")).await;
    world.until_reason("broken", "EndpointInvalid").await;
    assert!(world.made().await.is_empty(), "nothing was made for it");
    world.apply("good", to("backend.example.com:4317")).await;
    world.until_configured("good").await;
    operator.stop().await;
}
