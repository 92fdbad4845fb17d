use std::{fs, os::unix::fs::PermissionsExt as _};

use k8s_openapi::api::core::v1::{ConfigMap, PersistentVolumeClaim, Secret, ServiceAccount};
use kube::{ResourceExt, api::DeleteParams};
use serde_json::{Value, json};

use super::*;
use crate::{
    kubelet::{sources::SourceKind, testing::KubeletFixture},
    testing::{NAMESPACE, until},
};

mod access;

/// Mounts the root of the pod's container and returns it.
async fn mounted(volumes: &PodVolumes, pod: &Pod) -> PathBuf {
    let container = pod.spec.as_ref().and_then(|spec| spec.containers.first()).unwrap();
    let mut variables = EnvVariables::default();
    variables.set("POD_NAME", pod.name_any()).unwrap();
    volumes.mount_root(container, &mut variables).await.unwrap();
    volumes.root("main")
}

fn text(path: impl AsRef<Path>) -> String {
    fs::read_to_string(path).unwrap_or_default()
}

/// A pod with this one volume at `/volume`.
async fn pod(world: &KubeletFixture, name: &str, mut volume: Value) -> Pod {
    volume["name"] = "v".into();
    let mounts = json!({"volumeMounts": [{"name": "v", "mountPath": "/volume"}]});
    world.pod(name, mounts, json!({"volumes": [volume]})).await
}

#[tokio::test]
async fn a_config_map_changes_under_a_running_pod() {
    let world = KubeletFixture::new().await;
    world.make::<ConfigMap>(json!({"metadata": {"name": "app"}, "data": {"a": "1", "b": "1"}})).await;
    let pod = pod(&world, "web", json!({"configMap": {"name": "app"}})).await;
    let volumes = world.prepare(&pod).await.unwrap();
    let root = mounted(&volumes, &pod).await;
    assert_eq!(text(root.join("volume/a")), "1");
    world.patch::<ConfigMap>("app", json!({"data": {"a": "2", "b": null, "c": "2"}})).await;
    until("the new file", || text(root.join("volume/c")) == "2").await;
    until("the old one gone", || !root.join("volume/b").exists()).await;
    assert_eq!(text(root.join("volume/a")), "2");
    world.api::<ConfigMap>().delete("app", &DeleteParams::default()).await.unwrap();
    world.make::<ConfigMap>(json!({"metadata": {"name": "app"}, "data": {"a": "3"}})).await;
    until("the one that was made again", || text(root.join("volume/a")) == "3").await;
    drop(volumes);
}

#[tokio::test]
async fn what_is_missing_is_said_and_may_come_later() {
    let world = KubeletFixture::new().await;
    let pod =
        pod(&world, "web", json!({"secret": {"secretName": "key", "items": [{"key": "tls.key", "path": "k"}]}})).await;
    let mut changes = world.sources.subscribe();
    let error = world.prepare(&pod).await.unwrap_err();
    assert_eq!(error.to_string(), "MountVolume.SetUp failed for volume \"v\" : secret \"key\" not found");
    assert!(error.is_missing());
    let needed = BTreeSet::from([error.missing_source().unwrap().clone()]);
    world.make::<Secret>(json!({"metadata": {"name": "key"}, "stringData": {"other": "x"}})).await;
    changes.wait_for_any(&needed).await;
    let error = world.prepare(&pod).await.unwrap_err();
    assert_eq!(error.missing_source(), Some(&SourceRef::new(SourceKind::Secret, NAMESPACE, "key")));
    assert!(error.to_string().ends_with("references non-existent secret key: tls.key"), "{error}");
    assert!(!error.is_missing(), "a key that is taken away is worth a warning");
    world.patch::<Secret>("key", json!({"stringData": {"tls.key": "secret"}})).await;
    changes.wait_for_any(&needed).await;
    let volumes = world.prepare(&pod).await.unwrap();
    assert_eq!(text(mounted(&volumes, &pod).await.join("volume/k")), "secret");
}

