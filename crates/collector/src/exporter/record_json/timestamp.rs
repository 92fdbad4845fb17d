//! Times in documents.

use jiff::Timestamp;

use super::JsonOutput;

const NANOS_PER_MILLI: u64 = 1_000_000;

/// Milliseconds since 1970 with six digits behind the point, in quotes. The digits are padded: 5 ns are `.000005`.
pub(crate) fn push_milliseconds(nanoseconds: u64, out: &mut JsonOutput<'_>) {
    out.push_display(format_args!("\"{}.{:06}\"", nanoseconds / NANOS_PER_MILLI, nanoseconds % NANOS_PER_MILLI));
}

/// A time of RFC 3339 in UTC with nine digits behind the point, in quotes.
pub(crate) fn push_rfc3339(nanoseconds: u64, out: &mut JsonOutput<'_>) {
    // The range of `Timestamp` ends in the year 9999, that of a `u64` of nanoseconds in 2554.
    let time = Timestamp::from_nanosecond(i128::from(nanoseconds)).unwrap_or(Timestamp::UNIX_EPOCH);
    out.push_display(format_args!("\"{time:.9}\""));
}
