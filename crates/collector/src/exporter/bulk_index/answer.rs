//! Reads the answer to a bulk request piece by piece: one status for each document.
//!
//! *Guarantees.* The memory is bounded, however long the answer is. An answer says that a document was stored only if
//! it is complete and consistent: there is an `errors`, and a status for every document where `errors` is true.
//!
//! The answer is untrusted. A message for the log has the type of an error and its reason, without the preview of the
//! value that some reasons have.

use serde::Deserialize;

use crate::{core::RejectReason, net::response_status::clip_message};

/// More than the answer has beside its items, which are two numbers.
const MAX_HEAD_BYTES: usize = 16 << 10;
/// Longer than any item: its error has a sentence or two.
const MAX_ITEM_BYTES: usize = 64 << 10;

/// What became of a document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DocumentStatus {
    /// It is stored, now or by an earlier attempt.
    Stored,
    /// The destination has no room for it now.
    Busy,
    Rejected(RejectReason),
}

/// Why an answer cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum AnswerFault {
    #[error("the answer is not that of a bulk request")]
    NotBulk,
    #[error("the answer has {0} items for another number of documents")]
    ItemCount(usize),
    #[error("the answer is not complete")]
    Incomplete,
}

/// An answer that is being read.
#[derive(Debug, Default)]
pub(super) struct BulkAnswer {
    /// The answer without its items.
    head: Vec<u8>,
    item: Vec<u8>,
    place: Place,
    is_in_items: bool,
    statuses: Vec<DocumentStatus>,
    /// The first message about a rejected document, and the first about one that is to be sent again.
    pub(super) rejection: Option<String>,
    pub(super) congestion: Option<String>,
    fault: Option<AnswerFault>,
}

/// Where in the structure of the text the next byte is.
#[derive(Clone, Copy, Debug, Default)]
struct Place {
    depth: usize,
    in_string: bool,
    after_backslash: bool,
}

impl Place {
    fn advance(&mut self, byte: u8) {
        match byte {
            _ if self.after_backslash => self.after_backslash = false,
            b'\\' if self.in_string => self.after_backslash = true,
            b'"' => self.in_string = !self.in_string,
            b'{' | b'[' if !self.in_string => self.depth = self.depth.saturating_add(1),
            b'}' | b']' if !self.in_string => self.depth = self.depth.saturating_sub(1),
            _ => {}
        }
    }
}

#[derive(Deserialize)]
struct Head {
    errors: bool,
}

#[derive(Deserialize)]
struct Item {
    status: u16,
    #[serde(default)]
    error: Option<ItemError>,
}

#[derive(Deserialize)]
struct ItemError {
    #[serde(default, rename = "type")]
    kind: String,
    #[serde(default)]
    reason: Option<String>,
}

/// An item has one member, named after the action.
#[derive(Deserialize)]
enum ItemOfAction {
    #[serde(rename = "create", alias = "index")]
    Item(Item),
}

impl BulkAnswer {
    /// An answer about so many documents, for which the caller has memory.
    pub(super) fn for_documents(documents: usize) -> Self {
        Self { statuses: Vec::with_capacity(documents), ..Self::default() }
    }

    /// Reads the next bytes.
    pub(super) fn feed(&mut self, bytes: &[u8]) {
        for byte in bytes {
            if self.fault.is_some() {
                return;
            }
            self.feed_byte(*byte);
        }
    }

    /// Whether the rest does not matter any more.
    pub(super) fn is_useless(&self) -> bool {
        self.fault.is_some()
    }

    fn feed_byte(&mut self, byte: u8) {
        /// The depth within the list of items.
        const ITEMS: usize = 2;
        let before = self.place.depth;
        self.place.advance(byte);
        let after = self.place.depth;
        if !self.is_in_items {
            self.is_in_items = before < ITEMS && after == ITEMS && byte == b'[' && is_items_key(&self.head);
        } else if after < ITEMS {
            self.is_in_items = false;
        } else {
            // What stands between items is left out.
            if before > ITEMS || after > ITEMS {
                push_bounded(&mut self.item, byte, MAX_ITEM_BYTES, &mut self.fault);
            }
            if before > ITEMS && after == ITEMS {
                self.end_item();
            }
            return;
        }
        push_bounded(&mut self.head, byte, MAX_HEAD_BYTES, &mut self.fault);
    }

