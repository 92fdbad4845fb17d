//! A node with a real API server and real processes.

mod images;
mod life;
mod stop;
mod wait;

use std::{ops::Deref, sync::Arc, time::Duration};

use k8s_openapi::api::{
    coordination::v1::Lease,
    core::v1::{ConfigMap, ContainerStatus, Event, Node as NodeObject, Pod},
};
use kube::{
    Api, ResourceExt,
    api::{DeleteParams, ListParams, Patch, PatchParams, PostParams},
    runtime::wait::await_condition,
};
use kubewake_apiserver::{kubelet_client::LogOptions, server::Options};
use serde_json::{Value, json};

use super::*;
use crate::{
    addresses::AddressBlock,
    cleanup_guard::CleanupGuard,
    controller::{
        namespace_defaults,
        pods::{is_ready, phase},
    },
    images::ImageEntrypoint,
    testing::{TestCluster, WAIT_TIMEOUT},
};

/// Exits at once on SIGTERM.
const SERVE: &str = "trap 'exit 0' TERM; echo up; sleep 1000 & wait";

/// A shell under two image names.
fn images() -> ImageStore {
    let shell = || ImageEntrypoint::new("/bin/sh").arg("-c");
    ImageStore::default().with_image("shell:1", shell()).with_image("shell:2", shell())
}

/// An API server, and a node that knows the images `shell:1` and `shell:2`.
struct Fixture {
    kubelet: Kubelet,
    options: KubeletOptions,
    world: TestCluster,
    pods: Api<Pod>,
    _guard: CleanupGuard,
    dir: tempfile::TempDir,
    /// Temporary directories of the test.
    kept: Vec<tempfile::TempDir>,
}

impl Deref for Fixture {
    type Target = TestCluster;

    fn deref(&self) -> &TestCluster {
        &self.world
    }
}

impl Fixture {
    async fn start() -> Self {
        Self::with_images(images()).await
    }

    async fn with_images(images: ImageStore) -> Self {
        let mut world = TestCluster::without_nodes(Options { service_accounts: true, ..Options::default() }).await;
        let authority = world.server.kubeconfig().certificate_authority.unwrap();
        namespace_defaults::start(&world.client, &world.informers, authority, &mut world.tasks);
        let dir = tempfile::tempdir().unwrap();
        let guard = CleanupGuard::start(dir.path()).unwrap();
        let short = Duration::from_millis(50);
        let options = KubeletOptions {
            name: "node-0".into(),
            range: AddressBlock::acquire(None).unwrap().node(0).unwrap(),
            capacity: NodeCapacity { cpu_millis: 2000, memory_bytes: 1 << 30, pods: 20 },
            dir: dir.path().join("node-0"),
            claims: dir.path().join("claims"),
            host: dir.path().join("host"),
            api_server: world.server.address(),
            images: Arc::new(images),
            tag: guard.cluster_tag().clone(),
            backoff: BackoffRules { first: short, longest: short * 4, reset: Duration::from_secs(600) },
            log_rotation: LogRotation::default(),
            usage_window: DEFAULT_USAGE_WINDOW,
        };
        let kubelet = started(&options, &mut world).await;
        Self { kubelet, options, pods: world.api(), world, _guard: guard, dir, kept: Vec::new() }
    }

    /// Stops the node and starts it again.
    async fn restart(&mut self) {
        self.kubelet.stop(WAIT_TIMEOUT).await;
        self.kubelet = started(&self.options, &mut self.world).await;
    }

    /// A pod with one container that runs a script.
    async fn run(&self, name: &str, script: &str) -> Pod {
        self.create(pod(name, script)).await
    }

    async fn create(&self, pod: Value) -> Pod {
        self.pods.create(&PostParams::default(), &serde_json::from_value(pod).unwrap()).await.unwrap()
    }

    /// Waits until a condition holds for the pod.
    async fn until(&self, name: &str, what: impl Fn(&Pod) -> bool) -> Pod {
        let condition = |pod: Option<&Pod>| pod.is_some_and(|pod| has_containers(pod) && what(pod));
        let waited = await_condition(self.pods.clone(), name, condition);
        match tokio::time::timeout(WAIT_TIMEOUT, waited).await {
            Ok(pod) => pod.unwrap().unwrap(),
            Err(_) => panic!("it never came: {:#?}", self.pods.get(name).await.map(|pod| pod.status)),
        }
    }

