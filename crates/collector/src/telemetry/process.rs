//! The process: its identity, start time, and resource usage.

use std::{
    collections::BTreeMap,
    fs,
    time::{Duration, SystemTime},
};

use tokio::time::Instant;

/// Clock ticks per second in `/proc/self/stat`: Linux shows 100 to programs on every supported platform,
/// whatever the kernel's own clock.
const TICKS_PER_SECOND: f64 = 100.0;

/// The identity and start time of a process.
#[derive(Clone, Debug)]
pub struct ProcessIdentity {
    version: String,
    attributes: BTreeMap<String, String>,
    started: Instant,
    started_at: SystemTime,
}

/// The state of a process at one moment.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ProcessInfo {
    /// The resource attributes, with OpenTelemetry's names: `service.name`, `service.version`,
    /// `service.instance.id`, and those of `telemetry: resource`.
    pub attributes: BTreeMap<String, String>,
    pub uptime: Duration,
    /// The CPU time used, if the system reports it.
    pub cpu_seconds: Option<f64>,
    /// The resident memory, if the system reports it.
    pub memory_rss: Option<u64>,
}

impl ProcessIdentity {
    /// A process that starts now. `resource` adds attributes, or replaces those of the same names.
    pub fn start(version: impl Into<String>, resource: &BTreeMap<String, String>) -> Self {
        let version = version.into();
        let mut attributes = BTreeMap::from([
            ("service.name".to_owned(), "kubewake".to_owned()),
            ("service.version".to_owned(), version.clone()),
            ("service.instance.id".to_owned(), instance_id()),
        ]);
        attributes.extend(resource.iter().map(|(key, value)| (key.clone(), value.clone())));
        Self { version, attributes, started: Instant::now(), started_at: SystemTime::now() }
    }

    pub fn version(&self) -> &str {
        &self.version
    }

    pub fn started_at(&self) -> SystemTime {
        self.started_at
    }

    pub fn uptime(&self, now: Instant) -> Duration {
        now.saturating_duration_since(self.started)
    }

    /// The current state; reads two small files of `/proc`.
    pub fn info(&self) -> ProcessInfo {
        ProcessInfo {
            attributes: self.attributes.clone(),
            uptime: self.uptime(Instant::now()),
            cpu_seconds: fs::read_to_string("/proc/self/stat").ok().and_then(|stat| parse_cpu_seconds(&stat)),
            memory_rss: fs::read_to_string("/proc/self/status").ok().and_then(|status| parse_memory_rss(&status)),
        }
    }
}

/// A random UUID, version 4.
fn instance_id() -> String {
    let random = fastrand::u128(..);
    let version = random & !(0xf << 76) | 4 << 76;
    let hex = format!("{:032x}", version & !(0b11 << 62) | 0b10 << 62);
    let part = |from: usize, to: usize| hex.get(from..to).unwrap_or_default();
    format!("{}-{}-{}-{}-{}", part(0, 8), part(8, 12), part(12, 16), part(16, 20), part(20, 32))
}

/// User and system time of a `/proc/PID/stat`.
fn parse_cpu_seconds(stat: &str) -> Option<f64> {
    // The program name, in parentheses, may contain anything; the fields follow the last parenthesis.
    let (_, fields) = stat.rsplit_once(')')?;
    // `utime` and `stime` are the 14th and 15th field; two are before the parenthesis.
    let mut times = fields.split_ascii_whitespace().skip(11).take(2).map(str::parse::<u64>);
    let user = times.next()?.ok()?;
    let system = times.next()?.ok()?;
    Some((user + system) as f64 / TICKS_PER_SECOND)
}

/// `VmRSS` of a `/proc/PID/status`, in bytes.
fn parse_memory_rss(status: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kibibytes * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_found_behind_any_program_name() {
        let stat = "42 (a) b (c) S 1 42 42 0 -1 4194560 100 0 0 0 150 50 7 7 20 0 1 0 100 1 1";
        assert_eq!(parse_cpu_seconds(stat), Some(2.0));
        assert_eq!(parse_cpu_seconds("42 (x) S 1"), None);
    }

    #[test]
    fn memory_is_in_bytes() {
        assert_eq!(parse_memory_rss("Name:\tx\nVmRSS:\t    2048 kB\nThreads:\t1\n"), Some(2_097_152));
        assert_eq!(parse_memory_rss("Name:\tx\n"), None);
    }

    #[test]
    fn this_process_uses_something() {
        let resource = BTreeMap::from([("service.name".to_owned(), "edge".to_owned())]);
        let info = ProcessIdentity::start("1.2.3", &resource).info();
        assert!(info.memory_rss.is_some_and(|bytes| bytes > 0));
        assert!(info.cpu_seconds.is_some());
        assert_eq!(info.attributes["service.name"], "edge");
        assert_eq!(info.attributes["service.version"], "1.2.3");
        let id = info.attributes["service.instance.id"].clone();
        assert_eq!((id.len(), id.as_bytes()[14]), (36, b'4'), "{id}");
        assert!(matches!(id.as_bytes()[19], b'8' | b'9' | b'a' | b'b'), "{id}");
    }
}
