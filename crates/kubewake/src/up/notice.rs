//! What the other commands know of a running `up`: a file in the user's state for those on the same machine, and a ConfigMap in its cluster for
//! those who have its kubeconfig. Where several run, the file is the last one's.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::Context;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{
    folder::{state, write},
    ports::Ports,
};

/// The ConfigMap.
pub(crate) const NAME: &str = "kubewake-viewer";
/// Where it is.
pub(crate) const NAMESPACE: &str = "kubewake-system";
/// The format of the file.
const VERSION: u32 = 1;
/// It has a few lines.
const LONGEST: u64 = 64 << 10;

/// What it says of itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Notice {
    version: u32,
    /// The process.
    pub(crate) pid: u32,
    /// Where its page is.
    pub(crate) page: String,
    /// How its cluster is reached.
    pub(crate) kubeconfig: PathBuf,
    /// Where OTLP is taken.
    pub(crate) otlp: Otlp,
}

/// Where OTLP is taken.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Otlp {
    /// Over gRPC.
    pub(crate) grpc: String,
    /// Over HTTP.
    pub(crate) http: String,
}

/// The file, which is removed when this is dropped, unless another has written it since.
#[derive(Debug)]
pub(super) struct Posted(PathBuf);

impl Notice {
    pub(super) fn new(ports: &Ports, kubeconfig: &Path) -> Self {
        Self {
            version: VERSION,
            pid: std::process::id(),
            page: format!("http://{}", ports.page),
            kubeconfig: kubeconfig.to_owned(),
            otlp: Otlp { grpc: format!("http://{}", ports.otlp), http: format!("http://{}", ports.otlp_http) },
        }
    }

    /// Writes the file.
    pub(super) fn post(&self) -> anyhow::Result<Posted> {
        let path = path();
        let folder = path.parent().unwrap_or(Path::new("."));
        let written = fs::create_dir_all(folder).and_then(|()| write(&path, &serde_json::to_string_pretty(self)?));
        written.with_context(|| format!("cannot write {}", path.display()))?;
        Ok(Posted(path))
    }

    /// The ConfigMap.
    pub(super) fn config_map(&self) -> Value {
        json!({
            "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": NAME, "namespace": NAMESPACE, "labels": {"app.kubernetes.io/part-of": "kubewake"}},
            "data": {"page": self.page, "otlp-grpc": self.otlp.grpc, "otlp-http": self.otlp.http},
        })
    }

    /// Of the last one that runs, or that did not end in good order.
    pub(crate) fn find() -> Option<Self> {
        read(&path())
    }
}

impl Drop for Posted {
    fn drop(&mut self) {
        if read(&self.0).is_some_and(|notice| notice.pid == std::process::id()) {
            // Whoever reads it finds nobody there.
            let _ = fs::remove_file(&self.0);
        }
    }
}

fn path() -> PathBuf {
    state().join("up.json")
}

fn read(path: &Path) -> Option<Notice> {
    let is_short = fs::metadata(path).ok()?.len() <= LONGEST;
    let text = is_short.then(|| fs::read(path).ok()).flatten()?;
    serde_json::from_slice(&text).ok().filter(|notice: &Notice| notice.version == VERSION)
}
