//! Logs of containers, as a kubelet and containerd lay them out.

use std::{
    fs::{self, File},
    io::{BufWriter, Write as _},
    path::{Path, PathBuf},
};

use anyhow::Context;

use crate::bench::directory;

/// Files that were written before, to be linked to where an agent finds them.
pub(super) struct ContainerLogs {
    folder: PathBuf,
    containers: usize,
    lines: usize,
}

/// The folder of a pod of the cluster stub.
pub(super) fn pod_folder(number: usize) -> String {
    format!("web_shop-6c45f8d6f6-{number:05}_{number:036}")
}

impl ContainerLogs {
    /// Writes the logs of containers, each with as many lines of this content.
    pub(super) fn write(name: &str, containers: usize, lines: usize, body: &str) -> anyhow::Result<Self> {
        let folder = directory().join(name);
        remove(&folder)?;
        for container in 0..containers {
            let folder = folder.join(pod_folder(container)).join("main");
            fs::create_dir_all(&folder)?;
            let mut file = BufWriter::new(File::create(folder.join("0.log"))?);
            for line in 0..lines {
                writeln!(file, "{} stdout F {body}", timestamp(line))?;
            }
            file.flush()?;
        }
        Ok(Self { folder, containers, lines })
    }

    /// All lines of all containers.
    pub(super) fn lines(&self) -> u64 {
        (self.containers * self.lines) as u64
    }

    /// Makes the logs appear below a folder, all files of a pod at once. Both names are of the same files.
    pub(super) fn link_to(&self, pods: &Path) -> anyhow::Result<()> {
        let staging = pods.with_extension("staging");
        remove(&staging)?;
        for container in 0..self.containers {
            let pod = pod_folder(container);
            fs::create_dir_all(staging.join(&pod).join("main"))?;
            let file = Path::new(&pod).join("main/0.log");
            fs::hard_link(self.folder.join(&file), staging.join(&file))?;
        }
        if !pods.exists() {
            return fs::rename(&staging, pods).with_context(|| format!("failed to create {}", pods.display()));
        }
        for container in 0..self.containers {
            fs::rename(staging.join(pod_folder(container)), pods.join(pod_folder(container)))?;
        }
        Ok(())
    }
}

/// A time as containerd writes it: some lines have less digits than others.
pub(super) fn timestamp(line: usize) -> String {
    let (minute, second) = (line / 600_000 % 60, line / 10_000 % 60);
    format!("2026-11-18T03:{minute:02}:{second:02}.{:09}Z", line * 100_001 % 1_000_000_000)
}

/// Removes a folder of an earlier run.
pub(super) fn remove(folder: &Path) -> anyhow::Result<()> {
    if folder.exists() {
        fs::remove_dir_all(folder).with_context(|| format!("failed to remove {}", folder.display()))?;
    }
    Ok(())
}
