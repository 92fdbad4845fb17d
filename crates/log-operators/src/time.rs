//! Reads times by their layouts.
//!
//! The rules are those of Go's package `time`: a name is read in any case, a space in a layout is any number of spaces,
//! and a fraction may follow the seconds even if the layout has none. A time without a year is the latest one that is
//! at most a week ahead of when the record was read.

mod fields;

#[cfg(test)]
mod tests;

use jiff::{
    Timestamp,
    civil::{Date, DateTime},
    tz::{Offset, TimeZone, TimeZoneDatabase},
};
use kubewake_config::file_log::time_layout::{EpochUnit, TimeForm, TimeLayout};

pub(crate) use self::fields::TimeFields;
use crate::{operators::RecordError, value::LogValue};

/// Reads times that are written in one way.
#[derive(Clone, Debug)]
pub(crate) struct TimeReader {
    form: TimeForm,
    zone: TimeZone,
}

/// A time zone by its name; UTC if there is none.
pub(crate) fn zone(name: Option<&str>) -> TimeZone {
    name.and_then(|name| TimeZoneDatabase::bundled().get(name).ok()).unwrap_or(TimeZone::UTC)
}

impl TimeReader {
    pub(crate) fn new(layout: &TimeLayout) -> Self {
        Self { form: layout.form.clone(), zone: zone(layout.location.as_deref()) }
    }

    /// The time that a value states, in nanoseconds since 1970. `now` is when the record was read.
    pub(crate) fn read(&self, value: &LogValue, now: u64) -> Result<u64, RecordError> {
        match &self.form {
            TimeForm::Epoch(unit) => epoch(value, *unit),
            TimeForm::Parts { parts, skips_space } => {
                let text = match value {
                    LogValue::Text(text) | LogValue::Bytes(text) => text,
                    other => return Err(RecordError::new(format!("{} cannot be read as a time", other.type_name()))),
                };
                TimeFields::read(text, parts, *skips_space)?.resolve(&self.zone, now)
            }
        }
    }
}

/// A number since 1970, as a number or as text.
fn epoch(value: &LogValue, unit: EpochUnit) -> Result<u64, RecordError> {
    let fraction_digits = match unit {
        EpochUnit::SecondsMilliseconds => Some(3),
        EpochUnit::SecondsMicroseconds => Some(6),
        EpochUnit::SecondsNanoseconds => Some(9),
        _ => None,
    };
    let text = match (value, fraction_digits) {
        (LogValue::Text(text) | LogValue::Bytes(text), _) => String::from_utf8_lossy(text).into_owned(),
        (LogValue::Int(value), None) => value.to_string(),
        (LogValue::Int(value), Some(_)) => format!("{value}.0"),
        (LogValue::Double(value), None) => (*value as i64).to_string(),
        (LogValue::Double(value), Some(digits)) => format!("{value:.digits$}"),
        (other, _) => return Err(RecordError::new(format!("{} cannot be read as a time", other.type_name()))),
    };
    let wrong = || RecordError::new(format!("{text:?} is not a number of seconds"));
    let factor: i128 = match unit {
        EpochUnit::Seconds => 1_000_000_000,
        EpochUnit::Milliseconds | EpochUnit::SecondsMilliseconds => 1_000_000,
        EpochUnit::Microseconds | EpochUnit::SecondsMicroseconds => 1_000,
        EpochUnit::Nanoseconds | EpochUnit::SecondsNanoseconds => 1,
    };
    let parse = |digits: &str| digits.parse::<i64>().map(i128::from).map_err(|_| wrong());
    let nanoseconds = match fraction_digits {
        None => parse(&text)? * factor,
        // As in the Collector what follows the point is a whole number of its unit: `1.5` is five milliseconds.
        Some(_) => {
            let (seconds, fraction) = text.split_once('.').ok_or_else(wrong)?;
            parse(seconds)? * 1_000_000_000 + parse(fraction)? * factor
        }
    };
    u64::try_from(nanoseconds).map_err(|_| RecordError::new(format!("{text} is a time before 1970 or after 2554")))
}

/// A point in time in nanoseconds since 1970.
pub(crate) fn nanoseconds(timestamp: Timestamp) -> Result<u64, RecordError> {
    u64::try_from(timestamp.as_nanosecond()).map_err(|_| RecordError::new("the time is before 1970"))
}

impl TimeFields {
    /// The point in time. What was not read is the first of its kind, except the year.
    pub(crate) fn resolve(&self, zone: &TimeZone, now: u64) -> Result<u64, RecordError> {
        match self.year {
            Some(year) => self.resolve_in(year, zone),
            None => {
                let now = i128::from(now);
                let at = Timestamp::from_nanosecond(now).map_err(|_| RecordError::new("the clock is wrong"))?;
                let year = at.to_zoned(zone.clone()).year();
                let found = self.resolve_in(year, zone);
                let limit = now + i128::from(7 * 86_400 * 1_000_000_000_u64);
                match found {
                    // The last year may have had the day that this one does not have.
                    Ok(found) if i128::from(found) <= limit => Ok(found),
                    _ => self.resolve_in(year - 1, zone),
                }
            }
        }
    }

    fn resolve_in(&self, year: i16, zone: &TimeZone) -> Result<u64, RecordError> {
        let wrong = || RecordError::new("there is no such day");
        let month = self.month.unwrap_or(1);
        let day = self.day.unwrap_or(1);
        let date = match self.day_of_year {
            Some(day) if self.month.is_none() => {
                let first = Date::new(year, 1, 1).map_err(|_| wrong())?;
                let days = jiff::Span::new().try_days(i64::from(day) - 1).map_err(|_| wrong())?;
                first.checked_add(days).ok().filter(|date| date.year() == year).ok_or_else(wrong)?
            }
            _ => Date::new(year, month, day).map_err(|_| wrong())?,
        };
        let hour = match self.is_afternoon {
            Some(true) if self.hour < 12 => self.hour + 12,
            Some(false) if self.hour == 12 => 0,
            _ => self.hour,
        };
        let time = jiff::civil::Time::new(hour, self.minute, self.second, self.nanosecond)
            .map_err(|_| RecordError::new("there is no such time of the day"))?;
        let local = date.to_datetime(time);
        let timestamp = match (self.offset, &self.zone_name) {
            (Some(offset), _) => Offset::from_seconds(offset).and_then(|offset| offset.to_timestamp(local)),
            (None, Some(name)) => return named_zone(local, name, zone),
            (None, None) => zone.to_ambiguous_timestamp(local).compatible(),
        };
        nanoseconds(timestamp.map_err(|_| RecordError::new("the time is out of range"))?)
    }
}

/// A time with the abbreviation of a time zone: of the zone of the layout, or else a zone that has this name.
fn named_zone(local: DateTime, name: &str, zone: &TimeZone) -> Result<u64, RecordError> {
    let wrong = || RecordError::new(format!("unknown time zone {name:?}"));
    let here = zone.to_ambiguous_timestamp(local).compatible().map_err(|_| wrong())?;
    if zone.to_offset_info(here).abbreviation() == name {
        return nanoseconds(here);
    }
    let other = match name {
        "UTC" | "GMT" => TimeZone::UTC,
        _ => TimeZoneDatabase::bundled().get(name).map_err(|_| wrong())?,
    };
    nanoseconds(other.to_ambiguous_timestamp(local).compatible().map_err(|_| wrong())?)
}
