//! Concurrent writers.

use std::thread;

use super::*;

fn count(stored: &Stored) -> u64 {
    stored.value()["value"].as_u64().unwrap()
}

/// Increments the counter, retrying after conflicts.
async fn increment(store: &ObjectStore, key: &ObjectKey) {
    loop {
        let current = store.get(key).unwrap();
        match store.update(key, current.revision, object(count(&current) + 1)).await {
            Ok(_) => return,
            Err(WriteError::Conflict { current: now }) => assert!(now > current.revision),
            Err(error) => panic!("{error}"),
        }
    }
}

/// Eight writers increment four counters; a watcher sees each value of each counter once.
fn no_update_is_lost(store: &ObjectStore, rounds: u64) {
    for name in ["a", "b", "c", "d"] {
        wait(store.create(key(name), object(0))).unwrap();
    }
    let mut watch = store.watch(&resource(), WatchFrom::Now).unwrap();
    thread::scope(|scope| {
        for writer in 0..8 {
            scope.spawn(move || {
                wait(async {
                    for round in 0..rounds {
                        let name = ["a", "b", "c", "d"][(writer + round as usize) % 4];
                        increment(store, &key(name)).await;
                    }
                });
            });
        }
    });
    let mut seen = std::collections::BTreeMap::new();
    let mut revision = watch.started();
    while let Some(event) = watch.try_next().unwrap() {
        assert_eq!(event.revision, revision + 1);
        revision = event.revision;
        let before = seen.insert(event.object.key.name.to_string(), count(&event.object)).unwrap_or(0);
        assert_eq!(count(&event.object), before + 1);
    }
    assert_eq!(seen.values().sum::<u64>(), 8 * rounds);
}

#[test]
fn no_update_is_lost_in_memory() {
    no_update_is_lost(&memory(), 200);
}

#[test]
fn no_update_is_lost_on_disk_while_the_log_is_compacted() {
    let dir = tempfile::tempdir().unwrap();
    let options = Options { log_slack: 2000, sync: false, ..options(dir.path()) };
    let store = ObjectStore::open(options.clone()).unwrap();
    no_update_is_lost(&store, 100);
    let revision = store.revision();
    drop(store);
    let store = ObjectStore::open(options).unwrap();
    assert_eq!(store.revision(), revision);
    let counters = ["a", "b", "c", "d"].map(|name| count(&store.get(&key(name)).unwrap()));
    assert_eq!(counters.iter().sum::<u64>(), 800);
}

#[test]
fn of_many_creators_one_wins() {
    let dir = tempfile::tempdir().unwrap();
    let store = on_disk(dir.path()).unwrap();
    let created = thread::scope(|scope| {
        let creators = [0; 8].map(|_| scope.spawn(|| wait(store.create(key("a"), object(1)))));
        creators.map(|creator| creator.join().unwrap())
    });
    assert_eq!(created.iter().filter(|created| created.is_ok()).count(), 1);
    assert!(created.iter().flat_map(|created| created.as_ref().err()).all(|error| matches!(error, WriteError::Exists)));
}

#[test]
fn a_thousand_watchers_see_all_events_in_order() {
    const WRITES: u64 = 50;
    let store = memory();
    wait(async {
        let tasks = tokio::task::LocalSet::new();
        let watcher = |_| {
            let mut watch = store.watch(&resource(), WatchFrom::Now).unwrap();
            tasks.spawn_local(async move {
                let mut first = None;
                for revision in 2..2 + WRITES {
                    let event = watch.next().await.unwrap();
                    assert_eq!(event.revision, revision);
                    first.get_or_insert(event);
                }
                first.unwrap()
            })
        };
        let watchers: Vec<_> = (0..1000).map(watcher).collect();
        let seen = tasks.run_until(async {
            for number in 0..WRITES {
                store.create(key(&number.to_string()), object(number)).await.unwrap();
                tokio::task::yield_now().await;
            }
            futures_util::future::join_all(watchers).await
        });
        let seen = seen.await;
        assert!(seen.windows(2).all(|pair| Arc::ptr_eq(pair[0].as_ref().unwrap(), pair[1].as_ref().unwrap())));
    });
}

#[test]
fn watchers_wait_for_writers_on_other_threads() {
    let dir = tempfile::tempdir().unwrap();
    let store = on_disk(dir.path()).unwrap();
    thread::scope(|scope| {
        for _ in 0..4 {
            let mut watch = store.watch(&resource(), WatchFrom::Now).unwrap();
            let store = &store;
            scope.spawn(move || {
                wait(async {
                    for revision in 2..22 {
                        assert_eq!(watch.next().await.unwrap().revision, revision);
                        assert!(store.revision() >= revision && watch.seen() >= revision);
                    }
                });
            });
        }
        for number in 0..20 {
            wait(store.create(key(&number.to_string()), object(number))).unwrap();
        }
    });
}
