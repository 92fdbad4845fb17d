//! `key_value_parser`: `level=info msg="two words"`.

use super::RecordError;
use crate::value::{LogMap, LogValue};

/// The pairs of a text. Delimiters between quotes are part of a value, and the quotes around it go.
pub(super) fn parse(text: &[u8], delimiter: &[u8], pair_delimiter: &[u8]) -> Result<LogValue, RecordError> {
    if text.is_empty() {
        return Err(RecordError::new("the text is empty"));
    }
    let mut values = LogMap::new();
    for pair in pairs(text, pair_delimiter)? {
        let Some(place) = memchr::memmem::find(&pair, delimiter) else {
            let shown = String::from_utf8_lossy(pair.get(..pair.len().min(100)).unwrap_or_default()).into_owned();
            return Err(RecordError::new(format!("the pair {shown:?} has no delimiter")));
        };
        let (key, value) = pair.split_at_checked(place).unwrap_or((&pair, &[]));
        let value = value.get(delimiter.len()..).unwrap_or_default();
        let key = String::from_utf8_lossy(key).trim().to_owned();
        values.insert(key, LogValue::Text(value.trim_ascii().to_vec()));
    }
    Ok(LogValue::Map(values))
}

/// The parts between delimiters that are not within quotes. Empty parts are left out.
fn pairs(text: &[u8], delimiter: &[u8]) -> Result<Vec<Vec<u8>>, RecordError> {
    let mut pairs = Vec::new();
    let mut current = Vec::new();
    let mut quote = None;
    let mut is_escaped = false;
    let mut rest = text;
    while let Some((byte, after)) = rest.split_first() {
        if quote.is_none()
            && let Some(after) = rest.strip_prefix(delimiter)
        {
            if !current.is_empty() {
                pairs.push(std::mem::take(&mut current));
            }
            rest = after;
            continue;
        }
        rest = after;
        if is_escaped {
            is_escaped = false;
        } else if quote.is_none() && matches!(byte, b'"' | b'\'') {
            quote = Some(*byte);
            continue;
        } else if quote == Some(*byte) {
            quote = None;
            continue;
        } else {
            is_escaped = *byte == b'\\';
        }
        current.push(*byte);
    }
    if quote.is_some() {
        return Err(RecordError::new("a quote is not closed"));
    }
    if !current.is_empty() {
        pairs.push(current);
    }
    Ok(pairs)
}
