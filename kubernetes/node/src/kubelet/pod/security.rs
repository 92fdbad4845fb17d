//! Security contexts: all processes run as the user who started the cluster. Pure.
//!
//! *Guaranteed*: a container that must not run as root does not start if its effective user is root; the
//! message is the kubelet's. *Not done*: other users and groups, as the programs and files of this machine do
//! not belong to them; the pod gets an Event about it. Capabilities, `readOnlyRootFilesystem` and seccomp
//! profiles are not enforced either.

use k8s_openapi::api::core::v1::{Container, Pod};

const ROOT_UID: i64 = 0;

/// The user and group of a container: its own settings override those of the pod.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct RequestedIdentity {
    user: Option<i64>,
    group: Option<i64>,
    non_root: bool,
}

impl RequestedIdentity {
    fn from_security_contexts(pod: &Pod, container: &Container) -> Self {
        let of_pod = pod.spec.as_ref().and_then(|spec| spec.security_context.clone()).unwrap_or_default();
        let own = container.security_context.clone().unwrap_or_default();
        Self {
            user: own.run_as_user.or(of_pod.run_as_user),
            group: own.run_as_group.or(of_pod.run_as_group),
            non_root: own.run_as_non_root.or(of_pod.run_as_non_root).unwrap_or(false),
        }
    }
}

/// Rejects a container that must not run as root, where it would run as root; processes run as `our_user`.
pub(super) fn verify_non_root(pod: &Pod, container: &Container, our_user: u32) -> Result<(), String> {
    let asked = RequestedIdentity::from_security_contexts(pod, container);
    let why = match asked.user {
        _ if !asked.non_root => return Ok(()),
        Some(ROOT_UID) => "container's runAsUser breaks non-root policy",
        None if i64::from(our_user) == ROOT_UID => "container has runAsNonRoot and image will run as root",
        _ => return Ok(()),
    };
    let metadata = &pod.metadata;
    let text = |text: &Option<String>| text.clone().unwrap_or_default();
    let of = format!("{}_{}({})", text(&metadata.name), text(&metadata.namespace), text(&metadata.uid));
    Err(format!("{why} (pod: {of:?}, container: {})", container.name))
}

/// The requested user or group that is not applied; processes run as this user and group.
pub(super) fn unenforced_identity(pod: &Pod, container: &Container, our: (u32, u32)) -> Option<String> {
    let asked = RequestedIdentity::from_security_contexts(pod, container);
    let user = i64::from(our.0);
    let group = i64::from(our.1);
    let differs = |field: &str, asked: Option<i64>, ours: i64| {
        asked.filter(|asked| *asked != ours).map(|asked| format!("{field} {asked}"))
    };
    let fields = [differs("runAsUser", asked.user, user), differs("runAsGroup", asked.group, group)];
    let fields: Vec<String> = fields.into_iter().flatten().collect();
    (!fields.is_empty()).then(|| {
        format!(
            "{} of container {} is not enforced: its process runs as user {user} and group {group}, who started this cluster",
            fields.join(" and "),
            container.name
        )
    })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn pod(of_pod: Value, own: Value) -> (Pod, Container) {
        let object = json!({
            "metadata": {"name": "web", "namespace": "shop", "uid": "7"},
            "spec": {"securityContext": of_pod, "containers": [{"name": "main", "securityContext": own}]},
        });
        let pod: Pod = serde_json::from_value(object).unwrap();
        let container = pod.spec.as_ref().unwrap().containers[0].clone();
        (pod, container)
    }

    fn verified(of_pod: Value, own: Value, our_user: u32) -> Result<(), String> {
        let (pod, container) = pod(of_pod, own);
        verify_non_root(&pod, &container, our_user)
    }

    #[test]
    fn container_that_must_not_run_as_root_is_refused_in_the_kubelets_words() {
        let non_root = json!({"runAsNonRoot": true});
        let image = "container has runAsNonRoot and image will run as root (pod: \"web_shop(7)\", container: main)";
        let user = "container's runAsUser breaks non-root policy (pod: \"web_shop(7)\", container: main)";
        assert_eq!(verified(non_root.clone(), json!({}), 0).unwrap_err(), image);
        assert_eq!(verified(json!({}), non_root.clone(), 0).unwrap_err(), image);
        // The request for uid 0 counts, whatever user runs the cluster.
        for ours in [0, 1000] {
            assert_eq!(verified(non_root.clone(), json!({"runAsUser": 0}), ours).unwrap_err(), user);
            assert_eq!(verified(json!({"runAsUser": 0}), non_root.clone(), ours).unwrap_err(), user);
        }
    }

    #[test]
    fn container_that_names_another_user_or_allows_root_is_started() {
        let non_root = json!({"runAsNonRoot": true});
        assert_eq!(verified(non_root.clone(), json!({}), 1000), Ok(()));
        assert_eq!(verified(non_root.clone(), json!({"runAsUser": 65532}), 0), Ok(()));
        assert_eq!(verified(json!({"runAsUser": 0}), json!({"runAsNonRoot": true, "runAsUser": 5}), 0), Ok(()));
        assert_eq!(verified(non_root, json!({"runAsNonRoot": false}), 0), Ok(()), "the container overrides the pod");
        assert_eq!(verified(json!({}), json!({}), 0), Ok(()));
    }

    #[test]
    fn user_and_group_that_are_not_ours_are_said_to_be_not_enforced() {
        let said = |of_pod, own, our| {
            let (pod, container) = pod(of_pod, own);
            unenforced_identity(&pod, &container, our)
        };
        let both = json!({"runAsUser": 65532, "runAsGroup": 65533});
        let note = said(both.clone(), json!({}), (0, 0)).unwrap();
        assert!(note.starts_with("runAsUser 65532 and runAsGroup 65533 of container main is not enforced"), "{note}");
        assert!(note.contains("runs as user 0 and group 0"), "{note}");
        assert_eq!(said(both, json!({}), (65532, 65533)), None);
        assert_eq!(said(json!({}), json!({}), (0, 0)), None);
    }
}
