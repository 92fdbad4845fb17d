//! Durations in short form: `5s`, `3m20s`, `2d4h`.

use jiff::Timestamp;

/// The age of `time` at `now`; `<unknown>` if it is absent.
pub(super) fn age_since(time: &str, now: Timestamp) -> String {
    match time.parse::<Timestamp>() {
        Ok(time) => format_duration(now.as_second().saturating_sub(time.as_second())),
        Err(_) => "<unknown>".to_owned(),
    }
}

/// The duration between two times; empty if one is absent.
pub(super) fn between(start: &str, end: &str) -> String {
    match (start.parse::<Timestamp>(), end.parse::<Timestamp>()) {
        (Ok(start), Ok(end)) => format_duration(end.as_second().saturating_sub(start.as_second())),
        _ => String::new(),
    }
}

/// A duration in short form: two units if it is short, one if it is long.
pub fn format_duration(seconds: i64) -> String {
    let minutes = seconds / 60;
    let hours = seconds / 3600;
    let days = hours / 24;
    let years = hours / 24 / 365;
    let two = |large: i64, unit: char, small: i64, smaller: char| match small {
        0 => format!("{large}{unit}"),
        small => format!("{large}{unit}{small}{smaller}"),
    };
    match seconds {
        ..-1 => "<invalid>".to_owned(),
        -1 => "0s".to_owned(),
        0..120 => format!("{seconds}s"),
        _ if minutes < 10 => two(minutes, 'm', seconds % 60, 's'),
        _ if minutes < 180 => format!("{minutes}m"),
        _ if hours < 8 => two(hours, 'h', minutes % 60, 'm'),
        _ if hours < 48 => format!("{hours}h"),
        _ if days < 8 => two(days, 'd', hours % 24, 'h'),
        _ if years < 2 => format!("{days}d"),
        _ if years < 8 => two(years, 'y', days % 365, 'd'),
        _ => format!("{years}y"),
    }
}
