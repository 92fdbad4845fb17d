use k8s_openapi::api::apps::v1::{ControllerRevision, StatefulSetStatus};
use kube::api::{DeleteParams, Patch, PatchParams};
use serde_json::{Value, json};

use super::*;
use crate::{
    controller::{claims::PersistentVolumeController, revision},
    testing::{NAMESPACE, TestCluster},
};

async fn world() -> TestCluster {
    let mut world = TestCluster::new().await;
    world.start::<StatefulSetController>();
    world.start::<PersistentVolumeController>();
    world
}

/// A set whose pods are bound to a node from the start.
fn set(replicas: i32, more: Value) -> Value {
    let mut spec = json!({
        "replicas": replicas,
        "serviceName": "web",
        "selector": {"matchLabels": {"app": "web"}},
        "template": {
            "metadata": {"labels": {"app": "web"}},
            "spec": {"nodeName": "n", "containers": [{"name": "c", "image": "one"}]},
        },
    });
    spec.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    json!({"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": "web"}, "spec": spec})
}

fn with_claims(policy: &str) -> Value {
    json!({
        "persistentVolumeClaimRetentionPolicy": {"whenDeleted": policy, "whenScaled": policy},
        "volumeClaimTemplates": [{
            "metadata": {"name": "data"},
            "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
        }],
    })
}

fn image(name: &str) -> Value {
    json!({"spec": {"template": {"spec": {"containers": [{"name": "c", "image": name}]}}}})
}

fn status(set: &StatefulSet) -> StatefulSetStatus {
    set.status.clone().unwrap_or_default()
}

/// Whether the status matches the spec.
fn is_complete(set: &StatefulSet) -> bool {
    let status = status(set);
    let wanted = set.spec.as_ref().unwrap().replicas.unwrap();
    status.observed_generation == set.metadata.generation
        && status.replicas == wanted
        && status.ready_replicas.unwrap_or(0) == wanted
        && status.updated_replicas.unwrap_or(0) == wanted
        && status.available_replicas == Some(wanted)
        && status.current_revision == status.update_revision
}

fn image_of(pod: &Pod) -> String {
    pod.spec.as_ref().unwrap().containers[0].image.clone().unwrap()
}

async fn images(world: &TestCluster) -> Vec<(String, String)> {
    let pods = world.api::<Pod>().list(&Default::default()).await.unwrap();
    pods.items.iter().map(|pod| (pod.name_any(), image_of(pod))).collect()
}

fn expected(images: &[(&str, &str)]) -> Vec<(String, String)> {
    images.iter().map(|(pod, image)| ((*pod).to_owned(), (*image).to_owned())).collect()
}

#[tokio::test]
async fn pods_come_in_order_and_keep_their_names_and_claims() {
    let world = world().await;
    world.keep_unready("web-1");
    world.make::<StatefulSet>(set(3, with_claims("Retain"))).await;
    world.until::<StatefulSet>("web", |set| status(set).ready_replicas == Some(1) && status(set).replicas == 2).await;
    assert!(world.api::<Pod>().get_opt("web-2").await.unwrap().is_none(), "it waits for web-1");
    world.make_ready("web-1");
    let set = world.until::<StatefulSet>("web", is_complete).await;
    assert_eq!(status(&set).current_replicas, Some(3));

    let pod = world.api::<Pod>().get("web-1").await.unwrap();
    let labels = pod.labels();
    assert_eq!(labels.get("statefulset.kubernetes.io/pod-name").unwrap(), "web-1");
    assert_eq!(labels.get("apps.kubernetes.io/pod-index").unwrap(), "1");
    assert_eq!(labels.get(revision::POD_REVISION_HASH_LABEL), status(&set).current_revision.as_ref());
    let spec = pod.spec.unwrap();
    assert_eq!((spec.hostname.as_deref(), spec.subdomain.as_deref()), (Some("web-1"), Some("web")));
    let volume = spec.volumes.unwrap().into_iter().find(|volume| volume.name == "data").unwrap();
    assert_eq!(volume.persistent_volume_claim.unwrap().claim_name, "data-web-1");
    let bound = |claim: &PersistentVolumeClaim| claim.status.as_ref().unwrap().phase.as_deref() == Some("Bound");
    let claim = world.until("data-web-1", bound).await;
    assert_eq!(claim.labels().get("app").unwrap(), "web");
    world.event("SuccessfulCreate", "create Claim data-web-1 Pod web-1 in StatefulSet web success").await;
    world.event("SuccessfulCreate", "create Pod web-1 in StatefulSet web successful").await;

    world.patch::<StatefulSet>("web", json!({"spec": {"replicas": 1}})).await;
    world.until::<StatefulSet>("web", is_complete).await;
    world.event("SuccessfulDelete", "delete Pod web-2 in StatefulSet web successful").await;
    assert_eq!(images(&world).await, expected(&[("web-0", "one")]));
    let claims = world.api::<PersistentVolumeClaim>().list(&Default::default()).await.unwrap();
    assert_eq!(claims.items.len(), 3, "claims stay");
}

