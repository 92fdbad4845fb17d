//! Sizes in bytes with units, as in the Collector's `fingerprint_size`: `1000`, `1kb`, `16KiB`, `1.5 MB`.

use crate::{
    decode::{Cursor, DecodeReport, scalar},
    yaml::NodeValue,
};

const UNITS: [(&str, f64); 11] = [
    ("", 1.0),
    ("kb", 1e3),
    ("kib", 1024.0),
    ("mb", 1e6),
    ("mib", 1_048_576.0),
    ("gb", 1e9),
    ("gib", 1_073_741_824.0),
    ("tb", 1e12),
    ("tib", 1_099_511_627_776.0),
    ("pb", 1e15),
    ("pib", 1_125_899_906_842_624.0),
];

/// A size between two bounds.
pub(super) fn read_in_range(at: &Cursor<'_>, report: &DecodeReport, least: u64, most: u64) -> Option<usize> {
    let size = byte_size(at, report)?;
    let name = at.name();
    let wanted = match least {
        _ if size > most => format!("`{name}` must be at most {most} bytes"),
        1 if size == 0 => format!("`{name}` must be positive"),
        least if size < least => format!("`{name}` must be at least {least} bytes"),
        _ => return size.try_into().ok(),
    };
    report.error(at, wanted, None);
    None
}

/// A size of any value. A fraction of a byte is cut off.
fn byte_size(at: &Cursor<'_>, report: &DecodeReport) -> Option<u64> {
    if let NodeValue::String(text) = &at.node.value {
        report.mark_public(at);
        let size = parse(text);
        if size.is_none() {
            let message = format!("`{}`: {} is not a size", at.name(), at.subject(text));
            report.error(at, message, Some("write a number with a unit, such as 16KiB, 1MB or 1000".into()));
        }
        return size;
    }
    scalar::integer_in_range(at, report, 0, i64::MAX).map(i64::unsigned_abs)
}

/// Parses a size; `None` if the text is none, or does not fit.
fn parse(text: &str) -> Option<u64> {
    let digits = text.bytes().take_while(|byte| byte.is_ascii_digit() || *byte == b'.').count();
    let (number, unit) = text.split_at_checked(digits)?;
    let begins_with_digit = number.starts_with(|c: char| c.is_ascii_digit());
    let unit = unit.trim_start().to_ascii_lowercase();
    let (_, factor) = UNITS.iter().find(|(name, _)| *name == unit)?;
    let number: f64 = number.parse().ok().filter(|_| begins_with_digit)?;
    let size = number * factor;
    // Beyond this a float no longer counts single bytes.
    (size < (1_u64 << 53) as f64).then_some(size as u64)
}

#[cfg(test)]
mod tests {
    use super::parse;

    #[test]
    fn size_has_a_decimal_or_a_binary_unit() {
        for (text, size) in [
            ("1000", 1000),
            ("1kb", 1000),
            ("1KiB", 1024),
            ("16 KiB", 16384),
            ("1.5mib", 1_572_864),
            ("2.", 2),
            ("1GB", 1_000_000_000),
            ("0", 0),
        ] {
            assert_eq!(parse(text), Some(size), "{text}");
        }
    }

    #[test]
    fn text_without_number_or_with_another_unit_is_no_size() {
        for text in ["", "kb", ".5kb", "1k", "1 b", "-1", "1.2.3kb", "1e3", "99999999999pib", "1kb ", "０"] {
            assert_eq!(parse(text), None, "{text}");
        }
    }
}
