//! Objects, typed and dynamic: create, read, list in pages, update, delete; and discovery.

use std::collections::BTreeSet;

use k8s_openapi::{
    api::{
        apps::v1::Deployment,
        core::v1::{ConfigMap, Namespace, Secret},
    },
    apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
};
use kube::{
    Api, CustomResourceExt, Discovery, ResourceExt,
    api::{
        DeleteParams, DynamicObject, GroupVersionKind, ListParams, Patch, PatchParams, PostParams, PropagationPolicy,
        ValidationDirective, WatchParams,
    },
    core::{Expression, Selector, WatchEvent},
    discovery::{self, Scope},
    runtime::wait::{await_condition, conditions::is_deleted},
};
use serde_json::json;

use crate::support::{Garden, World, config_map, define_gardens, garden, named, refused, soon, until, value_of};

#[tokio::test]
async fn a_typed_object_is_created_read_replaced_patched_and_deleted() {
    let world = World::new().await;
    let api = world.config_maps();
    let created = api.create(&PostParams::default(), &config_map("a", "1")).await.unwrap();
    assert!(created.uid().is_some() && created.resource_version().is_some());
    assert_eq!(api.get("a").await.unwrap(), created);
    assert_eq!(refused(api.create(&PostParams::default(), &config_map("a", "1")).await).reason, "AlreadyExists");

    let mut next = created.clone();
    next.data.get_or_insert_default().insert("key".into(), "2".into());
    let replaced = api.replace("a", &PostParams::default(), &next).await.unwrap();
    assert_eq!(value_of(&replaced), "2");
    // `next` has a resourceVersion that is no longer the newest.
    assert_eq!(refused(api.replace("a", &PostParams::default(), &next).await).code, 409);

    let patch = Patch::Merge(json!({ "data": { "key": "3" } }));
    assert_eq!(value_of(&api.patch("a", &PatchParams::default(), &patch).await.unwrap()), "3");
    api.delete("a", &DeleteParams::default()).await.unwrap();
    assert_eq!(api.get_opt("a").await.unwrap(), None);
    assert_eq!(refused(api.get("a").await).code, 404);
}

#[tokio::test]
async fn a_write_that_changes_nothing_changes_no_version() {
    let world = World::new().await;
    let api = world.config_maps();
    let created = api.create(&PostParams::default(), &config_map("a", "1")).await.unwrap();
    let patch = Patch::Merge(json!({ "data": { "key": "1" } }));
    let patched = api.patch("a", &PatchParams::default(), &patch).await.unwrap();
    assert_eq!(patched.resource_version(), created.resource_version());
    let replaced = api.replace("a", &PostParams::default(), &patched).await.unwrap();
    assert_eq!(replaced.resource_version(), created.resource_version());
}

#[tokio::test]
async fn an_entry_is_changed_by_its_closure_and_committed() {
    let world = World::new().await;
    let api = world.config_maps();
    let entry = api.entry("a").await.unwrap();
    let mut entry = entry.or_insert(|| config_map("a", "1"));
    entry.commit(&PostParams::default()).await.unwrap();
    let entry = api.entry("a").await.unwrap();
    let entry = entry.and_modify(|map| drop(map.data.get_or_insert_default().insert("key".into(), "2".into())));
    let mut entry = entry.or_insert(|| config_map("a", "3"));
    entry.commit(&PostParams::default()).await.unwrap();
    assert_eq!(value_of(&api.get("a").await.unwrap()), "2");
}

#[tokio::test]
async fn a_dynamic_object_needs_no_type() {
    let world = World::with_gardens().await;
    let gvk = GroupVersionKind::gvk("example.com", "v1", "Garden");
    let (resource, capabilities) = discovery::pinned_kind(&world.client, &gvk).await.unwrap();
    assert_eq!(capabilities.scope, Scope::Namespaced);
    let api: Api<DynamicObject> = Api::default_namespaced_with(world.client.clone(), &resource);
    let object = DynamicObject::new("rose", &resource).data(json!({ "spec": { "beds": 2 } }));
    let created = api.create(&PostParams::default(), &object).await.unwrap();
    // The schema's default was applied.
    assert_eq!(created.data["spec"], json!({ "beds": 2, "notes": [] }));
    let listed = api.list(&ListParams::default()).await.unwrap();
    assert_eq!(listed.items.len(), 1);
    assert_eq!(world.gardens().get("rose").await.unwrap().spec.beds, 2);
}

