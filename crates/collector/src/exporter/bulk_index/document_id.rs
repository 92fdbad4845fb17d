//! Ids of documents, so that a record that is sent twice is stored once.
//!
//! *Guarantees.* The id follows from the record alone, so that it is the same at every attempt. It is a hash that
//! nobody can find another record for, and a log line cannot get the id of another resource's.
//!
//! - A span: its trace id, its span id and its bytes.
//! - A log record: its bytes and its resource. Equal records of one request are counted, so that each has an id of
//!   its own. A record without any time has no id: others may be equal.
//! - With `document_ids: uid` a log record with the attribute `log.record.uid`: the uid, and the container that it
//!   is from, or else its resource. Only the sender can promise that a uid is never used twice, so that this is a
//!   choice: a record whose uid was seen before counts as stored.

use std::collections::HashMap;

use aws_lc_rs::digest::{Context, SHA256};
use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use kubewake_config::model::DocumentIds;
use kubewake_otlp::view::{AttributesView, LogRecord, MessageView, Resource, Span};

use super::document::log_time;

/// Bytes of an id before it is encoded: enough that no two of all documents ever made are equal by chance.
const ID_BYTES: usize = 15;

/// The attribute that identifies a log record, by the semantic conventions of OpenTelemetry.
const RECORD_UID: &str = "log.record.uid";

pub(super) type DocumentId = [u8; ID_BYTES];

/// An estimate of the memory for an id that is remembered.
pub(super) const BYTES_PER_ID: usize = 2 * size_of::<(DocumentId, u32)>();

/// Makes the ids of records.
pub(super) struct IdMaker {
    ids: DocumentIds,
    resource: Context,
    container: Context,
    /// How often each id occurred in the request.
    occurrences: HashMap<DocumentId, u32>,
}

impl IdMaker {
    pub(super) fn new(ids: DocumentIds) -> Self {
        Self { ids, resource: Context::new(&SHA256), container: Context::new(&SHA256), occurrences: HashMap::new() }
    }

    /// Makes ids from the content of records.
    pub(super) fn with_content() -> Self {
        Self::new(DocumentIds::Content)
    }

    /// Whether it remembers the ids of a request.
    pub(super) fn counts_occurrences(&self) -> bool {
        self.ids == DocumentIds::Content
    }

    /// Begins another request.
    pub(super) fn begin_request(&mut self) {
        self.occurrences = HashMap::new();
    }

    /// Begins the records of another resource.
    pub(super) fn begin_resource(&mut self, resource: Resource<'_>) {
        self.resource = Context::new(&SHA256);
        self.resource.update(b"resource");
        update(&mut self.resource, resource.as_bytes());
        self.container = container(resource.attributes()).unwrap_or_else(|| self.resource.clone());
    }

    pub(super) fn log(&mut self, record: LogRecord<'_>) -> Option<DocumentId> {
        match self.ids {
            DocumentIds::None => None,
            DocumentIds::Uid => {
                let uid = record.attributes().text(RECORD_UID).filter(|uid| !uid.is_empty())?;
                let mut context = self.container.clone();
                context.update(b"uid");
                update(&mut context, uid);
                Some(finish(context))
            }
            DocumentIds::Content => {
                let mut context = self.content_context(record)?;
                let count = self.occurrences.entry(finish(context.clone())).or_insert(0);
                *count = count.saturating_add(1);
                context.update(&count.to_le_bytes());
                Some(finish(context))
            }
        }
    }

    /// What equal records of a request have in common; `None` for a record without any time.
    pub(super) fn content(&self, record: LogRecord<'_>) -> Option<DocumentId> {
        self.content_context(record).map(finish)
    }

    fn content_context(&self, record: LogRecord<'_>) -> Option<Context> {
        if log_time(record) == 0 {
            return None;
        }
        let mut context = self.resource.clone();
        context.update(b"content");
        update(&mut context, record.as_bytes());
        Some(context)
    }

    pub(super) fn span(&self, span: Span<'_>) -> Option<DocumentId> {
        (self.ids != DocumentIds::None).then(|| finish(span_context(span)))
    }

    /// The id of the event with this position in the span with this id.
    pub(super) fn event(span: &DocumentId, position: usize) -> DocumentId {
        let mut context = Context::new(&SHA256);
        context.update(b"event");
        context.update(span);
        context.update(&(position as u64).to_le_bytes());
        finish(context)
    }
}

fn span_context(span: Span<'_>) -> Context {
    let mut context = Context::new(&SHA256);
    context.update(b"span");
    for bytes in [span.trace_id(), span.span_id(), span.as_bytes()] {
        update(&mut context, bytes);
    }
    context
}

