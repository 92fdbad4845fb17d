//! How a time is written: `layout` and `layout_type`.
//!
//! Layouts of both kinds become the same [parts](LayoutPart), so that one reader of times serves them all. The parts
//! follow Go's package `time`, which the Collector reads times with.

mod go;
mod strptime;

#[cfg(test)]
mod tests;

use crate::decode::{Cursor, DecodeReport, FieldReader, scalar};

/// How a time is written, and in which place of the world.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TimeLayout {
    /// `layout` as it is written.
    pub text: String,
    pub form: TimeForm,
    /// `location`: the time zone of times that do not name one, by its name in the IANA database. `None`: UTC.
    pub location: Option<String>,
}

/// `layout_type` and `layout`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TimeForm {
    /// `strptime`, the default, and `gotime`.
    Parts {
        parts: Vec<LayoutPart>,
        /// Space before a number is skipped: `strptime`.
        skips_space: bool,
    },
    /// `epoch`: a number since 1970.
    Epoch(EpochUnit),
}

/// The number that a time since 1970 is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EpochUnit {
    /// `s`
    Seconds,
    /// `ms`
    Milliseconds,
    /// `us`
    Microseconds,
    /// `ns`
    Nanoseconds,
    /// `s.ms`: seconds, a dot, and milliseconds; and so on.
    SecondsMilliseconds,
    /// `s.us`
    SecondsMicroseconds,
    /// `s.ns`
    SecondsNanoseconds,
}

/// A part of a written time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LayoutPart {
    /// Text that stands for itself. A space in it is any number of spaces.
    Literal(String),
    /// A year of four digits.
    Year,
    /// A year of two digits, from 1969 to 2068.
    ShortYear,
    /// A year of four digits, or else of two.
    YearOfAnyLength,
    /// The English name of a month, such as `January`.
    MonthName,
    /// Its first three letters.
    ShortMonthName,
    /// The English name of a day of the week, which is not looked at any further.
    WeekdayName,
    /// Its first three letters.
    ShortWeekdayName,
    /// A number of one or two digits, or of exactly two.
    Number { field: NumberField, two_digits: bool },
    /// A day of the month, with a space in the place of a first digit.
    PaddedDay,
    /// A day of the year, of three digits.
    DayOfYear,
    /// A point or comma and any number of digits, or nothing.
    Fraction,
    /// A point or comma and this many digits.
    FixedFraction(u8),
    /// `AM` or `PM`, or in lower case.
    Meridiem { upper_case: bool },
    /// The abbreviation of a time zone, such as `UTC`.
    ZoneName,
    /// An offset from UTC.
    Offset(OffsetForm),
}

/// What a number of one or two digits counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NumberField {
    Month,
    Day,
    /// From 0 to 23.
    Hour,
    /// From 0 to 12, with AM or PM.
    HalfDayHour,
    Minute,
    Second,
}

/// How an offset from UTC is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OffsetForm {
    /// `Z` stands for UTC.
    pub accepts_z: bool,
    pub digits: OffsetDigits,
}

/// The digits of an offset, after its sign.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OffsetDigits {
    /// `07`
    Hours,
    /// `0700`
    Minutes,
    /// `07:00`
    ColonMinutes,
    /// `070000`
    Seconds,
    /// `07:00:00`
    ColonSeconds,
    /// `0700`, `07:00` or `07`
    Any,
}

/// The longest layout in bytes.
const MAX_LAYOUT_BYTES: usize = 1000;

impl TimeLayout {
    pub(super) fn with_location(self, location: Option<String>) -> Self {
        Self { location, ..self }
    }
}

/// Reads `layout`, `layout_type` and `location`.
pub(super) fn decode(fields: &mut FieldReader<'_, '_>) -> Option<TimeLayout> {
    let report = fields.report;
    let kind = fields.find("layout_type");
    let location = fields.get("location", location);
    let layout = fields
        .find("layout")
        .filter(|at| !matches!(&at.node.value, crate::yaml::NodeValue::String(text) if text.is_empty()));
    fields.unsupported(&["time_zone_locations"]);
    let word = match &kind {
        Some(at) => scalar::text(at, report)?,
        None => String::new(),
    };
    let read = match word.as_str() {
        "" | "strptime" => strptime,
        "gotime" => gotime,
        "epoch" => epoch,
        _ => {
            if let Some(at) = &kind {
                let message = format!("unknown `layout_type` {}", at.quote(&word));
                report.error(at, message, Some("known values: strptime, gotime, epoch".into()));
            }
            return None;
        }
    };
    match layout {
        Some(at) => Some(read(&at, report)?.with_location(location)),
        None => {
            fields.require("layout", "`layout` is missing: how the time is written", None);
            None
        }
    }
}

/// A layout with the directives of `strptime`.
pub(super) fn strptime(at: &Cursor<'_>, report: &DecodeReport) -> Option<TimeLayout> {
    parts(at, report, true, strptime::parse)
}

/// A layout of Go's package `time`.
fn gotime(at: &Cursor<'_>, report: &DecodeReport) -> Option<TimeLayout> {
    parts(at, report, false, go::parse)
}

fn parts(
    at: &Cursor<'_>,
    report: &DecodeReport,
    skips_space: bool,
    parse: fn(&str) -> Result<Vec<LayoutPart>, String>,
) -> Option<TimeLayout> {
    let text = scalar::text(at, report)?;
    let parsed = match text.len() {
        0..=MAX_LAYOUT_BYTES => parse(&text),
        _ => Err(format!("it is longer than {MAX_LAYOUT_BYTES} bytes")),
    };
    match parsed {
        Ok(parts) => Some(TimeLayout { text, form: TimeForm::Parts { parts, skips_space }, location: None }),
        Err(problem) => {
            report.error(at, format!("{} is not a layout of times: {problem}", at.subject(&text)), None);
            None
        }
    }
}

fn epoch(at: &Cursor<'_>, report: &DecodeReport) -> Option<TimeLayout> {
    let known = [
        ("s", EpochUnit::Seconds),
        ("ms", EpochUnit::Milliseconds),
        ("us", EpochUnit::Microseconds),
        ("ns", EpochUnit::Nanoseconds),
        ("s.ms", EpochUnit::SecondsMilliseconds),
        ("s.us", EpochUnit::SecondsMicroseconds),
        ("s.ns", EpochUnit::SecondsNanoseconds),
    ];
    let unit = scalar::keyword(at, report, &known)?;
    let text = scalar::text(at, report)?;
    Some(TimeLayout { text, form: TimeForm::Epoch(unit), location: None })
}

/// `location`: the name of a time zone.
pub(super) fn location(at: &Cursor<'_>, report: &DecodeReport) -> Option<String> {
    let name = scalar::text(at, report)?;
    match name.as_str() {
        // Where the process runs is no part of the settings.
        "" | "UTC" | "Local" => None,
        _ if jiff::tz::TimeZoneDatabase::bundled().get(&name).is_ok() => Some(name),
        _ => {
            let message = format!("unknown `location` {}", at.quote(&name));
            report.error(at, message, Some("use a name of the IANA time zone database, such as Europe/Berlin".into()));
            None
        }
    }
}