#[tokio::test]
async fn a_list_in_pages_is_complete_and_of_one_moment() {
    let world = World::new().await;
    let api = world.config_maps();
    for number in 0..23 {
        api.create(&PostParams::default(), &config_map(&format!("a{number:02}"), "1")).await.unwrap();
    }
    let mut names = Vec::new();
    let mut token = None::<String>;
    let mut pages = 0;
    loop {
        let mut page = ListParams::default().limit(5);
        page.continue_token = token.take();
        let listed = api.list(&page).await.unwrap();
        names.extend(listed.items.iter().map(ResourceExt::name_any));
        pages += 1;
        // Objects that are created during a paged list are not in it.
        api.create(&PostParams::default(), &config_map(&format!("z{pages}"), "1")).await.unwrap();
        token = listed.metadata.continue_.filter(|token| !token.is_empty());
        if token.is_none() {
            break;
        }
        let remaining = listed.metadata.remaining_item_count.unwrap();
        assert_eq!(usize::try_from(remaining).unwrap(), 23 - names.len());
    }
    assert_eq!(pages, 5);
    let expected: Vec<String> = (0..23).map(|number| format!("a{number:02}")).collect();
    assert_eq!(names, expected);
}

#[tokio::test]
async fn selectors_choose_by_label_and_by_field() {
    let world = World::new().await;
    let api = world.config_maps();
    for (name, tier) in [("a", "front"), ("b", "back"), ("c", "middle")] {
        let mut object = config_map(name, "1");
        object.labels_mut().insert("tier".into(), tier.into());
        api.create(&PostParams::default(), &object).await.unwrap();
    }
    let names = async |params: ListParams| {
        let listed = api.list(&params).await.unwrap();
        listed.items.iter().map(ResourceExt::name_any).collect::<Vec<_>>()
    };
    let selector: Selector = Expression::In("tier".into(), ["front", "back"].map(String::from).into()).into();
    assert_eq!(names(ListParams::default().labels_from(&selector)).await, ["a", "b"]);
    assert_eq!(names(ListParams::default().labels("tier!=front")).await, ["b", "c"]);
    assert_eq!(names(ListParams::default().fields("metadata.name=c")).await, ["c"]);
    assert_eq!(refused(api.list(&ListParams::default().fields("spec.no=1")).await).code, 400);
}

#[tokio::test]
async fn a_whole_collection_is_deleted() {
    let world = World::new().await;
    let api = world.config_maps();
    for name in ["a", "b", "c"] {
        let mut object = config_map(name, "1");
        object.labels_mut().insert("gone".into(), (name != "c").to_string());
        api.create(&PostParams::default(), &object).await.unwrap();
    }
    api.delete_collection(&DeleteParams::default(), &ListParams::default().labels("gone=true")).await.unwrap();
    let left = api.list(&ListParams::default()).await.unwrap();
    assert_eq!(left.items.iter().map(ResourceExt::name_any).collect::<Vec<_>>(), ["c"]);
}

#[tokio::test]
async fn metadata_is_read_alone() {
    let world = World::new().await;
    let api: Api<Secret> = Api::default_namespaced(world.client.clone());
    let secret = Secret { metadata: named("s"), ..Secret::default() };
    api.create(&PostParams::default(), &secret).await.unwrap();
    let meta = api.get_metadata("s").await.unwrap();
    assert_eq!(meta.types.as_ref().unwrap().kind, "PartialObjectMetadata");
    assert_eq!(meta.metadata.name.as_deref(), Some("s"));
    let listed = api.list_metadata(&ListParams::default()).await.unwrap();
    assert_eq!(listed.items.len(), 1);
    let patch = Patch::Merge(json!({ "metadata": { "labels": { "a": "b" } } }));
    let patched = api.patch_metadata("s", &PatchParams::default(), &patch).await.unwrap();
    assert_eq!(patched.metadata.labels.unwrap()["a"], "b");
}

#[tokio::test]
async fn a_dry_run_leaves_nothing_behind() {
    let world = World::new().await;
    let api = world.config_maps();
    let dry = PostParams { dry_run: true, ..PostParams::default() };
    api.create(&dry, &config_map("a", "1")).await.unwrap();
    assert_eq!(api.get_opt("a").await.unwrap(), None);
    api.create(&PostParams::default(), &config_map("a", "1")).await.unwrap();
    api.delete("a", &DeleteParams::default().dry_run()).await.unwrap();
    api.get("a").await.unwrap();
}

