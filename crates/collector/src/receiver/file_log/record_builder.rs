//! Makes requests of the records of one log: from the bytes of lines at once, or through operators.

use std::{path::Path, sync::Arc};

use bytes::Bytes;
use kubewake_log_files::LogPosition;
use kubewake_log_lines::{BodyKind, LinePosition, LineRecord, RecordSink, RequestBuilder};
use kubewake_log_operators::{EntryTemplate, LogEntry, LogMap, LogValue, OperatorChain, encode_request};
use tracing::warn;

use super::{
    file_header::HeaderTracker,
    read_settings::{OperatorSettings, ReadSettings, RecordPath},
};

/// A finished request.
#[derive(Debug)]
pub(super) struct BuiltRequest {
    pub(super) body: Bytes,
    pub(super) records: usize,
    /// The time of the last record, in nanoseconds since 1970.
    pub(super) last_time: u64,
}

/// The sink of a decoder.
pub(super) enum RecordBuilder {
    /// Lines become OTLP as they are.
    Lines(Box<RequestBuilder>),
    /// Each record passes the operators.
    Entries(Box<EntryBuilder>),
}

/// Bytes of bodies after which a request of entries is full, and the number of its entries.
const MAX_ENTRY_BYTES: usize = 256 << 10;
const MAX_ENTRIES: usize = 2048;

/// Runs records through operators and gathers what leaves them.
pub(super) struct EntryBuilder {
    settings: Arc<OperatorSettings>,
    template: EntryTemplate,
    chain: OperatorChain,
    header: Option<HeaderTracker>,
    /// Attributes of the file, which every record has.
    file: LogMap,
    out: Vec<LogEntry>,
    /// Bytes of lines that were taken since the last request.
    bytes: usize,
    template_failures: u64,
}

impl RecordBuilder {
    pub(super) fn new(settings: &ReadSettings, path: &Path, start: LogPosition) -> Self {
        match &settings.path {
            RecordPath::Lines(records) => {
                let envelope = Arc::new(settings.envelope(path));
                Self::Lines(Box::new(RequestBuilder::new(envelope, *records, ReadSettings::request_limits())))
            }
            RecordPath::Operators(operators) => Self::Entries(Box::new(EntryBuilder::new(operators, path, start))),
        }
    }

    pub(super) fn is_full(&self) -> bool {
        match self {
            Self::Lines(builder) => builder.is_full(),
            Self::Entries(builder) => builder.is_full(),
        }
    }

    /// Ends the request; `None` without a record.
    pub(super) fn finish(&mut self, commit: LogPosition) -> Option<BuiltRequest> {
        match self {
            Self::Lines(builder) => {
                let LogPosition { generation, offset } = commit;
                let request = builder.finish(LinePosition { generation, offset })?;
                Some(BuiltRequest { body: request.body, records: request.records, last_time: request.last_time })
            }
            Self::Entries(builder) => builder.finish(),
        }
    }

    /// Where the first line begins of what operators hold.
    pub(super) fn held_since(&self) -> Option<LogPosition> {
        match self {
            Self::Lines(_) => None,
            Self::Entries(builder) => {
                builder.chain.held_since().map(|LinePosition { generation, offset }| LogPosition { generation, offset })
            }
        }
    }

    /// When operators pass on what they hold, in nanoseconds since 1970.
    pub(super) fn deadline(&self) -> Option<u64> {
        match self {
            Self::Lines(_) => None,
            Self::Entries(builder) => builder.chain.next_deadline(),
        }
    }

    /// Lets operators pass on what they have held for long enough.
    pub(super) fn flush_due(&mut self, now: u64) {
        if let Self::Entries(builder) = self {
            builder.chain.flush_due(now, &mut builder.out);
        }
    }

    /// Forgets what operators hold.
    pub(super) fn discard_held(&mut self) {
        if let Self::Entries(builder) = self {
            builder.chain = OperatorChain::new(&builder.settings.graph);
        }
    }

