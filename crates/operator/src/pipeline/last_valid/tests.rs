use kubewake_api::v1alpha1::TracePipeline;

use super::*;
use crate::runtime::resync_trigger::ResyncTrigger;

fn pipeline(uid: &str, generation: i64) -> TracePipeline {
    let reference = json!({"secretKeyRef": {"name": "backend", "namespace": "shop", "key": "token"}});
    let spec = json!({"output": {"otlp": {
        "endpoint": {"value": "backend.example.com:4317"},
        "authentication": {"bearer": {"token": {"valueFrom": reference}}},
    }}});
    let mut resource = TracePipeline::new("backend", serde_json::from_value(spec).unwrap());
    (resource.metadata.uid, resource.metadata.generation) = (Some(uid.to_owned()), Some(generation));
    resource
}

fn resolved(pipeline: &TracePipeline, revision: &str) -> ResolvedReferences {
    let references = pipeline.pipeline().references();
    references.into_iter().map(|reference| (reference, ReferencedValue::text("planted-secret", revision))).collect()
}

fn kept(live: &ObjectCache, pipeline: &TracePipeline, revision: &str, now: Timestamp) -> DesiredObject {
    record_secret(live, pipeline, &OwnerReference::default(), &resolved(pipeline, revision), now).unwrap()
}

#[test]
fn what_is_kept_comes_back_as_it_was() {
    let live = ObjectCache::new([], ResyncTrigger::default());
    let first = pipeline("one", 1);
    assert_eq!(load_last_valid(&live, &first), None);
    let desired = kept(&live, &first, "7", Timestamp::UNIX_EPOCH);
    live.record_response(ObjectKind::Secret, &desired.value);
    let valid = validate(&first.pipeline(), &resolved(&first, "7"), Timestamp::UNIX_EPOCH).unwrap();
    assert_eq!(load_last_valid(&live, &pipeline("one", 2)), Some(valid), "also when it says something else now");
    assert_eq!(load_last_valid(&live, &pipeline("two", 1)), None, "it is another one of the same name");
}

#[test]
fn it_is_known_whose_it_is_also_without_an_owner() {
    let desired =
        kept(&ObjectCache::new([], ResyncTrigger::default()), &pipeline("one", 1), "7", Timestamp::UNIX_EPOCH);
    let owner = recorded_owner(&desired.value).unwrap();
    assert_eq!((&*owner.kind, &*owner.name, &*owner.uid), ("TracePipeline", "backend", "one"));
    assert!(is_record_name(&desired.name) && !is_record_name("kubewake-gateway"));
    assert_eq!(recorded_owner(&json!({"data": {"record": "bm8="}})), None, "it is nothing that anybody can read");
}

#[test]
fn the_same_is_not_kept_again() {
    let live = ObjectCache::new([], ResyncTrigger::default());
    let first = pipeline("one", 1);
    let desired = kept(&live, &first, "7", Timestamp::UNIX_EPOCH);
    live.record_response(ObjectKind::Secret, &desired.value);
    let later = Timestamp::UNIX_EPOCH + jiff::SignedDuration::from_secs(60);
    assert_eq!(kept(&live, &first, "7", later), desired);
    assert_ne!(kept(&live, &first, "8", later), desired);
    assert_ne!(kept(&live, &pipeline("one", 2), "7", later), desired);
}