#[tokio::test]
async fn validation_and_rules_refuse_a_custom_resource() {
    let world = World::with_gardens().await;
    let api = world.gardens();
    let refusal = refused(api.create(&PostParams::default(), &garden("g", -1)).await);
    assert_eq!((refusal.code, refusal.reason.as_str()), (422, "Invalid"));
    assert!(refusal.message.contains("a garden has no negative beds"), "{}", refusal.message);
    api.create(&PostParams::default(), &garden("g", 1)).await.unwrap();
    let strict = PatchParams { field_validation: Some(ValidationDirective::Strict), ..PatchParams::default() };
    let patch = Patch::Merge(json!({ "spec": { "bedz": 2 } }));
    assert!(refused(api.patch("g", &strict, &patch).await).message.contains("unknown field \"spec.bedz\""));
}

#[tokio::test]
async fn status_and_scale_are_separate_from_the_spec() {
    let world = World::with_gardens().await;
    let api = world.gardens();
    let created = api.create(&PostParams::default(), &garden("g", 1)).await.unwrap();
    assert_eq!(created.metadata.generation, Some(1));
    let patch = Patch::Merge(json!({ "spec": { "beds": 9 }, "status": { "beds": 1 } }));
    let patched = api.patch_status("g", &PatchParams::default(), &patch).await.unwrap();
    assert_eq!((patched.spec.beds, patched.status.as_ref().unwrap().beds), (1, 1));
    assert_eq!(patched.metadata.generation, Some(1));
    let patched = api.patch("g", &PatchParams::default(), &patch).await.unwrap();
    assert_eq!((patched.spec.beds, patched.status.as_ref().unwrap().beds), (9, 1));
    assert_eq!(patched.metadata.generation, Some(2));

    let mut whole = patched;
    whole.status.as_mut().unwrap().beds = 5;
    let replaced = api.replace_status("g", &PostParams::default(), &whole).await.unwrap();
    assert_eq!(replaced.status.unwrap().beds, 5);
    let scale = api.get_scale("g").await.unwrap();
    assert_eq!((scale.spec.unwrap().replicas, scale.status.unwrap().replicas), (Some(9), 5));
    api.patch_scale("g", &PatchParams::default(), &Patch::Merge(json!({ "spec": { "replicas": 3 } }))).await.unwrap();
    assert_eq!(api.get("g").await.unwrap().spec.beds, 3);
}

#[tokio::test]
async fn a_deployment_is_restarted_and_scaled() {
    let world = World::new().await;
    let api: Api<Deployment> = Api::default_namespaced(world.client.clone());
    let deployment: Deployment = serde_json::from_value(json!({
        "metadata": { "name": "d" },
        "spec": {
            "selector": { "matchLabels": { "app": "d" } },
            "template": {
                "metadata": { "labels": { "app": "d" } },
                "spec": { "containers": [{ "name": "c", "image": "i" }] },
            },
        },
    }))
    .unwrap();
    let created = api.create(&PostParams::default(), &deployment).await.unwrap();
    assert_eq!(created.spec.unwrap().replicas, Some(1));
    let restarted = api.restart("d").await.unwrap();
    assert_eq!(restarted.metadata.generation, Some(2));
    let patch = Patch::Merge(json!({ "spec": { "replicas": 4 } }));
    api.patch_scale("d", &PatchParams::default(), &patch).await.unwrap();
    assert_eq!(api.get("d").await.unwrap().spec.unwrap().replicas, Some(4));
}

#[tokio::test]
async fn discovery_finds_built_in_and_custom_resources() {
    let world = World::with_gardens().await;
    for discovery in
        [Discovery::new(world.client.clone()).run().await, Discovery::new(world.client.clone()).run_aggregated().await]
    {
        let discovery = discovery.unwrap();
        let groups: BTreeSet<&str> = discovery.groups().map(|group| group.name()).collect();
        assert!(groups.is_superset(&BTreeSet::from([
            "",
            "apps",
            "example.com",
            "events.k8s.io",
            "coordination.k8s.io"
        ])));
        let gvk = GroupVersionKind::gvk("example.com", "v1", "Garden");
        let (resource, capabilities) = discovery.resolve_gvk(&gvk).unwrap();
        assert_eq!(resource.plural, "gardens");
        assert!(capabilities.supports_operation("watch"));
        let subresources: Vec<_> = capabilities.subresources.iter().map(|(resource, _)| &*resource.plural).collect();
        assert_eq!(
            subresources,
            ["status", "scale"].iter().filter(|name| subresources.contains(name)).copied().collect::<Vec<_>>()
        );
        assert_eq!(subresources.len(), 2);
    }
    let apps = discovery::group(&world.client, "apps").await.unwrap();
    assert!(apps.recommended_kind("Deployment").is_some());
    assert_eq!(world.client.apiserver_version().await.unwrap().major, "1");
}

