//! The parts of a written time.

use kubewake_config::file_log::time_layout::{LayoutPart, NumberField, OffsetDigits, OffsetForm};

use crate::operators::RecordError;

/// What a text says about a time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct TimeFields {
    pub(crate) year: Option<i16>,
    pub(crate) month: Option<i8>,
    pub(crate) day: Option<i8>,
    pub(crate) day_of_year: Option<i16>,
    pub(crate) hour: i8,
    pub(crate) minute: i8,
    pub(crate) second: i8,
    pub(crate) nanosecond: i32,
    pub(crate) is_afternoon: Option<bool>,
    /// The offset from UTC in seconds.
    pub(crate) offset: Option<i32>,
    /// The abbreviation of a time zone.
    pub(crate) zone_name: Option<String>,
}

const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];
const WEEKDAYS: [&str; 7] = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];

impl TimeFields {
    /// Reads a text that has these parts and nothing else.
    pub(crate) fn read(text: &[u8], parts: &[LayoutPart], skips_space: bool) -> Result<Self, RecordError> {
        let mut reader = FieldsReader { text, rest: text, skips_space, fields: Self::default() };
        for (index, part) in parts.iter().enumerate() {
            let next = parts.get(index + 1);
            reader.part(part, next).ok_or_else(|| reader.error())?;
        }
        if reader.rest.is_empty() { Ok(reader.fields) } else { Err(reader.error()) }
    }
}

struct FieldsReader<'t> {
    text: &'t [u8],
    rest: &'t [u8],
    skips_space: bool,
    fields: TimeFields,
}

impl<'t> FieldsReader<'t> {
    fn error(&self) -> RecordError {
        let shown = String::from_utf8_lossy(self.text.get(..self.text.len().min(100)).unwrap_or_default());
        RecordError::new(format!(
            "{shown:?} is not a time of the layout from byte {} on",
            self.text.len() - self.rest.len()
        ))
    }

    fn skip_spaces(&mut self) {
        let spaces = self.rest.iter().take_while(|byte| **byte == b' ').count();
        self.rest = self.rest.get(spaces..).unwrap_or_default();
    }

