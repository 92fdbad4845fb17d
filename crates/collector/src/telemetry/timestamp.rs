//! Times as text.

use std::time::SystemTime;

use jiff::Timestamp;

/// A time in RFC 3339, in UTC with milliseconds.
pub(crate) fn format_rfc3339(time: SystemTime) -> String {
    // Outside of the years -9999 to 9999 there is no such text.
    let time = Timestamp::try_from(time).unwrap_or(Timestamp::UNIX_EPOCH);
    format!("{time:.3}")
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_time_is_in_utc_with_milliseconds() {
        let time = SystemTime::UNIX_EPOCH + Duration::from_millis(1_700_000_000_120);
        assert_eq!(format_rfc3339(time), "2023-11-14T22:13:20.120Z");
    }
}
