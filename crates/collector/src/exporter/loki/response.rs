//! What Loki's responses to a push request mean.

use std::sync::atomic::{AtomicU64, Ordering};

use http::{StatusCode, response::Parts};

use crate::{
    core::{BackendStatus, RejectReason, SendError},
    net::{http_error, request::BoundedResponse},
};

/// The status with which Loki discards a request and asks for no retry. It is a 2xx, and nothing is stored.
const INGESTION_BLOCKED: u16 = 260;

/// Parts of the messages about single lines and streams, with their reasons. The other lines of such a request are
/// stored. The first that a message contains decides.
const LINE_MESSAGES: [(&str, RejectReason); 16] = [
    ("has timestamp too", RejectReason::Time),
    ("out of order", RejectReason::Time),
    ("too far behind", RejectReason::Time),
    ("Max entry size", RejectReason::TooLarge),
    ("structured metadata too large", RejectReason::TooLarge),
    ("structured metadata", RejectReason::Cardinality),
    ("label names; limit", RejectReason::Cardinality),
    ("stream limit exceeded", RejectReason::Cardinality),
    ("ate limit exceeded", RejectReason::RateLimit),
    ("label name too long", RejectReason::TooLarge),
    ("label value too long", RejectReason::TooLarge),
    ("duplicate label name", RejectReason::Mapping),
    ("Error parsing labels", RejectReason::Mapping),
    ("at least one label pair", RejectReason::Mapping),
    ("missing required labels", RejectReason::Mapping),
    ("total ignored:", RejectReason::Other),
];

/// Success, or an error. If a request was stored except for some lines, their number is left in `lines`.
pub(super) fn interpret(head: &Parts, answer: &BoundedResponse, lines: &AtomicU64) -> Result<(), SendError> {
    let status = head.status.as_u16();
    if head.status.is_success() && status != INGESTION_BLOCKED {
        return Ok(());
    }
    let retryable = matches!(status, INGESTION_BLOCKED | 408 | 429 | 500..=599);
    if status == 400 {
        lines.store(rejected_lines(&String::from_utf8_lossy(&answer.bytes)).unwrap_or(0), Ordering::Relaxed);
    }
    Err(http_error::status_error(head, &http_error::message_text(answer), retryable))
}

/// Why lines were rejected, by a message about them.
pub(super) fn reject_reason(message: &str) -> RejectReason {
    let found = LINE_MESSAGES.iter().find(|(part, _)| message.contains(part));
    found.map_or(RejectReason::Other, |(_, reason)| *reason)
}

/// Why the records of a request were refused with it.
pub(super) fn refusal_reason(error: &SendError) -> RejectReason {
    if is_too_large(error) { RejectReason::TooLarge } else { reject_reason(&error.message) }
}

/// Whether the request is too large as a whole.
pub(super) fn is_too_large(error: &SendError) -> bool {
    error.backend_status == Some(BackendStatus::Http(StatusCode::PAYLOAD_TOO_LARGE))
}

/// The number of lines that a message says were rejected: at least one if it is about lines, and `None` if it is about
/// the whole request. Texts of the sender are in it, so that it may be any number.
fn rejected_lines(message: &str) -> Option<u64> {
    if !LINE_MESSAGES.iter().any(|(part, _)| message.contains(part)) {
        return None;
    }
    let grouped = message.match_indices(" errors like: ").filter_map(|(at, _)| number_before(message.get(..at)?));
    let ignored = message.match_indices("total ignored: ");
    let ignored = ignored.filter_map(|(at, said)| number_at(message.get(at + said.len()..)?));
    let grouped = grouped.fold(0, u64::saturating_add);
    Some(ignored.fold(0, u64::saturating_add).max(grouped).max(1))
}

fn number_before(text: &str) -> Option<u64> {
    let digits = text.bytes().rev().take_while(u8::is_ascii_digit).count();
    text.get(text.len() - digits..)?.parse().ok()
}

fn number_at(text: &str) -> Option<u64> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    text.get(..digits)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_of_loki_tell_how_many_lines_were_rejected_and_why() {
        let cases = [
            (
                "entry for stream '{a=\"b\"}' has timestamp too old: 2020-01-01T00:00:00Z, oldest acceptable timestamp \
              is: 2026-01-01T00:00:00Z",
                1,
                RejectReason::Time,
            ),
            (
                "entry with timestamp 2026-01-01 00:00:00 +0000 UTC ignored, reason: 'entry too far behind, entry \
              timestamp is: x, oldest acceptable timestamp is: y',\nuser 'fake', total ignored: 12 out of 100 for \
              stream: {a=\"b\"}",
                12,
                RejectReason::Time,
            ),
            (
                "3 errors like: Max entry size '10' bytes exceeded for stream '{}' while adding an entry with length '11' \
              bytes; 2 errors like: entry for stream '{}' has timestamp too new: x",
                5,
                RejectReason::Time,
            ),
            ("Max entry size '10' bytes exceeded for stream '{}' while adding an entry", 1, RejectReason::TooLarge),
            ("stream '{}' has structured metadata too large: '9' bytes, limit: '8' bytes", 1, RejectReason::TooLarge),
            ("entry for stream '{}' has 16 label names; limit 15", 1, RejectReason::Cardinality),
            ("99999999999999999999 errors like: has timestamp too old", 1, RejectReason::Time),
        ];
        for (message, lines, reason) in cases {
            assert_eq!((rejected_lines(message), reject_reason(message)), (Some(lines), reason), "{message}");
        }
    }

    #[test]
    fn other_messages_are_about_the_request() {
        for message in ["", "snappy: corrupt input", "<html>400 Bad Request</html>"] {
            assert_eq!(rejected_lines(message), None, "{message}");
        }
    }
}
