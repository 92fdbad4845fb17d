//! Tells when a part of the system ended and runs again. The node is who starts it again; here it is only said.

use std::collections::HashMap;

use futures_util::{StreamExt as _, TryStreamExt as _};
use k8s_openapi::api::core::v1::{ContainerStatus, Pod};
use kube::{
    Api, Client, ResourceExt as _,
    runtime::{WatchStreamExt as _, watcher},
};

/// Where the parts of the system run.
const NAMESPACES: [&str; 4] = ["kubewake-system", "kubewake-webhook", "head-system", "scheduler-system"];
/// What a part is called, in the order in which it is looked for.
const NAMES: [&str; 3] = ["app.kubernetes.io/name", "app", "demo.kubewake.io/scheduler"];

/// How often each container was seen to be started again.
#[derive(Debug, Default)]
struct Seen(HashMap<(String, String), i32>);

/// Watches for ever, and says each restart.
pub(super) async fn tell(client: Client, say: impl Fn(&str)) {
    let mut seen = Seen::default();
    let pods: Api<Pod> = Api::all(client);
    let events = watcher(pods, watcher::Config::default()).default_backoff().into_stream();
    let mut events = events.boxed();
    loop {
        match events.try_next().await {
            Ok(Some(watcher::Event::Apply(pod) | watcher::Event::InitApply(pod))) => {
                seen.look(&pod).iter().for_each(|text| say(text));
            }
            Ok(Some(watcher::Event::Delete(pod))) => seen.forget(&pod),
            // It is asked again.
            Ok(Some(watcher::Event::Init | watcher::Event::InitDone)) | Err(_) => {}
            Ok(None) => return,
        }
    }
}

impl Seen {
    /// What is to be said about a pod now. What happened before it was seen for the first time is not news.
    fn look(&mut self, pod: &Pod) -> Vec<String> {
        let namespace = pod.namespace().unwrap_or_default();
        if !NAMESPACES.contains(&namespace.as_str()) {
            return Vec::new();
        }
        let uid = pod.uid().unwrap_or_default();
        let statuses = pod.status.iter().flat_map(|status| status.container_statuses.iter().flatten());
        let told = statuses.filter_map(|status| {
            let before = self.0.insert((uid.clone(), status.name.clone()), status.restart_count)?;
            (status.restart_count > before).then(|| format!("{} ended ({}), started again", name(pod), why(status)))
        });
        told.collect()
    }

    fn forget(&mut self, pod: &Pod) {
        let uid = pod.uid().unwrap_or_default();
        self.0.retain(|(of, _), _| *of != uid);
    }
}

fn name(pod: &Pod) -> String {
    let label = NAMES.iter().find_map(|key| pod.labels().get(*key));
    label.cloned().unwrap_or_else(|| pod.name_any())
}

/// As a shell counts: above 128 it was a signal.
fn why(status: &ContainerStatus) -> String {
    let ended = status.last_state.as_ref().and_then(|state| state.terminated.as_ref());
    match ended.map(|ended| ended.exit_code) {
        Some(code @ 129..=192) => format!("signal {}", code - 128),
        Some(code) => format!("code {code}"),
        None => "nobody knows why".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn pod(namespace: &str, restarts: i32, code: i32) -> Pod {
        serde_json::from_value(json!({
            "metadata": {"name": "head-operator-abc", "namespace": namespace, "uid": "1", "labels": {"app": "head-operator"}},
            "status": {"containerStatuses": [{
                "name": "operator", "image": "", "imageID": "", "ready": true, "restartCount": restarts,
                "lastState": {"terminated": {"exitCode": code}},
            }]},
        }))
        .unwrap()
    }

    #[test]
    fn a_restart_is_told_once_and_with_its_reason() {
        let mut seen = Seen::default();
        assert!(seen.look(&pod("head-system", 3, 1)).is_empty(), "what was before is not news");
        assert_eq!(seen.look(&pod("head-system", 4, 137)), ["head-operator ended (signal 9), started again"]);
        assert!(seen.look(&pod("head-system", 4, 137)).is_empty());
        assert_eq!(seen.look(&pod("head-system", 5, 1)), ["head-operator ended (code 1), started again"]);
    }

    #[test]
    fn pods_of_others_are_their_own_business() {
        let mut seen = Seen::default();
        seen.look(&pod("default", 0, 0));
        assert!(seen.look(&pod("default", 1, 1)).is_empty());
        assert!(seen.0.is_empty());
    }

    #[test]
    fn a_pod_that_is_gone_is_forgotten() {
        let mut seen = Seen::default();
        seen.look(&pod("head-system", 0, 0));
        seen.forget(&pod("head-system", 0, 0));
        assert!(seen.0.is_empty());
    }
}
