//! `kube-system/extension-apiserver-authentication`: what servers beside this one must know to believe the same client certificates.
//!
//! Without it kube-controller-manager, kube-scheduler and aggregated API servers do not start their own authentication. Of its keys
//! there is `client-ca-file` alone, as of a kube-apiserver that takes no users from a proxy in front of it (`--requestheader-…`).

use std::{sync::Arc, time::Duration};

use serde_json::{Value, json};

use super::{Change, Feed};
use crate::{
    api::{
        GroupResource, ObjectKey, identity,
        meta::{child_mut, set_meta},
    },
    core::Core,
    store::WriteError,
};

const NAMESPACE: &str = "kube-system";
const NAME: &str = "extension-apiserver-authentication";
const CLIENT_CA: &str = "client-ca-file";
/// After a write that failed.
const RETRY_INTERVAL: Duration = Duration::from_secs(1);

fn collection() -> GroupResource {
    GroupResource::new("", "configmaps")
}

/// Writes the ConfigMap, and again whenever somebody removes it or the certificate in it.
pub async fn run(core: Arc<Core>, authority: String) {
    let mut feed = Feed::new(&core.store, collection());
    loop {
        let concerned = match feed.next().await {
            Change::Reset => true,
            Change::Set(object) | Change::Gone(object) => {
                &*object.key.namespace == NAMESPACE && &*object.key.name == NAME
            }
        };
        if concerned {
            ensure(&core, &authority).await;
        }
    }
}

async fn ensure(core: &Core, authority: &str) {
    while let Err(error) = write(core, authority).await {
        // Somebody else was faster: the next round sees what they made of it.
        if !matches!(error, WriteError::Conflict { .. } | WriteError::Exists | WriteError::NotFound) {
            tracing::warn!(namespace = NAMESPACE, name = NAME, %error, "failed to write ConfigMap, retrying in 1s");
            tokio::time::sleep(RETRY_INTERVAL).await;
        }
    }
}

async fn write(core: &Core, authority: &str) -> Result<(), WriteError> {
    let key = ObjectKey::new(collection(), NAMESPACE, NAME);
    let Some(held) = core.store.get(&key) else {
        let mut object =
            json!({ "metadata": { "name": NAME, "namespace": NAMESPACE }, "data": { CLIENT_CA: authority } });
        set_meta(&mut object, "uid", identity::uid());
        set_meta(&mut object, "creationTimestamp", core.now());
        return core.store.create(key, object).await.map(drop);
    };
    match with_authority(held.value(), authority) {
        Some(object) => core.store.update(&key, held.revision, object).await.map(drop),
        None => Ok(()),
    }
}

/// The ConfigMap with the certificate; none if it has it. Others that are there stay: their servers may still run.
fn with_authority(mut object: Value, authority: &str) -> Option<Value> {
    let data = object.as_object_mut().and_then(|object| child_mut(object, "data"))?;
    let known = data.get(CLIENT_CA).and_then(Value::as_str).unwrap_or_default();
    if known.contains(authority.trim()) {
        return None;
    }
    let gap = if known.is_empty() || known.ends_with('\n') { "" } else { "\n" };
    data.insert(CLIENT_CA.to_owned(), format!("{known}{gap}{authority}").into());
    Some(object)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn authority_is_added_to_a_config_map_unless_it_is_there() {
        let object = |text: &str| json!({"metadata": {"name": NAME}, "data": {CLIENT_CA: text, "other": "x"}});
        assert_eq!(with_authority(object("-A-\n"), "-B-\n"), Some(object("-A-\n-B-\n")));
        assert_eq!(with_authority(object("-A-"), "-B-\n"), Some(object("-A-\n-B-\n")));
        assert_eq!(with_authority(object("-A-\n-B-\n"), "-B-\n"), None);
        let empty = with_authority(json!({"metadata": {}}), "-B-\n");
        assert_eq!(empty, Some(json!({"metadata": {}, "data": {CLIENT_CA: "-B-\n"}})));
    }
}
