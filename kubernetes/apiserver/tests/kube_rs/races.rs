//! Concurrent clients: conflicts are reported, no update is lost, and deletions are complete.

use futures_util::{StreamExt, future::join_all, stream::FuturesUnordered};
use k8s_openapi::{
    api::core::v1::{ConfigMap, Namespace, Pod},
    apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
};
use kube::{
    Api, CustomResourceExt, Resource, ResourceExt,
    api::{DeleteParams, ListParams, Patch, PatchParams, PostParams},
    runtime::{
        WatchStreamExt,
        wait::{await_condition, conditions::is_deleted},
        watcher,
    },
};
use kubewake_apiserver::server::Options;
use serde_json::json;

use crate::support::{Garden, World, config_map, define_gardens, garden, named, refused, soon, until, value_of};

/// Increments the counter, retrying after conflicts.
async fn increment(api: &Api<ConfigMap>) {
    loop {
        let mut object = api.get("counter").await.unwrap();
        let next = value_of(&object).parse::<u32>().unwrap() + 1;
        object.data.as_mut().unwrap().insert("key".into(), next.to_string());
        match api.replace("counter", &PostParams::default(), &object).await {
            Ok(_) => return,
            refusal => assert_eq!(refused(refusal).code, 409),
        }
    }
}

#[tokio::test]
async fn no_update_is_lost_among_conflicting_ones() {
    let world = World::new().await;
    let api = world.config_maps();
    api.create(&PostParams::default(), &config_map("counter", "0")).await.unwrap();
    soon(join_all((0..20).map(|_| async {
        for _ in 0..5 {
            increment(&api).await;
        }
    })))
    .await;
    assert_eq!(value_of(&api.get("counter").await.unwrap()), "100");
}

#[tokio::test]
async fn patches_without_a_version_all_count() {
    let world = World::new().await;
    let api = world.config_maps();
    api.create(&PostParams::default(), &config_map("a", "0")).await.unwrap();
    let patches = (0..50).map(|number| {
        let api = &api;
        let patch = json!({ "data": { format!("k{number}"): "1" } });
        async move { api.patch("a", &PatchParams::default(), &Patch::Merge(patch)).await.unwrap() }
    });
    soon(join_all(patches)).await;
    assert_eq!(api.get("a").await.unwrap().data.unwrap().len(), 51);
}

#[tokio::test]
async fn of_many_creators_of_a_name_one_succeeds() {
    let world = World::new().await;
    let api = world.config_maps();
    let answers = join_all((0..30).map(|number| {
        let api = &api;
        let object = config_map("a", &number.to_string());
        async move { api.create(&PostParams::default(), &object).await }
    }));
    let (good, bad): (Vec<_>, Vec<_>) = soon(answers).await.into_iter().partition(Result::is_ok);
    assert_eq!((good.len(), bad.len()), (1, 29));
    assert!(bad.into_iter().all(|answer| refused(answer).reason == "AlreadyExists"));
}

#[tokio::test]
async fn what_is_created_while_its_namespace_goes_does_not_stay() {
    let world = World::new().await;
    let namespaces: Api<Namespace> = Api::all(world.client.clone());
    for round in 0..10 {
        let name = format!("n{round}");
        world.namespace(&name).await;
        let inside: Api<ConfigMap> = Api::namespaced(world.client.clone(), &name);
        let uid = namespaces.get(&name).await.unwrap().uid().unwrap();
        let creators: FuturesUnordered<_> = (0..20)
            .map(|number| {
                let inside = &inside;
                let object = config_map(&format!("a{number}"), "1");
                async move { inside.create(&PostParams::default(), &object).await }
            })
            .collect();
        let params = DeleteParams::default();
        let (answers, deleted) =
            soon(async { tokio::join!(creators.collect::<Vec<_>>(), namespaces.delete(&name, &params)) }).await;
        deleted.unwrap();
        for answer in answers {
            assert!(answer.is_ok() || matches!(refused(answer).code, 403 | 404));
        }
        soon(await_condition(namespaces.clone(), &name, is_deleted(&uid))).await.unwrap();
        // A namespace of the same name is empty.
        world.namespace(&name).await;
        assert_eq!(inside.list(&ListParams::default()).await.unwrap().items.len(), 0);
    }
}

