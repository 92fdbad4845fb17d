//! The memory limit of the process.

use std::fs;

/// The memory available to the process: the limit of its control group, or else all of the machine's, in bytes.
pub fn available_bytes() -> u64 {
    let machine = machine_total_bytes().unwrap_or(u64::MAX);
    cgroup_limit_bytes().unwrap_or(u64::MAX).min(machine)
}

/// The budget of pipelines without a `memory_limiter`: a quarter of the available memory. The rest is for
/// sockets, compression, the allocator's slack and other processes.
pub fn default_budget_bytes() -> u64 {
    match available_bytes() {
        // The limit is unknown: enough for a laptop, and too little to harm one.
        u64::MAX => 256 << 20,
        bytes => bytes / 4,
    }
}

fn machine_total_bytes() -> Option<u64> {
    let text = fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find(|line| line.starts_with("MemTotal:"))?;
    let kib: u64 = line.split_whitespace().nth(1)?.parse().ok()?;
    Some(kib << 10)
}

/// The limit of control groups, version 2 and then 1. Without a limit the file holds `max` or an absurd number.
fn cgroup_limit_bytes() -> Option<u64> {
    let files = ["/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"];
    files.iter().find_map(|file| fs::read_to_string(file).ok()?.trim().parse().ok())
}
