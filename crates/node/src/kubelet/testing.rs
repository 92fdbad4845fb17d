//! A node's surroundings for tests: a real API server, a directory, and no processes.

use std::{collections::BTreeMap, fmt::Debug, path::PathBuf, sync::Arc, time::Duration};

use k8s_openapi::{
    NamespaceResourceScope,
    api::core::v1::{ConfigMap, Pod, ServiceAccount},
    apimachinery::pkg::api::resource::Quantity,
};
use kube::{
    Api, Client, Resource,
    api::{Patch, PatchParams, PostParams},
};
use kubewake_apiserver::server::{ApiServer, Options};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Value, json};
use tokio::task::JoinSet;

use super::{
    facts::NodeFacts,
    sources::Sources,
    volumes::{Request, VolumeError, Volumes},
};
use crate::views::Views;

pub(super) const NAMESPACE: &str = "default";
/// Long enough for any machine: what is waited for comes, or the test is wrong.
const PATIENCE: Duration = Duration::from_secs(60);

pub(super) struct World {
    pub(super) server: ApiServer,
    pub(super) client: Client,
    pub(super) views: Views,
    pub(super) sources: Arc<Sources>,
    pub(super) node: Arc<NodeFacts>,
    pub(super) dir: tempfile::TempDir,
    _tasks: JoinSet<()>,
}

impl World {
    pub(super) async fn new() -> Self {
        let server = ApiServer::start(Options { service_accounts: true, ..Options::default() }).await.unwrap();
        let (client, views, mut tasks) = (server.client().unwrap(), Views::default(), JoinSet::new());
        views.follow(&client, &mut tasks).await;
        let dir = tempfile::tempdir().unwrap();
        let node = NodeFacts { api_server: server.address(), claims: dir.path().join("claims"), ..facts() };
        let (sources, node) = (Sources::new(client.clone(), &views), Arc::new(node));
        let world = Self { server, client, views, sources, node, dir, _tasks: tasks };
        let authority = json!({"ca.crt": world.server.kubeconfig().certificate_authority.unwrap()});
        world.make::<ConfigMap>(json!({"metadata": {"name": "kube-root-ca.crt"}, "data": authority})).await;
        world.make::<ServiceAccount>(json!({"metadata": {"name": "default"}})).await;
        world
    }

    pub(super) fn api<K>(&self) -> Api<K>
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope>,
    {
        Api::namespaced(self.client.clone(), NAMESPACE)
    }

    pub(super) async fn make<K>(&self, object: Value) -> K
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope> + Clone + Debug + DeserializeOwned + Serialize,
    {
        let object: K = serde_json::from_value(object).unwrap();
        self.api().create(&PostParams::default(), &object).await.unwrap()
    }

    pub(super) async fn merge<K>(&self, name: &str, change: Value)
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope> + Clone + Debug + DeserializeOwned,
    {
        self.api::<K>().patch(name, &PatchParams::default(), &Patch::Merge(change)).await.unwrap();
    }

    /// A pod with one container, which has these fields besides.
    pub(super) async fn pod(&self, name: &str, container: Value, spec: Value) -> Pod {
        let mut pod = json!({
            "metadata": {"name": name, "labels": {"app": name}},
            "spec": {"containers": [{"name": "main", "image": "example/app"}]},
        });
        merge(&mut pod["spec"]["containers"][0], container);
        merge(&mut pod["spec"], spec);
        self.make(pod).await
    }

    pub(super) fn pod_dir(&self, pod: &Pod) -> PathBuf {
        self.dir.path().join("pods").join(pod.metadata.uid.as_deref().unwrap())
    }

    pub(super) async fn prepare(&self, pod: &Pod) -> Result<Volumes, VolumeError> {
        let dir = self.pod_dir(pod);
        Volumes::prepare(Request { pod, dir: &dir, node: &self.node, sources: &self.sources }).await
    }
}

/// A node without an API server.
pub(super) fn facts() -> NodeFacts {
    let quantity = |name: &str, amount: &str| (name.to_owned(), Quantity(amount.to_owned()));
    NodeFacts {
        name: "node-0".into(),
        address: [127, 20, 0, 1].into(),
        api_server: ([127, 0, 0, 1], 6443).into(),
        allocatable: BTreeMap::from([quantity("cpu", "4"), quantity("memory", "8Gi")]),
        claims: PathBuf::new(),
        environment: BTreeMap::from([("PATH".into(), "/usr/bin:/bin".into()), ("HOME".into(), "/root".into())]),
    }
}

fn merge(into: &mut Value, from: Value) {
    if let (Some(into), Value::Object(from)) = (into.as_object_mut(), from) {
        into.extend(from);
    }
}

/// Waits until it is so. Files tell nobody that they changed.
pub(super) async fn until(what: &str, holds: impl Fn() -> bool) {
    let waiting = async {
        while !holds() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    assert!(tokio::time::timeout(PATIENCE, waiting).await.is_ok(), "it never came: {what}");
}