    /// Lets operators pass on everything, as no line will follow.
    pub(super) fn flush_all(&mut self) {
        if let Self::Entries(builder) = self {
            builder.chain.flush_all(&mut builder.out);
        }
    }
}

impl RecordSink for RecordBuilder {
    #[inline]
    fn has_room(&self) -> bool {
        !self.is_full()
    }

    #[inline]
    fn put(&mut self, record: &LineRecord<'_>) {
        match self {
            Self::Lines(builder) => builder.put(record),
            Self::Entries(builder) => builder.put(record),
        }
    }

    fn expect_bytes(&mut self, bytes: usize) {
        if let Self::Lines(builder) = self {
            builder.expect_bytes(bytes);
        }
    }
}

impl EntryBuilder {
    fn new(settings: &Arc<OperatorSettings>, path: &Path, start: LogPosition) -> Self {
        let mut file = LogMap::default();
        for (key, value) in settings.file.attributes(path) {
            file.insert(key.to_owned(), LogValue::from(value.as_str()));
        }
        Self {
            settings: settings.clone(),
            template: settings.template.clone(),
            chain: OperatorChain::new(&settings.graph),
            header: settings.header.as_ref().map(|header| HeaderTracker::new(header, path, start)),
            file,
            out: Vec::new(),
            bytes: 0,
            template_failures: 0,
        }
    }

    fn is_full(&self) -> bool {
        self.bytes >= MAX_ENTRY_BYTES || self.out.len() >= MAX_ENTRIES
    }

    fn put(&mut self, record: &LineRecord<'_>) {
        let text = |body: &[u8]| LogValue::Text(String::from_utf8_lossy(body).into_owned().into_bytes());
        let body = match record.body_kind {
            BodyKind::Text => text(record.body),
            BodyKind::RawText => LogValue::Text(record.body.to_vec()),
            BodyKind::Bytes => LogValue::Bytes(record.body.to_vec()),
        };
        self.bytes += record.body.len();
        if self.header.as_mut().is_some_and(|header| header.take(record)) {
            return;
        }
        let mut entry = LogEntry {
            start: record.start,
            timestamp: record.time,
            observed: record.observed,
            attributes: self.file.clone(),
            ..LogEntry::new(body)
        };
        if let Some(header) = &self.header {
            entry.attributes.extend(header.attributes().clone());
        }
        let number = |value: u64| LogValue::Int(i64::try_from(value).unwrap_or(i64::MAX));
        if self.settings.adds_record_number {
            entry.attributes.insert("log.file.record_number".to_owned(), number(record.number));
        }
        if self.settings.adds_record_offset {
            entry.attributes.insert("log.file.record_offset".to_owned(), number(record.start.offset));
        }
        self.template_failures += u64::from(self.template.apply(&mut entry).is_err());
        self.chain.process(entry, &mut self.out);
    }

    fn finish(&mut self) -> Option<BuiltRequest> {
        self.bytes = 0;
        self.report_failures();
        let entries = std::mem::take(&mut self.out);
        if entries.is_empty() {
            return None;
        }
        let times = entries.iter().map(|entry| if entry.timestamp == 0 { entry.observed } else { entry.timestamp });
        let last_time = times.max().unwrap_or_default();
        Some(BuiltRequest { body: encode_request(&entries).into(), records: entries.len(), last_time })
    }

    fn report_failures(&mut self) {
        for failure in self.chain.take_failures().into_iter().filter(|failure| !failure.is_quiet) {
            warn!(operator = failure.operator, records = failure.failures, dropped = failure.dropped,
                error = %failure.error, "failed to process records of a log file");
        }
        let failures = std::mem::take(&mut self.template_failures);
        if failures > 0 {
            warn!(records = failures, "failed to compute `attributes` or `resource` of records of a log file");
        }
    }
}
