//! Server-side apply: field ownership.

use k8s_openapi::api::core::v1::ConfigMap;
use kube::{
    Api, ResourceExt,
    api::{Patch, PatchParams, PostParams},
};
use serde_json::{Value, json};

use crate::support::{World, config_map, garden, refused};

fn applied(data: &Value) -> Patch<Value> {
    Patch::Apply(json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "a" }, "data": data }))
}

#[tokio::test]
async fn an_apply_creates_conflicts_takes_over_and_gives_up_fields() {
    let world = World::new().await;
    let api = world.config_maps();
    let one = PatchParams::apply("one");
    let two = PatchParams::apply("two");
    api.patch("a", &one, &applied(&json!({ "x": "1", "y": "1" }))).await.unwrap();

    let refusal = refused(api.patch("a", &two, &applied(&json!({ "x": "2" }))).await);
    assert_eq!((refusal.code, refusal.reason.as_str()), (409, "Conflict"));
    let causes = refusal.details.unwrap().causes;
    assert_eq!((causes[0].reason.as_str(), causes[0].field.as_str()), ("FieldManagerConflict", ".data.x"));

    // The same value is no conflict: both managers own it.
    api.patch("a", &two, &applied(&json!({ "x": "1", "z": "2" }))).await.unwrap();
    let forced = api.patch("a", &two.clone().force(), &applied(&json!({ "x": "2" }))).await.unwrap();
    let data = forced.data.unwrap();
    assert_eq!(data["x"], "2");
    // A field that its only owner no longer applies is removed; fields of other owners stay.
    assert_eq!((data.get("z"), data["y"].as_str()), (None, "1"));
    assert_eq!(refused(api.patch("a", &one, &applied(&json!({ "x": "1", "y": "1" }))).await).code, 409);
}

#[tokio::test]
async fn an_apply_of_the_same_changes_nothing() {
    let world = World::new().await;
    let api = world.config_maps();
    let params = PatchParams::apply("one");
    let first = api.patch("a", &params, &applied(&json!({ "x": "1" }))).await.unwrap();
    let second = api.patch("a", &params, &applied(&json!({ "x": "1" }))).await.unwrap();
    assert_eq!(first, second);
    let managers: Vec<_> = second.managed_fields().iter().map(|entry| entry.manager.as_deref().unwrap()).collect();
    assert_eq!(managers, ["one"]);
}

#[tokio::test]
async fn what_was_created_typed_is_applied_typed() {
    let world = World::new().await;
    let api: Api<ConfigMap> = world.config_maps();
    api.create(&PostParams::default(), &config_map("a", "1")).await.unwrap();
    let params = PatchParams::apply("one").force();
    api.patch("a", &params, &Patch::Apply(&config_map("a", "2"))).await.unwrap();
    assert_eq!(crate::support::value_of(&api.get("a").await.unwrap()), "2");
}

#[tokio::test]
async fn the_status_of_a_custom_resource_is_applied_by_another_manager() {
    let world = World::with_gardens().await;
    let api = world.gardens();
    let mut spec = serde_json::to_value(garden("g", 3)).unwrap();
    spec.as_object_mut().unwrap().remove("status");
    api.patch("g", &PatchParams::apply("people"), &Patch::Apply(&spec)).await.unwrap();
    let status = json!({
        "apiVersion": "example.com/v1", "kind": "Garden", "metadata": { "name": "g" }, "status": { "beds": 3 },
    });
    let patched = api.patch_status("g", &PatchParams::apply("gardener"), &Patch::Apply(&status)).await.unwrap();
    assert_eq!((patched.spec.beds, patched.status.unwrap().beds), (3, 3));
    // Users change their own fields, and the status is kept.
    let again = api.patch("g", &PatchParams::apply("people"), &Patch::Apply(&spec)).await.unwrap();
    assert_eq!(again.status.as_ref().unwrap().beds, 3);
    let entries = again.managed_fields().iter();
    let parts: Vec<_> =
        entries.map(|entry| (entry.manager.as_deref().unwrap(), entry.subresource.as_deref())).collect();
    assert!(parts.contains(&("gardener", Some("status"))) && parts.contains(&("people", None)), "{parts:?}");
}

#[tokio::test]
async fn json_and_strategic_patches_do_as_they_say() {
    let world = World::new().await;
    let api = world.config_maps();
    api.create(&PostParams::default(), &config_map("a", "1")).await.unwrap();
    let strategic = Patch::Strategic(json!({ "metadata": { "labels": { "a": "b" } }, "data": { "more": "2" } }));
    let patched = api.patch("a", &PatchParams::default(), &strategic).await.unwrap();
    assert_eq!(patched.data.unwrap().len(), 2);
    let mut finalized = config_map("b", "1");
    finalized.finalizers_mut().extend(["example.com/a".to_owned(), "example.com/b".to_owned()]);
    api.create(&PostParams::default(), &finalized).await.unwrap();
    let strategic =
        Patch::Strategic(json!({ "metadata": { "$deleteFromPrimitiveList/finalizers": ["example.com/a"] } }));
    let patched = api.patch("b", &PatchParams::default(), &strategic).await.unwrap();
    assert_eq!(patched.finalizers(), ["example.com/b"]);
}
