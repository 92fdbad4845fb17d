//! Levels of logging libraries as severities of OTLP.

/// A severity of OTLP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Severity(pub(crate) u8);

const TRACE: Severity = Severity(1);
const DEBUG: Severity = Severity(5);
const INFO: Severity = Severity(9);
const NOTICE: Severity = Severity(10);
const WARN: Severity = Severity(13);
const ERROR: Severity = Severity(17);
const FATAL: Severity = Severity(21);

/// Levels by name, in lower case. `trace2` and the like are read apart.
static NAMES: [(&str, Severity); 21] = [
    ("info", INFO),
    ("warn", WARN),
    ("error", ERROR),
    ("debug", DEBUG),
    ("trace", TRACE),
    ("fatal", FATAL),
    ("warning", WARN),
    ("information", INFO),
    ("informational", INFO),
    ("notice", NOTICE),
    ("err", ERROR),
    ("severe", ERROR),
    ("critical", FATAL),
    ("crit", FATAL),
    ("panic", FATAL),
    ("dpanic", FATAL),
    ("alert", FATAL),
    ("emergency", FATAL),
    ("emerg", FATAL),
    ("verbose", TRACE),
    ("default", INFO),
];

/// Bytes of the longest name.
const MAX_NAME_LENGTH: usize = 13;

/// The severity that a level says: a name in any case; a number of OTLP, 1 to 24; or a level of pino and bunyan, 10 to
/// 60 in steps of ten. 10 and 20 are read as the latter, since no library writes OTLP's number as its level.
pub(crate) fn read_severity(level: &[u8]) -> Option<Severity> {
    if level.len() > MAX_NAME_LENGTH {
        return None;
    }
    if level.first()?.is_ascii_digit() {
        return read_number(level);
    }
    let by_name = |name: &[u8]| NAMES.iter().find(|(known, _)| known.as_bytes().eq_ignore_ascii_case(name));
    if let Some((_, severity)) = by_name(level) {
        return Some(*severity);
    }
    match level.split_last()? {
        (step @ b'2'..=b'4', name) => {
            let (name, severity) = by_name(name)?;
            let is_range = matches!(*name, "trace" | "debug" | "info" | "warn" | "error" | "fatal");
            is_range.then_some(Severity(severity.0 + (step - b'1')))
        }
        _ => None,
    }
}

fn read_number(level: &[u8]) -> Option<Severity> {
    match std::str::from_utf8(level).ok()?.parse::<u8>().ok()? {
        10 => Some(TRACE),
        20 => Some(DEBUG),
        30 => Some(INFO),
        40 => Some(WARN),
        50 => Some(ERROR),
        60 => Some(FATAL),
        number @ 1..=24 => Some(Severity(number)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_numbers_are_read() {
        for (level, number) in [
            ("trace", 1),
            ("trace4", 4),
            ("DEBUG", 5),
            ("Info", 9),
            ("information", 9),
            ("notice", 10),
            ("info4", 12),
            ("warning", 13),
            ("Warn2", 14),
            ("err", 17),
            ("CRITICAL", 21),
            ("fatal4", 24),
            ("30", 9),
            ("60", 21),
            ("10", 1),
            ("9", 9),
            ("24", 24),
        ] {
            assert_eq!(read_severity(level.as_bytes()), Some(Severity(number)), "{level}");
        }
        for level in
            ["", "0", "25", "70", "300", "odd", "info5", "info1", "notice2", "3.5", "a very long level of nothing"]
        {
            assert_eq!(read_severity(level.as_bytes()), None, "{level}");
        }
    }
}
