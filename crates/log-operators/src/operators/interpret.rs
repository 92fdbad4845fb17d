//! Times, severities, ids and scopes from fields.

use kubewake_config::file_log::{
    RecordField,
    operator::{SeverityParse, TimeParse, TraceParse},
};

use super::{RecordError, transform::missing};
use crate::{
    entry::LogEntry,
    evaluate::float_text,
    field::{self, FoundValue},
    time::TimeReader,
    value::LogValue,
};

/// Reads the time of records.
pub(super) struct TimeOperator {
    from: RecordField,
    reader: TimeReader,
}

impl TimeOperator {
    pub(super) fn new(parse: &TimeParse) -> Self {
        Self { from: parse.from.clone(), reader: TimeReader::new(&parse.layout) }
    }

    pub(super) fn apply(&self, entry: &mut LogEntry) -> Result<(), RecordError> {
        let time = match field::get(entry, &self.from).ok_or_else(|| missing(&self.from))? {
            FoundValue::Value(value) => self.reader.read(value, entry.observed)?,
            FoundValue::Map(_) => return Err(RecordError::new("a map cannot be read as a time")),
        };
        entry.timestamp = time;
        Ok(())
    }
}

/// The names of severities, of which each has four levels.
const SEVERITY_NAMES: [&str; 6] = ["TRACE", "DEBUG", "INFO", "WARN", "ERROR", "FATAL"];

/// The short name of a severity, such as `INFO2`.
fn severity_name(number: u8) -> String {
    let Some(index) = number.checked_sub(1) else { return String::new() };
    let name = SEVERITY_NAMES.get(usize::from(index / 4)).copied().unwrap_or_default();
    match index % 4 {
        0 => name.to_owned(),
        level => format!("{name}{}", level + 1),
    }
}

pub(super) fn severity(parse: &SeverityParse, entry: &mut LogEntry) -> Result<(), RecordError> {
    let found = field::get(entry, &parse.from).ok_or_else(|| missing(&parse.from))?;
    let text: Vec<u8> = match found {
        FoundValue::Value(LogValue::Text(text) | LogValue::Bytes(text)) => text.clone(),
        FoundValue::Value(LogValue::Int(value)) => value.to_string().into(),
        FoundValue::Value(LogValue::Double(value)) if value.fract() == 0.0 && value.abs() < 1e15 => {
            (*value as i64).to_string().into()
        }
        other => {
            let value = other.to_value();
            return Err(RecordError::new(format!("{} cannot be a severity", value.type_name())));
        }
    };
    let number = parse.mapping.find(&String::from_utf8_lossy(&text));
    entry.severity_number = number;
    let is_overwritten = parse.overwrites_text && number > 0;
    entry.severity_text = if is_overwritten { severity_name(number).into() } else { text };
    Ok(())
}

/// Reads the ids. Each that is missing or wrong is none; wrong ones are an error after all were looked at.
pub(super) fn trace(parse: &TraceParse, entry: &mut LogEntry) -> Result<(), RecordError> {
    let trace_id = hex_field(entry, &parse.trace_id);
    let span_id = hex_field(entry, &parse.span_id);
    let flags = hex_field(entry, &parse.trace_flags);
    let bytes = |found: &Result<Option<Vec<u8>>, RecordError>| found.as_ref().ok().cloned().flatten();
    entry.trace_id = bytes(&trace_id).map(|id| padded(&id));
    entry.span_id = bytes(&span_id).map(|id| padded(&id));
    entry.trace_flags = bytes(&flags).and_then(|flags| flags.first().copied());
    trace_id.and(span_id).and(flags).map(|_| ())
}

/// An id of the right length. As in the Collector a short one is filled with zeros, and a long one cut.
fn padded<const N: usize>(bytes: &[u8]) -> [u8; N] {
    let mut id = [0; N];
    for (to, from) in id.iter_mut().zip(bytes) {
        *to = *from;
    }
    id
}

fn hex_field(entry: &LogEntry, from: &RecordField) -> Result<Option<Vec<u8>>, RecordError> {
    let wrong = || RecordError::new(format!("`{from}` is not hexadecimal"));
    let text = match field::get(entry, from) {
        None => return Ok(None),
        Some(FoundValue::Value(LogValue::Text(text) | LogValue::Bytes(text))) => text.clone(),
        Some(FoundValue::Value(LogValue::Int(value))) => value.to_string().into(),
        Some(FoundValue::Value(LogValue::Double(value))) => float_text(*value).into(),
        Some(_) => return Err(wrong()),
    };
    if text.is_empty() {
        return Ok(None);
    }
    if text.len() % 2 != 0 {
        return Err(wrong());
    }
    let digit = |byte: u8| char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
    let bytes = text.chunks_exact(2).map(|pair| match pair {
        [high, low] => Some(digit(*high)? << 4 | digit(*low)?),
        _ => None,
    });
    bytes.collect::<Option<_>>().map(Some).ok_or_else(wrong)
}

pub(super) fn scope_name(from: &RecordField, entry: &mut LogEntry) -> Result<(), RecordError> {
    let name = field::get_text(entry, from).ok_or_else(|| missing(from))?.to_vec();
    entry.scope_name = name;
    Ok(())
}
