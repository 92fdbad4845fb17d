//! The environment of a node in tests: a real API server, a directory, and no processes.

use std::{collections::BTreeMap, ops::Deref, path::PathBuf, sync::Arc};

use k8s_openapi::{
    api::core::v1::{ConfigMap, Pod, ServiceAccount},
    apimachinery::pkg::api::resource::Quantity,
};
use kubewake_apiserver::server::Options;
use serde_json::{Value, json};

use super::{
    node_facts::NodeFacts,
    sources::SourceReader,
    volumes::{PodVolumes, VolumeError, VolumeRequest},
};
use crate::testing::TestCluster;

/// The fixture of kubelet tests.
pub(super) struct KubeletFixture {
    world: TestCluster,
    pub(super) sources: Arc<SourceReader>,
    pub(super) node: Arc<NodeFacts>,
    pub(super) dir: tempfile::TempDir,
}

impl Deref for KubeletFixture {
    type Target = TestCluster;

    fn deref(&self) -> &TestCluster {
        &self.world
    }
}

impl KubeletFixture {
    pub(super) async fn new() -> Self {
        let world = TestCluster::without_nodes(Options { service_accounts: true, ..Options::default() }).await;
        let dir = tempfile::tempdir().unwrap();
        let node = NodeFacts {
            api_server: world.server.address(),
            claims: dir.path().join("claims"),
            host: dir.path().join("host"),
            ..node_facts()
        };
        let sources = SourceReader::new(world.client.clone(), &world.informers);
        let node = Arc::new(node);
        let authority = json!({"ca.crt": world.server.kubeconfig().certificate_authority.unwrap()});
        world.make::<ConfigMap>(json!({"metadata": {"name": "kube-root-ca.crt"}, "data": authority})).await;
        world.make::<ServiceAccount>(json!({"metadata": {"name": "default"}})).await;
        Self { world, sources, node, dir }
    }

    /// Creates a pod with one container that has these additional fields.
    pub(super) async fn pod(&self, name: &str, container: Value, spec: Value) -> Pod {
        let mut pod = json!({
            "metadata": {"name": name, "labels": {"app": name}},
            "spec": {"containers": [{"name": "main", "image": "example/app"}]},
        });
        merge_json(&mut pod["spec"]["containers"][0], container);
        merge_json(&mut pod["spec"], spec);
        self.make(pod).await
    }

    pub(super) fn pod_dir(&self, pod: &Pod) -> PathBuf {
        self.dir.path().join("pods").join(pod.metadata.uid.as_deref().unwrap())
    }

    pub(super) async fn prepare(&self, pod: &Pod) -> Result<PodVolumes, VolumeError> {
        let dir = self.pod_dir(pod);
        PodVolumes::prepare(VolumeRequest { pod, dir: &dir, node: &self.node, sources: &self.sources }).await
    }
}

/// A node without an API server.
pub(super) fn node_facts() -> NodeFacts {
    let quantity = |name: &str, amount: &str| (name.to_owned(), Quantity(amount.to_owned()));
    NodeFacts {
        name: "node-0".into(),
        address: [127, 20, 0, 1].into(),
        api_server: ([127, 0, 0, 1], 6443).into(),
        allocatable: BTreeMap::from([quantity("cpu", "4"), quantity("memory", "8Gi")]),
        claims: PathBuf::new(),
        host: PathBuf::new(),
        environment: BTreeMap::from([("PATH".into(), "/usr/bin:/bin".into()), ("HOME".into(), "/root".into())]),
    }
}

fn merge_json(into: &mut Value, from: Value) {
    if let (Some(into), Value::Object(from)) = (into.as_object_mut(), from) {
        into.extend(from);
    }
}
