//! The rules of the store, one by one; `model` tests them together.

mod crowd;
mod kill;
mod model;

use futures_util::FutureExt as _;
use serde_json::json;

use super::*;

fn resource() -> GroupResource {
    GroupResource::new("", "configmaps")
}

fn key(name: &str) -> ObjectKey {
    ObjectKey::new(resource(), "ns", name)
}

fn object(value: impl Into<Value>) -> Value {
    json!({"metadata": {"uid": "u"}, "value": value.into()})
}

fn memory() -> ObjectStore {
    ObjectStore::open(Options::default()).unwrap()
}

fn options(dir: &std::path::Path) -> Options {
    Options { data_dir: Some(dir.to_owned()), ..Options::default() }
}

fn on_disk(dir: &std::path::Path) -> Result<ObjectStore, OpenError> {
    ObjectStore::open(options(dir))
}

fn wait<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(future)
}

fn names(listed: &ListResult) -> Vec<&str> {
    listed.items.iter().map(|object| &*object.key.name).collect()
}

#[test]
fn the_first_write_has_revision_2() {
    let store = memory();
    assert_eq!(store.revision(), 1);
    let created = wait(store.create(key("a"), object(1))).unwrap();
    assert_eq!((created.revision, store.revision()), (2, 2));
    assert_eq!(store.get(&key("a")).unwrap().body, created.body);
}

#[test]
fn writes_are_checked_against_what_is_there() {
    let store = memory();
    assert!(matches!(wait(store.update(&key("a"), 1, object(1))), Err(WriteError::NotFound)));
    assert!(matches!(wait(store.delete(&key("a"), 1, None)), Err(WriteError::NotFound)));
    let created = wait(store.create(key("a"), object(1))).unwrap();
    assert!(matches!(wait(store.create(key("a"), object(2))), Err(WriteError::Exists)));
    let updated = wait(store.update(&key("a"), created.revision, object(2))).unwrap();
    let stale = wait(store.update(&key("a"), created.revision, object(3)));
    assert!(matches!(stale, Err(WriteError::Conflict { current }) if current == updated.revision));
    let stale = wait(store.delete(&key("a"), created.revision, None));
    assert!(matches!(stale, Err(WriteError::Conflict { current }) if current == updated.revision));
    assert_eq!(store.revision(), updated.revision);
}

#[test]
fn a_write_that_changes_nothing_is_none() {
    let store = memory();
    let created = wait(store.create(key("a"), object(1))).unwrap();
    let mut watch = store.watch(&resource(), WatchFrom::Now).unwrap();
    let mut same = created.value();
    same["kind"] = json!("ConfigMap");
    same["metadata"]["resourceVersion"] = json!("whatever");
    let updated = wait(store.update(&key("a"), created.revision, same)).unwrap();
    assert!(Arc::ptr_eq(&updated, &created));
    assert_eq!(store.revision(), created.revision);
    assert!(watch.try_next().unwrap().is_none());
}

#[test]
fn a_deletion_shows_the_last_state_with_its_own_revision() {
    let store = memory();
    for (name, last, shown) in [("a", None, 1), ("b", Some(object(2)), 2)] {
        let created = wait(store.create(key(name), object(1))).unwrap();
        let mut watch = store.watch(&resource(), WatchFrom::Now).unwrap();
        let deleted = wait(store.delete(&key(name), created.revision, last)).unwrap();
        let event = watch.try_next().unwrap().unwrap();
        assert_eq!((event.kind, event.revision), (EventKind::Deleted, store.revision()));
        assert!(Arc::ptr_eq(&event.object, &deleted));
        assert!(Arc::ptr_eq(event.previous.as_ref().unwrap(), &created));
        assert_eq!(deleted.value()["value"], shown);
        assert_eq!(deleted.value()["metadata"]["resourceVersion"], store.revision().to_string());
        assert!(store.get(&key(name)).is_none());
    }
}

#[test]
fn a_page_with_a_selector_is_filled() {
    let store = memory();
    for number in 0..1000 {
        wait(store.create(key(&format!("{number:03}")), object(number))).unwrap();
    }
    let hundreds = |stored: &Stored| stored.key.name.ends_with("00");
    let mut query = ListQuery { limit: Some(4), ..ListQuery::default() };
    let page = store.list_filtered(&resource(), &query, &hundreds).unwrap();
    assert_eq!(names(&page), ["000", "100", "200", "300"]);
    assert_eq!(page.more, Some(NextPage { after: "ns/300".into(), remaining: 699 }));
    wait(store.create(key("400-later"), object(0))).unwrap();
    query =
        ListQuery { at: ListRevision::Exact(page.revision), after: Some("ns/300".into()), limit: Some(100), ..query };
    let rest = store.list_filtered(&resource(), &query, &hundreds).unwrap();
    assert_eq!(names(&rest), ["400", "500", "600", "700", "800", "900"]);
    assert_eq!((rest.revision, rest.more), (page.revision, None));
}

