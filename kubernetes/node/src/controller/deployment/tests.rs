use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use k8s_openapi::api::{apps::v1::DeploymentStatus, core::v1::Namespace};
use kube::{
    Api,
    api::{DeleteParams, ListParams, Patch, PatchParams, PostParams, PropagationPolicy},
    runtime::wait::await_condition,
};
use serde_json::{Value, json};
use tokio::task::JoinSet;

use super::{revision::REVISION_ANNOTATION, *};
use crate::{
    controller::{
        replicaset::{ReplicaSetController, desired_replicas},
        start,
    },
    testing::{NAMESPACE, NEVER_READY_IMAGE, TestCluster},
};

const NAME: &str = "web";

async fn world() -> TestCluster {
    let mut world = TestCluster::new().await.with_scheduler();
    world.add_node("n1", json!({})).await;
    world.start::<DeploymentController>();
    world.start::<ReplicaSetController>();
    world
}

fn spec(replicas: i32, image: &str) -> Value {
    json!({
        "replicas": replicas,
        "selector": {"matchLabels": {"app": NAME}},
        "template": {
            "metadata": {"labels": {"app": NAME}},
            "spec": {"containers": [{"name": "c", "image": image}]},
        },
    })
}

fn deployment(spec: Value) -> Value {
    json!({"metadata": {"name": NAME, "annotations": {"kubernetes.io/change-cause": "first"}}, "spec": spec})
}

fn image(image: &str) -> Value {
    json!({"spec": {"template": {"spec": {"containers": [{"name": "c", "image": image}]}}}})
}

impl TestCluster {
    async fn deploy(&self, spec: Value) {
        self.make::<Deployment>(deployment(spec)).await;
    }

    /// Waits until `kubectl rollout status` would report success.
    async fn rolled_out(&self) -> Deployment {
        self.until(NAME, |deployment: &Deployment| {
            let status = status(deployment);
            let replicas = deployment.spec.as_ref().unwrap().replicas.unwrap();
            let count = |number: Option<i32>| number.unwrap_or(0);
            status.observed_generation == deployment.metadata.generation
                && count(status.updated_replicas) == replicas
                && count(status.replicas) == replicas
                && count(status.available_replicas) == replicas
                && reason(deployment, "Progressing") == Some("NewReplicaSetAvailable".to_owned())
        })
        .await
    }

    async fn set_image(&self, name: &str) {
        let patch = image(name);
        let patch = Patch::Strategic(patch);
        self.api::<Deployment>().patch(NAME, &PatchParams::default(), &patch).await.unwrap();
    }

    async fn sets(&self) -> Vec<ReplicaSet> {
        let mut sets = self.api::<ReplicaSet>().list(&ListParams::default()).await.unwrap().items;
        sets.sort_by_key(revision::revision_number);
        sets
    }

    /// Revision and size of each ReplicaSet.
    async fn sizes(&self) -> Vec<(i64, i32)> {
        self.sets().await.iter().map(|set| (revision::revision_number(set), desired_replicas(set))).collect()
    }

    /// Waits for ReplicaSets of these revisions and sizes.
    async fn until_sizes(&self, sizes: &[(i64, i32)]) {
        self.until_all(&self.informers.replica_sets, |sets| {
            let held: BTreeSet<_> =
                sets.iter().map(|set| (revision::revision_number(set), desired_replicas(set))).collect();
            (held == sizes.iter().copied().collect()).then_some(())
        })
        .await;
    }

    fn pods_of(&self) -> Vec<Arc<Pod>> {
        self.informers.pods.in_namespace(NAMESPACE)
    }
}

fn status(deployment: &Deployment) -> DeploymentStatus {
    deployment.status.clone().unwrap_or_default()
}

fn reason(deployment: &Deployment, kind: &str) -> Option<String> {
    conditions::get_condition(deployment.status.as_ref()?, kind)?.reason.clone()
}

fn annotation(object: &impl ResourceExt, name: &str) -> Option<String> {
    object.annotations().get(name).cloned()
}

