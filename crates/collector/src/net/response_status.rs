//! Parsing of a destination's response: `google.rpc.Status`, partial success, and retry hints.
//!
//! The response is untrusted: any bytes may come, texts are cut to a length that fits a log line, and a wait is
//! never longer than [`MAX_RETRY_DELAY`].

#[cfg(test)]
mod tests;

use std::time::Duration;

use jiff::Timestamp;
use kubewake_otlp::wire::{WireField, WireFields};
use serde_json::Value;

use crate::core::{RejectReason, RejectionCounts, SendSuccess};

/// The longest wait that a destination can ask for. A longer hint is a mistake, or an attempt to make the
/// collector hold data forever.
const MAX_RETRY_DELAY: Duration = Duration::from_secs(24 * 60 * 60);
/// Longer than any message that a person would read.
const MAX_MESSAGE_CHARS: usize = 1024;

/// The relevant fields of a `google.rpc.Status`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct RpcStatus {
    pub(crate) message: String,
    /// `RetryInfo.retry_delay`; zero is a hint too.
    pub(crate) retry_delay: Option<Duration>,
}

impl RpcStatus {
    /// From protobuf; `None` if the bytes are not a valid message.
    pub(crate) fn from_protobuf(bytes: &[u8]) -> Option<Self> {
        let fields = well_formed(bytes)?;
        let message = fields.last_of(2).and_then(|field| field.as_len()).map(message_from_utf8).unwrap_or_default();
        let retry_delay = fields.filter(|field| field.is_len(3)).find_map(|any| parse_retry_info(any.value));
        Some(Self { message, retry_delay })
    }

    /// From JSON; `None` if the bytes are not an object.
    pub(crate) fn from_json(bytes: &[u8]) -> Option<Self> {
        let status: Value = serde_json::from_slice(bytes).ok().filter(Value::is_object)?;
        let message = status.get("message").and_then(Value::as_str).map(clip_message).unwrap_or_default();
        Some(Self { message, retry_delay: None })
    }
}

/// The result of an export response in protobuf; `None` if the bytes are not a valid message.
pub(crate) fn parse_export_response(response: &[u8]) -> Option<SendSuccess> {
    let Some(partial) = well_formed(response)?.last_of(1) else { return Some(SendSuccess::default()) };
    let partial = well_formed(partial.as_len()?)?;
    let rejected = partial.last_of(1).and_then(|field| field.as_varint()).map_or(0, non_negative);
    let message = partial.last_of(2).and_then(|field| field.as_len()).map(message_from_utf8).unwrap_or_default();
    Some(SendSuccess { rejected: RejectionCounts::from_reason(RejectReason::Other, rejected), message, truncated: 0 })
}

/// The result of an export response in JSON; `None` if the bytes are not an object.
pub(crate) fn parse_export_response_json(response: &[u8]) -> Option<SendSuccess> {
    let response: Value = serde_json::from_slice(response).ok().filter(Value::is_object)?;
    let Some(partial) = response.get("partialSuccess").or(response.get("partial_success")) else {
        return Some(SendSuccess::default());
    };
    let names = ["rejectedSpans", "rejectedDataPoints", "rejectedLogRecords"];
    let rejected = names.iter().find_map(|name| partial.get(name)).and_then(parse_json_u64).unwrap_or(0);
    let message = partial.get("errorMessage").and_then(Value::as_str).map(clip_message).unwrap_or_default();
    Some(SendSuccess { rejected: RejectionCounts::from_reason(RejectReason::Other, rejected), message, truncated: 0 })
}

/// `Retry-After`, in seconds or as a date. Past dates and invalid values are no hint.
pub(crate) fn parse_retry_after(value: &str, now: Timestamp) -> Option<Duration> {
    let value = value.trim();
    let wait = match value.parse() {
        Ok(seconds) => Duration::from_secs(seconds),
        Err(_) => {
            let date = jiff::fmt::rfc2822::DateTimeParser::new().parse_timestamp(value).ok()?;
            Duration::try_from(date.duration_since(now)).ok()?
        }
    };
    Some(wait.min(MAX_RETRY_DELAY)).filter(|wait| !wait.is_zero())
}

/// Percent-encoded UTF-8, as in `grpc-message` and URLs. An invalid escape is kept as it is.
pub(crate) fn percent_decoded(encoded: &[u8]) -> String {
    let mut plain = Vec::with_capacity(encoded.len());
    let mut rest = encoded;
    while let Some((&byte, tail)) = rest.split_first() {
        let escaped = if byte == b'%' { tail.split_first_chunk() } else { None };
        match escaped.and_then(|(pair, tail)| Some((parse_hex_byte(*pair)?, tail))) {
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
pub(crate) fn clip_message(text: &str) -> String {
    text.chars()
        .take(MAX_MESSAGE_CHARS)
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect::<String>()
        .trim()
        .to_owned()
}

fn message_from_utf8(bytes: &[u8]) -> String {
    clip_message(&String::from_utf8_lossy(bytes))
}

/// The fields of a message, if all of it is valid.
fn well_formed(message: &[u8]) -> Option<WireFields<'_>> {
    let mut fields = WireFields::new(message);
    fields.by_ref().for_each(drop);
    fields.rest().is_empty().then(|| WireFields::new(message))
}

/// The delay in an `Any` that holds a `google.rpc.RetryInfo`.
fn parse_retry_info(any: &[u8]) -> Option<Duration> {
    let any = WireFields::new(any);
    let kind = any.last_of(1)?.as_len()?;
    if !kind.ends_with(b"google.rpc.RetryInfo") {
        return None;
    }
    let info = any.last_of(2).map_or(&[][..], |value| value.value);
    let delay = WireFields::new(info).last_of(1).map_or(&[][..], |delay| delay.value);
    let part = |number| WireFields::new(delay).last_of(number).and_then(|field: WireField<'_>| field.as_varint());
    let seconds = Duration::from_secs(part(1).map_or(0, non_negative)).min(MAX_RETRY_DELAY);
    let nanos = Duration::from_nanos(part(2).map_or(0, non_negative));
    Some(seconds.saturating_add(nanos).min(MAX_RETRY_DELAY))
}

/// An `int64` from the wire; a negative one counts as zero.
fn non_negative(number: u64) -> u64 {
    i64::try_from(number).map_or(0, i64::unsigned_abs)
}

/// Protobuf's JSON writes 64-bit numbers as strings, and readers accept both.
fn parse_json_u64(value: &Value) -> Option<u64> {
    value.as_u64().or_else(|| value.as_str()?.parse().ok())
}

fn parse_hex_byte(pair: [u8; 2]) -> Option<u8> {
    let [high, low] = pair.map(|digit| char::from(digit).to_digit(16));
    u8::try_from(high? << 4 | low?).ok()
}
