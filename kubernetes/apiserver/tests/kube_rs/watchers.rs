//! A thousand watchers of one kind.

use bytes::BytesMut;
use http_body_util::BodyExt;
use hyper::body::Incoming;
use kube::api::{Patch, PatchParams, PostParams};
use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::{
    raw::{Http2, request},
    support::{World, config_map, soon},
};

const WATCHERS: usize = 1000;
/// The streams per connection: the server's limit.
const STREAMS: usize = 250;
const ROUNDS: usize = 10;

/// The events and their versions, in the order of arrival, up to the object `last`.
async fn read(mut body: Incoming) -> Vec<(String, u64)> {
    let mut seen = Vec::new();
    let mut rest = BytesMut::new();
    while let Some(frame) = body.frame().await {
        rest.extend_from_slice(frame.unwrap().data_ref().unwrap());
        while let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
            let event: Value = serde_json::from_slice(&rest.split_to(end + 1)).unwrap();
            let meta = &event["object"]["metadata"];
            let version = meta["resourceVersion"].as_str().unwrap().parse().unwrap();
            seen.push((event["type"].as_str().unwrap().to_owned(), version));
            if meta["name"] == "last" {
                return seen;
            }
        }
    }
    panic!("the watch has ended after {} events", seen.len());
}

#[tokio::test]
async fn a_thousand_watchers_each_get_every_event_in_order() {
    let world = World::new().await;
    let mut watchers = JoinSet::new();
    for _ in 0..WATCHERS / STREAMS {
        let connection = Http2::new(&world.server).await;
        for _ in 0..STREAMS {
            let path = "/api/v1/namespaces/default/configmaps?watch=1&resourceVersion=0";
            let answer = soon(connection.send(request("GET", path, "", ""))).await.unwrap();
            assert_eq!(answer.status(), 200);
            watchers.spawn(read(answer.into_body()));
        }
    }
    let api = world.config_maps();
    let mut expected = Vec::new();
    let mut saw = |kind: &str, object: &k8s_openapi::api::core::v1::ConfigMap| {
        let version = object.metadata.resource_version.as_ref().unwrap().parse().unwrap();
        expected.push((kind.to_owned(), version));
    };
    for round in 0..ROUNDS {
        let name = format!("a{round}");
        saw("ADDED", &api.create(&PostParams::default(), &config_map(&name, "1")).await.unwrap());
        let patch = Patch::Merge(json!({ "data": { "key": "2" } }));
        saw("MODIFIED", &api.patch(&name, &PatchParams::default(), &patch).await.unwrap());
    }
    saw("ADDED", &api.create(&PostParams::default(), &config_map("last", "1")).await.unwrap());
    while let Some(seen) = soon(watchers.join_next()).await {
        assert_eq!(seen.unwrap(), expected);
    }
}