#[tokio::test]
async fn a_deployment_gets_its_pods_and_says_so() {
    let world = world().await;
    world.deploy(spec(3, "one")).await;
    let deployment = world.rolled_out().await;
    let held = status(&deployment);
    assert_eq!((held.ready_replicas, held.unavailable_replicas, held.terminating_replicas), (Some(3), None, Some(0)));
    assert_eq!(reason(&deployment, "Available").as_deref(), Some("MinimumReplicasAvailable"));
    assert_eq!(annotation(&deployment, REVISION_ANNOTATION).as_deref(), Some("1"));
    assert_eq!(deployment.metadata.generation, Some(1), "its own annotation does not count");

    let set = world.sets().await.remove(0);
    let hash = set.labels().get(template::POD_TEMPLATE_HASH_LABEL).unwrap();
    assert_eq!(set.name_any(), format!("{NAME}-{hash}"));
    let selector = set.spec.as_ref().unwrap().selector.match_labels.clone().unwrap();
    assert_eq!(
        selector,
        BTreeMap::from([("app".into(), NAME.into()), (template::POD_TEMPLATE_HASH_LABEL.into(), hash.clone())])
    );
    assert_eq!(annotation(&set, "deployment.kubernetes.io/desired-replicas").as_deref(), Some("3"));
    assert_eq!(annotation(&set, "deployment.kubernetes.io/max-replicas").as_deref(), Some("4"));
    assert_eq!(annotation(&set, "kubernetes.io/change-cause").as_deref(), Some("first"));
    assert!(world.pods_of().iter().all(|pod| pod.labels().get(template::POD_TEMPLATE_HASH_LABEL) == Some(hash)));
    world.event("ScalingReplicaSet", &format!("Scaled up replica set {} from 0 to 3", set.name_any())).await;
    for pod in world.pods_of() {
        world.event("SuccessfulCreate", &format!("Created pod: {}", pod.name_any())).await;
    }
}

#[tokio::test]
async fn an_update_rolls_within_its_limits() {
    let world = world().await;
    let mut spec = spec(4, "one");
    spec["strategy"] = json!({"rollingUpdate": {"maxSurge": 1, "maxUnavailable": 1}});
    world.deploy(spec).await;
    world.rolled_out().await;

    let worst = Arc::new(std::sync::Mutex::new((4, 0)));
    let noted = Arc::clone(&worst);
    let view = Arc::downgrade(&world.informers.pods);
    world.informers.pods.on_change(move |_| {
        let Some(view) = view.upgrade() else { return };
        let pods = view.in_namespace(NAMESPACE);
        let active: Vec<_> = pods.iter().filter(|pod| pods::is_active(pod)).collect();
        let ready = active.iter().filter(|pod| pods::is_ready(pod)).count();
        let mut worst = noted.lock().unwrap();
        *worst = (worst.0.min(ready), worst.1.max(active.len()));
    });
    world.set_image("two").await;
    let deployment = world.rolled_out().await;
    assert_eq!(annotation(&deployment, REVISION_ANNOTATION).as_deref(), Some("2"));
    assert_eq!(world.sizes().await, [(1, 0), (2, 4)]);
    let (fewest_ready, most) = *worst.lock().unwrap();
    assert!(fewest_ready >= 3, "only {fewest_ready} were ready");
    assert!(most <= 5, "there were {most} pods");
}

#[tokio::test]
async fn a_bad_update_keeps_the_old_pods_and_can_be_undone() {
    let world = world().await;
    let mut spec = spec(4, "one");
    spec["progressDeadlineSeconds"] = json!(1);
    world.deploy(spec).await;
    world.rolled_out().await;

    world.set_image(NEVER_READY_IMAGE).await;
    // A quarter may be unavailable.
    world.until_sizes(&[(1, 3), (2, 2)]).await;
    let stuck = |deployment: &Deployment| {
        reason(deployment, "Progressing").as_deref() == Some("ProgressDeadlineExceeded")
            && status(deployment).available_replicas == Some(3)
    };
    let deployment = world.until(NAME, stuck).await;
    assert_eq!(reason(&deployment, "Available").as_deref(), Some("MinimumReplicasAvailable"));
    assert_eq!(world.sizes().await, [(1, 3), (2, 2)]);

    // Like `kubectl rollout undo`: the template of the old ReplicaSet without its hash.
    world.set_image("one").await;
    let deployment = world.rolled_out().await;
    assert_eq!(annotation(&deployment, REVISION_ANNOTATION).as_deref(), Some("3"));
    assert_eq!(world.sizes().await, [(2, 0), (3, 4)]);
    let set = world.sets().await.pop().unwrap();
    assert_eq!(annotation(&set, "deployment.kubernetes.io/revision-history").as_deref(), Some("1"));
}