#[tokio::test]
async fn a_projected_volume_joins_its_sources() {
    let world = KubeletFixture::new().await;
    world.make::<ConfigMap>(json!({"metadata": {"name": "app"}, "data": {"a": "1", "b": "2"}})).await;
    world.make::<Secret>(json!({"metadata": {"name": "key"}, "stringData": {"password": "x"}})).await;
    let items = json!([
        {"path": "labels", "fieldRef": {"fieldPath": "metadata.labels"}},
        {"path": "cpu", "resourceFieldRef": {"containerName": "main", "resource": "limits.cpu"}, "mode": 0o400},
    ]);
    let volume = json!({"projected": {"defaultMode": 0o440, "sources": [
        {"configMap": {"name": "app", "items": [{"key": "a", "path": "deep/a", "mode": 0o600}]}},
        {"configMap": {"name": "none", "optional": true}},
        {"configMap": {"name": "app", "optional": true, "items": [{"key": "none", "path": "none"}]}},
        {"secret": {"name": "key"}},
        {"downwardAPI": {"items": items}},
        {"serviceAccountToken": {"path": "token", "audience": "vault", "expirationSeconds": 600}},
    ]}});
    let pod = pod(&world, "web", volume).await;
    let volumes = world.prepare(&pod).await.unwrap();
    let files = mounted(&volumes, &pod).await.join("volume");
    let mode = |name: &str| fs::metadata(files.join(name)).unwrap().permissions().mode() & 0o777;
    assert_eq!((text(files.join("deep/a")), mode("deep/a")), ("1".into(), 0o600));
    assert_eq!((text(files.join("password")), mode("password")), ("x".into(), 0o440));
    assert_eq!((text(files.join("cpu")), mode("cpu")), ("4".into(), 0o400));
    assert_eq!(text(files.join("labels")), "app=\"web\"");
    assert_eq!(text(files.join("token")).split('.').count(), 3);
    assert!(!files.join("none").exists());
    world.patch::<Pod>("web", json!({"metadata": {"labels": {"tier": "front"}}})).await;
    until("the new labels", || text(files.join("labels")) == "app=\"web\"\ntier=\"front\"").await;
}

#[tokio::test]
async fn an_optional_source_may_come_and_go() {
    let world = KubeletFixture::new().await;
    let pod = pod(&world, "web", json!({"configMap": {"name": "app", "optional": true}})).await;
    let volumes = world.prepare(&pod).await.unwrap();
    let file = mounted(&volumes, &pod).await.join("volume/a");
    assert!(!file.exists());
    world.make::<ConfigMap>(json!({"metadata": {"name": "app"}, "data": {"a": "1"}})).await;
    until("the file", || text(&file) == "1").await;
    world.api::<ConfigMap>().delete("app", &DeleteParams::default()).await.unwrap();
    until("it is gone", || !file.exists()).await;
}

#[tokio::test]
async fn volumes_that_are_directories_outlive_containers() {
    let world = KubeletFixture::new().await;
    let host = tempfile::tempdir().unwrap();
    fs::write(host.path().join("file"), "host").unwrap();
    let mounts = json!({"volumeMounts": [
        {"name": "cache", "mountPath": "/cache"},
        {"name": "cache", "mountPath": "/var/own", "subPathExpr": "of/$(POD_NAME)"},
        {"name": "host", "mountPath": "/host"},
        {"name": "cache", "mountPath": "/host/nested"},
    ]});
    let spec = json!({"volumes": [
        {"name": "cache", "emptyDir": {"sizeLimit": "64Ki", "medium": "Memory"}},
        {"name": "host", "hostPath": {"path": host.path(), "type": "Directory"}},
    ]});
    let pod = world.pod("web", mounts, spec).await;
    let volumes = world.prepare(&pod).await.unwrap();
    let root = mounted(&volumes, &pod).await;
    fs::write(root.join("var/own/file"), "1").unwrap();
    assert_eq!(text(root.join("cache/of/web/file")), "1");
    assert_eq!((text(root.join("host/file")), text(root.join("host/nested/of/web/file"))), ("host".into(), "1".into()));
    let root = mounted(&volumes, &pod).await;
    assert_eq!(text(root.join("cache/of/web/file")), "1");
    assert_eq!(volumes.exceeded_size_limit(), None);
    fs::write(root.join("cache/large"), vec![1; 100_000]).unwrap();
    assert!(volumes.exceeded_size_limit().unwrap().contains("exceeds the limit"));
    drop(volumes);
    assert!(!host.path().join("nested").is_symlink(), "nothing of ours stays with the host");
    assert!(host.path().join("file").exists());
}

