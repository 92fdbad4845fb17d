//! How much memory this process may use.

use std::fs;

/// The memory that is there for us: the limit of our control group, or else all of the machine's, in bytes.
pub fn available() -> u64 {
    let machine = machine().unwrap_or(u64::MAX);
    cgroup().unwrap_or(u64::MAX).min(machine)
}

/// The budget of pipelines without a `memory_limiter`: a quarter of what is there. The rest is for sockets,
/// compression, the allocator's slack and whoever else lives here.
pub fn default_budget() -> u64 {
    match available() {
        // Nothing is known: enough for a laptop, and too little to hurt one.
        u64::MAX => 256 << 20,
        bytes => bytes / 4,
    }
}

fn machine() -> Option<u64> {
    let text = fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find(|line| line.starts_with("MemTotal:"))?;
    let kib: u64 = line.split_whitespace().nth(1)?.parse().ok()?;
    Some(kib << 10)
}

/// The limit of control groups, version 2 and then 1. Without one the file holds `max` or an absurd number.
fn cgroup() -> Option<u64> {
    let files = ["/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"];
    files.iter().find_map(|file| fs::read_to_string(file).ok()?.trim().parse().ok())
}