#[tokio::test]
async fn recreate_waits_until_every_old_pod_is_gone() {
    let world = world().await;
    let mut spec = spec(2, "one");
    spec["strategy"] = json!({"type": "Recreate"});
    world.deploy(spec).await;
    world.rolled_out().await;
    let old: Vec<String> = world.pods_of().iter().map(|pod| pod.name_any()).collect();
    world.keep_terminating(&old[0]);

    world.set_image("two").await;
    world.until_gone::<Pod>(&old[1]).await;
    world.until(NAME, |deployment: &Deployment| status(deployment).replicas.is_none()).await;
    assert_eq!(world.sizes().await, [(1, 0)], "no new ReplicaSet yet");
    world.finish_termination(&old[0]);
    world.rolled_out().await;
    assert_eq!(world.sizes().await, [(1, 0), (2, 2)]);
}

#[tokio::test]
async fn a_deployment_is_scaled_and_its_rollout_stays_done() {
    let world = world().await;
    world.deploy(spec(1, "one")).await;
    world.rolled_out().await;
    world.patch::<Deployment>(NAME, json!({"spec": {"replicas": 5}})).await;
    let set = world.sets().await.remove(0).name_any();
    world.event("ScalingReplicaSet", &format!("Scaled up replica set {set} from 1 to 5")).await;
    let deployment = world.rolled_out().await;
    assert_eq!(annotation(&deployment, REVISION_ANNOTATION).as_deref(), Some("1"));
    world.patch::<Deployment>(NAME, json!({"spec": {"replicas": 0}})).await;
    world.rolled_out().await;
    assert_eq!(world.sizes().await, [(1, 0)]);
    world.until_all(&world.informers.pods, |pods| pods.is_empty().then_some(())).await;
}

#[tokio::test]
async fn a_rollout_in_the_middle_is_scaled_in_proportion() {
    let world = world().await;
    let mut spec = spec(8, "one");
    spec["strategy"] = json!({"rollingUpdate": {"maxSurge": 4, "maxUnavailable": 0}});
    world.deploy(spec).await;
    world.rolled_out().await;
    world.set_image(NEVER_READY_IMAGE).await;
    world.until_sizes(&[(1, 8), (2, 4)]).await;
    world.patch::<Deployment>(NAME, json!({"spec": {"replicas": 20}})).await;
    world.until_sizes(&[(1, 16), (2, 8)]).await;
    for set in world.sets().await {
        assert_eq!(annotation(&set, "deployment.kubernetes.io/desired-replicas").as_deref(), Some("20"));
        assert_eq!(annotation(&set, "deployment.kubernetes.io/max-replicas").as_deref(), Some("24"));
    }
}

#[tokio::test]
async fn somebody_elses_sizes_are_put_right() {
    let world = world().await;
    world.deploy(spec(2, "one")).await;
    world.rolled_out().await;
    let name = world.sets().await.remove(0).name_any();
    world.patch::<ReplicaSet>(&name, json!({"spec": {"replicas": 4}})).await;
    world.until_sizes(&[(1, 2)]).await;
    // An annotation with a larger size must not block the next rollout.
    let wrong = json!({"metadata": {"annotations": {"deployment.kubernetes.io/desired-replicas": "9"}}});
    world.patch::<ReplicaSet>(&name, wrong).await;
    world.set_image("two").await;
    world.rolled_out().await;
    assert_eq!(world.sizes().await, [(1, 0), (2, 2)]);
}

#[tokio::test]
async fn a_paused_deployment_is_scaled_but_not_rolled() {
    let world = world().await;
    world.deploy(spec(2, "one")).await;
    world.rolled_out().await;
    world.patch::<Deployment>(NAME, json!({"spec": {"paused": true}})).await;
    world.set_image("two").await;
    let paused = |deployment: &Deployment| {
        reason(deployment, "Progressing").as_deref() == Some("DeploymentPaused")
            && status(deployment).observed_generation == deployment.metadata.generation
    };
    world.until(NAME, paused).await;
    world.patch::<Deployment>(NAME, json!({"spec": {"replicas": 3}})).await;
    world
        .until(NAME, |deployment: &Deployment| paused(deployment) && status(deployment).available_replicas == Some(3))
        .await;
    assert_eq!(world.sizes().await, [(1, 3)]);
    world.patch::<Deployment>(NAME, json!({"spec": {"paused": false}})).await;
    world.rolled_out().await;
    assert_eq!(world.sizes().await, [(1, 0), (2, 3)]);
}

#[tokio::test]
async fn only_so_many_revisions_are_kept() {
    let world = world().await;
    let mut spec = spec(1, "one");
    spec["revisionHistoryLimit"] = json!(1);
    world.deploy(spec).await;
    world.rolled_out().await;
    for image in ["two", "three", "four"] {
        world.set_image(image).await;
        world.rolled_out().await;
    }
    world.until_sizes(&[(3, 0), (4, 1)]).await;
}