    async fn until_gone(&self, name: &str) {
        tokio::time::timeout(WAIT_TIMEOUT, self.world.until_gone::<Pod>(name)).await.unwrap();
    }

    async fn delete(&self, name: &str) {
        self.pods.delete(name, &DeleteParams::default()).await.unwrap();
        self.until_gone(name).await;
    }

    /// Follows the log until these words appear; returns the output so far.
    async fn until_said(&self, name: &str, words: &str) -> String {
        self.until(name, |pod| main_status(pod).container_id.is_some()).await;
        let follow = LogOptions { follow: true, ..LogOptions::default() };
        let mut output = self.kubelet.open_log(self.log_request(name, &follow)).await.unwrap();
        let mut said = String::new();
        while !said.contains(words) {
            let piece = tokio::time::timeout(WAIT_TIMEOUT, output.recv()).await.unwrap().expect("it ended");
            said.push_str(std::str::from_utf8(&piece).unwrap());
        }
        said
    }

    async fn log(&self, name: &str, options: &LogOptions) -> String {
        let mut output = self.kubelet.open_log(self.log_request(name, options)).await.unwrap();
        let mut all = Vec::new();
        while let Some(piece) = output.recv().await {
            all.extend_from_slice(&piece);
        }
        String::from_utf8(all).unwrap()
    }

    fn log_request(&self, name: &str, options: &LogOptions) -> LogRequest {
        let pod = self.informers.pods.get(&NamespacedKey::new("default", name)).unwrap();
        LogRequest {
            node: "node-0".into(),
            namespace: "default".into(),
            pod: name.into(),
            uid: pod.uid().unwrap(),
            container: "main".into(),
            options: options.clone(),
        }
    }

    /// Reasons and notes of the pod's events, once there are enough.
    async fn events(&self, name: &str, enough: impl Fn(&[(String, String)]) -> bool) -> Vec<(String, String)> {
        let api = Api::<Event>::namespaced(self.client.clone(), "default");
        let list = ListParams::default().fields(&format!("involvedObject.name={name}"));
        let wait = async {
            loop {
                let events = api.list(&list).await.unwrap().items;
                let told =
                    events.into_iter().map(|event| (event.reason.unwrap(), event.message.unwrap())).collect::<Vec<_>>();
                if enough(&told) {
                    return told;
                }
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        tokio::time::timeout(WAIT_TIMEOUT, wait).await.expect("no such events")
    }

    /// Waits until no worker and no directory of a pod is left.
    async fn nothing_is_left(&self) {
        let mut count = self.kubelet.workers.count.subscribe();
        tokio::time::timeout(WAIT_TIMEOUT, count.wait_for(|count| *count == 0)).await.unwrap().unwrap();
        for folder in ["node-0/pods", "host/var/log/pods", "host/var/log/containers"] {
            let left = std::fs::read_dir(self.dir.path().join(folder)).into_iter().flatten().count();
            assert_eq!(left, 0, "{folder}");
        }
    }

    /// Waits until the process has ended.
    async fn until_ended(&self, id: u32) {
        let gone = async {
            // A process that is not our child is reaped by another process, at some time.
            while std::fs::read(format!("/proc/{id}/environ")).is_ok_and(|environment| !environment.is_empty()) {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        tokio::time::timeout(WAIT_TIMEOUT, gone).await.expect("it still runs");
    }
}

async fn started(options: &KubeletOptions, world: &mut TestCluster) -> Kubelet {
    Kubelet::start(options.clone(), world.client.clone(), &world.informers, &mut world.tasks).await.unwrap()
}

fn pod(name: &str, script: &str) -> Value {
    json!({
        "metadata": { "name": name },
        "spec": {
            "nodeName": "node-0",
            "terminationGracePeriodSeconds": 30,
            "containers": [{ "name": "main", "image": "shell:1", "args": [script] }],
        },
    })
}

fn has_containers(pod: &Pod) -> bool {
    pod.status.as_ref().is_some_and(|status| status.container_statuses.is_some())
}

fn main_status(pod: &Pod) -> ContainerStatus {
    pod.status.clone().unwrap().container_statuses.unwrap().remove(0)
}

fn waits_for(pod: &Pod, reason: &str) -> bool {
    main_status(pod).state.unwrap().waiting.is_some_and(|waiting| waiting.reason.as_deref() == Some(reason))
}

fn condition(pod: &Pod, kind: &str) -> String {
    crate::controller::pods::condition(pod, kind).map(|one| one.status.clone()).unwrap_or_default()
}
