//! Times as Go parses and prints them: RFC 3339, in UTC, to the second or with exactly six digits.

use jiff::{Timestamp, civil::DateTime, tz::Offset};

/// The precision of a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TimePrecision {
    /// `metav1.Time`: `2006-01-02T15:04:05Z`. Further digits are parsed and dropped.
    Seconds,
    /// `metav1.MicroTime`: `2006-01-02T15:04:05.000000Z`, and no other form is accepted.
    Micros,
}

/// The prefix of Go's zero time.
pub(super) const ZERO: &str = "0001-01-01T00:00:00";

impl TimePrecision {
    fn layout(self) -> &'static str {
        match self {
            TimePrecision::Seconds => "2006-01-02T15:04:05Z07:00",
            TimePrecision::Micros => "2006-01-02T15:04:05.000000Z07:00",
        }
    }
}

/// The time as Go prints it; none if it is in that form already. Errors have Go's messages.
pub(super) fn normalize_time(text: &str, precision: TimePrecision) -> Result<Option<String>, String> {
    let mut reader = TimeParser { all: text, rest: text, precision };
    let time = reader.read()?;
    let written = match precision {
        TimePrecision::Seconds => time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
        TimePrecision::Micros => time.strftime("%Y-%m-%dT%H:%M:%S.%6fZ").to_string(),
    };
    Ok((written != text).then_some(written))
}

/// Parses a text from left to right, like Go's layouts, so that errors name the same part.
struct TimeParser<'a> {
    all: &'a str,
    rest: &'a str,
    precision: TimePrecision,
}

impl TimeParser<'_> {
    fn read(&mut self) -> Result<Timestamp, String> {
        let year = self.digits(4, "2006")?;
        self.skip("-")?;
        let month = self.ranged("01", "month", 1..=12)?;
        self.skip("-")?;
        let day = self.digits(2, "02")?;
        self.skip("T")?;
        let hour = self.hour()?;
        self.skip(":")?;
        let minute = self.ranged("04", "minute", 0..=59)?;
        self.skip(":")?;
        let second = self.ranged("05", "second", 0..=59)?;
        let nanos = self.fraction()?;
        let offset = self.offset()?;
        if !self.rest.is_empty() {
            return Err(format!("parsing time {:?}: extra text: {:?}", self.all, self.rest));
        }
        let time = civil(year, month, day, hour, minute, second, nanos).ok_or_else(|| self.out_of_range("day"))?;
        Offset::from_seconds(offset)
            .and_then(|offset| offset.to_timestamp(time))
            .map_err(|_| self.out_of_range("time zone offset hour"))
    }

    fn skip(&mut self, mark: &str) -> Result<(), String> {
        self.rest = self.rest.strip_prefix(mark).ok_or_else(|| self.cannot_parse(mark))?;
        Ok(())
    }

    fn digits(&mut self, count: usize, layout: &str) -> Result<i32, String> {
        let number = self.rest.get(..count).filter(|digits| digits.bytes().all(|byte| byte.is_ascii_digit()));
        let number = number.and_then(|digits| digits.parse().ok()).ok_or_else(|| self.cannot_parse(layout))?;
        self.rest = self.rest.get(count..).unwrap_or_default();
        Ok(number)
    }

    fn ranged(&mut self, layout: &str, name: &str, range: std::ops::RangeInclusive<i32>) -> Result<i32, String> {
        let number = self.digits(2, layout)?;
        if range.contains(&number) { Ok(number) } else { Err(self.out_of_range(name)) }
    }

    /// Go accepts a single digit here, too.
    fn hour(&mut self) -> Result<i32, String> {
        let two = self.rest.as_bytes().get(1).is_some_and(u8::is_ascii_digit);
        let hour = self.digits(if two { 2 } else { 1 }, "15")?;
        if hour < 24 { Ok(hour) } else { Err(self.out_of_range("hour")) }
    }

    /// Nanoseconds.
    fn fraction(&mut self) -> Result<i32, String> {
        let digits = self
            .rest
            .strip_prefix(['.', ','])
            .map_or(0, |rest| rest.bytes().position(|byte| !byte.is_ascii_digit()).unwrap_or(rest.len()));
        let taken = match self.precision {
            TimePrecision::Seconds => digits,
            TimePrecision::Micros if digits >= 6 => 6,
            TimePrecision::Micros => return Err(self.cannot_parse(".000000")),
        };
        if taken == 0 {
            return Ok(0);
        }
        let (fraction, rest) = self.rest.split_at_checked(taken + 1).unwrap_or((self.rest, ""));
        self.rest = rest;
        let nanos: String = fraction.chars().skip(1).chain("000000000".chars()).take(9).collect();
        nanos.parse().map_err(|_| self.cannot_parse("05"))
    }

    /// Seconds east of UTC.
    fn offset(&mut self) -> Result<i32, String> {
        if let Some(rest) = self.rest.strip_prefix('Z') {
            self.rest = rest;
            return Ok(0);
        }
        let number = |from: usize| {
            let digits = self.rest.get(from..from + 2)?;
            digits.bytes().all(|byte| byte.is_ascii_digit()).then(|| digits.parse::<i32>().ok())?
        };
        let sign = match self.rest.bytes().next() {
            Some(b'+') => Some(1),
            Some(b'-') => Some(-1),
            _ => None,
        };
        let colon = self.rest.get(3..4) == Some(":");
        let (Some(sign), true, Some(hours), Some(minutes)) = (sign, colon, number(1), number(4)) else {
            return Err(self.cannot_parse("Z07:00"));
        };
        if hours > 24 {
            return Err(self.out_of_range("time zone offset hour"));
        }
        if minutes > 60 {
            return Err(self.out_of_range("time zone offset minute"));
        }
        self.rest = self.rest.get(6..).unwrap_or_default();
        Ok(sign * (hours * 3600 + minutes * 60))
    }

    fn cannot_parse(&self, layout: &str) -> String {
        let all = self.all;
        let rest = self.rest;
        let whole = self.precision.layout();
        format!("parsing time {all:?} as {whole:?}: cannot parse {rest:?} as {layout:?}")
    }

    fn out_of_range(&self, name: &str) -> String {
        format!("parsing time {:?}: {name} out of range", self.all)
    }
}

fn civil(year: i32, month: i32, day: i32, hour: i32, minute: i32, second: i32, nanos: i32) -> Option<DateTime> {
    let small = |number: i32| i8::try_from(number).ok();
    let year = i16::try_from(year).ok()?;
    DateTime::new(year, small(month)?, small(day)?, small(hour)?, small(minute)?, small(second)?, nanos).ok()
}