#[tokio::test]
async fn every_listable_resource_lists() {
    let world = World::with_gardens().await;
    let discovery = Discovery::new(world.client.clone()).run().await.unwrap();
    let mut listed = 0;
    for group in discovery.groups() {
        for (resource, capabilities) in group.recommended_resources() {
            if !capabilities.supports_operation("list") {
                continue;
            }
            let api: Api<DynamicObject> = Api::all_with(world.client.clone(), &resource);
            api.list(&ListParams::default().limit(10)).await.unwrap();
            listed += 1;
        }
    }
    assert!(listed > 40, "{listed}");
}

#[tokio::test]
async fn a_deleted_definition_takes_its_objects_along_and_can_come_back() {
    let world = World::with_gardens().await;
    world.gardens().create(&PostParams::default(), &garden("g", 1)).await.unwrap();
    let definitions: Api<CustomResourceDefinition> = Api::all(world.client.clone());
    let name = Garden::crd_name();
    let version = world.gardens().list(&ListParams::default()).await.unwrap().metadata.resource_version.unwrap();
    let events = world.gardens().watch(&WatchParams::default(), &version).await.unwrap();
    let uid = definitions.get(name).await.unwrap().uid().unwrap();
    definitions.delete(name, &DeleteParams::default()).await.unwrap();
    soon(await_condition(definitions, name, is_deleted(&uid))).await.unwrap();
    assert_eq!(refused(world.gardens().list(&ListParams::default()).await).code, 404);
    // A watcher has seen the deletion of the object, and then the end of the watch.
    let seen: Vec<_> = soon(futures_util::StreamExt::collect(events)).await;
    assert!(seen.iter().any(|event| matches!(event, Ok(WatchEvent::Deleted(_)))), "{seen:?}");
    define_gardens(&world.client).await;
    assert_eq!(world.gardens().list(&ListParams::default()).await.unwrap().items.len(), 0);
}

#[tokio::test]
async fn a_deleted_definition_waits_for_the_finalizers_of_its_objects() {
    let world = World::with_gardens().await;
    let gardens = world.gardens();
    let mut held = garden("held", 1);
    held.metadata.finalizers = Some(vec!["example.com/hold".into()]);
    gardens.create(&PostParams::default(), &held).await.unwrap();
    let definitions: Api<CustomResourceDefinition> = Api::all(world.client.clone());
    let name = Garden::crd_name();
    let uid = definitions.get(name).await.unwrap().uid().unwrap();
    definitions.delete(name, &DeleteParams::default()).await.unwrap();
    until(|| async { gardens.get("held").await.unwrap().metadata.deletion_timestamp }).await;
    assert_eq!(refused(gardens.create(&PostParams::default(), &garden("late", 1)).await).code, 403);
    let release = json!({ "metadata": { "finalizers": null } });
    gardens.patch("held", &PatchParams::default(), &Patch::Merge(release)).await.unwrap();
    soon(await_condition(definitions, name, is_deleted(&uid))).await.unwrap();
}

#[tokio::test]
async fn a_deleted_namespace_takes_its_objects_along() {
    let world = World::new().await;
    world.namespace("n").await;
    let inside: Api<ConfigMap> = Api::namespaced(world.client.clone(), "n");
    inside.create(&PostParams::default(), &config_map("a", "1")).await.unwrap();
    let namespaces: Api<Namespace> = Api::all(world.client.clone());
    let uid = namespaces.get("n").await.unwrap().uid().unwrap();
    let policy = DeleteParams { propagation_policy: Some(PropagationPolicy::Foreground), ..DeleteParams::default() };
    namespaces.delete("n", &policy).await.unwrap();
    soon(await_condition(namespaces, "n", is_deleted(&uid))).await.unwrap();
    assert_eq!(inside.get_opt("a").await.unwrap(), None);
    assert_eq!(refused(inside.create(&PostParams::default(), &config_map("a", "1")).await).code, 404);
}
