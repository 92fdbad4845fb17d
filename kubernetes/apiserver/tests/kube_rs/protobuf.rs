//! Watches in protobuf, as client-go uses them for built-in kinds.

use bytes::{Buf, Bytes, BytesMut};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use kube::api::{DeleteParams, PostParams};
use kubewake_apiserver::{api::GroupVersion, codec::protobuf};
use prost::Message;
use serde_json::Value;

use crate::{
    raw::{Http2, request},
    support::{World, config_map, soon},
};

const MAPS: &str = "/api/v1/namespaces/default/configmaps?watch=1";
const ACCEPTED: &str = "application/vnd.kubernetes.protobuf,application/json";

#[derive(Clone, PartialEq, Message)]
struct WatchEvent {
    #[prost(string, tag = "1")]
    kind: String,
    #[prost(message, optional, tag = "2")]
    object: Option<RawExtension>,
}

#[derive(Clone, PartialEq, Message)]
struct RawExtension {
    #[prost(bytes = "bytes", tag = "1")]
    raw: Bytes,
}

/// A stream of frames, each a length and an event.
struct Frames {
    body: Incoming,
    read: BytesMut,
}

impl Frames {
    async fn next(&mut self) -> (String, Value) {
        loop {
            if let Some(length) = self.read.get(..4).map(|mut length| length.get_u32() as usize)
                && self.read.len() >= 4 + length
            {
                self.read.advance(4);
                let event = WatchEvent::decode(self.read.split_to(length).freeze()).unwrap();
                let raw = event.object.unwrap().raw;
                let object = protobuf::decode(&raw, &GroupVersion::new("", "none"), "None").unwrap();
                return (event.kind, object);
            }
            let frame = soon(self.body.frame()).await.expect("the stream goes on").unwrap();
            self.read.extend_from_slice(frame.data_ref().unwrap());
        }
    }
}

async fn watch(world: &World, query: &str, accept: &str) -> (String, Frames) {
    let mut request = request("GET", &format!("{MAPS}{query}"), "", "");
    request.headers_mut().insert("accept", accept.parse().unwrap());
    let answer = soon(Http2::new(&world.server).await.send(request)).await.unwrap();
    let content_type = answer.headers()["content-type"].to_str().unwrap().to_owned();
    (content_type, Frames { body: answer.into_body(), read: BytesMut::new() })
}

#[tokio::test]
async fn a_watch_is_told_in_frames_from_the_first_object_to_its_end() {
    let world = World::new().await;
    let api = world.config_maps();
    api.create(&PostParams::default(), &config_map("a", "1")).await.unwrap();
    let query = "&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true";
    let (content_type, mut frames) = watch(&world, query, ACCEPTED).await;
    assert_eq!(content_type, "application/vnd.kubernetes.protobuf;stream=watch");
    let (kind, object) = frames.next().await;
    assert_eq!((kind.as_str(), &object["kind"], &object["data"]["key"]), ("ADDED", &"ConfigMap".into(), &"1".into()));
    let (kind, object) = frames.next().await;
    assert_eq!(kind, "BOOKMARK");
    assert_eq!(object["metadata"]["annotations"]["k8s.io/initial-events-end"], "true");
    api.delete("a", &DeleteParams::default()).await.unwrap();
    assert_eq!(frames.next().await.0, "DELETED");
}

#[tokio::test]
async fn metadata_alone_and_the_end_of_history_are_told_so_too() {
    let world = World::new().await;
    world.config_maps().create(&PostParams::default(), &config_map("a", "1")).await.unwrap();
    let partial = "application/vnd.kubernetes.protobuf;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";
    let (kind, object) = watch(&world, "", partial).await.1.next().await;
    assert_eq!((kind.as_str(), &object["kind"]), ("ADDED", &"PartialObjectMetadata".into()));
    assert_eq!((&object["metadata"]["name"], object.get("data")), (&"a".into(), None));
    let (kind, object) = watch(&world, "&resourceVersion=1", ACCEPTED).await.1.next().await;
    assert_eq!((kind.as_str(), &object["kind"], &object["code"]), ("ERROR", &"Status".into(), &410.into()));
}
