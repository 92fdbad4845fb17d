use k8s_openapi::api::core::v1::PersistentVolume;
use kube::Api;
use serde_json::json;

use super::*;
use crate::testing::TestCluster;

fn phase(claim: &PersistentVolumeClaim) -> Option<&str> {
    claim.status.as_ref()?.phase.as_deref()
}

#[tokio::test]
async fn a_claim_is_bound_and_stays_while_a_pod_uses_it() {
    let mut world = TestCluster::new().await;
    world.start::<PersistentVolumeController>();
    let spec = json!({"accessModes": ["ReadWriteOnce"], "storageClassName": "fast", "resources": {"requests": {"storage": "1Gi"}}});
    world.make::<PersistentVolumeClaim>(json!({"metadata": {"name": "data"}, "spec": spec})).await;
    let claim: PersistentVolumeClaim = world.until("data", |claim| phase(claim) == Some("Bound")).await;
    let status = claim.status.clone().unwrap();
    assert_eq!(status.access_modes.unwrap(), ["ReadWriteOnce"]);
    assert_eq!(status.capacity.unwrap()["storage"].0, "1Gi");
    let volumes: Api<PersistentVolume> = Api::all(world.client.clone());
    let name = format!("pvc-{}", claim.uid().unwrap());
    assert_eq!(claim.spec.unwrap().volume_name.as_deref(), Some(name.as_str()));
    let volume = volumes.get(&name).await.unwrap();
    assert_eq!(volume.status.unwrap().phase.as_deref(), Some("Bound"));
    assert_eq!(volume.spec.unwrap().claim_ref.unwrap().name.as_deref(), Some("data"));

    let mounted = json!([{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}]);
    let pod = json!({"nodeName": "n", "containers": [{"name": "c", "image": "i"}], "volumes": mounted});
    world.make::<Pod>(json!({"metadata": {"name": "user"}, "spec": pod})).await;
    world.until::<Pod>("user", super::super::pods::is_ready).await;
    world.delete::<PersistentVolumeClaim>("data").await;
    let going = world.until("data", |claim: &PersistentVolumeClaim| claim.metadata.deletion_timestamp.is_some()).await;
    assert!(is_protected(&going));
    world.delete::<Pod>("user").await;
    world.until_gone::<PersistentVolumeClaim>("data").await;
    assert!(volumes.get_opt(&name).await.unwrap().is_none());
}

#[tokio::test]
async fn a_claim_that_grows_gets_more() {
    let mut world = TestCluster::new().await;
    world.start::<PersistentVolumeController>();
    let spec = |size: &str| json!({"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": size}}});
    world.make::<PersistentVolumeClaim>(json!({"metadata": {"name": "data"}, "spec": spec("1Gi")})).await;
    world.until::<PersistentVolumeClaim>("data", |claim| phase(claim) == Some("Bound")).await;
    world.patch::<PersistentVolumeClaim>("data", json!({"spec": spec("2Gi")})).await;
    let has = |claim: &PersistentVolumeClaim| {
        claim.status.as_ref()?.capacity.as_ref()?.get("storage").map(|size| size.0.clone())
    };
    let claim = world.until("data", |claim| has(claim).as_deref() == Some("2Gi")).await;
    let volumes: Api<PersistentVolume> = Api::all(world.client.clone());
    let volume = volumes.get(&claim.spec.unwrap().volume_name.unwrap()).await.unwrap();
    assert_eq!(volume.spec.unwrap().capacity.unwrap()["storage"].0, "2Gi");
}
