//! `kube-system/extension-apiserver-authentication`: the CA of client certificates, for other servers of the
//! cluster.
//!
//! Without it kube-controller-manager, kube-scheduler and aggregated API servers do not start their own
//! authentication. It has the single key `client-ca-file`, like that of a kube-apiserver without front-proxy
//! authentication (`--requestheader-…`).

use std::{sync::Arc, time::Duration};

use serde_json::{Value, json};

use super::{ObjectChange, ObjectFeed};
use crate::{
    api::{
        GroupResource, ObjectKey, identity,
        meta::{child_mut, set_meta},
    },
    server_state::ServerState,
    store::WriteError,
};

const CONFIG_MAP_NAMESPACE: &str = "kube-system";
const CONFIG_MAP_NAME: &str = "extension-apiserver-authentication";
const CLIENT_CA_KEY: &str = "client-ca-file";
/// The pause after a failed write.
const RETRY_INTERVAL: Duration = Duration::from_secs(1);

fn collection() -> GroupResource {
    GroupResource::new("", "configmaps")
}

/// Writes the ConfigMap, and again whenever it or the certificate in it is removed.
pub async fn run(core: Arc<ServerState>, authority: String) {
    let mut feed = ObjectFeed::new(&core.store, collection());
    loop {
        let concerned = match feed.next().await {
            ObjectChange::Reset => true,
            ObjectChange::Set(object) | ObjectChange::Deleted(object) => {
                &*object.key.namespace == CONFIG_MAP_NAMESPACE && &*object.key.name == CONFIG_MAP_NAME
            }
        };
        if concerned {
            ensure_authority_published(&core, &authority).await;
        }
    }
}

async fn ensure_authority_published(core: &ServerState, authority: &str) {
    while let Err(error) = write_config_map(core, authority).await {
        // A concurrent write: the next round reads its result.
        if !matches!(error, WriteError::Conflict { .. } | WriteError::Exists | WriteError::NotFound) {
            tracing::warn!(namespace = CONFIG_MAP_NAMESPACE, name = CONFIG_MAP_NAME, %error, "failed to write ConfigMap, retrying in 1s");
            tokio::time::sleep(RETRY_INTERVAL).await;
        }
    }
}

async fn write_config_map(core: &ServerState, authority: &str) -> Result<(), WriteError> {
    let key = ObjectKey::new(collection(), CONFIG_MAP_NAMESPACE, CONFIG_MAP_NAME);
    let Some(held) = core.store.get(&key) else {
        let mut object = json!({ "metadata": { "name": CONFIG_MAP_NAME, "namespace": CONFIG_MAP_NAMESPACE }, "data": { CLIENT_CA_KEY: authority } });
        set_meta(&mut object, "uid", identity::uid());
        set_meta(&mut object, "creationTimestamp", core.now());
        return core.store.create(key, object).await.map(drop);
    };
    match with_authority(held.value(), authority) {
        Some(object) => core.store.update(&key, held.revision, object).await.map(drop),
        None => Ok(()),
    }
}

/// The ConfigMap with the certificate; none if it contains it. Other certificates stay: their servers may still
/// run.
fn with_authority(mut object: Value, authority: &str) -> Option<Value> {
    let data = object.as_object_mut().and_then(|object| child_mut(object, "data"))?;
    let known = data.get(CLIENT_CA_KEY).and_then(Value::as_str).unwrap_or_default();
    if known.contains(authority.trim()) {
        return None;
    }
    let gap = if known.is_empty() || known.ends_with('\n') { "" } else { "\n" };
    data.insert(CLIENT_CA_KEY.to_owned(), format!("{known}{gap}{authority}").into());
    Some(object)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn authority_is_added_to_a_config_map_unless_it_is_there() {
        let object =
            |text: &str| json!({"metadata": {"name": CONFIG_MAP_NAME}, "data": {CLIENT_CA_KEY: text, "other": "x"}});
        assert_eq!(with_authority(object("-A-\n"), "-B-\n"), Some(object("-A-\n-B-\n")));
        assert_eq!(with_authority(object("-A-"), "-B-\n"), Some(object("-A-\n-B-\n")));
        assert_eq!(with_authority(object("-A-\n-B-\n"), "-B-\n"), None);
        let empty = with_authority(json!({"metadata": {}}), "-B-\n");
        assert_eq!(empty, Some(json!({"metadata": {}, "data": {CLIENT_CA_KEY: "-B-\n"}})));
    }
}
