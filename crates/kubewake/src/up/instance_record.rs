//! Records a running `up` for other commands: in a file of the user's state for those on the same machine, and
//! in a ConfigMap in its cluster for those with its kubeconfig.
//!
//! Each instance has a file of its own, which it keeps locked while it runs. *Guaranteed.* A file is read as a
//! whole or not at all, and the file of a process that has ended, for whatever reason, is ignored. If several
//! instances run, the one that was started last is found; after its end, the previous one.

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

use super::{ports::ListenAddresses, state_directory::user_state_dir};

const CONFIG_MAP_NAME: &str = "kubewake-viewer";
const CONFIG_MAP_NAMESPACE: &str = "kubewake-system";
/// Version of the file format.
const FORMAT_VERSION: u32 = 1;
/// A record has a few lines.
const MAX_RECORD_BYTES: u64 = 64 << 10;

/// The record of a running instance.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct InstanceRecord {
    version: u32,
    pub(crate) pid: u32,
    pub(crate) page: String,
    /// Kubeconfig of its cluster.
    pub(crate) kubeconfig: PathBuf,
    pub(crate) otlp: OtlpAddresses,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct OtlpAddresses {
    pub(crate) grpc: String,
    pub(crate) http: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct AdvertisedViewer {
    pub(crate) page: String,
    /// Address of OTLP over gRPC.
    pub(crate) otlp: Option<String>,
}

/// The file, which is removed when this is dropped.
#[derive(Debug)]
pub(super) struct RecordFile {
    path: PathBuf,
    /// Locked while the process runs.
    _file: File,
}

impl InstanceRecord {
    pub(super) fn new(ports: &ListenAddresses, kubeconfig: &Path) -> Self {
        Self {
            version: FORMAT_VERSION,
            pid: std::process::id(),
            page: format!("http://{}", ports.page),
            kubeconfig: kubeconfig.to_owned(),
            otlp: OtlpAddresses { grpc: format!("http://{}", ports.otlp), http: format!("http://{}", ports.otlp_http) },
        }
    }

    pub(super) fn publish(&self) -> anyhow::Result<RecordFile> {
        self.publish_in(&records_dir())
    }

    fn publish_in(&self, folder: &Path) -> anyhow::Result<RecordFile> {
        remove_stale_records(folder);
        let path = folder.join(format!("{}.json", self.pid));
        let file = self.write(&path).with_context(|| format!("failed to write {}", path.display()))?;
        Ok(RecordFile { path, _file: file })
    }

    /// The file is locked before it is renamed, so that readers never see it unlocked.
    fn write(&self, path: &Path) -> io::Result<File> {
        fs::DirBuilder::new().recursive(true).mode(0o700).create(path.parent().unwrap_or(Path::new(".")))?;
        let part = path.with_extension("part");
        let mut file = File::options().write(true).create(true).truncate(true).mode(0o600).open(&part)?;
        file.lock()?;
        file.write_all(serde_json::to_string_pretty(self)?.as_bytes())?;
        fs::rename(&part, path)?;
        Ok(file)
    }

    pub(super) fn config_map(&self) -> Value {
        json!({
            "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": CONFIG_MAP_NAME, "namespace": CONFIG_MAP_NAMESPACE, "labels": {"app.kubernetes.io/part-of": "kubewake"}},
            "data": {"page": self.page, "otlp-grpc": self.otlp.grpc, "otlp-http": self.otlp.http},
        })
    }

    /// The record of the running instance that was started last.
    pub(crate) fn find_newest() -> Option<Self> {
        newest_record(&records_dir())
    }
}

/// The viewer in the ConfigMap of a cluster; none if there is none.
pub(crate) async fn fetch_advertised_viewer(client: &Client) -> Result<Option<AdvertisedViewer>, kube::Error> {
    let map = Api::<ConfigMap>::namespaced(client.clone(), CONFIG_MAP_NAMESPACE).get_opt(CONFIG_MAP_NAME).await?;
    Ok(map.and_then(|map| map.data).and_then(|mut data| {
        let page = data.remove("page")?;
        Some(AdvertisedViewer { page, otlp: data.remove("otlp-grpc") })
    }))
}

impl Drop for RecordFile {
    fn drop(&mut self) {
        // A file that cannot be removed is not locked any more.
        let _ = fs::remove_file(&self.path);
    }
}

/// The folder of all records.
fn records_dir() -> PathBuf {
    user_state_dir().join("running")
}

fn newest_record(folder: &Path) -> Option<InstanceRecord> {
    let notices = record_files(folder).filter_map(|path| read_record(&path));
    notices.max_by_key(|(since, _)| *since).map(|(_, notice)| notice)
}

/// The files of running instances, and of those that were killed.
fn record_files(folder: &Path) -> impl Iterator<Item = PathBuf> {
    let all = fs::read_dir(folder).into_iter().flatten().filter_map(|entry| Some(entry.ok()?.path()));
    all.filter(|path| path.extension().is_some_and(|end| end == "json"))
}

/// Removes the records of processes that have ended. A file that cannot be removed does no harm.
fn remove_stale_records(folder: &Path) {
    for path in record_files(folder) {
        if File::open(&path).is_ok_and(|file| file.try_lock_shared().is_ok()) {
            let _ = fs::remove_file(&path);
        }
    }
}

/// The record and its time, if its process runs.
fn read_record(path: &Path) -> Option<(SystemTime, InstanceRecord)> {
    let file = File::open(path).ok()?;
    if !matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock)) {
        return None;
    }
    let since = file.metadata().ok()?.modified().ok()?;
    let mut text = Vec::new();
    file.take(MAX_RECORD_BYTES).read_to_end(&mut text).ok()?;
    let notice: InstanceRecord = serde_json::from_slice(&text).ok()?;
    (notice.version == FORMAT_VERSION).then_some((since, notice))
}

#[cfg(test)]
mod tests;
