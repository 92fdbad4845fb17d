//! When logs are rotated, and what becomes of rotated files: the rules of a kubelet.
//!
//! ```text
//!   0.log                     written
//!   0.log.20260102-030405     the newest rotated file stays as it is until the next rotation
//!   0.log.20260102-030305.gz  older ones are compressed
//! ```

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Read, Write},
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use flate2::{Compression, write::GzEncoder};
use jiff::{Timestamp, tz::TimeZone};

/// The permissions of log files: containerd's.
pub(super) const LOG_FILE_MODE: u32 = 0o640;
const COMPRESSED_SUFFIX: &str = ".gz";
const PART_SUFFIX: &str = ".tmp";
/// The bytes that are compressed at once; in between, the end of the node is noticed.
const COMPRESSION_BLOCK_BYTES: usize = 64 << 10;

/// The settings of a kubelet for log files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogRotation {
    /// The size from which a file is rotated at the next check (`containerLogMaxSize`).
    pub max_bytes: u64,
    /// The number of files of one run of a container, at least 2 (`containerLogMaxFiles`).
    pub max_files: usize,
    /// The interval of checks (`containerLogMonitorInterval`). A fast container exceeds the size until then.
    pub interval: Duration,
}

impl Default for LogRotation {
    /// The values of a kubelet.
    fn default() -> Self {
        Self { max_bytes: 10 << 20, max_files: 5, interval: Duration::from_secs(10) }
    }
}

impl LogRotation {
    /// The number of rotated files before another one is added.
    pub(super) fn max_older_files(&self) -> usize {
        // The current file, and the one that it becomes.
        self.max_files.saturating_sub(2)
    }
}

/// The name of a log file that is rotated now.
pub(super) fn rotated_path(log: &Path, now: Timestamp) -> PathBuf {
    let time = now.to_zoned(TimeZone::UTC).strftime("%Y%m%d-%H%M%S").to_string();
    with_suffix(log, &format!(".{time}"))
}

/// The compressed form of a rotated file.
pub(super) fn compressed_path(rotated: &Path) -> PathBuf {
    with_suffix(rotated, COMPRESSED_SUFFIX)
}

fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut path = path.as_os_str().to_owned();
    path.push(suffix);
    path.into()
}

/// A file that was rotated before the node started: its path before compression, and whether it is compressed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct RotatedLog {
    pub(super) path: PathBuf,
    pub(super) is_compressed: bool,
}

impl RotatedLog {
    /// The path of the file as it is.
    pub(super) fn current_path(&self) -> PathBuf {
        if self.is_compressed { compressed_path(&self.path) } else { self.path.clone() }
    }
}

/// The rotated files of a log, oldest first. Removes what an interrupted compression has left.
pub(super) fn find_rotated(log: &Path) -> Vec<RotatedLog> {
    let (Some(dir), Some(name)) = (log.parent(), log.file_name().and_then(|name| name.to_str())) else {
        return Vec::new();
    };
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
    let mut names: Vec<String> =
        names.filter(|other| other.strip_prefix(name).is_some_and(|rest| rest.starts_with('.'))).collect();
    names.sort_unstable();
    let is_unused =
        |name: &String| name.ends_with(PART_SUFFIX) || names.contains(&format!("{name}{COMPRESSED_SUFFIX}"));
    let (unused, used): (Vec<&String>, Vec<&String>) = names.iter().partition(|name| is_unused(name));
    for name in unused {
        let _ = fs::remove_file(dir.join(name));
    }
    let rotated = |name: &String| match name.strip_suffix(COMPRESSED_SUFFIX) {
        Some(plain) => RotatedLog { path: dir.join(plain), is_compressed: true },
        None => RotatedLog { path: dir.join(name), is_compressed: false },
    };
    used.into_iter().map(rotated).collect()
}

/// Compresses a rotated file beside it. The original remains.
pub(super) fn compress(rotated: &Path, is_stopping: &AtomicBool) -> io::Result<()> {
    let part = with_suffix(rotated, PART_SUFFIX);
    let done = write_compressed(rotated, &part, is_stopping).and_then(|()| fs::rename(&part, compressed_path(rotated)));
    done.inspect_err(|_| drop(fs::remove_file(&part)))
}

fn write_compressed(from: &Path, to: &Path, is_stopping: &AtomicBool) -> io::Result<()> {
    let mut from = File::open(from)?;
    let to = OpenOptions::new().create(true).write(true).truncate(true).mode(LOG_FILE_MODE).open(to)?;
    // The fastest level: several containers share this machine with their cluster.
    let mut encoder = GzEncoder::new(to, Compression::fast());
    let mut block = vec![0; COMPRESSION_BLOCK_BYTES];
    loop {
        if is_stopping.load(Ordering::Relaxed) {
            return Err(io::Error::new(io::ErrorKind::Interrupted, "the node stops"));
        }
        match from.read(&mut block)? {
            0 => return encoder.finish().map(drop),
            length => encoder.write_all(block.get(..length).unwrap_or_default())?,
        }
    }
}
