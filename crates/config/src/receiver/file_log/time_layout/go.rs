//! The layouts of Go's package `time`: a layout is how 2 January 2006, 15:04:05 would be written.

use super::{LayoutPart, NumberField, OffsetDigits, OffsetForm};

/// The parts of a layout, or what is wrong with it.
pub(super) fn parse(layout: &str) -> Result<Vec<LayoutPart>, String> {
    let mut parts = Vec::new();
    let mut rest = layout;
    let mut previous = None;
    while let Some(c) = rest.chars().next() {
        match part(rest) {
            Some((part, length)) => {
                parts.push(part);
                rest = rest.get(length..).unwrap_or_default();
                previous = None;
            }
            None => {
                if c == '9' && previous.is_some_and(|before: char| !matches!(before, '.' | ',' | '9')) {
                    return Err("a fraction of a second must follow a point or a comma".to_owned());
                }
                match parts.last_mut() {
                    Some(LayoutPart::Literal(text)) => text.push(c),
                    _ => parts.push(LayoutPart::Literal(c.into())),
                }
                rest = rest.get(c.len_utf8()..).unwrap_or_default();
                previous = Some(c);
            }
        }
    }
    Ok(parts)
}

/// Texts of layouts and their parts. Of two that begin alike the longer one is first.
const PARTS: &[(&str, LayoutPart)] = &[
    ("January", LayoutPart::MonthName),
    ("Monday", LayoutPart::WeekdayName),
    ("MST", LayoutPart::ZoneName),
    ("002", LayoutPart::DayOfYear),
    ("01", number(NumberField::Month, true)),
    ("02", number(NumberField::Day, true)),
    ("03", number(NumberField::HalfDayHour, true)),
    ("04", number(NumberField::Minute, true)),
    ("05", number(NumberField::Second, true)),
    ("06", LayoutPart::ShortYear),
    ("15", number(NumberField::Hour, false)),
    ("1", number(NumberField::Month, false)),
    ("2006", LayoutPart::Year),
    ("2", number(NumberField::Day, false)),
    ("3", number(NumberField::HalfDayHour, false)),
    ("4", number(NumberField::Minute, false)),
    ("5", number(NumberField::Second, false)),
    ("PM", LayoutPart::Meridiem { upper_case: true }),
    ("pm", LayoutPart::Meridiem { upper_case: false }),
    ("-070000", offset(false, OffsetDigits::Seconds)),
    ("-07:00:00", offset(false, OffsetDigits::ColonSeconds)),
    ("-0700", offset(false, OffsetDigits::Minutes)),
    ("-07:00", offset(false, OffsetDigits::ColonMinutes)),
    ("-07", offset(false, OffsetDigits::Hours)),
    ("Z070000", offset(true, OffsetDigits::Seconds)),
    ("Z07:00:00", offset(true, OffsetDigits::ColonSeconds)),
    ("Z0700", offset(true, OffsetDigits::Minutes)),
    ("Z07:00", offset(true, OffsetDigits::ColonMinutes)),
    ("Z07", offset(true, OffsetDigits::Hours)),
];

const fn number(field: NumberField, two_digits: bool) -> LayoutPart {
    LayoutPart::Number { field, two_digits }
}

const fn offset(accepts_z: bool, digits: OffsetDigits) -> LayoutPart {
    LayoutPart::Offset(OffsetForm { accepts_z, digits })
}

/// The part that a layout begins with, and the length of its text.
fn part(layout: &str) -> Option<(LayoutPart, usize)> {
    if let Some(found) = fraction(layout) {
        return Some(found);
    }
    if let Some(padded) = layout.strip_prefix("_2") {
        // `_2006` is an underscore and a year.
        return (!padded.starts_with("006")).then_some((LayoutPart::PaddedDay, 2));
    }
    let known = PARTS.iter().find(|(text, _)| layout.starts_with(text));
    if let Some((text, part)) = known {
        return Some((part.clone(), text.len()));
    }
    for (text, part) in [("Jan", LayoutPart::ShortMonthName), ("Mon", LayoutPart::ShortWeekdayName)] {
        // `Month` is a word.
        if layout.strip_prefix(text).is_some_and(|rest| !rest.starts_with(|c: char| c.is_ascii_lowercase())) {
            return Some((part, text.len()));
        }
    }
    None
}

/// A point or comma with zeros or nines behind it, and no other digit behind those.
fn fraction(layout: &str) -> Option<(LayoutPart, usize)> {
    let digits = layout.strip_prefix(['.', ','])?;
    let kind = digits.chars().next().filter(|c| matches!(c, '0' | '9'))?;
    let count = digits.chars().take_while(|c| *c == kind).count();
    let ends = !digits.get(count..)?.starts_with(|c: char| c.is_ascii_digit());
    let part = match kind {
        '9' => LayoutPart::Fraction,
        _ => LayoutPart::FixedFraction(u8::try_from(count).ok()?),
    };
    ends.then_some((part, 1 + count))
}
