//! The body of a bulk request: documents, each behind a line that says what to do with it.
//!
//! *Guarantees.* A batch is written piece by piece, so that the memory for it is bounded by the size of a request and
//! not by that of the batch. All memory is reserved first; without memory for all of it a piece ends early. The
//! documents of one record are in the same piece.

use std::ops::Range;

use bytes::Bytes;
use kubewake_config::model::{BulkAction, BulkIndexConfig, DocumentIds, MappingMode};
use kubewake_otlp::{
    Allowance, Signal,
    view::{LogRecord, Span, resources},
};

use super::{
    document::{DocumentWriter, EventParent, RecordSource, log_time},
    document_id::{BYTES_PER_ID, DocumentId, IdMaker, id_text},
    index_name::{IndexNames, RecordIndex},
};
use crate::{
    core::{Batch, Charge, Part, SendError, WorkMemory},
    exporter::{
        name_resolver::NameSubject,
        record_json::{JsonOutput, push_text},
    },
};

/// Memory for the answer to a document: its status.
const ANSWER_BYTES_PER_DOCUMENT: usize = 4;

/// How records become documents.
pub(super) struct DocumentRules {
    pub(super) mode: MappingMode,
    pub(super) dedot: kubewake_config::model::Dedot,
    pub(super) ids: DocumentIds,
    pub(super) action: BulkAction,
    pub(super) require_data_stream: bool,
    pub(super) names: IndexNames,
    /// The names for events of spans, which are logs.
    pub(super) event_names: Option<IndexNames>,
}

impl DocumentRules {
    pub(super) fn new(settings: &BulkIndexConfig, signal: Signal, exporter: &kubewake_config::ComponentId) -> Self {
        let separates_events = signal == Signal::Traces && settings.mode == MappingMode::Otel;
        Self {
            mode: settings.mode,
            dedot: settings.dedot,
            ids: settings.document_ids,
            action: settings.action,
            require_data_stream: settings.require_data_stream,
            names: IndexNames::new(settings, signal, exporter.clone()),
            event_names: separates_events.then(|| IndexNames::new(settings, Signal::Logs, exporter.clone())),
        }
    }
}

/// The next record to be written.
#[derive(Default)]
pub(super) struct ChunkStart {
    part: usize,
    /// The record within the part.
    record: usize,
    /// The number of records in all parts before.
    records_before: usize,
}

/// A document in a chunk.
#[derive(Clone, Copy)]
struct Document {
    /// Where it ends in the body.
    end: usize,
    /// The number of its record in the batch.
    record: usize,
}

/// A piece of a batch as documents.
pub(super) struct Chunk {
    body: Bytes,
    documents: Vec<Document>,
    /// The records in it.
    pub(super) records: Range<usize>,
    /// Where the next piece begins; `None` after the last record.
    pub(super) next: Option<ChunkStart>,
    /// Whether there is memory for the compressed body beside it.
    pub(super) may_compress: bool,
    _charge: Option<Charge>,
}

impl Chunk {
    pub(super) fn len(&self) -> usize {
        self.documents.len()
    }

    /// The bytes of some documents.
    pub(super) fn body(&self, range: &Range<usize>) -> Bytes {
        let end_of = |count: usize| match count.checked_sub(1) {
            Some(last) => self.documents.get(last).map_or(self.body.len(), |document| document.end),
            None => 0,
        };
        let (start, end) = (end_of(range.start), end_of(range.end));
        self.body.slice(start.min(end)..end)
    }

    /// The record that a document is made from.
    pub(super) fn record(&self, document: usize) -> usize {
        self.documents.get(document).map_or(usize::MAX, |document| document.record)
    }
}

