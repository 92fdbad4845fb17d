//! Reports restarts of the components' containers. The node restarts them; here they are only reported.

use std::collections::HashMap;

use futures_util::{StreamExt as _, TryStreamExt as _};
use k8s_openapi::api::core::v1::{ContainerStatus, Pod};
use kube::{
    Api, Client, ResourceExt as _,
    runtime::{WatchStreamExt as _, watcher},
};

const WATCHED_NAMESPACES: [&str; 4] = ["kubewake-system", "kubewake-webhook", "head-system", "scheduler-system"];
/// Labels with the name of a component, in order of precedence.
const NAME_LABELS: [&str; 3] = ["app.kubernetes.io/name", "app", "demo.kubewake.io/scheduler"];

/// Restarts of each container so far.
#[derive(Debug, Default)]
struct RestartCounts(HashMap<(String, String), i32>);

/// Watches for ever, and reports each restart.
pub(super) async fn report_restarts(client: Client, say: impl Fn(&str)) {
    let mut seen = RestartCounts::default();
    let pods: Api<Pod> = Api::all(client);
    let events = watcher(pods, watcher::Config::default()).default_backoff().into_stream();
    let mut events = events.boxed();
    loop {
        match events.try_next().await {
            Ok(Some(watcher::Event::Apply(pod) | watcher::Event::InitApply(pod))) => {
                seen.record_restarts(&pod).iter().for_each(|text| say(text));
            }
            Ok(Some(watcher::Event::Delete(pod))) => seen.forget(&pod),
            // The watcher retries.
            Ok(Some(watcher::Event::Init | watcher::Event::InitDone)) | Err(_) => {}
            Ok(None) => return,
        }
    }
}

impl RestartCounts {
    /// Messages about a pod's new restarts. Restarts before the first event are ignored.
    fn record_restarts(&mut self, pod: &Pod) -> Vec<String> {
        let namespace = pod.namespace().unwrap_or_default();
        if !WATCHED_NAMESPACES.contains(&namespace.as_str()) {
            return Vec::new();
        }
        let uid = pod.uid().unwrap_or_default();
        let statuses = pod.status.iter().flat_map(|status| status.container_statuses.iter().flatten());
        let told = statuses.filter_map(|status| {
            let before = self.0.insert((uid.clone(), status.name.clone()), status.restart_count)?;
            (status.restart_count > before)
                .then(|| format!("{} exited ({}) and was restarted", component_name(pod), restart_reason(status)))
        });
        told.collect()
    }

    fn forget(&mut self, pod: &Pod) {
        let uid = pod.uid().unwrap_or_default();
        self.0.retain(|(of, _), _| *of != uid);
    }
}

fn component_name(pod: &Pod) -> String {
    let label = NAME_LABELS.iter().find_map(|key| pod.labels().get(*key));
    label.cloned().unwrap_or_else(|| pod.name_any())
}

/// An exit code above 128 stands for a signal, as in shells.
fn restart_reason(status: &ContainerStatus) -> String {
    let ended = status.last_state.as_ref().and_then(|state| state.terminated.as_ref());
    match ended.map(|ended| ended.exit_code) {
        Some(code @ 129..=192) => format!("signal {}", code - 128),
        Some(code) => format!("code {code}"),
        None => "unknown reason".to_owned(),
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
        let mut seen = RestartCounts::default();
        assert!(seen.record_restarts(&pod("head-system", 3, 1)).is_empty(), "what was before is not news");
        assert_eq!(
            seen.record_restarts(&pod("head-system", 4, 137)),
            ["head-operator exited (signal 9) and was restarted"]
        );
        assert!(seen.record_restarts(&pod("head-system", 4, 137)).is_empty());
        assert_eq!(
            seen.record_restarts(&pod("head-system", 5, 1)),
            ["head-operator exited (code 1) and was restarted"]
        );
    }

    #[test]
    fn pods_of_others_are_their_own_business() {
        let mut seen = RestartCounts::default();
        seen.record_restarts(&pod("default", 0, 0));
        assert!(seen.record_restarts(&pod("default", 1, 1)).is_empty());
        assert!(seen.0.is_empty());
    }

    #[test]
    fn a_pod_that_is_gone_is_forgotten() {
        let mut seen = RestartCounts::default();
        seen.record_restarts(&pod("head-system", 0, 0));
        seen.forget(&pod("head-system", 0, 0));
        assert!(seen.0.is_empty());
    }
}
