//! A kubeconfig for containers with a ServiceAccount token at the usual path.
//!
//! Programs that know only the fixed mount path of the token find the API server with it: kubectl, kube-rs and
//! the loaders of client-go and Python read `KUBECONFIG` first.

use std::path::{Path, PathBuf};

use kube::ResourceExt;
use serde_json::json;

use super::{MountError, VolumeRequest};

const SERVICE_ACCOUNT_MOUNT_PATH: &str = "/var/run/secrets/kubernetes.io/serviceaccount";

/// The address and authority of the API server.
#[derive(Clone, Debug)]
pub(super) struct KubeconfigTemplate {
    namespace: String,
    server: String,
}

impl KubeconfigTemplate {
    pub(super) fn for_pod(request: &VolumeRequest<'_>) -> Self {
        let VolumeRequest { pod, node, .. } = *request;
        Self { namespace: pod.namespace().unwrap_or_default(), server: format!("https://{}", node.api_server) }
    }

    /// Writes the kubeconfig of a container with an existing root, if it has a token.
    pub(super) fn write_kubeconfig(&self, container: &Path) -> Result<(), MountError> {
        let file = container.join("kubeconfig");
        let mounted = token_mount_path(container);
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
        // JSON is valid YAML.
        std::fs::write(&file, format!("{config:#}\n")).map_err(failed)
    }
}

fn token_mount_path(container: &Path) -> PathBuf {
    container.join("root").join(super::relative_to_root(Path::new(SERVICE_ACCOUNT_MOUNT_PATH)))
}