#[tokio::test]
async fn scaling_down_takes_the_last_first_and_one_at_a_time() {
    let world = world().await;
    world.make::<StatefulSet>(set(3, json!({}))).await;
    world.until::<StatefulSet>("web", is_complete).await;
    world.keep_terminating("web-2");
    world.patch::<StatefulSet>("web", json!({"spec": {"replicas": 0}})).await;
    world.until::<Pod>("web-2", plan::is_terminating).await;
    world.until::<StatefulSet>("web", |set| status(set).observed_generation == set.metadata.generation).await;
    let pods = world.api::<Pod>().list(&Default::default()).await.unwrap();
    assert_eq!(pods.items.iter().filter(|pod| plan::is_terminating(pod)).count(), 1);
    world.finish_termination("web-2");
    world.until::<StatefulSet>("web", |set| status(set).replicas == 0).await;
}

#[tokio::test]
async fn a_partition_holds_back_an_update_and_a_revision_comes_back() {
    let world = world().await;
    world.make::<StatefulSet>(set(3, json!({}))).await;
    let first = world.until::<StatefulSet>("web", is_complete).await;
    let partition = |number: i32| json!({"spec": {"updateStrategy": {"rollingUpdate": {"partition": number}}}});
    world.patch::<StatefulSet>("web", partition(2)).await;
    world.patch::<StatefulSet>("web", image("two")).await;
    let half = world
        .until::<StatefulSet>("web", |set| {
            status(set).updated_replicas == Some(1) && status(set).ready_replicas == Some(3)
        })
        .await;
    assert_eq!(status(&half).current_revision, status(&first).current_revision);
    assert_eq!(status(&half).current_replicas, Some(2));
    let some_new = expected(&[("web-0", "one"), ("web-1", "one"), ("web-2", "two")]);
    assert_eq!(images(&world).await, some_new);
    world.delete::<Pod>("web-0").await;
    world.until::<StatefulSet>("web", |set| status(set).ready_replicas == Some(2)).await;
    world.until::<StatefulSet>("web", |set| status(set).ready_replicas == Some(3)).await;
    assert_eq!(images(&world).await, some_new, "below the partition a pod comes back as it was");

    world.patch::<StatefulSet>("web", partition(0)).await;
    let second = world.until::<StatefulSet>("web", is_complete).await;
    assert_eq!(images(&world).await, expected(&[("web-0", "two"), ("web-1", "two"), ("web-2", "two")]));

    // Like `kubectl rollout undo`.
    let old = status(&first).current_revision.unwrap();
    let data = world.api::<ControllerRevision>().get(&old).await.unwrap().data.unwrap().0;
    let api = world.api::<StatefulSet>();
    api.patch("web", &PatchParams::default(), &Patch::Strategic(data)).await.unwrap();
    let third = world
        .until::<StatefulSet>("web", |set| {
            is_complete(set) && status(set).current_revision != status(&second).current_revision
        })
        .await;
    assert_eq!(status(&third).current_revision.as_deref(), Some(&*old));
    let revisions = world.api::<ControllerRevision>().list(&Default::default()).await.unwrap();
    assert_eq!(revisions.items.len(), 2);
    assert_eq!(revisions.items.iter().find(|revision| revision.name_any() == old).unwrap().revision, 3);
}

