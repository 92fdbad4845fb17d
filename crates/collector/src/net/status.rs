//! What a destination says in its answer: `google.rpc.Status`, partial success, and when to come back.
//!
//! Nothing here trusts the other end: any bytes may come, texts are cut to a length that fits a log line, and a wait is
//! never longer than [`MAX_HINT`].

#[cfg(test)]
mod tests;

use std::time::Duration;

use jiff::Timestamp;
use kubewake_otlp::wire::{Field, Fields};
use serde_json::Value;

use crate::core::Delivered;

/// A destination can make us wait at most this long. A longer hint is a mistake, or a way to make us hold data forever.
const MAX_HINT: Duration = Duration::from_secs(24 * 60 * 60);
/// Enough for the longest message that a person will read.
const MAX_TEXT: usize = 1024;

/// The parts of a `google.rpc.Status` that matter here.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Status {
    /// For people.
    pub(crate) message: String,
    /// `RetryInfo.retry_delay`; zero is a hint too.
    pub(crate) retry_delay: Option<Duration>,
}

impl Status {
    /// From protobuf; `None` if the bytes are no message.
    pub(crate) fn from_protobuf(bytes: &[u8]) -> Option<Self> {
        let fields = well_formed(bytes)?;
        let message = fields.last_of(2).and_then(|field| field.as_len()).map(text).unwrap_or_default();
        let retry_delay = fields.filter(|field| field.is_len(3)).find_map(|any| retry_info(any.value));
        Some(Self { message, retry_delay })
    }

    /// From JSON; `None` if the bytes are no object.
    pub(crate) fn from_json(bytes: &[u8]) -> Option<Self> {
        let status: Value = serde_json::from_slice(bytes).ok().filter(Value::is_object)?;
        let message = status.get("message").and_then(Value::as_str).map(clip).unwrap_or_default();
        Some(Self { message, retry_delay: None })
    }
}

/// What an export response in protobuf says; `None` if the bytes are no message.
pub(crate) fn delivered(response: &[u8]) -> Option<Delivered> {
    let Some(partial) = well_formed(response)?.last_of(1) else { return Some(Delivered::default()) };
    let partial = well_formed(partial.as_len()?)?;
    let rejected = partial.last_of(1).and_then(|field| field.as_varint()).map_or(0, non_negative);
    let message = partial.last_of(2).and_then(|field| field.as_len()).map(text).unwrap_or_default();
    Some(Delivered { rejected, message })
}

/// What an export response in JSON says; `None` if the bytes are no object.
pub(crate) fn delivered_json(response: &[u8]) -> Option<Delivered> {
    let response: Value = serde_json::from_slice(response).ok().filter(Value::is_object)?;
    let Some(partial) = response.get("partialSuccess").or(response.get("partial_success")) else {
        return Some(Delivered::default());
    };
    let names = ["rejectedSpans", "rejectedDataPoints", "rejectedLogRecords"];
    let rejected = names.iter().find_map(|name| partial.get(name)).and_then(count).unwrap_or(0);
    let message = partial.get("errorMessage").and_then(Value::as_str).map(clip).unwrap_or_default();
    Some(Delivered { rejected, message })
}

/// `Retry-After`, in seconds or as a date; what lies in the past or means nothing is no hint.
pub(crate) fn retry_after(value: &str, now: Timestamp) -> Option<Duration> {
    let value = value.trim();
    let wait = match value.parse() {
        Ok(seconds) => Duration::from_secs(seconds),
        Err(_) => {
            let date = jiff::fmt::rfc2822::DateTimeParser::new().parse_timestamp(value).ok()?;
            Duration::try_from(date.duration_since(now)).ok()?
        }
    };
    Some(wait.min(MAX_HINT)).filter(|wait| !wait.is_zero())
}

/// Percent-encoded UTF-8, as in `grpc-message` and URLs. A bad escape stands for itself.
pub(crate) fn percent_decoded(encoded: &[u8]) -> String {
    let mut plain = Vec::with_capacity(encoded.len());
    let mut rest = encoded;
    while let Some((&byte, tail)) = rest.split_first() {
        let escaped = if byte == b'%' { tail.split_first_chunk() } else { None };
        match escaped.and_then(|(pair, tail)| Some((hex(*pair)?, tail))) {
            Some((decoded, tail)) => {
                plain.push(decoded);
                rest = tail;
            }
            None => {
                plain.push(byte);
                rest = tail;
            }
        }
    }
    String::from_utf8_lossy(&plain).into_owned()
}

/// A text that fits a log line: cut to length, without control characters.
pub(crate) fn clip(text: &str) -> String {
    text.chars().take(MAX_TEXT).map(|c| if c.is_control() { ' ' } else { c }).collect::<String>().trim().to_owned()
}

fn text(bytes: &[u8]) -> String {
    clip(&String::from_utf8_lossy(bytes))
}

/// The fields of a message, if all of it is one.
fn well_formed(message: &[u8]) -> Option<Fields<'_>> {
    let mut fields = Fields::new(message);
    fields.by_ref().for_each(drop);
    fields.rest().is_empty().then(|| Fields::new(message))
}

/// The delay in an `Any` that holds a `google.rpc.RetryInfo`.
fn retry_info(any: &[u8]) -> Option<Duration> {
    let any = Fields::new(any);
    let kind = any.last_of(1)?.as_len()?;
    if !kind.ends_with(b"google.rpc.RetryInfo") {
        return None;
    }
    let info = any.last_of(2).map_or(&[][..], |value| value.value);
    let delay = Fields::new(info).last_of(1).map_or(&[][..], |delay| delay.value);
    let part = |number| Fields::new(delay).last_of(number).and_then(|field: Field<'_>| field.as_varint());
    let seconds = Duration::from_secs(part(1).map_or(0, non_negative)).min(MAX_HINT);
    let nanos = Duration::from_nanos(part(2).map_or(0, non_negative));
    Some(seconds.saturating_add(nanos).min(MAX_HINT))
}

/// An `int64` as it stands on the wire; a negative one counts as none.
fn non_negative(number: u64) -> u64 {
    i64::try_from(number).map_or(0, i64::unsigned_abs)
}

/// Protobuf's JSON writes 64-bit numbers in strings, and readers take both.
fn count(value: &Value) -> Option<u64> {
    value.as_u64().or_else(|| value.as_str()?.parse().ok())
}

fn hex(pair: [u8; 2]) -> Option<u8> {
    let [high, low] = pair.map(|digit| char::from(digit).to_digit(16));
    u8::try_from(high? << 4 | low?).ok()
}
