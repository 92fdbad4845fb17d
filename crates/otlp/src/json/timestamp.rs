//! Timestamps in protobuf's JSON: `2026-01-31T12:00:00.5Z`.

use crate::wire::put_uint;

/// Seconds since 1970, negative before, and nanoseconds to be added.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ProtoTimestamp {
    seconds: i64,
    nanoseconds: u32,
}

/// Reads a time of RFC 3339, in any time zone.
pub(super) fn parse(text: &[u8]) -> Option<ProtoTimestamp> {
    let (date, rest) = text.split_at_checked(10)?;
    let [y1, y2, y3, y4, b'-', m1, m2, b'-', d1, d2] = date else { return None };
    let year = digits(&[*y1, *y2, *y3, *y4])?;
    let month = digits(&[*m1, *m2])?;
    let day = digits(&[*d1, *d2])?;
    let (clock, rest) = rest.split_at_checked(9)?;
    let [b'T' | b't', h1, h2, b':', i1, i2, b':', s1, s2] = clock else { return None };
    let hour = digits(&[*h1, *h2])?;
    let minute = digits(&[*i1, *i2])?;
    let second = digits(&[*s1, *s2])?;
    let exists = (1..=9999).contains(&year) && (1..=12).contains(&month) && (1..=days_of(year, month)).contains(&day);
    if !exists || hour > 23 || minute > 59 || second > 59 {
        return None;
    }
    let (nanoseconds, zone) = fraction(rest)?;
    let seconds = days_since_1970(year, month, day) * 86_400 + hour * 3600 + minute * 60 + second - offset(zone)?;
    Some(ProtoTimestamp { seconds, nanoseconds })
}

/// Writes the fields of a `google.protobuf.Timestamp`.
pub(super) fn put(time: ProtoTimestamp, out: &mut Vec<u8>) {
    put_uint(out, 1, time.seconds as u64);
    put_uint(out, 2, time.nanoseconds.into());
}

fn digits(text: &[u8]) -> Option<i64> {
    text.iter().try_fold(0, |value, byte| byte.is_ascii_digit().then(|| value * 10 + i64::from(byte - b'0')))
}

/// Up to nine digits behind a point, and what follows them.
fn fraction(text: &[u8]) -> Option<(u32, &[u8])> {
    let [b'.', behind @ ..] = text else { return Some((0, text)) };
    let count = behind.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let (fraction, zone) = behind.split_at_checked(count)?;
    let missing = 9_u32.checked_sub(u32::try_from(count).ok()?).filter(|_| count > 0)?;
    let value = digits(fraction)? * 10_i64.pow(missing);
    Some((u32::try_from(value).ok()?, zone))
}

/// The offset of a time zone from UTC, in seconds.
fn offset(zone: &[u8]) -> Option<i64> {
    match zone {
        [b'Z' | b'z'] => Some(0),
        [sign @ (b'+' | b'-'), h1, h2, b':', m1, m2] => {
            let hours = digits(&[*h1, *h2])?;
            let minutes = digits(&[*m1, *m2])?;
            let seconds = (hours < 24 && minutes < 60).then_some(hours * 3600 + minutes * 60)?;
            Some(if *sign == b'-' { -seconds } else { seconds })
        }
        _ => None,
    }
}

fn is_leap(year: i64) -> bool {
    year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
}

fn days_of(year: i64, month: i64) -> i64 {
    match month {
        2 if is_leap(year) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Days since 1 January 1970. Years begin in March, so that the leap day is their last day.
fn days_since_1970(year: i64, month: i64, day: i64) -> i64 {
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let leaps = year / 4 - year / 100 + year / 400;
    365 * year + leaps + (153 * month + 2) / 5 + day - 1 - 719_468
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_of_any_zone_are_read() {
        let of = |text: &str| parse(text.as_bytes()).map(|time| (time.seconds, time.nanoseconds));
        assert_eq!(of("1970-01-01T00:00:00Z"), Some((0, 0)));
        assert_eq!(of("2019-03-04T18:52:22.123456789Z"), Some((1_551_725_542, 123_456_789)));
        assert_eq!(of("2000-02-29T12:00:00.5+05:30"), Some((951_805_800, 500_000_000)));
        assert_eq!(of("1969-12-31T23:59:59.9Z"), Some((-1, 900_000_000)));
        assert_eq!(of("9999-12-31T23:59:59-23:59"), Some((253_402_387_139, 0)));
    }

    #[test]
    fn what_is_no_time_is_refused() {
        for text in [
            "",
            "2019",
            "2019-03-04",
            "2019-03-04T18:52:22",
            "2019-03-04 18:52:22Z",
            "2019-13-04T18:52:22Z",
            "2019-02-29T18:52:22Z",
            "2019-03-04T24:00:00Z",
            "2019-03-04T18:52:60Z",
            "2019-03-04T18:52:22.Z",
            "2019-03-04T18:52:22.1234567890Z",
            "2019-03-04T18:52:22+1:00",
            "0000-01-01T00:00:00Z",
            "2019-03-04T18:52:22Zx",
        ] {
            assert_eq!(parse(text.as_bytes()), None, "{text}");
        }
    }
}
