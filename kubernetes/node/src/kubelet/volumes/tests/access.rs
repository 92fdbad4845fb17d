//! Access of pods to the API server.

use k8s_openapi::api::{authentication::v1::SelfSubjectReview, rbac::v1::RoleBinding};
use kube::{
    Api, Client, Config,
    api::{DeleteParams, ListParams, PostParams},
    config::{KubeConfigOptions, Kubeconfig},
};

use super::*;

const PATH: &str = "var/run/secrets/kubernetes.io/serviceaccount";

/// A client as a program in the container creates it.
async fn client(kubeconfig: &Path) -> Client {
    let read = Kubeconfig::read_from(kubeconfig).unwrap();
    let config = Config::from_custom_kubeconfig(read, &KubeConfigOptions::default()).await.unwrap();
    assert_eq!(config.default_namespace, NAMESPACE);
    Client::try_from(config).unwrap()
}

#[tokio::test]
async fn a_pod_has_a_token_that_may_do_what_its_account_may() {
    let world = KubeletFixture::new().await;
    let pod = world.pod("web", json!({}), json!({})).await;
    let volumes = world.prepare(&pod).await.unwrap();
    assert_eq!(volumes.kubeconfig("main"), None);
    let root = mounted(&volumes, &pod).await;
    assert_eq!(text(root.join(PATH).join("namespace")), NAMESPACE);
    assert_eq!(text(root.join(PATH).join("ca.crt")), world.server.kubeconfig().certificate_authority.unwrap());
    let client = client(&volumes.kubeconfig("main").unwrap()).await;
    let who = Api::<SelfSubjectReview>::all(client.clone());
    let who = who.create(&PostParams::default(), &SelfSubjectReview::default()).await.unwrap();
    let user = who.status.and_then(|status| status.user_info).unwrap();
    assert_eq!(user.username.as_deref(), Some("system:serviceaccount:default:default"));
    let extra = user.extra.unwrap();
    assert_eq!(extra["authentication.kubernetes.io/pod-name"], ["web"]);
    let config_maps: Api<ConfigMap> = Api::default_namespaced(client);
    assert!(config_maps.list(&ListParams::default()).await.is_err());
    let binding = json!({
        "metadata": {"name": "read"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "view"},
        "subjects": [{"kind": "ServiceAccount", "name": "default", "namespace": NAMESPACE}],
    });
    world.make::<RoleBinding>(binding).await;
    config_maps.list(&ListParams::default()).await.unwrap();
}

#[tokio::test]
async fn who_wants_no_token_has_none() {
    let world = KubeletFixture::new().await;
    let none = json!({"automountServiceAccountToken": false});
    world.make::<ServiceAccount>(json!({"metadata": {"name": "quiet"}, "automountServiceAccountToken": false})).await;
    let quiet = json!({"serviceAccountName": "quiet"});
    let asks = json!({"serviceAccountName": "quiet", "automountServiceAccountToken": true});
    for (name, spec, has) in [("a", none, false), ("b", quiet, false), ("c", asks, true)] {
        let pod = world.pod(name, json!({}), spec).await;
        let volumes = world.prepare(&pod).await.unwrap();
        let root = mounted(&volumes, &pod).await;
        let found = (root.join(PATH).join("token").exists(), volumes.kubeconfig("main").is_some());
        assert_eq!(found, (has, has), "{name}");
    }
}

#[tokio::test]
async fn what_a_container_mounts_there_itself_wins() {
    let world = KubeletFixture::new().await;
    let name = "kube-api-access-x2z4b";
    let namespace = json!({"path": "namespace", "fieldRef": {"fieldPath": "metadata.namespace"}});
    let sources = json!([{"serviceAccountToken": {"path": "token"}}, {"downwardAPI": {"items": [namespace]}}]);
    let mount = json!({"name": name, "mountPath": format!("/{PATH}"), "readOnly": true});
    let spec = json!({"volumes": [{"name": name, "projected": {"sources": sources}}]});
    let pod = world.pod("web", json!({"volumeMounts": [mount]}), spec).await;
    let volumes = world.prepare(&pod).await.unwrap();
    let root = mounted(&volumes, &pod).await;
    assert_eq!(fs::read_link(root.join(PATH)).unwrap().file_name().unwrap(), name);
    assert!(volumes.kubeconfig("main").is_some());
}

#[tokio::test]
async fn without_its_account_a_pod_waits() {
    let world = KubeletFixture::new().await;
    let later = json!({"metadata": {"name": "later"}});
    world.make::<ServiceAccount>(later.clone()).await;
    let pod = world.pod("web", json!({}), json!({"serviceAccountName": "later"})).await;
    world.api::<ServiceAccount>().delete("later", &DeleteParams::default()).await.unwrap();
    let mut changes = world.sources.subscribe();
    let error = world.prepare(&pod).await.unwrap_err();
    assert!(error.to_string().starts_with("MountVolume.SetUp failed for volume \"kube-api-access-"), "{error}");
    assert!(error.to_string().contains(" : failed to fetch token: "), "{error}");
    assert!(error.to_string().contains("\"later\" not found"), "{error}");
    let needed = BTreeSet::from([error.missing_source().unwrap().clone()]);
    world.make::<ServiceAccount>(later).await;
    changes.wait_for_any(&needed).await;
    world.prepare(&pod).await.unwrap();
}

#[tokio::test]
async fn tokens_are_renewed_in_time() {
    let world = KubeletFixture::new().await;
    let token = json!({"serviceAccountToken": {"path": "token", "expirationSeconds": 600}});
    let pod = pod(&world, "web", json!({"projected": {"sources": [token]}})).await;
    let volumes = world.prepare(&pod).await.unwrap();
    let file = mounted(&volumes, &pod).await.join("volume/token");
    let first = text(&file);
    tokio::time::pause();
    tokio::time::advance(std::time::Duration::from_secs(481)).await;
    tokio::time::resume();
    until("another token", || text(&file) != first).await;
    assert!(file.exists());
}