#[tokio::test]
async fn history_is_limited() {
    let world = world().await;
    world.make::<StatefulSet>(set(1, json!({"revisionHistoryLimit": 1}))).await;
    world.until::<StatefulSet>("web", is_complete).await;
    for name in ["two", "three", "four"] {
        world.patch::<StatefulSet>("web", image(name)).await;
        world.until::<StatefulSet>("web", is_complete).await;
    }
    world
        .until_all(&world.informers.revisions, |revisions| {
            let mut numbers: Vec<i64> = revisions.iter().map(|revision| revision.revision).collect();
            numbers.sort_unstable();
            (numbers == [3, 4]).then_some(())
        })
        .await;
}

#[tokio::test]
async fn on_delete_waits_for_somebody_to_delete() {
    let world = world().await;
    world.make::<StatefulSet>(set(2, json!({"updateStrategy": {"type": "OnDelete"}}))).await;
    world.until::<StatefulSet>("web", |set| status(set).ready_replicas == Some(2)).await;
    world.patch::<StatefulSet>("web", image("two")).await;
    world.until::<StatefulSet>("web", |set| status(set).observed_generation == set.metadata.generation).await;
    assert_eq!(images(&world).await, expected(&[("web-0", "one"), ("web-1", "one")]));
    world.delete::<Pod>("web-0").await;
    world.until::<Pod>("web-0", |pod| image_of(pod) == "two").await;
    let set = world.until::<StatefulSet>("web", |set| status(set).updated_replicas == Some(1)).await;
    assert_eq!(status(&set).current_replicas, Some(1));
}

#[tokio::test]
async fn parallel_pods_wait_for_nobody() {
    let world = world().await;
    world.keep_unready("web-0");
    world.make::<StatefulSet>(set(4, json!({"podManagementPolicy": "Parallel"}))).await;
    world.until::<StatefulSet>("web", |set| status(set).ready_replicas == Some(3) && status(set).replicas == 4).await;
    world.patch::<StatefulSet>("web", json!({"spec": {"replicas": 0}})).await;
    world.until::<StatefulSet>("web", |set| status(set).replicas == 0).await;
}

#[tokio::test]
async fn a_failed_pod_is_made_again() {
    let world = world().await;
    world.make::<StatefulSet>(set(1, json!({}))).await;
    world.until::<StatefulSet>("web", is_complete).await;
    let old = world.api::<Pod>().get("web-0").await.unwrap();
    world.fail("web-0").await;
    world.make_ready("web-0");
    world.until::<Pod>("web-0", |pod| pod.uid() != old.uid()).await;
    world.until::<StatefulSet>("web", is_complete).await;
}

#[tokio::test]
async fn a_foreign_pod_in_the_way_is_left_alone() {
    let world = world().await;
    world
        .make::<Pod>(json!({"metadata": {"name": "web-0"}, "spec": {"containers": [{"name": "c", "image": "i"}]}}))
        .await;
    world.make::<StatefulSet>(set(1, json!({}))).await;
    world.until::<StatefulSet>("web", |set| status(set).observed_generation.is_some()).await;
    assert!(world.api::<Pod>().get("web-0").await.unwrap().owner_references().is_empty());
    world.delete::<Pod>("web-0").await;
    world.until::<StatefulSet>("web", is_complete).await;
}

#[tokio::test]
async fn orphans_are_adopted_with_their_history() {
    let world = world().await;
    world.make::<StatefulSet>(set(2, json!({}))).await;
    world.until::<StatefulSet>("web", is_complete).await;
    let old = world.api::<Pod>().get("web-0").await.unwrap();
    world.api::<StatefulSet>().delete("web", &DeleteParams::orphan()).await.unwrap();
    world.until_gone::<StatefulSet>("web").await;
    let again = world.make::<StatefulSet>(set(2, json!({}))).await;
    world.until::<StatefulSet>("web", is_complete).await;
    let adopted = world.api::<Pod>().get("web-0").await.unwrap();
    assert_eq!(adopted.uid(), old.uid());
    assert!(owner_reference::is_controlled_by(&adopted, &again));
    let revisions = world.api::<ControllerRevision>().list(&Default::default()).await.unwrap();
    assert_eq!(revisions.items.len(), 1);
    assert!(owner_reference::is_controlled_by(&revisions.items[0], &again));
}