#[tokio::test]
async fn a_claim_keeps_its_directory_until_it_is_deleted() {
    let world = KubeletFixture::new().await;
    claims::remove_dirs_of_deleted_claims(&world.node.claims, &world.informers);
    let claim = || async {
        let spec = json!({"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}});
        world.make::<PersistentVolumeClaim>(json!({"metadata": {"name": "data"}, "spec": spec})).await
    };
    let volume = json!({"persistentVolumeClaim": {"claimName": "data"}});
    let first = pod(&world, "web-0", volume.clone()).await;
    let error = world.prepare(&first).await.unwrap_err().to_string();
    assert!(error.ends_with("persistentvolumeclaim \"data\" not found"), "{error}");
    let made = claim().await;
    let volumes = world.prepare(&first).await.unwrap();
    fs::write(mounted(&volumes, &first).await.join("volume/file"), "kept").unwrap();
    drop(volumes);
    fs::remove_dir_all(world.pod_dir(&first)).unwrap();
    let second = pod(&world, "web-0-again", volume).await;
    let volumes = world.prepare(&second).await.unwrap();
    assert_eq!(text(mounted(&volumes, &second).await.join("volume/file")), "kept");
    let place = world.node.claims.join(NAMESPACE).join("data").join(made.uid().unwrap());
    let modes = place.ancestors().take(3).map(|dir| fs::metadata(dir).unwrap().permissions().mode() & 0o777);
    assert_eq!(modes.collect::<Vec<_>>(), [0o700; 3], "other users of the machine are kept out");
    let mut going = world.api::<PersistentVolumeClaim>().get("data").await.unwrap();
    going.metadata.finalizers = None;
    world.api::<PersistentVolumeClaim>().replace("data", &Default::default(), &going).await.unwrap();
    world.api::<PersistentVolumeClaim>().delete("data", &DeleteParams::default()).await.unwrap();
    until("its directory gone", || !place.exists()).await;
}

#[tokio::test]
async fn a_volume_that_the_node_does_not_have_is_refused_with_those_that_it_has() {
    let world = KubeletFixture::new().await;
    let pod = pod(&world, "web", json!({"nfs": {"server": "example", "path": "/"}})).await;
    let error = world.prepare(&pod).await.unwrap_err();
    assert!(error.to_string().contains("emptyDir") && error.missing_source().is_none(), "{error}");
}

#[tokio::test]
async fn volumes_are_prepared_again_over_what_a_node_left() {
    let world = KubeletFixture::new().await;
    world.make::<ConfigMap>(json!({"metadata": {"name": "app"}, "data": {"a": "1"}})).await;
    let pod = pod(&world, "web", json!({"configMap": {"name": "app"}})).await;
    let volumes = world.prepare(&pod).await.unwrap();
    mounted(&volumes, &pod).await;
    drop(volumes);
    world.patch::<ConfigMap>("app", json!({"data": {"a": "2"}})).await;
    let volumes = world.prepare(&pod).await.unwrap();
    let root = mounted(&volumes, &pod).await;
    until("what it is now", || text(root.join("volume/a")) == "2").await;
}

#[tokio::test]
async fn logs_and_state_of_a_node_are_its_own_and_other_host_paths_are_the_machines() {
    let world = KubeletFixture::new().await;
    let machine = tempfile::tempdir().unwrap();
    fs::write(machine.path().join("file"), "machine").unwrap();
    let log = world.node.host.join("var/log/pods/shop_web_1/main");
    fs::create_dir_all(&log).unwrap();
    fs::write(log.join("0.log"), "an entry").unwrap();
    let mounts = json!({"volumeMounts": [
        {"name": "logs", "mountPath": "/var/log/pods", "readOnly": true},
        {"name": "state", "mountPath": "/var/lib/agent"},
        {"name": "loose", "mountPath": "/loose"},
        {"name": "machine", "mountPath": "/machine"},
    ]});
    let spec = json!({"volumes": [
        {"name": "logs", "hostPath": {"path": "/var/log/pods", "type": "Directory"}},
        {"name": "state", "hostPath": {"path": "/var/lib/agent/state", "type": "DirectoryOrCreate"}},
        {"name": "loose", "hostPath": {"path": "/var/lib/other"}},
        {"name": "machine", "hostPath": {"path": machine.path()}},
    ]});
    let pod = world.pod("agent", mounts, spec).await;
    let volumes = world.prepare(&pod).await.unwrap();
    let root = mounted(&volumes, &pod).await;
    assert_eq!(text(root.join("var/log/pods/shop_web_1/main/0.log")), "an entry");
    fs::write(root.join("var/lib/agent/position"), "7").unwrap();
    assert_eq!(text(world.node.host.join("var/lib/agent/state/position")), "7");
    assert!(root.join("loose").is_dir() && world.node.host.join("var/lib/other").is_dir());
    assert_eq!(text(root.join("machine/file")), "machine");
    drop(volumes);
    assert_eq!(text(world.node.host.join("var/lib/agent/state/position")), "7", "the state outlives the pod");
    let wrong = json!({"hostPath": {"path": "/var/log/none", "type": "File"}});
    let error = world.prepare(&self::pod(&world, "wrong", wrong).await).await.unwrap_err().to_string();
    assert!(error.ends_with("hostPath type check failed: /var/log/none is not a file"), "{error}");
}

#[tokio::test]
async fn host_directory_that_is_mounted_within_its_own_parent_is_left_alone() {
    let world = KubeletFixture::new().await;
    fs::create_dir_all(world.node.host.join("var/log/pods")).unwrap();
    let mounts = json!({"volumeMounts": [
        {"name": "all", "mountPath": "/var/log"},
        {"name": "pods", "mountPath": "/var/log/pods"},
    ]});
    let spec = json!({"volumes": [
        {"name": "all", "hostPath": {"path": "/var/log"}},
        {"name": "pods", "hostPath": {"path": "/var/log/pods"}},
    ]});
    let pod = world.pod("agent", mounts, spec).await;
    let volumes = world.prepare(&pod).await.unwrap();
    assert!(mounted(&volumes, &pod).await.join("var/log/pods").is_dir());
    drop(volumes);
    let pods = world.node.host.join("var/log/pods");
    assert!(pods.is_dir() && !pods.is_symlink());
}
