//! Reads the times of container runtimes: RFC 3339 with up to nine digits of a second, and any offset.
//!
//! *Guarantees*: a time is accepted only if it exists, with a range from 1970 to 2554, which 64 bits of nanoseconds
//! hold.
//!
//! *Does not*: read leap seconds, or a `t` or `z` in lower case, which no runtime writes.

/// Bytes of `YYYY-MM-DDTHH:MM`.
const MINUTE_LENGTH: usize = 16;
const NANOS_PER_SECOND: u64 = 1_000_000_000;
/// Digits of a second that count; further ones are read and ignored.
const FRACTION_DIGITS: u32 = 9;

/// Reads times. Neighbouring lines are mostly of the same minute, which is calculated once.
#[derive(Debug, Default)]
pub(crate) struct TimestampReader {
    /// The text of the minute that was read last; all zero at the beginning, which no text is.
    minute: [u8; MINUTE_LENGTH],
    /// Seconds from 1970 to that minute, without its offset.
    minute_seconds: i64,
}

impl TimestampReader {
    /// Reads the time at the beginning of `text`, in nanoseconds since 1970. Returns it with the bytes behind it.
    #[inline]
    pub(crate) fn read<'a>(&mut self, text: &'a [u8]) -> Option<(u64, &'a [u8])> {
        let (minute, rest) = text.split_first_chunk::<MINUTE_LENGTH>()?;
        if *minute != self.minute {
            self.minute_seconds = read_minute(minute)?;
            self.minute = *minute;
        }
        let (&[b':', tens, ones], rest) = rest.split_first_chunk::<3>()? else { return None };
        let seconds = two_digits(tens, ones).filter(|seconds| *seconds < 60)?;
        let (nanos, rest) = match rest {
            [b'.', fraction @ ..] => read_fraction(fraction)?,
            _ => (0, rest),
        };
        let (offset, rest) = match rest {
            [b'Z', rest @ ..] => (0, rest),
            _ => read_offset(rest)?,
        };
        let seconds = u64::try_from(self.minute_seconds + i64::from(seconds) - offset).ok()?;
        Some((seconds.checked_mul(NANOS_PER_SECOND)?.checked_add(nanos)?, rest))
    }
}

/// Seconds from 1970 to the minute `YYYY-MM-DDTHH:MM`.
fn read_minute(text: &[u8; MINUTE_LENGTH]) -> Option<i64> {
    let &[y1, y2, y3, y4, b'-', m1, m2, b'-', d1, d2, b'T', h1, h2, b':', min1, min2] = text else { return None };
    let year = i64::from(two_digits(y1, y2)?) * 100 + i64::from(two_digits(y3, y4)?);
    let month = i64::from(two_digits(m1, m2)?);
    let day = i64::from(two_digits(d1, d2)?);
    let hour = i64::from(two_digits(h1, h2)?);
    let minute = i64::from(two_digits(min1, min2)?);
    let exists = (1..=days_of_month(year, month)?).contains(&day) && hour < 24 && minute < 60;
    exists.then(|| (days_since_1970(year, month, day) * 24 + hour) * 3600 + minute * 60)
}

fn two_digits(tens: u8, ones: u8) -> Option<u32> {
    let tens = tens.wrapping_sub(b'0');
    let ones = ones.wrapping_sub(b'0');
    (tens < 10 && ones < 10).then(|| u32::from(tens) * 10 + u32::from(ones))
}

fn days_of_month(year: i64, month: i64) -> Option<i64> {
    let is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    match month {
        1 | 3 | 5 | 7 | 8 | 10 | 12 => Some(31),
        4 | 6 | 9 | 11 => Some(30),
        2 => Some(if is_leap { 29 } else { 28 }),
        _ => None,
    }
}

/// Days of the Gregorian calendar. A year begins in March here, so that the leap day is its last one.
fn days_since_1970(year: i64, month: i64, day: i64) -> i64 {
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let leap_days = year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400);
    // Months from March on have 31, 30, 31, 30, 31 days, again and again.
    year * 365 + leap_days + (month * 153 + 2) / 5 + day - 1 - DAYS_TO_1970
}

/// Days from 1 March of the year 0 to 1 January 1970.
const DAYS_TO_1970: i64 = 719_468;

/// Reads the digits behind the point, at least one. Returns nanoseconds. Nine times in ten there are nine of them.
#[inline]
fn read_fraction(text: &[u8]) -> Option<(u64, &[u8])> {
    if let Some((first, [ninth @ b'0'..=b'9', rest @ ..])) = text.split_first_chunk::<8>()
        && !matches!(rest, [b'0'..=b'9', ..])
        && let Some(eight) = read_eight_digits(*first)
    {
        return Some((eight * 10 + u64::from(ninth - b'0'), rest));
    }
    read_any_fraction(text)
}

