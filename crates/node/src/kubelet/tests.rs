//! A node with a real API server and real processes.

mod life;

use std::{sync::Arc, time::Duration};

use k8s_openapi::api::core::v1::{ContainerStatus, Node as NodeObject, Pod};
use kube::{
    Api,
    api::{DeleteParams, PostParams},
    runtime::wait::await_condition,
};
use kubewake_apiserver::{
    nodes::LogOptions,
    server::{ApiServer, Options},
};
use serde_json::{Value, json};

use super::*;
use crate::{addresses::Block, guard::Guard, images::Program, key::Key};

/// An API server, and a node that knows the image `shell`.
struct Fixture {
    kubelet: Kubelet,
    client: Client,
    pods: Api<Pod>,
    views: Views,
    _tasks: JoinSet<()>,
    _guard: Guard,
    dir: tempfile::TempDir,
    _server: ApiServer,
}

impl Fixture {
    async fn start() -> Self {
        let server = ApiServer::start(Options::default()).await.unwrap();
        let client = server.client().unwrap();
        let (views, mut tasks) = (Views::default(), JoinSet::new());
        views.follow(&client, &mut tasks).await;
        let authority = server.kubeconfig().certificate_authority.unwrap();
        crate::controller::accounts::start(&client, &views, authority.clone(), &mut tasks);
        let dir = tempfile::tempdir().unwrap();
        let guard = Guard::start(dir.path()).unwrap();
        let short = Duration::from_millis(20);
        let options = KubeletOptions {
            name: "node-0".into(),
            range: Block::take(None).unwrap().node(0).unwrap(),
            capacity: Capacity { cpu_millis: 2000, memory_bytes: 1 << 30, pods: 20 },
            dir: dir.path().join("node-0"),
            claims: dir.path().join("claims"),
            api_server: server.address(),
            authority,
            images: Arc::new(Images::default().with("shell", Program::new("/bin/sh").arg("-c"))),
            mark: guard.mark().clone(),
            backoff: BackoffRules { first: short, longest: short * 4, reset: Duration::from_secs(600) },
            log_bytes: LOG_BYTES,
        };
        let kubelet = Kubelet::start(options, client.clone(), &views, &mut tasks).await.unwrap();
        let pods = Api::namespaced(client.clone(), "default");
        Self { kubelet, client, pods, views, _tasks: tasks, _guard: guard, dir, _server: server }
    }

    /// A pod with one container that runs a script.
    async fn run(&self, name: &str, script: &str) -> Pod {
        self.create(pod(name, script)).await
    }

    async fn create(&self, pod: Value) -> Pod {
        self.pods.create(&PostParams::default(), &serde_json::from_value(pod).unwrap()).await.unwrap()
    }

    /// Waits until this is so.
    async fn until(&self, name: &str, what: impl Fn(&Pod) -> bool) -> Pod {
        let condition = |pod: Option<&Pod>| pod.is_some_and(&what);
        let waited = await_condition(self.pods.clone(), name, condition);
        match tokio::time::timeout(Duration::from_secs(60), waited).await {
            Ok(pod) => pod.unwrap().unwrap(),
            Err(_) => panic!("it never came: {:#?}", self.pods.get(name).await.map(|pod| pod.status)),
        }
    }

    async fn until_gone(&self, name: &str) {
        let gone = await_condition(self.pods.clone(), name, |pod: Option<&Pod>| pod.is_none());
        tokio::time::timeout(Duration::from_secs(60), gone).await.unwrap().unwrap();
    }

    async fn delete(&self, name: &str) {
        self.pods.delete(name, &DeleteParams::default()).await.unwrap();
        self.until_gone(name).await;
    }

    async fn log(&self, name: &str, options: &LogOptions) -> String {
        let mut output = self.kubelet.log(self.log_request(name, options)).unwrap();
        let mut all = Vec::new();
        while let Some(piece) = output.recv().await {
            all.extend_from_slice(&piece);
        }
        String::from_utf8(all).unwrap()
    }

    fn log_request(&self, name: &str, options: &LogOptions) -> LogRequest {
        let pod = self.views.pods.get(&Key::new("default", name)).unwrap();
        LogRequest {
            node: "node-0".into(),
            namespace: "default".into(),
            pod: name.into(),
            uid: pod.uid().unwrap(),
            container: "main".into(),
            options: options.clone(),
        }
    }
}

fn pod(name: &str, script: &str) -> Value {
    json!({
        "metadata": { "name": name },
        "spec": {
            "nodeName": "node-0",
            "terminationGracePeriodSeconds": 30,
            "containers": [{ "name": "main", "image": "shell", "args": [script] }],
        },
    })
}

fn main_status(pod: &Pod) -> ContainerStatus {
    pod.status.clone().unwrap().container_statuses.unwrap().remove(0)
}

fn condition(pod: &Pod, kind: &str) -> String {
    crate::controller::pods::condition(pod, kind).map(|one| one.status.clone()).unwrap_or_default()
}

fn is_ready(pod: &Pod) -> bool {
    crate::controller::pods::is_ready(pod)
}