/// Writes the documents of a batch from a record on, up to `max_bytes`.
///
/// # Errors
///
/// If there is no memory for a single record.
pub(super) fn encode(
    batch: &Batch,
    start: ChunkStart,
    rules: &DocumentRules,
    max_bytes: usize,
    wants_compression: bool,
    now: u64,
) -> Result<Chunk, SendError> {
    let Some(mut memory) = WorkMemory::for_delivery(batch) else { return Ok(Chunk::empty(start.records_before)) };
    let first = start.records_before + start.record;
    let mut encoder = ChunkEncoder {
        rules,
        max_bytes,
        out: JsonOutput::new(&mut memory),
        documents: Vec::new(),
        writer: DocumentWriter::new(rules.mode, rules.dedot, now),
        ids: IdMaker::new(rules.ids),
        index: RecordIndex::default(),
        event_index: RecordIndex::default(),
        first,
        at: start,
    };
    let is_complete = encoder.batch(batch);
    let ChunkEncoder { out, documents, at, .. } = encoder;
    let reached = at.records_before + at.record;
    let body = out.into_bytes();
    if !is_complete && reached == first {
        return Err(memory.send_error());
    }
    // A status for each document. Without this memory the answer is still read, but the next piece waits for it.
    let may_compress =
        memory.reserve(documents.len() * ANSWER_BYTES_PER_DOCUMENT) && wants_compression && memory.reserve(body.len());
    let compressed = if may_compress { body.len() } else { 0 };
    let lists = documents.capacity() * (size_of::<Document>() + ANSWER_BYTES_PER_DOCUMENT);
    let kept = (body.capacity() + compressed + lists) as u64;
    let charge = memory.into_charge().map(|mut charge| {
        charge.shrink_to(kept);
        charge
    });
    Ok(Chunk {
        body: body.into(),
        documents,
        records: first..reached,
        next: (!is_complete).then_some(at),
        may_compress,
        _charge: charge,
    })
}

impl Chunk {
    fn empty(record: usize) -> Self {
        let records = record..record;
        Self { body: Bytes::new(), documents: Vec::new(), records, next: None, may_compress: false, _charge: None }
    }
}

struct ChunkEncoder<'r, 'm> {
    rules: &'r DocumentRules,
    max_bytes: usize,
    out: JsonOutput<'m>,
    documents: Vec<Document>,
    writer: DocumentWriter,
    ids: IdMaker,
    index: RecordIndex,
    event_index: RecordIndex,
    first: usize,
    at: ChunkStart,
}

impl ChunkEncoder<'_, '_> {
    /// Writes as much of the batch as fits; true if that is all.
    fn batch(&mut self, batch: &Batch) -> bool {
        while let Some(part) = batch.parts().get(self.at.part) {
            if !self.part(batch.signal(), part) {
                return false;
            }
            self.at =
                ChunkStart { part: self.at.part + 1, record: 0, records_before: self.at.records_before + part.items };
        }
        true
    }

    fn part(&mut self, signal: Signal, part: &Part) -> bool {
        let remembered = if self.ids.counts_occurrences() { part.items.saturating_mul(BYTES_PER_ID) } else { 0 };
        if !self.out.begin_work(remembered) {
            return false;
        }
        self.ids.begin_request();
        let mut number = 0;
        for resource in resources(&part.bytes) {
            let resource_schema_url = resource.schema_url();
            self.writer.begin_resource(resource.resource(), resource_schema_url, &mut self.out);
            self.ids.begin_resource(resource.resource());
            self.index.name.clear();
            for scope in resource.scopes() {
                // A walk over all records, which must not be made for each of them.
                let scope_schema_url = scope.schema_url();
                let source = RecordSource { resource: resource.resource(), scope: scope.scope() };
                self.writer.begin_scope(source.scope, scope_schema_url, &mut self.out);
                let is_complete = match signal {
                    Signal::Traces => scope.spans().all(|span| self.record(Record::Span(span), &source, &mut number)),
                    _ => scope.log_records().all(|log| self.record(Record::Log(log), &source, &mut number)),
                };
                if !is_complete {
                    return false;
                }
            }
        }
        self.out.end_work(remembered);
        true
    }

