//! Formats numbers for people.

use std::time::Duration;

/// `950 ns`, `1.25 ms`, `3.1 s`, `2 min 5 s`: three digits are enough.
pub(crate) fn format_duration(nanoseconds: u64) -> String {
    let value = nanoseconds as f64;
    let (value, unit) = match nanoseconds {
        0..1_000 => return format!("{nanoseconds} ns"),
        1_000..1_000_000 => (value / 1e3, "µs"),
        1_000_000..1_000_000_000 => (value / 1e6, "ms"),
        1_000_000_000..60_000_000_000 => (value / 1e9, "s"),
        _ => return format_long_duration(Duration::from_nanos(nanoseconds)),
    };
    let digits = if value < 10.0 { 2 } else { usize::from(value < 100.0) };
    let text = format!("{value:.digits$}");
    let text = if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { &text };
    format!("{text} {unit}")
}

fn format_long_duration(duration: Duration) -> String {
    let seconds = duration.as_secs();
    let part = |first: u64, unit: &str, second: u64, small: &str| match second {
        0 => format!("{first} {unit}"),
        _ => format!("{first} {unit} {second} {small}"),
    };
    match seconds {
        0..3_600 => part(seconds / 60, "min", seconds % 60, "s"),
        3_600..86_400 => part(seconds / 3_600, "h", seconds % 3_600 / 60, "min"),
        86_400..8_640_000 => part(seconds / 86_400, "d", seconds % 86_400 / 3_600, "h"),
        // Above a hundred days, hours do not matter.
        _ => format!("{} d", seconds / 86_400),
    }
}

/// Ages in kubectl's format: `12s`, `5m`, `3h`, `9d`.
pub(crate) fn format_age(seconds: i64) -> String {
    match seconds.max(0) {
        seconds @ 0..120 => format!("{seconds}s"),
        seconds @ 120..7_200 => format!("{}m", seconds / 60),
        seconds @ 7_200..172_800 => format!("{}h", seconds / 3_600),
        seconds => format!("{}d", seconds / 86_400),
    }
}

/// `512 B`, `1.5 KiB`, `256 MiB`.
pub(crate) fn format_bytes(count: u64) -> String {
    let units = ["KiB", "MiB", "GiB", "TiB"];
    let mut value = count as f64;
    let mut name = "B";
    for unit in units {
        if value < 1024.0 {
            break;
        }
        (value, name) = (value / 1024.0, unit);
    }
    let text = if name == "B" || value >= 100.0 { format!("{value:.0}") } else { format!("{value:.1}") };
    format!("{} {name}", text.trim_end_matches(".0"))
}

/// A number with a singular or plural noun: `1 span`, `2 spans`.
pub(crate) fn format_count(number: u64, word: &str) -> String {
    format!("{number} {word}{}", if number == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_three_digits_and_their_unit() {
        let cases = [
            (0, "0 ns"),
            (950, "950 ns"),
            (1_000, "1 µs"),
            (1_250_000, "1.25 ms"),
            (12_340_000, "12.3 ms"),
            (345_600_000, "346 ms"),
            (3_100_000_000, "3.1 s"),
            (60_000_000_000, "1 min"),
            (125_000_000_000, "2 min 5 s"),
            (7_260_000_000_000, "2 h 1 min"),
            (180_000_000_000_000, "2 d 2 h"),
            (u64::MAX, "213503 d"),
        ];
        for (nanoseconds, text) in cases {
            assert_eq!(format_duration(nanoseconds), text);
        }
    }

    #[test]
    fn sizes_and_ages_are_short() {
        assert_eq!(
            [0, 512, 1536, 268_435_456, u64::MAX].map(format_bytes),
            ["0 B", "512 B", "1.5 KiB", "256 MiB", "16777216 TiB"]
        );
        assert_eq!([-3, 0, 119, 120, 7_200, 200_000].map(format_age), ["0s", "0s", "119s", "2m", "2h", "2d"]);
        assert_eq!([format_count(1, "span"), format_count(0, "span")], ["1 span", "0 spans"]);
    }
}