#[test]
fn revisions_that_are_not_known_are_told_apart() {
    let store = memory();
    let at = |at| store.list(&resource(), &ListQuery { at, ..ListQuery::default() });
    for number in 0..3 {
        wait(store.create(key(&number.to_string()), object(number))).unwrap();
    }
    assert_eq!(at(ListRevision::Exact(9)).unwrap_err(), ListError::Future { asked: 9, newest: 4 });
    assert_eq!(at(ListRevision::NotOlderThan(9)).unwrap_err(), ListError::Future { asked: 9, newest: 4 });
    assert_eq!(at(ListRevision::NotOlderThan(2)).unwrap().revision, 4);
    assert_eq!(names(&at(ListRevision::Exact(3)).unwrap()), ["0", "1"]);
    assert_eq!(at(ListRevision::Exact(0)).unwrap_err(), ListError::TooOld { asked: 0, oldest: 1 });
    store.clear_history();
    assert_eq!(at(ListRevision::Exact(3)).unwrap_err(), ListError::TooOld { asked: 3, oldest: 4 });
    assert_eq!(store.watch(&resource(), WatchFrom::After(3)).unwrap_err(), WatchError::TooOld { asked: 3, oldest: 4 });
    assert!(store.watch(&resource(), WatchFrom::After(4)).is_ok());
    assert_eq!(store.stats().history_bytes, 0);
}

#[test]
fn forgetting_leaves_watchers_that_have_seen_everything_alone() {
    let store = memory();
    let mut behind = store.watch(&resource(), WatchFrom::Now).unwrap();
    wait(store.create(key("a"), object(1))).unwrap();
    let mut ahead = store.watch(&resource(), WatchFrom::Now).unwrap();
    store.clear_history();
    wait(store.create(key("b"), object(1))).unwrap();
    assert_eq!(&*ahead.try_next().unwrap().unwrap().object.key.name, "b");
    assert_eq!(behind.try_next().unwrap_err(), Lagged { seen: 1, oldest: 2 });
    assert_eq!(behind.try_next().unwrap_err(), Lagged { seen: 1, oldest: 2 });
}

#[test]
fn a_watch_from_the_future_waits_for_it() {
    let store = memory();
    let mut watch = store.watch(&resource(), WatchFrom::After(3)).unwrap();
    for name in ["a", "b", "c"] {
        wait(store.create(key(name), object(1))).unwrap();
    }
    assert_eq!(watch.try_next().unwrap().unwrap().revision, 4);
    assert!(watch.try_next().unwrap().is_none());
}

#[test]
fn a_watch_from_the_start_shows_what_exists_and_then_what_happens() {
    let store = memory();
    for name in ["b", "a"] {
        wait(store.create(key(name), object(1))).unwrap();
    }
    let mut watch = store.watch(&resource(), WatchFrom::Start).unwrap();
    wait(store.create(key("c"), object(1))).unwrap();
    assert_eq!((watch.remaining_initial(), watch.started(), watch.seen()), (2, 3, 0));
    let mut shown = Vec::new();
    while let Some(event) = watch.try_next().unwrap() {
        shown.push((event.kind, event.object.key.name.to_string(), event.revision, watch.remaining_initial()));
    }
    let added = |name: &str, revision, left| (EventKind::Added, name.to_owned(), revision, left);
    assert_eq!(shown, [added("a", 3, 1), added("b", 2, 0), added("c", 4, 0)]);
    assert_eq!(watch.seen(), 4);
}

#[test]
fn a_watcher_has_seen_what_others_wrote_elsewhere() {
    let store = memory();
    let mut watch = store.watch(&resource(), WatchFrom::Now).unwrap();
    wait(store.create(key("a"), object(1))).unwrap();
    wait(store.create(ObjectKey::new(GroupResource::new("", "nodes"), "", "n"), object(1))).unwrap();
    assert_eq!(watch.seen(), 1);
    assert!(watch.try_next().unwrap().is_some());
    assert_eq!(watch.seen(), 3);
    assert_eq!(store.stats().watchers, 1);
    drop(watch);
    assert_eq!(store.stats().watchers, 0);
}

#[test]
fn a_wait_that_is_dropped_loses_nothing() {
    let store = memory();
    let mut watch = store.watch(&resource(), WatchFrom::Now).unwrap();
    assert!(watch.next().now_or_never().is_none());
    wait(store.create(key("a"), object(1))).unwrap();
    let event = watch.next().now_or_never().unwrap().unwrap();
    assert_eq!(event.revision, 2);
}

#[test]
fn the_newest_event_stays_whatever_its_size() {
    let store = ObjectStore::open(Options { history_bytes: 0, ..Options::default() }).unwrap();
    let mut watch = store.watch(&resource(), WatchFrom::Now).unwrap();
    for number in 0..10 {
        wait(store.create(key(&number.to_string()), object("x".repeat(10_000)))).unwrap();
        assert!(watch.try_next().unwrap().is_some());
    }
}

#[test]
fn stats_count_what_is_there() {
    let store = memory();
    let created = wait(store.create(key("a"), object(1))).unwrap();
    let one = store.stats();
    assert_eq!((one.objects, one.revision, one.bytes), (1, 2, created.memory_size()));
    wait(store.update(&key("a"), 2, object(2))).unwrap();
    assert!(store.stats().history_bytes >= one.history_bytes + created.memory_size());
    wait(store.delete(&key("a"), 3, None)).unwrap();
    assert_eq!((store.stats().objects, store.stats().bytes), (0, 0));
    assert_eq!(store.collections(), []);
}

#[test]
fn a_closed_store_can_be_read() {
    let store = memory();
    wait(store.create(key("a"), object(1))).unwrap();
    store.close();
    assert!(matches!(wait(store.create(key("b"), object(1))), Err(WriteError::Closed)));
    assert!(store.get(&key("a")).is_some());
}
