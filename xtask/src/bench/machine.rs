//! Where and when something was measured.

use std::fs;

use crate::steps::output;

/// The date and the machine, in a line.
pub(crate) fn describe() -> anyhow::Result<String> {
    let cpus = fs::read_to_string("/proc/cpuinfo")?;
    let field = |line: &str| line.split_once(':').map(|(_, value)| value.trim().to_owned());
    let model = cpus.lines().find(|line| line.starts_with("model name")).and_then(field);
    let cores = std::thread::available_parallelism()?;
    let memory = fs::read_to_string("/proc/meminfo")?;
    let kib = memory.lines().find_map(|line| line.strip_prefix("MemTotal:")?.split_whitespace().next()?.parse().ok());
    let kib: u64 = kib.unwrap_or(0);
    Ok(format!(
        "{}, {}, {cores} cores, {} GiB, Linux {}",
        output("date", &["-u", "+%Y-%m-%d"])?,
        model.as_deref().unwrap_or("unknown CPU"),
        kib >> 20,
        output("uname", &["-r"])?
    ))
}