    fn end_item(&mut self) {
        let read = serde_json::from_slice::<ItemOfAction>(&self.item);
        self.item.clear();
        let Ok(ItemOfAction::Item(item)) = read else {
            self.fault = Some(AnswerFault::NotBulk);
            return;
        };
        if self.statuses.len() == self.statuses.capacity() {
            self.fault = Some(AnswerFault::ItemCount(self.statuses.len() + 1));
            return;
        }
        let status = document_status(&item);
        self.statuses.push(status);
        let message = match status {
            DocumentStatus::Stored => return,
            DocumentStatus::Busy => &mut self.congestion,
            DocumentStatus::Rejected(_) => &mut self.rejection,
        };
        message.get_or_insert_with(|| item_message(&item));
    }

    /// The status of each of so many documents.
    pub(super) fn finish(&mut self, documents: usize) -> Result<Vec<DocumentStatus>, AnswerFault> {
        if let Some(fault) = self.fault {
            return Err(fault);
        }
        if self.place.depth > 0 || self.head.is_empty() {
            return Err(AnswerFault::Incomplete);
        }
        let head: Head = serde_json::from_slice(&self.head).map_err(|_| AnswerFault::NotBulk)?;
        let statuses = std::mem::take(&mut self.statuses);
        match statuses.len() {
            count if count == documents => Ok(statuses),
            // `filter_path` of some proxies and versions leaves an empty list out.
            0 if !head.errors => Ok(vec![DocumentStatus::Stored; documents]),
            count => Err(AnswerFault::ItemCount(count)),
        }
    }
}

fn push_bounded(list: &mut Vec<u8>, byte: u8, max: usize, fault: &mut Option<AnswerFault>) {
    if list.len() < max {
        list.push(byte);
    } else {
        *fault = Some(AnswerFault::NotBulk);
    }
}

/// Whether the text ends with the key of the items.
fn is_items_key(head: &[u8]) -> bool {
    let key = head.trim_ascii_end().strip_suffix(b":").map(<[u8]>::trim_ascii_end);
    key.is_some_and(|key| key.ends_with(b"\"items\""))
}

fn document_status(item: &Item) -> DocumentStatus {
    let kind = item.error.as_ref().map_or("", |error| error.kind.as_str());
    match item.status {
        // Every document has an id that follows from its content, so that a conflict means that it is stored.
        200..=299 | 409 => DocumentStatus::Stored,
        429 | 500..=599 => DocumentStatus::Busy,
        413 => DocumentStatus::Rejected(RejectReason::TooLarge),
        _ => DocumentStatus::Rejected(reject_reason(item.status, kind)),
    }
}

fn reject_reason(status: u16, kind: &str) -> RejectReason {
    const MAPPING: [&str; 4] = [
        "mapper_parsing_exception",
        "document_parsing_exception",
        "strict_dynamic_mapping_exception",
        "illegal_argument_exception",
    ];
    const TARGET: [&str; 5] = [
        "index_not_found_exception",
        "invalid_index_name_exception",
        "index_closed_exception",
        "cluster_block_exception",
        "security_exception",
    ];
    match kind {
        kind if MAPPING.contains(&kind) => RejectReason::Mapping,
        kind if TARGET.contains(&kind) => RejectReason::Target,
        _ if matches!(status, 401 | 403 | 404) => RejectReason::Target,
        _ => RejectReason::Other,
    }
}