#[tokio::test]
async fn a_changed_annotation_or_readiness_is_no_rollout() {
    let world = world().await;
    world.deploy(spec(1, "one")).await;
    world.rolled_out().await;
    let patch =
        json!({"metadata": {"annotations": {"kubernetes.io/change-cause": "second"}}, "spec": {"minReadySeconds": 1}});
    world.patch::<Deployment>(NAME, patch).await;
    let name = world.sets().await.remove(0).name_any();
    let set = world
        .until(&name, |set: &ReplicaSet| annotation(set, "kubernetes.io/change-cause").as_deref() == Some("second"))
        .await;
    assert_eq!(set.spec.unwrap().min_ready_seconds, Some(1));
    let deployment = world.rolled_out().await;
    assert_eq!(annotation(&deployment, REVISION_ANNOTATION).as_deref(), Some("1"));
    assert_eq!(world.sizes().await, [(1, 1)]);
}

#[tokio::test]
async fn an_orphaned_set_is_taken_back() {
    let world = world().await;
    world.deploy(spec(2, "one")).await;
    let first = world.rolled_out().await;
    let orphan = DeleteParams { propagation_policy: Some(PropagationPolicy::Orphan), ..DeleteParams::default() };
    world.api::<Deployment>().delete(NAME, &orphan).await.unwrap();
    world.until_gone::<Deployment>(NAME).await;
    let before = world.sets().await;
    assert!(before[0].owner_references().is_empty());

    world.deploy(spec(2, "one")).await;
    let second = world.rolled_out().await;
    assert_ne!(first.uid(), second.uid());
    let after = world.sets().await;
    assert_eq!(after.len(), 1);
    assert_eq!(after[0].uid(), before[0].uid());
    assert!(owner_reference::is_controlled_by(&after[0], &second));
}

