//! The directives of `strptime`, as the Collector has them.

use super::{LayoutPart, NumberField, OffsetDigits, OffsetForm};

/// The parts of a layout, or what is wrong with it.
pub(super) fn parse(layout: &str) -> Result<Vec<LayoutPart>, String> {
    if layout.chars().any(|c| c.is_ascii_digit()) {
        return Err("a layout of strptime has directives such as %Y in place of digits".to_owned());
    }
    let mut parts = Vec::new();
    let mut chars = layout.chars();
    while let Some(c) = chars.next() {
        if c != '%' {
            push_text(&mut parts, c);
            continue;
        }
        match chars.next() {
            Some(directive) => push_directive(&mut parts, directive)?,
            None => return Err("nothing follows its last %".to_owned()),
        }
    }
    Ok(parts)
}

fn push_text(parts: &mut Vec<LayoutPart>, c: char) {
    match parts.last_mut() {
        Some(LayoutPart::Literal(text)) => text.push(c),
        _ => parts.push(LayoutPart::Literal(c.into())),
    }
}

fn push_directive(parts: &mut Vec<LayoutPart>, directive: char) -> Result<(), String> {
    let numeric = |digits| LayoutPart::Offset(OffsetForm { accepts_z: false, digits });
    let part = match directive {
        'Y' => LayoutPart::Year,
        'y' => LayoutPart::ShortYear,
        'm' | 'o' | 'q' => number(NumberField::Month),
        'b' | 'h' => LayoutPart::ShortMonthName,
        'B' => LayoutPart::MonthName,
        'd' | 'e' | 'g' => number(NumberField::Day),
        'a' => LayoutPart::ShortWeekdayName,
        'A' => LayoutPart::WeekdayName,
        'H' => number(NumberField::Hour),
        'l' | 'I' => number(NumberField::HalfDayHour),
        'p' => LayoutPart::Meridiem { upper_case: true },
        'P' => LayoutPart::Meridiem { upper_case: false },
        'M' => number(NumberField::Minute),
        'S' => number(NumberField::Second),
        'L' | 'f' | 's' => return push_fraction(parts, directive),
        'Z' => LayoutPart::ZoneName,
        'z' => LayoutPart::Offset(OffsetForm { accepts_z: true, digits: OffsetDigits::Any }),
        'w' => numeric(OffsetDigits::Seconds),
        'i' => numeric(OffsetDigits::Hours),
        'j' => numeric(OffsetDigits::ColonMinutes),
        'k' => numeric(OffsetDigits::ColonSeconds),
        'n' | 't' | '%' => {
            push_text(
                parts,
                match directive {
                    'n' => '\n',
                    't' => '\t',
                    _ => '%',
                },
            );
            return Ok(());
        }
        'D' | 'x' => return push_all(parts, "%m/%d/", Some(LayoutPart::YearOfAnyLength)),
        'F' => return push_all(parts, "%Y-%m-%d", None),
        'T' | 'X' => return push_all(parts, "%H:%M:%S", None),
        'r' => return push_all(parts, "%I:%M:%S %P", None),
        'R' => return push_all(parts, "%H:%M", None),
        'c' => return push_all(parts, "%a %b %d %H:%M:%S %Y", None),
        other => return Err(format!("it has the unknown directive %{other}")),
    };
    parts.push(part);
    Ok(())
}

fn number(field: NumberField) -> LayoutPart {
    LayoutPart::Number { field, two_digits: false }
}

/// The parts that a directive is short for.
fn push_all(parts: &mut Vec<LayoutPart>, layout: &str, last: Option<LayoutPart>) -> Result<(), String> {
    for part in parse(layout)?.into_iter().chain(last) {
        match part {
            LayoutPart::Literal(text) => text.chars().for_each(|c| push_text(parts, c)),
            part => parts.push(part),
        }
    }
    Ok(())
}

/// A fraction of a second includes the point or comma before it.
fn push_fraction(parts: &mut Vec<LayoutPart>, directive: char) -> Result<(), String> {
    let Some(LayoutPart::Literal(text)) = parts.last_mut() else { return Err(no_separator(directive)) };
    if !text.ends_with(['.', ',']) {
        return Err(no_separator(directive));
    }
    text.pop();
    if text.is_empty() {
        parts.pop();
    }
    parts.push(LayoutPart::Fraction);
    Ok(())
}

fn no_separator(directive: char) -> String {
    format!("%{directive} must follow a point or a comma")
}
