//! Where the logs of a node are: the directories and names of a kubelet.
//!
//! ```text
//!   var/log/pods/NAMESPACE_POD_UID/CONTAINER/RESTARTS.log
//!   var/log/containers/POD_NAMESPACE_CONTAINER-ID.log      a link to the first
//! ```

use std::{
    ffi::OsString,
    fs::{self, DirBuilder},
    io,
    os::unix::fs::{DirBuilderExt, symlink},
    path::{Path, PathBuf},
};

/// The longest name of a file on Linux file systems.
const MAX_FILE_NAME_BYTES: usize = 255;
const LINK_SUFFIX: &str = ".log";

/// The pod of a log.
#[derive(Clone, Copy, Debug)]
pub(in crate::kubelet) struct PodLogKey<'a> {
    pub(in crate::kubelet) namespace: &'a str,
    pub(in crate::kubelet) pod: &'a str,
    pub(in crate::kubelet) uid: &'a str,
}

/// The run of a container to which a log belongs.
#[derive(Clone, Copy, Debug)]
pub(in crate::kubelet) struct ContainerLogKey<'a> {
    pub(in crate::kubelet) pod: PodLogKey<'a>,
    pub(in crate::kubelet) container: &'a str,
    /// The id of the run.
    pub(in crate::kubelet) id: &'a str,
    /// The restart count.
    pub(in crate::kubelet) number: i32,
}

#[derive(Clone, Debug)]
pub(super) struct LogLayout {
    pods: PathBuf,
    links: PathBuf,
}

impl LogLayout {
    /// The layout below the root of a node's files.
    pub(super) fn new(host: &Path) -> Self {
        let logs = host.join("var/log");
        Self { pods: logs.join("pods"), links: logs.join("containers") }
    }

    pub(super) fn create(&self) -> io::Result<()> {
        create_dir(&self.pods)?;
        create_dir(&self.links)
    }

    pub(super) fn pod_dir(&self, pod: &PodLogKey<'_>) -> PathBuf {
        self.pods.join(format!("{}_{}_{}", pod.namespace, pod.pod, pod.uid))
    }

    pub(super) fn container_dir(&self, pod: &PodLogKey<'_>, container: &str) -> PathBuf {
        self.pod_dir(pod).join(container)
    }

    /// The directories of pods, with the uids in their names.
    pub(super) fn pod_dirs(&self) -> Vec<(PathBuf, String)> {
        let entries = fs::read_dir(&self.pods).into_iter().flatten().flatten();
        entries.filter_map(|entry| Some((entry.path(), pod_uid(&entry.file_name())?))).collect()
    }

    /// Links the log of a run, under a name that is cut to the longest one possible.
    pub(super) fn link(&self, run: &ContainerLogKey<'_>, log: &Path) -> io::Result<()> {
        let ContainerLogKey { pod, container, id, .. } = run;
        let mut name = format!("{}_{}_{container}-{id}", pod.pod, pod.namespace);
        name.truncate(MAX_FILE_NAME_BYTES - LINK_SUFFIX.len());
        symlink(log, self.links.join(name + LINK_SUFFIX))
    }

    /// The id of the run whose log this is, by its link.
    pub(super) fn run_id(&self, log: &Path) -> Option<String> {
        let link = self.links_where(|target| target == log).next()?;
        let name = link.file_stem()?.to_str()?;
        // A name that was cut has no whole id.
        let is_whole = name.len() < MAX_FILE_NAME_BYTES - LINK_SUFFIX.len();
        name.rsplit_once('-').map(|(_, id)| id.to_owned()).filter(|_| is_whole)
    }

    /// Removes the links to this log, or to all logs in this directory.
    pub(super) fn remove_links(&self, target: &Path) {
        for link in self.links_where(|found| found.starts_with(target)) {
            // Another task may have removed it.
            let _ = fs::remove_file(link);
        }
    }

    /// Removes the links to logs that do not exist.
    pub(super) fn remove_dead_links(&self) {
        for link in self.links_where(|target| !target.exists()) {
            let _ = fs::remove_file(link);
        }
    }

    fn links_where<'a>(&self, matches: impl Fn(&Path) -> bool + 'a) -> impl Iterator<Item = PathBuf> + 'a {
        let links = fs::read_dir(&self.links).into_iter().flatten().flatten().map(|entry| entry.path());
        links.filter(move |link| fs::read_link(link).is_ok_and(|target| matches(&target)))
    }
}

pub(super) fn log_path(dir: &Path, number: i32) -> PathBuf {
    dir.join(format!("{number}.log"))
}

/// The restart counts of the logs in the directory of a container.
pub(super) fn log_numbers(dir: &Path) -> Vec<i32> {
    let names = fs::read_dir(dir).into_iter().flatten().flatten().map(|entry| entry.file_name());
    let mut numbers: Vec<i32> =
        names.filter_map(|name: OsString| name.to_str()?.strip_suffix(".log")?.parse().ok()).collect();
    numbers.sort_unstable();
    numbers
}

/// Creates a directory with the permissions of a kubelet.
pub(super) fn create_dir(dir: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o755).create(dir)
}

/// The uid in the name of a pod's directory. Other directories are not ours to remove.
fn pod_uid(name: &std::ffi::OsStr) -> Option<String> {
    let mut parts = name.to_str()?.split('_');
    let (_namespace, _pod, uid) = (parts.next()?, parts.next()?, parts.next()?);
    let is_uid = uid.len() == 36 && uid.bytes().all(|byte| byte.is_ascii_hexdigit() || byte == b'-');
    (is_uid && parts.next().is_none()).then(|| uid.to_owned())
}
