//! Durations in Go's notation, which the Collector's health response uses.

use std::time::Duration;

/// Formats a duration in Go's notation: `1h2m3.5s`, `250ms`.
pub(super) fn go_duration(duration: Duration) -> String {
    let nanos = duration.as_nanos();
    if nanos == 0 {
        return "0s".into();
    }
    if nanos < 1_000_000_000 {
        let (unit, name) = match nanos {
            0..1_000 => (1.0, "ns"),
            1_000..1_000_000 => (1e3, "µs"),
            _ => (1e6, "ms"),
        };
        return format!("{}{name}", nanos as f64 / unit);
    }
    let whole = duration.as_secs();
    let hours = whole / 3600;
    let minutes = whole / 60 % 60;
    let seconds = whole % 60;
    let fraction = format!("{:09}", duration.subsec_nanos());
    let fraction = fraction.trim_end_matches('0');
    let point = if fraction.is_empty() { "" } else { "." };
    match (hours, minutes) {
        (0, 0) => format!("{seconds}{point}{fraction}s"),
        (0, _) => format!("{minutes}m{seconds}{point}{fraction}s"),
        _ => format!("{hours}h{minutes}m{seconds}{point}{fraction}s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duration_reads_as_in_go() {
        let of = |millis| go_duration(Duration::from_millis(millis));
        assert_eq!([of(0), of(250), of(1500), of(60_000), of(3_723_500)], ["0s", "250ms", "1.5s", "1m0s", "1h2m3.5s"]);
        assert_eq!(go_duration(Duration::from_nanos(1500)), "1.5µs");
    }
}