/// The identity of a container, if the resource has one. Other attributes may change between two readings of a log.
fn container(resource: AttributesView<'_>) -> Option<Context> {
    let pod = resource.text("k8s.pod.uid").filter(|uid| !uid.is_empty())?;
    let mut context = Context::new(&SHA256);
    context.update(b"container");
    update(&mut context, pod);
    update(&mut context, resource.text("k8s.container.name").unwrap_or_default());
    let restarts = resource.get("k8s.container.restart_count").map(|value| value.to_text().into_owned());
    update(&mut context, &restarts.unwrap_or_default());
    Some(context)
}

/// Adds bytes with their length, so that two fields are never read as one.
fn update(context: &mut Context, bytes: &[u8]) {
    context.update(&(bytes.len() as u64).to_le_bytes());
    context.update(bytes);
}

fn finish(context: Context) -> DocumentId {
    let digest = context.finish();
    let mut id = [0; ID_BYTES];
    id.iter_mut().zip(digest.as_ref()).for_each(|(byte, hash)| *byte = *hash);
    id
}

/// The id as text, of letters, digits, `-` and `_`.
pub(super) fn id_text(id: &DocumentId) -> String {
    URL_SAFE_NO_PAD.encode(id)
}

#[cfg(test)]
mod tests {
    use kubewake_otlp::wire::put_bytes;

    use super::*;

    fn attribute(key: &str, value: &str) -> Vec<u8> {
        let (mut text, mut pair) = (Vec::new(), Vec::new());
        put_bytes(&mut text, 1, value.as_bytes());
        put_bytes(&mut pair, 1, key.as_bytes());
        put_bytes(&mut pair, 2, &text);
        pair
    }

    fn resource(attributes: &[(&str, &str)]) -> Vec<u8> {
        let mut out = Vec::new();
        attributes.iter().for_each(|(key, value)| put_bytes(&mut out, 1, &attribute(key, value)));
        out
    }

    /// A record at a time, with a uid or without.
    fn record(time: u64, uid: Option<&str>) -> Vec<u8> {
        // Field 1, of eight bytes.
        let mut out = vec![1 << 3 | 1];
        out.extend_from_slice(&time.to_le_bytes());
        uid.into_iter().for_each(|uid| put_bytes(&mut out, 6, &attribute("log.record.uid", uid)));
        out
    }

    fn maker(ids: DocumentIds, attributes: &[(&str, &str)]) -> IdMaker {
        let mut maker = IdMaker::new(ids);
        maker.begin_resource(Resource::new(&resource(attributes)));
        maker
    }

    #[test]
    fn record_with_a_uid_keeps_its_id_when_its_metadata_changes() {
        let id = |attributes: &[(&str, &str)], time| {
            maker(DocumentIds::Uid, attributes).log(LogRecord::new(&record(time, Some("0/1-2")))).unwrap()
        };
        let known = [("k8s.pod.uid", "u"), ("k8s.container.name", "c"), ("k8s.pod.label.a", "b")];
        assert_eq!(id(&known, 1), id(&known[..2], 2));
        assert_ne!(id(&known, 1), id(&[("k8s.pod.uid", "v"), ("k8s.container.name", "c")], 1), "of another pod");
        assert_ne!(id(&[("a", "b")], 1), id(&[("a", "c")], 1), "of another resource");
    }

    #[test]
    fn uid_that_a_line_claims_does_not_make_different_records_one() {
        let mut maker = maker(DocumentIds::Content, &[("k8s.pod.uid", "u")]);
        let mut id = |time| maker.log(LogRecord::new(&record(time, Some("constant")))).unwrap();
        assert_ne!(id(1), id(2));
    }

    #[test]
    fn equal_records_of_a_request_have_ids_of_their_own_at_every_attempt() {
        let mut maker = maker(DocumentIds::Content, &[("a", "b")]);
        let record = record(7, None);
        let mut ids = || {
            maker.begin_request();
            [maker.log(LogRecord::new(&record)).unwrap(), maker.log(LogRecord::new(&record)).unwrap()]
        };
        let first = ids();
        assert_ne!(first[0], first[1]);
        assert_eq!(first, ids());
    }

    #[test]
    fn record_that_cannot_be_told_from_others_has_no_id() {
        assert_eq!(maker(DocumentIds::Content, &[]).log(LogRecord::new(&record(0, None))), None);
        assert_eq!(maker(DocumentIds::Uid, &[]).log(LogRecord::new(&record(1, None))), None);
        assert_eq!(maker(DocumentIds::None, &[]).log(LogRecord::new(&record(1, Some("x")))), None);
    }

    #[test]
    fn span_and_its_events_have_different_ids() {
        let mut bytes = Vec::new();
        put_bytes(&mut bytes, 1, &[1; 16]);
        let span = Span::new(&bytes);
        let maker = maker(DocumentIds::Content, &[]);
        let id = maker.span(span).unwrap();
        let ids = [id, IdMaker::event(&id, 0), IdMaker::event(&id, 1)];
        assert!(ids[0] != ids[1] && ids[1] != ids[2]);
        assert_eq!(id_text(&ids[0]).len(), 20);
    }
}
