//! Dates in names.

use std::fmt;

/// A date format: `yyyy.MM.dd`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DateFormat {
    parts: Vec<DatePart>,
}

/// A part of a date, or a character between parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DatePart {
    /// `yyyy`
    Year,
    /// `MM`
    Month,
    /// `dd`
    Day,
    /// `HH`, 00 to 23
    Hour,
    Separator(char),
}

const DATE_PARTS: [(&str, DatePart); 4] =
    [("yyyy", DatePart::Year), ("MM", DatePart::Month), ("dd", DatePart::Day), ("HH", DatePart::Hour)];

impl DateFormat {
    /// Parses a format of `yyyy`, `MM`, `dd`, `HH` and the separators `.`, `-` and `_`; `None` for any other text.
    pub fn parse(text: &str) -> Option<Self> {
        let mut parts = Vec::new();
        let mut rest = text;
        while let Some(first) = rest.chars().next() {
            let (part, length) = match DATE_PARTS.iter().find(|(name, _)| rest.starts_with(name)) {
                Some((name, part)) => (*part, name.len()),
                None if ['.', '-', '_'].contains(&first) => (DatePart::Separator(first), first.len_utf8()),
                None => return None,
            };
            parts.push(part);
            rest = rest.get(length..)?;
        }
        (!parts.is_empty()).then_some(Self { parts })
    }

    /// The parts, in order.
    pub fn parts(&self) -> &[DatePart] {
        &self.parts
    }
}

impl fmt::Display for DateFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.parts.iter().try_for_each(|part| match DATE_PARTS.iter().find(|(_, known)| known == part) {
            Some((name, _)) => f.write_str(name),
            None => match part {
                DatePart::Separator(separator) => write!(f, "{separator}"),
                _ => Ok(()),
            },
        })
    }
}