/// The number that eight digits are: neighbours are joined to pairs, pairs to fours, and these to eight.
#[inline]
fn read_eight_digits(text: [u8; 8]) -> Option<u64> {
    let digits = u64::from_le_bytes(text) ^ 0x3030_3030_3030_3030;
    // A digit is at most 9, so that six more do not reach the upper half of its byte.
    if (digits | digits.wrapping_add(0x0606_0606_0606_0606)) & 0xf0f0_f0f0_f0f0_f0f0 != 0 {
        return None;
    }
    let pairs = digits.wrapping_mul(10 << 8 | 1) >> 8 & 0x00ff_00ff_00ff_00ff;
    let fours = pairs.wrapping_mul(100 << 16 | 1) >> 16 & 0x0000_ffff_0000_ffff;
    Some(fours.wrapping_mul(10_000 << 32 | 1) >> 32)
}

fn read_any_fraction(text: &[u8]) -> Option<(u64, &[u8])> {
    let mut nanos = 0u64;
    let mut digits = 0u32;
    let mut rest = text;
    while let [digit @ b'0'..=b'9', tail @ ..] = rest {
        if digits < FRACTION_DIGITS {
            nanos = nanos * 10 + u64::from(digit - b'0');
            digits += 1;
        }
        rest = tail;
    }
    (digits > 0).then(|| (nanos * 10u64.pow(FRACTION_DIGITS - digits), rest))
}

/// Reads `+HH:MM` or `-HH:MM`. Returns seconds east of Greenwich.
fn read_offset(text: &[u8]) -> Option<(i64, &[u8])> {
    let (&[sign, h1, h2, b':', m1, m2], rest) = text.split_first_chunk::<6>()? else { return None };
    let hours = two_digits(h1, h2)?;
    let minutes = two_digits(m1, m2)?;
    let seconds = i64::from(hours * 3600 + minutes * 60);
    let is_offset = hours < 24 && minutes < 60;
    match sign {
        b'+' if is_offset => Some((seconds, rest)),
        b'-' if is_offset => Some((-seconds, rest)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Option<u64> {
        let (time, rest) = TimestampReader::default().read(text.as_bytes())?;
        rest.is_empty().then_some(time)
    }

    #[test]
    fn times_of_runtimes_are_read_with_any_offset_and_precision() {
        for (text, nanos) in [
            ("1970-01-01T00:00:00Z", 0),
            ("1970-01-01T00:00:00.000000001Z", 1),
            ("2023-11-14T22:13:20.123456789Z", 1_700_000_000_123_456_789),
            ("2023-11-14T22:13:20.5Z", 1_700_000_000_500_000_000),
            ("2023-11-15T00:13:20.5+02:00", 1_700_000_000_500_000_000),
            ("2023-11-15T05:13:20+07:00", 1_700_000_000_000_000_000),
            ("2023-11-14T16:43:20.5-05:30", 1_700_000_000_500_000_000),
            ("2024-02-29T00:00:00Z", 1_709_164_800_000_000_000),
            ("2000-03-01T00:00:00Z", 951_868_800_000_000_000),
            ("2023-11-14T22:13:20.1234567899999Z", 1_700_000_000_123_456_789),
        ] {
            assert_eq!(read(text), Some(nanos), "{text}");
        }
    }

    #[test]
    fn eight_digits_are_read_at_once() {
        for number in [0, 1, 9, 10, 12_345_678, 98_765_432, 99_999_999, 10_000_000, 90_909_090] {
            let text: [u8; 8] = format!("{number:08}").into_bytes().try_into().unwrap();
            assert_eq!(read_eight_digits(text), Some(number));
            for at in 0..8 {
                for other in [b'/', b':', b' ', b'Z', 0, 0xff, b'@', b'p'] {
                    let mut damaged = text;
                    damaged[at] = other;
                    assert_eq!(read_eight_digits(damaged), None, "{damaged:?}");
                }
            }
        }
    }

    #[test]
    fn times_that_do_not_exist_are_refused() {
        for text in [
            "2023-99-99T22:13:20Z",
            "2023-02-29T00:00:00Z",
            "2023-00-10T00:00:00Z",
            "2023-01-00T00:00:00Z",
            "2023-01-01T24:00:00Z",
            "2023-01-01T00:60:00Z",
            "2023-01-01T00:00:60Z",
            "2023-01-01T00:00:00.Z",
            "2023-01-01T00:00:00",
            "2023-01-01 00:00:00Z",
            "2023-01-01T00:00:00+24:00",
            "2023-01-01T00:00:00+1:00",
            "1969-12-31T23:59:59Z",
            "9999-12-31T23:59:59Z",
            "2o23-01-01T00:00:00Z",
            "",
        ] {
            assert_eq!(read(text), None, "{text}");
        }
    }

    #[test]
    fn reader_does_not_confuse_minutes() {
        let mut reader = TimestampReader::default();
        let mut read = |text: &str| reader.read(text.as_bytes()).map(|(time, _)| time / NANOS_PER_SECOND);
        assert_eq!(read("1970-01-01T00:01:01Z"), Some(61));
        assert_eq!(read("1970-01-01T00:02:01Z"), Some(121));
        assert_eq!(read("1970-01-99T00:02:01Z"), None);
        assert_eq!(read("1970-01-01T00:02:02Z"), Some(122));
    }
}
