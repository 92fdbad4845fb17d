//! What a pod speaks to the API server with: token, certificate authority and namespace, and a kubeconfig for programs that
//! look for none of these.
//!
//! A cluster has an admission plugin add the volume to the pod. Here the node adds it, so that the pod's manifest stays as
//! it was written. A kubeconfig is what finds the API server for programs that know the mount path only by heart:
//! kubectl, kube-rs, client-go's and Python's loaders look at `KUBECONFIG` first.

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use k8s_openapi::api::core::v1::{Pod, ServiceAccount, ServiceAccountTokenProjection};
use kube::ResourceExt;
use serde_json::json;

use super::{
    Cause, MountError, Request,
    mounts::{Mount, Place},
    payload::{Part, Recipe},
    upkeep::Written,
};
use crate::kubelet::{
    downward,
    sources::{Kind, Ref, Sources},
};

/// As errors call the volume.
pub(super) const VOLUME: &str = "kube-api-access";
/// Where programs look.
const PATH: &str = "/var/run/secrets/kubernetes.io/serviceaccount";
/// What the kubelet asks for: an hour, and seven seconds by which the API server knows whose token it is.
const SECONDS: i64 = 3607;

/// How long an account may be missing before it is told.
const PATIENCE: Duration = Duration::from_secs(1);

/// The volume, and how the API server is reached.
#[derive(Clone, Debug)]
pub(super) struct Account {
    /// Whether containers get the volume.
    automount: bool,
    place: Place,
    namespace: String,
    server: String,
    authority: String,
}

impl Account {
    /// Of a pod. It is there also if the pod wants no token: it may mount its own at the usual path.
    pub(super) async fn of(request: &Request<'_>) -> Result<Self, Cause> {
        let Request { pod, dir, node, sources } = *request;
        Ok(Self {
            automount: automount(pod, sources).await?,
            place: Place::Written(dir.join("service-account")),
            namespace: pod.namespace().unwrap_or_default(),
            server: format!("https://{}", node.api_server),
            authority: node.authority.clone(),
        })
    }

    /// What is to be written, if there is to be anything.
    pub(super) fn volume(&self) -> Option<Written> {
        let token = ServiceAccountTokenProjection {
            audience: None,
            expiration_seconds: Some(SECONDS),
            path: "token".to_owned(),
        };
        let parts = vec![
            Part::Token(token),
            Part::Text { path: "ca.crt", text: self.authority.clone() },
            Part::Text { path: "namespace", text: self.namespace.clone() },
        ];
        let recipe = Recipe { mode: 0o644, parts };
        self.automount.then(|| Written::new(VOLUME, self.place.path(), recipe))
    }

    /// Where a container that mounts nothing there has it.
    pub(super) fn mount(&self) -> Result<Option<Mount>, MountError> {
        self.automount.then(|| Mount::new(PATH, &self.place, None)).transpose()
    }

    /// Writes a kubeconfig for a container whose root is made, if it has a token.
    pub(super) fn write_kubeconfig(&self, container: &Path) -> Result<(), MountError> {
        let (file, mounted) = (container.join("kubeconfig"), mounted(container));
        let failed = |source| MountError::io("write", &file, source);
        if !mounted.join("token").exists() {
            return match std::fs::remove_file(&file) {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(failed(error)),
                _ => Ok(()),
            };
        }
        let name = "kubewake";
        let config = json!({
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": name, "cluster": {
                "server": self.server, "certificate-authority": mounted.join("ca.crt"),
            }}],
            "users": [{"name": name, "user": {"tokenFile": mounted.join("token")}}],
            "contexts": [{"name": name, "context": {"cluster": name, "user": name, "namespace": self.namespace}}],
            "current-context": name,
        });
        // JSON is YAML.
        std::fs::write(&file, format!("{config:#}\n")).map_err(failed)
    }
}

fn mounted(container: &Path) -> PathBuf {
    container.join("root").join(super::within(Path::new(PATH)))
}

/// The pod's word counts, then its ServiceAccount's.
async fn automount(pod: &Pod, sources: &Sources) -> Result<bool, Cause> {
    if let Some(said) = pod.spec.as_ref().and_then(|spec| spec.automount_service_account_token) {
        return Ok(said);
    }
    let namespace = pod.namespace().unwrap_or_default();
    let account = account(Ref::new(Kind::ServiceAccount, &namespace, downward::service_account(pod)), sources).await?;
    Ok(account.and_then(|account| account.automount_service_account_token).unwrap_or(true))
}

/// A new namespace gets its account at about the time of its first pods: that is nothing to complain about.
async fn account(wanted: Ref, sources: &Sources) -> Result<Option<Arc<ServiceAccount>>, Cause> {
    let mut changes = sources.changes();
    if let Some(found) = sources.service_account(&wanted.key).await? {
        return Ok(Some(found));
    }
    let key = wanted.key.clone();
    // Whether it came or not, it is looked for.
    let _ = tokio::time::timeout(PATIENCE, changes.any_of(&BTreeSet::from([wanted]))).await;
    Ok(sources.service_account(&key).await?)
}