#[tokio::test]
async fn what_is_created_while_its_definition_goes_does_not_stay() {
    let world = World::with_gardens().await;
    let definitions: Api<CustomResourceDefinition> = Api::all(world.client.clone());
    for _ in 0..10 {
        let uid = definitions.get(Garden::crd_name()).await.unwrap().uid().unwrap();
        let gardens = world.gardens();
        let creators: FuturesUnordered<_> = (0..20)
            .map(|number| {
                let gardens = &gardens;
                let object = garden(&format!("g{number}"), 1);
                async move { gardens.create(&PostParams::default(), &object).await }
            })
            .collect();
        let params = DeleteParams::default();
        let delete = definitions.delete(Garden::crd_name(), &params);
        let (answers, deleted) = soon(async { tokio::join!(creators.collect::<Vec<_>>(), delete) }).await;
        deleted.unwrap();
        for answer in answers {
            assert!(answer.is_ok() || matches!(refused(answer).code, 404 | 405 | 409));
        }
        soon(await_condition(definitions.clone(), Garden::crd_name(), is_deleted(&uid))).await.unwrap();
        define_gardens(&world.client).await;
        assert_eq!(world.gardens().list(&ListParams::default()).await.unwrap().items.len(), 0);
    }
}

#[tokio::test]
async fn definitions_and_namespaces_come_and_go_at_once() {
    let world = World::new().await;
    let definitions: Api<CustomResourceDefinition> = Api::all(world.client.clone());
    let namespaces: Api<Namespace> = Api::all(world.client.clone());
    // Deleted at the same time and created again as soon as they are gone: every deletion completes.
    soon(async {
        for _ in 0..15 {
            let made = definitions.create(&PostParams::default(), &Garden::crd()).await.unwrap();
            definitions.delete(Garden::crd_name(), &DeleteParams::default()).await.unwrap();
            let namespace = Namespace { metadata: named("n"), ..Namespace::default() };
            let home = namespaces.create(&PostParams::default(), &namespace).await.unwrap();
            namespaces.delete("n", &DeleteParams::default()).await.unwrap();
            await_condition(definitions.clone(), Garden::crd_name(), is_deleted(&made.uid().unwrap())).await.unwrap();
            await_condition(namespaces.clone(), "n", is_deleted(&home.uid().unwrap())).await.unwrap();
        }
    })
    .await;
}

#[tokio::test]
async fn everything_is_collected_although_history_is_short() {
    // So short that the collector lags, and has to detect deletions itself.
    let world = World::with(Options { history_bytes: 1024, ..Options::default() }).await;
    define_gardens(&world.client).await;
    let gardens = world.gardens();
    let api = world.config_maps();
    for number in 0..30 {
        let owner = gardens.create(&PostParams::default(), &garden(&format!("g{number}"), 1)).await.unwrap();
        let mut owned = config_map(&format!("a{number}"), "1");
        owned.metadata.owner_references = Some(vec![owner.owner_ref(&()).unwrap()]);
        api.create(&PostParams::default(), &owned).await.unwrap();
    }
    gardens.delete_collection(&DeleteParams::default(), &ListParams::default()).await.unwrap();
    until(|| is_empty(&api)).await;
}

async fn is_empty(api: &Api<ConfigMap>) -> Option<()> {
    api.list(&ListParams::default()).await.unwrap().items.is_empty().then_some(())
}

/// A kubelet removes a pod as soon as it sees that somebody deletes it, possibly before the request of that
/// client is finished.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn deletion_succeeds_when_a_watcher_removes_the_marked_object_first() {
    let world = World::new().await;
    let pods: Api<Pod> = Api::default_namespaced(world.client.clone());
    let kubelet = tokio::spawn(remove_marked_pods(pods.clone()));
    for round in 0..200 {
        let name = format!("p{round}");
        let spec = json!({ "containers": [{ "name": "main", "image": "main" }] });
        let pod = serde_json::from_value(json!({ "metadata": { "name": name }, "spec": spec })).unwrap();
        pods.create(&PostParams::default(), &pod).await.unwrap();
        let failed = json!({ "status": { "phase": "Failed" } });
        pods.patch_status(&name, &PatchParams::default(), &Patch::Merge(failed)).await.unwrap();
        pods.delete(&name, &DeleteParams::default()).await.unwrap();
        assert_eq!(pods.get_opt(&name).await.unwrap(), None);
    }
    kubelet.abort();
}

async fn remove_marked_pods(pods: Api<Pod>) {
    let mut changes = watcher(pods.clone(), watcher::Config::default()).touched_objects().boxed();
    while let Some(pod) = changes.next().await {
        let pod = pod.unwrap();
        if pod.metadata.deletion_timestamp.is_some() {
            let removed = pods.delete(&pod.name_any(), &DeleteParams::default().grace_period(0)).await;
            assert!(removed.is_ok() || refused(removed.map(|_| ())).code == 404);
        }
    }
}