#[tokio::test]
async fn a_name_that_is_taken_is_a_collision() {
    let world = world().await;
    let made: Deployment = serde_json::from_value(deployment(spec(1, "one"))).unwrap();
    let api = world.api::<Deployment>();
    // With the defaults of the API server.
    let completed = api.create(&PostParams { dry_run: true, ..Default::default() }, &made).await.unwrap();
    let hash = template::template_hash(&template::current_template(&completed), None);
    let taken = json!({
        "metadata": {"name": template::replica_set_name(NAME, &hash)},
        "spec": {
            "replicas": 0, "selector": {"matchLabels": {"app": "other"}},
            "template": {"metadata": {"labels": {"app": "other"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}},
        },
    });
    world.make::<ReplicaSet>(taken).await;
    world.deploy(spec(1, "one")).await;
    let deployment = world.rolled_out().await;
    assert_eq!(status(&deployment).collision_count, Some(1));
    assert_eq!(world.sizes().await, [(0, 0), (1, 1)]);
}

#[tokio::test]
async fn what_a_set_cannot_make_is_said_of_the_deployment() {
    let world = world().await;
    let mut spec = spec(1, "one");
    spec["template"]["spec"]["serviceAccountName"] = json!("Not A Name");
    let made = json!({"metadata": {"name": NAME}, "spec": spec});
    let refused = world.api::<Deployment>().create(&Default::default(), &serde_json::from_value(made).unwrap()).await;
    assert!(refused.is_err(), "the API server lets no such template in");

    // An invalid finalizer is only rejected in a pod.
    let mut spec = self::spec(1, "one");
    spec["template"]["metadata"]["finalizers"] = json!(["not-qualified"]);
    world.deploy(spec).await;
    let deployment = world.until(NAME, |deployment: &Deployment| reason(deployment, "ReplicaFailure").is_some()).await;
    assert_eq!(reason(&deployment, "ReplicaFailure").as_deref(), Some("FailedCreate"));
    let message = conditions::get_condition(&status(&deployment), "ReplicaFailure").unwrap().message.clone().unwrap();
    world.event("FailedCreate", &format!("Error creating: {message}")).await;
}

#[tokio::test]
async fn controllers_that_are_started_anew_go_on() {
    let mut world = TestCluster::new().await.with_scheduler();
    world.add_node("n1", json!({})).await;
    let mut first = JoinSet::new();
    start::<DeploymentController>(&world.client, &world.informers, &mut first);
    start::<ReplicaSetController>(&world.client, &world.informers, &mut first);
    world.deploy(spec(3, "one")).await;
    world.rolled_out().await;
    world.set_image(NEVER_READY_IMAGE).await;
    world.until_sizes(&[(1, 3), (2, 1)]).await;
    first.shutdown().await;

    world.set_image("two").await;
    world.patch::<Deployment>(NAME, json!({"spec": {"replicas": 2}})).await;
    world.delete::<Pod>(&world.pods_of()[0].name_any()).await;
    world.start::<DeploymentController>();
    world.start::<ReplicaSetController>();
    world.rolled_out().await;
    world.until_all(&world.informers.pods, |pods| (pods.len() == 2).then_some(())).await;
}

#[tokio::test]
async fn a_deployment_goes_with_all_it_made() {
    let world = world().await;
    world.deploy(spec(3, "one")).await;
    world.rolled_out().await;
    world.set_image("two").await;
    world.rolled_out().await;
    world.delete::<Deployment>(NAME).await;
    world.until_all(&world.informers.replica_sets, |sets| sets.is_empty().then_some(())).await;
    world.until_all(&world.informers.pods, |pods| pods.is_empty().then_some(())).await;
}

#[tokio::test]
async fn a_namespace_that_goes_takes_everything_along() {
    let world = world().await;
    let namespaces: Api<Namespace> = Api::all(world.client.clone());
    let namespace = json!({"metadata": {"name": "going"}});
    namespaces.create(&PostParams::default(), &serde_json::from_value(namespace).unwrap()).await.unwrap();
    let deployments: Api<Deployment> = Api::namespaced(world.client.clone(), "going");
    let made = serde_json::from_value(deployment(spec(3, "one"))).unwrap();
    deployments.create(&PostParams::default(), &made).await.unwrap();
    world.until_all(&world.informers.pods, |pods| (pods.len() == 3).then_some(())).await;
    namespaces.delete("going", &DeleteParams::default()).await.unwrap();
    await_condition(namespaces, "going", |namespace: Option<&Namespace>| namespace.is_none()).await.unwrap();
    world.until_all(&world.informers.pods, |pods| pods.is_empty().then_some(())).await;
}

/// Whatever users and nodes do, the result is the last desired state, and nothing else.
#[tokio::test]
async fn whatever_happens_it_ends_well() {
    let world = world().await;
    let seed = fastrand::u64(..);
    let mut random = fastrand::Rng::with_seed(seed);
    world.deploy(spec(2, "zero")).await;
    for _ in 0..40 {
        let pods = world.pods_of();
        let pod = random.choice(&pods).map(|pod| pod.name_any());
        match (random.u8(..6), pod) {
            (0, _) => {
                drop(world.patch::<Deployment>(NAME, json!({"spec": {"replicas": random.i32(0..8)}})).await);
            }
            (1, _) => world.set_image(["one", "two", NEVER_READY_IMAGE][random.usize(..3)]).await,
            (2, _) => drop(world.patch::<Deployment>(NAME, json!({"spec": {"paused": random.bool()}})).await),
            // The pod may be gone by now.
            (3, Some(pod)) => drop(world.api::<Pod>().delete(&pod, &DeleteParams::default()).await),
            (4, Some(pod)) => {
                let failed = Patch::Merge(json!({"status": {"phase": "Failed"}}));
                drop(world.api::<Pod>().patch_status(&pod, &PatchParams::default(), &failed).await);
            }
            _ => tokio::task::yield_now().await,
        }
    }
    world.patch::<Deployment>(NAME, json!({"spec": {"paused": false, "replicas": 3}})).await;
    world.set_image("last").await;
    let last = tokio::time::timeout(Duration::from_secs(60), world.rolled_out());
    last.await.unwrap_or_else(|_| panic!("it does not end; the seed is {seed}"));
    let active = |pods: &[Arc<Pod>]| {
        let active: Vec<_> = pods.iter().filter(|pod| pods::is_active(pod)).cloned().collect();
        (active.len() == 3).then_some(active)
    };
    let pods = world.until_all(&world.informers.pods, active).await;
    let images: BTreeSet<_> = pods.iter().map(|pod| pod.spec.as_ref().unwrap().containers[0].image.clone()).collect();
    assert_eq!(images, BTreeSet::from([Some("last".to_owned())]), "the seed is {seed}");
    let sizes = world.sizes().await;
    assert_eq!(sizes.iter().map(|(_, size)| size).sum::<i32>(), 3, "{sizes:?}, the seed is {seed}");
}