fn item_message(item: &Item) -> String {
    let Some(error) = &item.error else { return format!("status {}", item.status) };
    let reason = error.reason.as_deref().unwrap_or_default();
    // The rest shows what was logged, which does not belong in the log of the collector.
    let reason = reason.split(" Preview of field's value").next().unwrap_or_default();
    clip_message(&format!("status {}: {}: {reason}", item.status, error.kind))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn read(documents: usize, pieces: &[&[u8]]) -> (Result<Vec<DocumentStatus>, AnswerFault>, BulkAnswer) {
        let mut answer = BulkAnswer::for_documents(documents);
        pieces.iter().for_each(|piece| answer.feed(piece));
        (answer.finish(documents), answer)
    }

    const MIXED: &str = r#"{"took":3,"errors":true,"items":[{"create":{"status":201}},
        {"create":{"_index":"a","status":400,"error":{"type":"document_parsing_exception","reason":"failed to parse field [a] of type [long] in document with id 'x'. Preview of field's value: 'hunter2'"}}},
        {"create":{"status":409,"error":{"type":"version_conflict_engine_exception","reason":"[x]: \"}]\\"}}},
        {"index":{"status":429,"error":{"type":"es_rejected_execution_exception","reason":null}}} ]}"#;

    #[test]
    fn each_document_has_its_own_status() {
        use DocumentStatus::{Busy, Rejected, Stored};
        let (statuses, answer) = read(4, &[MIXED.as_bytes()]);
        assert_eq!(statuses.unwrap(), [Stored, Rejected(RejectReason::Mapping), Stored, Busy]);
        let rejection = answer.rejection.unwrap();
        assert!(
            rejection.starts_with("status 400: document_parsing_exception: failed to parse field [a]"),
            "{rejection}"
        );
        assert!(!rejection.contains("hunter2"), "{rejection}");
        assert_eq!(answer.congestion.unwrap(), "status 429: es_rejected_execution_exception:");
    }

    #[test]
    fn answer_without_errors_stores_everything() {
        for text in [r#"{"errors":false}"#, r#"{"errors":false,"items":[]}"#] {
            assert_eq!(read(2, &[text.as_bytes()]).0.unwrap(), [DocumentStatus::Stored; 2], "{text}");
        }
    }

    #[test]
    fn answer_that_is_not_whole_or_not_of_a_bulk_request_is_no_success() {
        let few = r#"{"errors":true,"items":[{"create":{"status":201}}]}"#;
        for (text, fault) in [
            ("", AnswerFault::Incomplete),
            ("{}", AnswerFault::NotBulk),
            ("<html>it works</html>", AnswerFault::NotBulk),
            (r#"{"items":[]}"#, AnswerFault::NotBulk),
            (r#"{"errors":true,"items":[]}"#, AnswerFault::ItemCount(0)),
            (few, AnswerFault::ItemCount(1)),
            (r#"{"errors":false,"items":[{"delete":{"status":200}}]}"#, AnswerFault::NotBulk),
        ] {
            assert_eq!(read(2, &[text.as_bytes()]).0.unwrap_err(), fault, "{text}");
        }
        assert_eq!(read(4, &[&MIXED.as_bytes()[..MIXED.len() - 1]]).0.unwrap_err(), AnswerFault::Incomplete);
        assert_eq!(read(3, &[MIXED.as_bytes()]).0.unwrap_err(), AnswerFault::ItemCount(4));
    }

    #[test]
    fn statuses_decide_whether_a_document_is_sent_again() {
        let of = |status, kind: &str| {
            let error = Some(ItemError { kind: kind.into(), reason: None });
            document_status(&Item { status, error })
        };
        assert_eq!(of(503, "unavailable_shards_exception"), DocumentStatus::Busy);
        assert_eq!(of(404, "index_not_found_exception"), DocumentStatus::Rejected(RejectReason::Target));
        assert_eq!(of(413, ""), DocumentStatus::Rejected(RejectReason::TooLarge));
        assert_eq!(of(400, "x"), DocumentStatus::Rejected(RejectReason::Other));
        assert_eq!(of(403, "x"), DocumentStatus::Rejected(RejectReason::Target));
    }

    proptest! {
        #[test]
        fn pieces_of_an_answer_read_as_the_whole(at in 0..MIXED.len(), more in 0..MIXED.len()) {
            let (first, rest) = MIXED.as_bytes().split_at(at);
            let (second, third) = rest.split_at(more.min(rest.len()));
            prop_assert_eq!(read(4, &[first, second, third]).0, read(4, &[MIXED.as_bytes()]).0);
        }

        #[test]
        fn any_bytes_are_read_without_a_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = read(1, &[&bytes]);
        }
    }
}
