//! The names that a kubelet gives to the log files of a container.
//!
//! `NAMESPACE_POD_UID/CONTAINER/N.log` is the file that the runtime writes, N the number of the restart. The kubelet
//! renames it to `N.log.YYYYMMDD-HHMMSS`, lets the runtime open a new one, and compresses the renamed file with the
//! next rotation, to the same name with `.gz`.

use std::path::Path;

/// The name of one file of a container.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct KubeletName {
    pub(crate) restart: u64,
    /// The time of the rotation as the kubelet writes it, whose order is that of the text; `None` for the live file.
    pub(crate) rotated_at: Option<String>,
    pub(crate) is_compressed: bool,
}

impl KubeletName {
    pub(crate) fn parse(name: &[u8]) -> Option<Self> {
        let name = std::str::from_utf8(name).ok()?;
        let (restart, rest) = name.split_once(".log")?;
        if restart.is_empty() || restart.len() > 9 || !restart.bytes().all(|byte| byte.is_ascii_digit()) {
            return None;
        }
        let restart = restart.parse().ok()?;
        let Some(suffix) = rest.strip_prefix('.') else {
            return rest.is_empty().then_some(Self { restart, rotated_at: None, is_compressed: false });
        };
        let (time, is_compressed) = match suffix.strip_suffix(".gz") {
            Some(time) => (time, true),
            None => (suffix, false),
        };
        let (date, clock) = time.split_once('-')?;
        let are_digits = date.bytes().chain(clock.bytes()).all(|byte| byte.is_ascii_digit());
        (date.len() == 8 && clock.len() == 6 && are_digits).then(|| Self {
            restart,
            rotated_at: Some(time.to_owned()),
            is_compressed,
        })
    }

    /// The live file comes after all rotated ones; a compressed file takes the place of the one that it was made of.
    pub(crate) fn sort_key(&self) -> (bool, Option<&str>, bool) {
        (self.rotated_at.is_none(), self.rotated_at.as_deref(), self.is_compressed)
    }

    /// The name of the live file of the container's run.
    pub(crate) fn live_name(&self) -> String {
        format!("{}.log", self.restart)
    }
}

/// Whether the directory is that of a container: the one above it is named for namespace, pod and uid.
pub(crate) fn is_container_directory(directory: &Path) -> bool {
    let pod = directory.parent().and_then(Path::file_name);
    pod.is_some_and(|name| name.to_string_lossy().matches('_').count() >= 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_a_kubelet_are_recognised_and_ordered() {
        let names = ["0.log.20231114-221320.gz", "0.log.20231114-221320", "0.log.20231114-221330", "0.log"];
        let parsed: Vec<KubeletName> = names.iter().map(|name| KubeletName::parse(name.as_bytes()).unwrap()).collect();
        let mut sorted = parsed.clone();
        sorted.sort_by(|left, right| left.sort_key().cmp(&right.sort_key()));
        assert_eq!(sorted, [&parsed[1], &parsed[0], &parsed[2], &parsed[3]].map(Clone::clone));
    }

    #[test]
    fn other_names_are_not_recognised() {
        for name in ["a.log", ".log", "0.log.1", "0.log.20231114-221320.tmp", "0.log.20231114-22132x", "0.logs", "0"] {
            assert_eq!(KubeletName::parse(name.as_bytes()), None, "{name}");
        }
        assert!(is_container_directory(Path::new("/var/log/pods/ns_pod_uid/c")));
        assert!(!is_container_directory(Path::new("/var/log/app")));
    }
}