#[tokio::test]
async fn a_set_can_go_after_its_pods() {
    let world = world().await;
    world.make::<StatefulSet>(set(2, json!({}))).await;
    world.until::<StatefulSet>("web", is_complete).await;
    world.keep_terminating("web-1");
    world.api::<StatefulSet>().delete("web", &DeleteParams::foreground()).await.unwrap();
    let set = world.until::<StatefulSet>("web", |set| status(set).replicas == 1).await;
    assert!(set.metadata.deletion_timestamp.is_some());
    world.finish_termination("web-1");
    world.until_gone::<StatefulSet>("web").await;
    assert!(world.api::<ControllerRevision>().list(&Default::default()).await.unwrap().items.is_empty());
}

#[tokio::test]
async fn a_set_that_is_made_again_at_once_has_the_same_revision() {
    let world = world().await;
    world.make::<StatefulSet>(set(1, json!({}))).await;
    let first = world.until::<StatefulSet>("web", is_complete).await;
    world.delete::<StatefulSet>("web").await;
    world.make::<StatefulSet>(set(1, json!({}))).await;
    let second = world.until::<StatefulSet>("web", |set| is_complete(set) && set.uid() != first.uid()).await;
    assert_eq!(status(&second).current_revision, status(&first).current_revision);
    assert_eq!(status(&second).collision_count, Some(0));
}

#[tokio::test]
async fn claims_go_with_their_pods_and_their_set_if_asked_to() {
    let world = world().await;
    world.make::<StatefulSet>(set(2, with_claims("Delete"))).await;
    world.until::<StatefulSet>("web", is_complete).await;
    world.until::<PersistentVolumeClaim>("data-web-1", |claim| owner_reference::controller_of(claim).is_some()).await;
    world.patch::<StatefulSet>("web", json!({"spec": {"replicas": 1}})).await;
    world.until_gone::<PersistentVolumeClaim>("data-web-1").await;
    world.patch::<StatefulSet>("web", json!({"spec": {"replicas": 2}})).await;
    world.until::<StatefulSet>("web", is_complete).await;
    world.until::<PersistentVolumeClaim>("data-web-1", |claim| owner_reference::controller_of(claim).is_some()).await;
    world.until::<PersistentVolumeClaim>("data-web-0", |claim| owner_reference::controller_of(claim).is_some()).await;
    world.delete::<StatefulSet>("web").await;
    world.until_gone::<PersistentVolumeClaim>("data-web-0").await;
    world.until_gone::<PersistentVolumeClaim>("data-web-1").await;
}

#[tokio::test]
async fn labels_that_somebody_took_away_come_back() {
    let world = world().await;
    world.make::<StatefulSet>(set(1, json!({}))).await;
    world.until::<StatefulSet>("web", is_complete).await;
    world.patch::<Pod>("web-0", json!({"metadata": {"labels": {"apps.kubernetes.io/pod-index": null}}})).await;
    world.until::<Pod>("web-0", |pod| pod.labels().contains_key("apps.kubernetes.io/pod-index")).await;
}

#[tokio::test]
async fn nothing_is_written_when_nothing_changes() {
    let world = world().await;
    world.make::<StatefulSet>(set(2, with_claims("Delete"))).await;
    let set = world.until::<StatefulSet>("web", is_complete).await;
    let context = ControllerContext {
        client: world.client.clone(),
        informers: world.informers.clone(),
        events: crate::events::EventRecorder::new(world.client.clone(), "test", None),
    };
    let key = NamespacedKey::new(NAMESPACE, "web");
    let owned = |claim: &PersistentVolumeClaim| owner_reference::controller_of(claim).is_some();
    world.until("data-web-0", owned).await;
    world.until("data-web-1", owned).await;
    StatefulSetController::new(context).reconcile(key).await.unwrap();
    let now = world.api::<StatefulSet>().get("web").await.unwrap();
    assert_eq!(now.resource_version(), set.resource_version());
}
