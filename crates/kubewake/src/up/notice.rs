//! What the other commands know of a running `up`: a file in the user's state for those on the same machine, and a ConfigMap in its cluster for
//! those who have its kubeconfig.
//!
//! Each has a file of its own, which it holds locked while it runs. *Guarantees.* A file is read whole or not at all, and one whose process is gone,
//! however it went, is nobody's. Where several run, the one that was started last is found; when it ends, the one before it.

use std::{
    fs::{self, File, TryLockError},
    io::{self, Read as _, Write as _},
    os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _},
    path::{Path, PathBuf},
    time::SystemTime,
};

use anyhow::Context;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{Api, Client};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{folder::state, ports::Ports};

/// The ConfigMap.
const NAME: &str = "kubewake-viewer";
/// Where it is.
const NAMESPACE: &str = "kubewake-system";
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

/// What the ConfigMap says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Told {
    /// Where the page is.
    pub(crate) page: String,
    /// Where OTLP is taken over gRPC.
    pub(crate) otlp: Option<String>,
}

/// The file, which is removed when this is dropped.
#[derive(Debug)]
pub(super) struct Posted {
    path: PathBuf,
    /// Locked, as long as we run.
    _file: File,
}

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
        self.post_in(&running())
    }

    fn post_in(&self, folder: &Path) -> anyhow::Result<Posted> {
        clear(folder);
        let path = folder.join(format!("{}.json", self.pid));
        let file = self.write(&path).with_context(|| format!("cannot write {}", path.display()))?;
        Ok(Posted { path, _file: file })
    }

    /// It is locked before it has its name: whoever finds it finds it so.
    fn write(&self, path: &Path) -> io::Result<File> {
        fs::DirBuilder::new().recursive(true).mode(0o700).create(path.parent().unwrap_or(Path::new(".")))?;
        let part = path.with_extension("part");
        let mut file = File::options().write(true).create(true).truncate(true).mode(0o600).open(&part)?;
        file.lock()?;
        file.write_all(serde_json::to_string_pretty(self)?.as_bytes())?;
        fs::rename(&part, path)?;
        Ok(file)
    }

    /// The ConfigMap.
    pub(super) fn config_map(&self) -> Value {
        json!({
            "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": NAME, "namespace": NAMESPACE, "labels": {"app.kubernetes.io/part-of": "kubewake"}},
            "data": {"page": self.page, "otlp-grpc": self.otlp.grpc, "otlp-http": self.otlp.http},
        })
    }

    /// Of the one that was started last among those that run.
    pub(crate) fn find() -> Option<Self> {
        newest(&running())
    }
}

/// What a cluster says of its `up`; none where there is none.
pub(crate) async fn told(client: &Client) -> Result<Option<Told>, kube::Error> {
    let map = Api::<ConfigMap>::namespaced(client.clone(), NAMESPACE).get_opt(NAME).await?;
    Ok(map.and_then(|map| map.data).and_then(|mut data| {
        let page = data.remove("page")?;
        Some(Told { page, otlp: data.remove("otlp-grpc") })
    }))
}

impl Drop for Posted {
    fn drop(&mut self) {
        // What stays is not locked any more.
        let _ = fs::remove_file(&self.path);
    }
}

/// Where each that runs has a file.
fn running() -> PathBuf {
    state().join("running")
}

fn newest(folder: &Path) -> Option<Notice> {
    let notices = files(folder).filter_map(|path| read(&path));
    notices.max_by_key(|(since, _)| *since).map(|(_, notice)| notice)
}

/// The files of those that run, and of those that were killed.
fn files(folder: &Path) -> impl Iterator<Item = PathBuf> {
    let all = fs::read_dir(folder).into_iter().flatten().filter_map(|entry| Some(entry.ok()?.path()));
    all.filter(|path| path.extension().is_some_and(|end| end == "json"))
}

/// Removes what is nobody's any more. Whatever cannot be removed does no harm.
fn clear(folder: &Path) {
    for path in files(folder) {
        if File::open(&path).is_ok_and(|file| file.try_lock_shared().is_ok()) {
            let _ = fs::remove_file(&path);
        }
    }
}

/// What is written there and since when, if somebody holds it.
fn read(path: &Path) -> Option<(SystemTime, Notice)> {
    let file = File::open(path).ok()?;
    if !matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock)) {
        return None;
    }
    let since = file.metadata().ok()?.modified().ok()?;
    let mut text = Vec::new();
    file.take(LONGEST).read_to_end(&mut text).ok()?;
    let notice: Notice = serde_json::from_slice(&text).ok()?;
    (notice.version == VERSION).then_some((since, notice))
}

#[cfg(test)]
mod tests;