    /// Writes a record unless an earlier piece has it. False if there is no room for it.
    fn record(&mut self, record: Record<'_>, source: &RecordSource<'_>, number: &mut usize) -> bool {
        // Ids count equal records, so that those of an earlier piece count, too.
        let id = record.id(&mut self.ids);
        *number += 1;
        if *number <= self.at.record {
            return true;
        }
        let start = self.out.len();
        let documents = self.documents.len();
        match record {
            Record::Log(log) => self.log(log, source, id),
            Record::Span(span) => self.span(span, source, id),
        }
        let is_first = self.at.records_before + self.at.record == self.first;
        if self.out.is_exhausted() || self.out.len() > self.max_bytes && !is_first {
            self.out.truncate(start);
            self.documents.truncate(documents);
            return false;
        }
        self.at.record += 1;
        true
    }

    fn log(&mut self, log: LogRecord<'_>, source: &RecordSource<'_>, id: Option<DocumentId>) {
        let time = self.writer.time_or_now(log_time(log));
        let subject = NameSubject { resource: source.resource, attributes: log.attributes(), time };
        self.resolve(&subject);
        self.action(false, id);
        self.writer.log(log, source, self.index.stream(), &mut self.out);
        self.end_document();
    }

    fn span(&mut self, span: Span<'_>, source: &RecordSource<'_>, id: Option<DocumentId>) {
        let time = self.writer.time_or_now(span.start());
        let subject = NameSubject { resource: source.resource, attributes: span.attributes(), time };
        self.resolve(&subject);
        self.action(false, id);
        self.writer.span(span, source, self.index.stream(), &mut self.out);
        self.end_document();
        let Some(names) = &self.rules.event_names else { return };
        // What walks over the span is done once, and not for each of its events.
        names.resolve(&subject, &mut self.event_index);
        let parent = EventParent::new(span);
        for (position, event) in span.events().enumerate() {
            self.action(true, id.map(|id| IdMaker::event(&id, position)));
            self.writer.event(event, &parent, self.event_index.stream(), &mut self.out);
            self.end_document();
            if self.out.is_exhausted() {
                return;
            }
        }
    }

    /// Sets the index, which all records of a resource have in common unless it depends on the record.
    fn resolve(&mut self, subject: &NameSubject<'_>) {
        if self.index.name.is_empty() || self.rules.names.depends_on_record() {
            self.rules.names.resolve(subject, &mut self.index);
        }
    }

    /// The line before a document.
    fn action(&mut self, is_event: bool, id: Option<DocumentId>) {
        let index = if is_event { &self.event_index } else { &self.index };
        let is_stream = index.stream().is_some();
        let action: &[u8] = match self.rules.action {
            BulkAction::Index if !is_stream => b"{\"index\":{\"_index\":",
            BulkAction::Create | BulkAction::Index => b"{\"create\":{\"_index\":",
        };
        self.out.push(action);
        push_text(index.name.as_bytes(), &mut self.out);
        if let Some(id) = id {
            self.out.push(b",\"_id\":\"");
            self.out.push(id_text(&id).as_bytes());
            self.out.push_byte(b'"');
        }
        if is_stream && self.rules.require_data_stream {
            self.out.push(b",\"require_data_stream\":true");
        }
        self.out.push(b"}}\n");
    }

    fn end_document(&mut self) {
        self.out.push_byte(b'\n');
        let document = Document { end: self.out.len(), record: self.at.records_before + self.at.record };
        self.out.push_item(&mut self.documents, document);
    }
}

#[derive(Clone, Copy)]
enum Record<'a> {
    Log(LogRecord<'a>),
    Span(Span<'a>),
}

impl Record<'_> {
    fn id(self, ids: &mut IdMaker) -> Option<DocumentId> {
        match self {
            Self::Log(log) => ids.log(log),
            Self::Span(span) => ids.span(span),
        }
    }
}
