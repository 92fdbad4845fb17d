//! Another writer: it changes whatever stories make, as the controllers of a cluster do.

use std::{
    net::SocketAddr,
    panic::catch_unwind,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread::{self, JoinHandle},
    time::Duration,
};

use kubewake_e2e::{Http1Connection, Kubectl, process::ChildProcess};
use serde_json::{Value, json};

/// What it lists, and whether it writes the status of these, too.
const KINDS: [(&str, &str, bool); 4] = [
    ("/api/v1", "configmaps", false),
    ("/api/v1", "services", false),
    ("/api/v1", "pods", true),
    ("/apis/apps/v1", "deployments", true),
];
/// Between two rounds: often enough to come in between two requests of a command, and seldom enough that a
/// command which tries again gets through.
const PAUSE: Duration = Duration::from_millis(250);
const STRATEGIC: [(&str, &str); 1] = [("content-type", "application/strategic-merge-patch+json")];

/// Writes until it is dropped.
pub(super) struct OtherWriter {
    is_over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
    /// The way to the API server.
    _proxy: ChildProcess,
}

impl OtherWriter {
    pub(super) fn start(kubectl: &Kubectl) -> Self {
        let (proxy, address) = kubectl.proxy();
        let is_over = Arc::new(AtomicBool::new(false));
        let over = Arc::clone(&is_over);
        let thread = thread::spawn(move || {
            for round in 0_u64.. {
                if over.load(Ordering::Relaxed) {
                    return;
                }
                // A connection may break off on a machine that is busy; the next round makes up for it.
                let _ = catch_unwind(|| {
                    KINDS
                        .iter()
                        .for_each(|(api, resource, has_status)| touch_all(address, api, resource, *has_status, round));
                });
                thread::sleep(PAUSE);
            }
        });
        Self { is_over, thread: Some(thread), _proxy: proxy }
    }
}

impl Drop for OtherWriter {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

/// Changes metadata and status of all objects of a kind that stories have made. An object may be gone by then.
fn touch_all(address: SocketAddr, api: &str, resource: &str, has_status: bool, round: u64) {
    let listed = Http1Connection::connect(address).request("GET", &format!("{api}/{resource}"), &[], &[]).json();
    for object in listed["items"].as_array().into_iter().flatten() {
        let metadata = &object["metadata"];
        let (Some(namespace), Some(name)) = (metadata["namespace"].as_str(), metadata["name"].as_str()) else {
            continue;
        };
        if !namespace.starts_with("story-") {
            continue;
        }
        let path = format!("{api}/namespaces/{namespace}/{resource}/{name}");
        let annotations = json!({"writer.example.com/round": round.to_string()});
        let touched = json!({"metadata": {"annotations": annotations, "labels": {"writer.example.com/seen": "yes"}}});
        patch(address, &path, &touched);
        if has_status {
            patch(address, &format!("{path}/status"), &json!({"status": status(resource, object)}));
        }
    }
}

/// What a scheduler or the controller of Deployments would say.
fn status(resource: &str, object: &Value) -> Value {
    match resource {
        "pods" => json!({"conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}]}),
        _ => json!({"observedGeneration": object["metadata"]["generation"]}),
    }
}

fn patch(address: SocketAddr, path: &str, body: &Value) {
    Http1Connection::connect(address).request("PATCH", path, &STRATEGIC, body.to_string().as_bytes());
}
