use std::net::Ipv4Addr;

use serde_json::{Value, json};

use super::*;
use crate::store::Options;

fn key(name: &str) -> ObjectKey {
    ObjectKey::new(GroupResource::new("", "services"), "default", name)
}

fn service(name: &str, ip: &str, port: u16) -> Value {
    json!({ "metadata": { "name": name }, "spec": { "clusterIPs": [ip], "ports": [{ "port": 80, "nodePort": port }] } })
}

fn ip(last: u8) -> ServiceAllocation {
    ServiceAllocation::Ip(Ipv4Addr::new(10, 0, 0, last))
}

#[tokio::test]
async fn what_is_stored_is_held_until_it_goes() {
    let store = ObjectStore::open(Options::default()).unwrap();
    let before = store.create(key("a"), service("a", "10.0.0.7", 30001)).await.unwrap();
    let holder = holder(&store);
    assert_eq!(holder(&ip(7)), Some(key("a")), "from before anybody asked");
    store.create(key("b"), service("b", "10.0.0.8", 30002)).await.unwrap();
    assert_eq!(holder(&ServiceAllocation::NodePort(30002)), Some(key("b")));
    let moved = store.update(&key("a"), before.revision, service("a", "10.0.0.9", 30001)).await.unwrap();
    assert_eq!((holder(&ip(7)), holder(&ip(9))), (None, Some(key("a"))));
    store.delete(&key("a"), moved.revision, None).await.unwrap();
    assert_eq!((holder(&ip(9)), holder(&ServiceAllocation::NodePort(30001))), (None, None));
}

#[tokio::test]
async fn of_two_the_first_one_has_it() {
    let store = ObjectStore::open(Options::default()).unwrap();
    let holder = holder(&store);
    let first = store.create(key("b"), service("b", "10.0.0.7", 0)).await.unwrap();
    store.create(key("a"), service("a", "10.0.0.7", 0)).await.unwrap();
    assert_eq!(holder(&ip(7)), Some(key("b")));
    store.delete(&key("b"), first.revision, None).await.unwrap();
    assert_eq!(holder(&ip(7)), Some(key("a")));
}

#[tokio::test]
async fn a_history_that_is_gone_is_no_loss() {
    let store = ObjectStore::open(Options::default()).unwrap();
    let holder = holder(&store);
    assert_eq!(holder(&ip(7)), None);
    store.create(key("a"), service("a", "10.0.0.7", 0)).await.unwrap();
    store.clear_history();
    assert_eq!(holder(&ip(7)), Some(key("a")));
}
