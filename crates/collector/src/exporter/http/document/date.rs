//! The member with the time of a record, in Fluent Bit's notations.

use jiff::Timestamp;
use kubewake_config::model::DateNotation;

use crate::exporter::record_json::JsonOutput;

/// Writes a time in nanoseconds since 1970 in this notation.
pub(super) fn write(nanoseconds: u64, notation: DateNotation, out: &mut JsonOutput<'_>) {
    // The range of `Timestamp` ends in the year 9999, that of a `u64` of nanoseconds in 2554.
    let time = Timestamp::from_nanosecond(i128::from(nanoseconds)).unwrap_or(Timestamp::UNIX_EPOCH);
    match notation {
        DateNotation::Iso8601 => out.push_display(format_args!("\"{time:.6}\"")),
        DateNotation::JavaSqlTimestamp => {
            let text = format!("\"{time:.6}\"").replace('T', " ").replace('Z', "");
            out.push(text.as_bytes());
        }
        DateNotation::Epoch => out.push_display(nanoseconds / 1_000_000_000),
        DateNotation::EpochMs => out.push_display(nanoseconds / 1_000_000),
        // Microseconds, because a double has no room for more.
        DateNotation::Double => {
            out.push_display(format_args!("{}.{:06}", nanoseconds / 1_000_000_000, nanoseconds / 1000 % 1_000_000));
        }
    }
}

#[cfg(test)]
mod tests {
    use kubewake_otlp::UnlimitedAllowance;

    use super::*;

    #[test]
    fn time_is_written_in_each_notation() {
        let written = |notation| {
            let mut memory = UnlimitedAllowance;
            let mut out = JsonOutput::new(&mut memory);
            write(1_709_249_400_023_456_789, notation, &mut out);
            String::from_utf8(out.into_bytes()).unwrap()
        };
        assert_eq!(written(DateNotation::Iso8601), "\"2024-02-29T23:30:00.023456Z\"");
        assert_eq!(written(DateNotation::JavaSqlTimestamp), "\"2024-02-29 23:30:00.023456\"");
        assert_eq!(written(DateNotation::Epoch), "1709249400");
        assert_eq!(written(DateNotation::EpochMs), "1709249400023");
        assert_eq!(written(DateNotation::Double), "1709249400.023456");
    }
}
