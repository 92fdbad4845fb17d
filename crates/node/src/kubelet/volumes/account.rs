//! A kubeconfig for containers that have the token of a ServiceAccount at its usual place.
//!
//! It is what finds the API server for programs that know the mount path only by heart: kubectl, kube-rs, client-go's and Python's loaders
//! look at `KUBECONFIG` first.

use std::path::{Path, PathBuf};

use kube::ResourceExt;
use serde_json::json;

use super::{MountError, Request};

/// Where programs look.
const PATH: &str = "/var/run/secrets/kubernetes.io/serviceaccount";

/// How the API server is reached.
#[derive(Clone, Debug)]
pub(super) struct Account {
    namespace: String,
    server: String,
}

impl Account {
    /// Of a pod.
    pub(super) fn of(request: &Request<'_>) -> Self {
        let Request { pod, node, .. } = *request;
        Self { namespace: pod.namespace().unwrap_or_default(), server: format!("https://{}", node.api_server) }
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