    fn take(&mut self, count: usize) -> Option<&'t [u8]> {
        let (taken, rest) = self.rest.split_at_checked(count)?;
        self.rest = rest;
        Some(taken)
    }

    /// Takes as many digits as there are, within bounds.
    fn digits(&mut self, least: usize, most: usize) -> Option<i32> {
        let count = self.rest.iter().take(most).take_while(|byte| byte.is_ascii_digit()).count();
        if count < least {
            return None;
        }
        std::str::from_utf8(self.take(count)?).ok()?.parse().ok()
    }

    /// Space before a number, where the layout lets it be.
    fn before_number(&mut self) {
        if self.skips_space {
            self.skip_spaces();
        }
    }

    fn part(&mut self, part: &LayoutPart, next: Option<&LayoutPart>) -> Option<()> {
        match part {
            LayoutPart::Literal(text) => self.literal(text.as_bytes()),
            LayoutPart::Year => {
                self.before_number();
                self.fields.year = Some(self.digits(4, 4)?.try_into().ok()?);
                Some(())
            }
            LayoutPart::ShortYear => self.short_year(),
            LayoutPart::YearOfAnyLength => {
                self.before_number();
                let is_long = self.rest.get(..4).is_some_and(|digits| digits.iter().all(u8::is_ascii_digit));
                self.part(if is_long { &LayoutPart::Year } else { &LayoutPart::ShortYear }, next)
            }
            LayoutPart::MonthName => self.month(usize::MAX),
            LayoutPart::ShortMonthName => self.month(3),
            LayoutPart::WeekdayName => self.name(&WEEKDAYS, usize::MAX).map(|_| ()),
            LayoutPart::ShortWeekdayName => self.name(&WEEKDAYS, 3).map(|_| ()),
            LayoutPart::Number { field, two_digits } => self.number(*field, *two_digits, next),
            LayoutPart::PaddedDay => {
                if self.rest.first() == Some(&b' ') {
                    self.take(1)?;
                }
                self.fields.day = Some(self.digits(1, 2)?.try_into().ok()?);
                Some(())
            }
            LayoutPart::DayOfYear => {
                self.fields.day_of_year = Some(self.digits(3, 3)?.try_into().ok()?);
                Some(())
            }
            LayoutPart::Fraction => {
                self.fraction();
                Some(())
            }
            LayoutPart::FixedFraction(digits) => self.fixed_fraction(usize::from(*digits)),
            LayoutPart::Meridiem { upper_case } => {
                let afternoon = match (self.take(2)?, upper_case) {
                    (b"PM", true) | (b"pm", false) => true,
                    (b"AM", true) | (b"am", false) => false,
                    _ => return None,
                };
                self.fields.is_afternoon = Some(afternoon);
                Some(())
            }
            LayoutPart::ZoneName => self.zone_name(),
            LayoutPart::Offset(form) => self.offset(*form),
        }
    }

    fn literal(&mut self, mut text: &[u8]) -> Option<()> {
        while let Some((first, rest)) = text.split_first() {
            if *first == b' ' {
                if self.rest.first().is_some_and(|byte| *byte != b' ') {
                    return None;
                }
                self.skip_spaces();
                let spaces = text.iter().take_while(|byte| **byte == b' ').count();
                text = text.get(spaces..)?;
            } else {
                self.rest = self.rest.strip_prefix(&[*first])?;
                text = rest;
            }
        }
        Some(())
    }

    fn short_year(&mut self) -> Option<()> {
        self.before_number();
        let year: i16 = self.digits(2, 2)?.try_into().ok()?;
        self.fields.year = Some(if year >= 69 { year + 1900 } else { year + 2000 });
        Some(())
    }

    fn month(&mut self, length: usize) -> Option<()> {
        let index = self.name(&MONTHS, length)?;
        self.fields.month = Some(i8::try_from(index).ok()? + 1);
        Some(())
    }

    /// The index of the name that the text begins with.
    fn name(&mut self, names: &[&str], length: usize) -> Option<usize> {
        let index = names.iter().position(|name| {
            let name = name.get(..length.min(name.len())).unwrap_or(name);
            self.rest.get(..name.len()).is_some_and(|text| text.eq_ignore_ascii_case(name.as_bytes()))
        })?;
        let name = names.get(index)?;
        self.take(length.min(name.len()))?;
        Some(index)
    }

    fn number(&mut self, field: NumberField, two_digits: bool, next: Option<&LayoutPart>) -> Option<()> {
        self.before_number();
        let value: i8 = self.digits(if two_digits { 2 } else { 1 }, 2)?.try_into().ok()?;
        let fields = &mut self.fields;
        let (slot, range) = match field {
            NumberField::Month => (fields.month.get_or_insert_default(), 1..=12),
            NumberField::Day => (fields.day.get_or_insert_default(), 1..=31),
            NumberField::Hour => (&mut fields.hour, 0..=23),
            NumberField::HalfDayHour => (&mut fields.hour, 0..=12),
            NumberField::Minute => (&mut fields.minute, 0..=59),
            NumberField::Second => (&mut fields.second, 0..=59),
        };
        if !range.contains(&value) {
            return None;
        }
        *slot = value;
        // A fraction may follow the seconds even if the layout does not say so.
        if field == NumberField::Second && !matches!(next, Some(LayoutPart::Fraction | LayoutPart::FixedFraction(_))) {
            self.fraction();
        }
        Some(())
    }

    /// A point or comma and digits, if there are any. Digits beyond nanoseconds are cut off.
    fn fraction(&mut self) {
        let Some((b'.' | b',', digits)) = self.rest.split_first() else { return };
        let count = digits.iter().take_while(|byte| byte.is_ascii_digit()).count();
        if count > 0 {
            self.fields.nanosecond = nanosecond(digits.get(..count).unwrap_or_default());
            self.rest = digits.get(count..).unwrap_or_default();
        }
    }

    fn fixed_fraction(&mut self, count: usize) -> Option<()> {
        let (b'.' | b',', digits) = self.rest.split_first()? else { return None };
        let (digits, rest) = digits.split_at_checked(count)?;
        if !digits.iter().all(u8::is_ascii_digit) {
            return None;
        }
        self.fields.nanosecond = nanosecond(digits);
        self.rest = rest;
        Some(())
    }

    fn zone_name(&mut self) -> Option<()> {
        let length = self.rest.iter().take(6).take_while(|byte| byte.is_ascii_uppercase()).count();
        let name = self.take(length).filter(|name| (3..=5).contains(&name.len()))?;
        self.fields.zone_name = Some(String::from_utf8_lossy(name).into_owned());
        Some(())
    }

    fn offset(&mut self, form: OffsetForm) -> Option<()> {
        self.before_number();
        if form.accepts_z && self.rest.first() == Some(&b'Z') {
            self.take(1)?;
            self.fields.offset = Some(0);
            return Some(());
        }
        let is_negative = match self.take(1)? {
            b"+" => false,
            b"-" => true,
            _ => return None,
        };
        let digits = match form.digits {
            OffsetDigits::Any => self.offset_digits(),
            digits => digits,
        };
        let hours = self.digits(2, 2)?;
        let has_colon = matches!(digits, OffsetDigits::ColonMinutes | OffsetDigits::ColonSeconds);
        let mut following = |is_there: bool| {
            if !is_there {
                return Some(0);
            }
            if has_colon && self.take(1)? != b":" {
                return None;
            }
            self.digits(2, 2)
        };
        let minutes = following(!matches!(digits, OffsetDigits::Hours))?;
        let seconds = following(matches!(digits, OffsetDigits::Seconds | OffsetDigits::ColonSeconds))?;
        if hours > 24 || minutes >= 60 || seconds >= 60 {
            return None;
        }
        let offset = hours * 3600 + minutes * 60 + seconds;
        self.fields.offset = Some(if is_negative { -offset } else { offset });
        Some(())
    }

    /// The form of an offset whose sign was read.
    fn offset_digits(&self) -> OffsetDigits {
        match self.rest.get(2) {
            Some(b':') => OffsetDigits::ColonMinutes,
            Some(byte) if byte.is_ascii_digit() => OffsetDigits::Minutes,
            _ => OffsetDigits::Hours,
        }
    }
}

/// The nanoseconds of a fraction.
fn nanosecond(digits: &[u8]) -> i32 {
    let padded = digits.iter().copied().chain(std::iter::repeat(b'0')).take(9);
    padded.fold(0, |value, digit| value * 10 + i32::from(digit.wrapping_sub(b'0')))
}
