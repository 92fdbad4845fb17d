//! Measures the store's operations: `cargo run --release --example store_speed -- [DIR]`.

use std::{
    error::Error,
    path::PathBuf,
    time::{Duration, Instant},
};

use kubewake_apiserver::{
    api::{GroupResource, ObjectKey},
    store::{ListQuery, ListRevision, ObjectStore, Options, WatchFrom},
};
use serde_json::{Value, json};

const OBJECTS: u32 = 10_000;

fn main() -> Result<(), Box<dyn Error>> {
    let data_dir = std::env::args_os().nth(1).map(PathBuf::from);
    let store = ObjectStore::open(Options { data_dir, ..Options::default() })?;
    let runtime = tokio::runtime::Builder::new_current_thread().build()?;
    let keys: Vec<ObjectKey> = (0..OBJECTS).map(key).collect();
    let mut watch = store.watch(&resource(), WatchFrom::Now)?;

    let objects: Vec<Value> = (0..OBJECTS).map(|number| object(number, 1)).collect();
    let start = Instant::now();
    for (key, object) in keys.iter().zip(objects) {
        runtime.block_on(store.create(key.clone(), object))?;
    }
    print("create", start.elapsed(), OBJECTS);

    let start = Instant::now();
    let bytes: usize = keys.iter().filter_map(|key| store.get(key)).map(|object| object.body.len()).sum();
    print("get", start.elapsed(), OBJECTS);

    let start = Instant::now();
    let mut events = 0;
    while watch.try_next()?.is_some() {
        events += 1;
    }
    print("event read by a watcher", start.elapsed(), events);

    let middle = store.revision();
    let updates: Vec<(u64, Value)> =
        keys.iter().zip(0..).filter_map(|(key, number)| Some((store.get(key)?.revision, object(number, 2)))).collect();
    let start = Instant::now();
    for (key, (revision, object)) in keys.iter().zip(updates) {
        runtime.block_on(store.update(key, revision, object))?;
    }
    print("update", start.elapsed(), OBJECTS);

    let page = |at| ListQuery { at, limit: Some(500), ..ListQuery::default() };
    let start = Instant::now();
    for _ in 0..1000 {
        store.list(&resource(), &page(ListRevision::Newest))?;
    }
    print("list of 500", start.elapsed(), 1000);

    let start = Instant::now();
    for _ in 0..100 {
        store.list_filtered(&resource(), &page(ListRevision::Newest), &|object| object.label("shard") == Some("7"))?;
    }
    print("list of 500 by a label, one in ten", start.elapsed(), 100);

    let start = Instant::now();
    for _ in 0..100 {
        store.list(&resource(), &page(ListRevision::Exact(middle)))?;
    }
    print("list of 500 at a revision 10 000 writes ago", start.elapsed(), 100);
    println!("{bytes} bytes in bodies; {:?}", store.stats());
    Ok(())
}

fn resource() -> GroupResource {
    GroupResource::new("", "configmaps")
}

fn key(number: u32) -> ObjectKey {
    ObjectKey::new(resource(), &format!("ns-{}", number % 20), &format!("object-{number}"))
}

fn object(number: u32, version: u32) -> Value {
    json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {
            "name": format!("object-{number}"), "namespace": format!("ns-{}", number % 20), "uid": format!("uid-{number}"),
            "labels": {"app": "speed", "shard": (number % 10).to_string()},
            "annotations": {"note": "x".repeat(200)},
        },
        "data": {"version": version.to_string(), "text": "y".repeat(300)},
    })
}

fn print(what: &str, took: Duration, count: u32) {
    println!("{:>12} ns  {what}", took.as_nanos() / u128::from(count.max(1)));
}
