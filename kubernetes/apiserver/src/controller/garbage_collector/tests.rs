use std::cell::Cell;

use http::StatusCode;
use serde_json::json;

use super::*;
use crate::admission::testing;

fn key(name: &str) -> ObjectKey {
    ObjectKey::new(GroupResource::new("", "configmaps"), "prod", name)
}

/// A ConfigMap with these owners, each of which has its name as its uid.
fn map(name: &str, owners: &[&str]) -> Value {
    let reference = |name| json!({"apiVersion": "v1", "kind": "ConfigMap", "name": name, "uid": name});
    let owners: Vec<Value> = owners.iter().map(reference).collect();
    json!({"metadata": {"name": name, "namespace": "prod", "uid": name, "ownerReferences": owners}})
}

#[tokio::test]
async fn whoever_gets_an_owner_after_it_was_looked_at_stays() {
    let core = testing::core().await;
    let collector = GarbageCollector::new(&core);
    let key_of_lock = key("lock");
    core.store.create(key("new"), map("new", &[])).await.unwrap();
    let seen = core.store.create(key_of_lock.clone(), map("lock", &["gone"])).await.unwrap();
    core.store.update(&key_of_lock, seen.revision, map("lock", &["gone", "new"])).await.unwrap();

    let late = collector.delete(&key_of_lock, &seen, &seen.value(), false).await;
    assert_eq!(late.unwrap_err().code, 409, "it is not what was looked at any more");
    collector.process_object(&key_of_lock).await;
    assert_eq!(core.store.get(&key_of_lock).unwrap().owners.as_ref(), ["new".into()], "it has an owner");

    let stays = core.store.get(&key_of_lock).unwrap();
    core.store.update(&key_of_lock, stays.revision, map("lock", &["gone"])).await.unwrap();
    collector.process_object(&key_of_lock).await;
    assert!(core.store.get(&key_of_lock).is_none(), "it has none");
}

#[tokio::test]
async fn what_changes_under_our_hands_is_looked_at_again_but_not_for_ever() {
    let looks = |code: StatusCode, times: usize| async move {
        let looks = Cell::new(0);
        let decide = || {
            looks.set(looks.get() + 1);
            std::future::ready(if looks.get() <= times { Err(StatusError::new(code, "", "")) } else { Ok(()) })
        };
        (retry_on_conflict(decide).await.is_ok(), looks.get())
    };
    assert_eq!(looks(StatusCode::CONFLICT, 3).await, (true, 4));
    assert_eq!(looks(StatusCode::CONFLICT, usize::MAX).await, (false, MAX_CONFLICT_RETRIES));
    assert_eq!(looks(StatusCode::NOT_FOUND, 3).await, (false, 1));
}

/// After a definition was deleted together with its objects.
#[tokio::test]
async fn dependent_of_a_deleted_owner_is_deleted_although_the_kind_of_the_owner_is_not_served_any_more() {
    let core = testing::core().await;
    let mut collector = GarbageCollector::new(&core);
    let mut owned = map("role", &["pipeline"]);
    owned["metadata"]["ownerReferences"][0]["apiVersion"] = "example.com/v1".into();
    let seen = core.store.create(key("role"), owned).await.unwrap();
    collector.index.insert(&seen);
    collector.process_object(&key("role")).await;
    assert!(core.store.get(&key("role")).is_some(), "nobody knows whether its owner is there");

    let owner = ObjectKey::new(GroupResource::new("example.com", "pipelines"), "", "pipeline");
    collector.handle_deletion(&owner, "pipeline").await;
    assert!(core.store.get(&key("role")).is_none(), "its owner was seen to go");
}
