//! The machine and the date of a measurement.

use std::fs;

use crate::steps::command_output;

/// Date and machine in one line.
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
        command_output("date", &["-u", "+%Y-%m-%d"])?,
        model.as_deref().unwrap_or("unknown CPU"),
        kib >> 20,
        version(&command_output("uname", &["-r"])?)
    ))
}

/// The kernel's version without information on its build.
fn version(release: &str) -> String {
    release.split(['.', '-']).take(2).collect::<Vec<_>>().join(".")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_the_kernel_only_the_version_is_told() {
        assert_eq!(version("6.18.44-fc-v470"), "6.18");
        assert_eq!(version("7.0-rc1"), "7.0");
    }
}
