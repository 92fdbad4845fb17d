//! Injects the ServiceAccount into a pod, as kube-apiserver's admission plugin of that name does: the name, a
//! token in a volume of its own, and the image pull secrets.

use serde_json::{Value, json};

use crate::{
    api::identity,
    kinds::json_object::{JsonObject, list_at, object_items_mut, object_member_mut, text, text_at, value_at},
};

/// The account of a pod without one.
pub const DEFAULT_SERVICE_ACCOUNT: &str = "default";
/// The path at which programs expect their token.
const TOKEN_MOUNT_PATH: &str = "/var/run/secrets/kubernetes.io/serviceaccount";
/// The prefix of the volume's name, before a random suffix.
const TOKEN_VOLUME_PREFIX: &str = "kube-api-access-";
/// An hour, and seven seconds by which the server recognizes that the pod did not request it.
const TOKEN_EXPIRATION_SECONDS: i64 = 3607;

/// The ServiceAccount of a pod.
pub fn service_account_name(pod: &Value) -> &str {
    match text_at(pod, &["spec", "serviceAccountName"]) {
        "" => DEFAULT_SERVICE_ACCOUNT,
        named => named,
    }
}

/// Injects the account into a new pod.
pub fn inject_service_account(pod: &mut Value, account: &Value) {
    let name = service_account_name(pod).to_owned();
    let wanted = value_at(pod, &["spec", "automountServiceAccountToken"])
        .or_else(|| account.get("automountServiceAccountToken"));
    let mounts = wanted.and_then(Value::as_bool).unwrap_or(true);
    let Some(spec) = object_member_mut(pod, "spec") else { return };
    for field in ["serviceAccountName", "serviceAccount"] {
        spec.insert(field.to_owned(), name.clone().into());
    }
    if mounts {
        mount_token(spec);
    }
    let secrets = list_at(account, &["imagePullSecrets"]);
    let has_own = spec.get("imagePullSecrets").and_then(Value::as_array).is_some_and(|own| !own.is_empty());
    if !has_own && !secrets.is_empty() {
        spec.insert("imagePullSecrets".to_owned(), secrets.to_vec().into());
    }
}

/// Mounts the token, except in containers that mount something at its path.
fn mount_token(spec: &mut JsonObject) {
    let own = object_items_mut(spec, "volumes")
        .map(|volume| text(volume, "name"))
        .find(|name| name.starts_with(TOKEN_VOLUME_PREFIX));
    let own = own.map(str::to_owned);
    let name = own.clone().unwrap_or_else(|| identity::generate_name(TOKEN_VOLUME_PREFIX));
    let mut mounted = false;
    for list in ["initContainers", "containers"] {
        for container in object_items_mut(spec, list) {
            let mounts = container.entry("volumeMounts").or_insert_with(|| json!([]));
            let Some(mounts) = mounts.as_array_mut() else { continue };
            if !mounts.iter().any(|mount| text_at(mount, &["mountPath"]) == TOKEN_MOUNT_PATH) {
                mounts.push(json!({"name": name, "readOnly": true, "mountPath": TOKEN_MOUNT_PATH}));
                mounted = true;
            }
        }
    }
    let volumes = spec.entry("volumes").or_insert_with(|| json!([]));
    if let Some(volumes) = volumes.as_array_mut().filter(|_| mounted && own.is_none()) {
        volumes.push(volume(&name));
    }
}

fn volume(name: &str) -> Value {
    let namespace = json!({"path": "namespace", "fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.namespace"}});
    let sources = json!([
        {"serviceAccountToken": {"expirationSeconds": TOKEN_EXPIRATION_SECONDS, "path": "token"}},
        {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
        {"downwardAPI": {"items": [namespace]}},
    ]);
    json!({"name": name, "projected": {"sources": sources, "defaultMode": 0o644}})
}

#[cfg(test)]
mod tests {
    use super::*;

    fn given(spec: Value, account: Value) -> Value {
        let mut pod = json!({"metadata": {"name": "web"}, "spec": spec});
        inject_service_account(&mut pod, &account);
        pod["spec"].take()
    }

    #[test]
    fn every_container_gets_the_token() {
        let spec = json!({"initContainers": [{"name": "a"}], "containers": [{"name": "b"}]});
        let spec = given(spec, json!({"imagePullSecrets": [{"name": "registry"}]}));
        assert_eq!((&spec["serviceAccountName"], &spec["serviceAccount"]), (&json!("default"), &json!("default")));
        let name = spec["volumes"][0]["name"].as_str().unwrap();
        assert_eq!(name.len(), TOKEN_VOLUME_PREFIX.len() + 5);
        assert_eq!(spec["volumes"][0]["projected"]["sources"][0]["serviceAccountToken"]["expirationSeconds"], 3607);
        for list in ["initContainers", "containers"] {
            let mount = json!([{"name": name, "readOnly": true, "mountPath": TOKEN_MOUNT_PATH}]);
            assert_eq!(spec[list][0]["volumeMounts"], mount, "{list}");
        }
        assert_eq!(spec["imagePullSecrets"], json!([{"name": "registry"}]));
    }

    #[test]
    fn who_wants_no_token_or_has_one_gets_none() {
        let plain = json!({"containers": [{"name": "main"}], "serviceAccountName": "robot"});
        let quiet = json!({"automountServiceAccountToken": false});
        let spec = given(plain.clone(), quiet.clone());
        assert_eq!((&spec["volumes"], &spec["serviceAccountName"]), (&Value::Null, &json!("robot")));
        let mut loud = plain.clone();
        loud["automountServiceAccountToken"] = true.into();
        assert_eq!(given(loud, quiet)["volumes"].as_array().unwrap().len(), 1);
        let mut own = plain;
        own["containers"][0]["volumeMounts"] = json!([{"name": "mine", "mountPath": TOKEN_MOUNT_PATH}]);
        let spec = given(own.clone(), json!({}));
        assert_eq!(spec["containers"], own["containers"]);
        assert_eq!(spec["volumes"], json!([]));
    }

    #[test]
    fn a_volume_of_an_earlier_round_is_used_again() {
        let volumes = json!([{"name": "kube-api-access-x2z4b", "projected": {}}]);
        let spec = given(json!({"containers": [{"name": "main"}], "volumes": volumes}), json!({}));
        assert_eq!(spec["volumes"], volumes);
        assert_eq!(spec["containers"][0]["volumeMounts"][0]["name"], "kube-api-access-x2z4b");
    }
}
