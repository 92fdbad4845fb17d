//! The lines that a decoder finds, through the operators, as requests.

use kubewake_log_lines::{BodyKind, LinePosition, LineRecord, LogRequest, RecordSettings, RecordSink, RequestLimits};

use crate::{
    chain::{OperatorChain, OperatorFailure},
    entry::{EntryTemplate, LogEntry},
    otlp::encode_request,
    value::LogValue,
};

/// Takes the records of one log, as [`RequestBuilder`](kubewake_log_lines::RequestBuilder) does, and passes each through
/// the operators.
///
/// *Guarantees*: [`finish`](Self::finish) gives all records that have left the operators, and never a position behind a
/// record that they hold.
pub struct OperatorSink {
    chain: OperatorChain,
    template: EntryTemplate,
    /// What every record of the log has.
    common: LogEntry,
    settings: RecordSettings,
    limits: RequestLimits,
    out: Vec<LogEntry>,
    /// The bytes of the lines since the last request.
    line_bytes: usize,
    /// Records whose templates have no value.
    template_failures: u64,
}

impl OperatorSink {
    /// A sink for a log whose records all have the attributes and the resource of `common`.
    pub fn new(
        chain: OperatorChain,
        template: EntryTemplate,
        common: LogEntry,
        settings: RecordSettings,
        limits: RequestLimits,
    ) -> Self {
        Self { chain, template, common, settings, limits, out: Vec::new(), line_bytes: 0, template_failures: 0 }
    }

    /// Whether it takes no further record before [`finish`](Self::finish).
    pub fn is_full(&self) -> bool {
        self.out.len() >= self.limits.max_records || self.line_bytes >= self.limits.max_bytes
    }

    /// The request with what has left the operators; `None` if nothing has. `commit` is behind the last line that was
    /// read.
    pub fn finish(&mut self, commit: LinePosition) -> Option<LogRequest> {
        self.line_bytes = 0;
        let entries = std::mem::take(&mut self.out);
        let start = entries.iter().map(|entry| entry.start).min()?;
        let times = entries.iter().map(|entry| if entry.timestamp == 0 { entry.observed } else { entry.timestamp });
        let request = LogRequest {
            body: encode_request(&entries).into(),
            records: entries.len(),
            start,
            first_time: times.clone().min()?,
            last_time: times.max()?,
            commit: self.held_since().map_or(commit, |held| held.min(commit)),
        };
        // The list keeps its capacity, as far as usual requests need it.
        self.out = entries;
        self.out.clear();
        self.out.shrink_to(MAX_KEPT_CAPACITY);
        Some(request)
    }

    /// Where the first line begins of what the operators hold.
    pub fn held_since(&self) -> Option<LinePosition> {
        self.chain.held_since()
    }

    /// When something that is held is due, in nanoseconds since 1970.
    pub fn next_deadline(&self) -> Option<u64> {
        self.chain.next_deadline()
    }

    /// Passes on what has been held for as long as it may be.
    pub fn flush_due(&mut self, now: u64) {
        self.chain.flush_due(now, &mut self.out);
    }

    /// Passes on all that is held.
    pub fn flush_all(&mut self) {
        self.chain.flush_all(&mut self.out);
    }

    /// The bytes that operators hold, about.
    pub fn held_bytes(&self) -> usize {
        self.chain.held_bytes()
    }

    /// What the operators could not process since the last call, and how many records lack an attribute whose expression
    /// has no value.
    pub fn take_failures(&mut self) -> (Vec<OperatorFailure>, u64) {
        (self.chain.take_failures(), std::mem::take(&mut self.template_failures))
    }

    fn entry(&self, record: &LineRecord<'_>) -> LogEntry {
        let mut entry = self.common.clone();
        entry.start = record.start;
        entry.timestamp = record.time;
        entry.observed = record.observed;
        entry.body = match record.body_kind {
            BodyKind::Text => LogValue::Text(String::from_utf8_lossy(record.body).into_owned().into()),
            BodyKind::RawText => LogValue::Text(record.body.to_vec()),
            BodyKind::Bytes => LogValue::Bytes(record.body.to_vec()),
        };
        let mut add = |key: &str, value: LogValue| entry.attributes.insert(key.to_owned(), value);
        if let Some(stream) = record.stream.filter(|_| self.settings.adds_stream) {
            add("log.iostream", stream.as_str().into());
        }
        if self.settings.adds_tags && !record.tags.is_empty() {
            add("logtag", LogValue::Text(record.tags.to_vec()));
        }
        if self.settings.adds_record_number {
            add("log.file.record_number", LogValue::Int(record.number.try_into().unwrap_or(i64::MAX)));
        }
        if self.settings.adds_record_offset {
            add("log.file.record_offset", LogValue::Int(record.start.offset.try_into().unwrap_or(i64::MAX)));
        }
        entry
    }
}

/// The most records for which a list keeps its capacity between requests.
const MAX_KEPT_CAPACITY: usize = 64;

impl RecordSink for OperatorSink {
    fn has_room(&self) -> bool {
        !self.is_full()
    }

    fn put(&mut self, record: &LineRecord<'_>) {
        self.line_bytes += record.body.len();
        let mut entry = self.entry(record);
        if self.template.apply(&mut entry).is_err() {
            self.template_failures += 1;
        }
        self.chain.process(entry, &mut self.out);
    }
}

#[cfg(test)]
mod tests {
    use kubewake_config::file_log::OperatorGraph;
    use kubewake_log_lines::{PlainLogDecoder, PlainSettings};
    use opentelemetry_proto::tonic::collector::logs::v1::ExportLogsServiceRequest;
    use prost::Message;

    use super::*;

    fn sink(operators: &str, max_records: usize) -> OperatorSink {
        let chain = OperatorChain::new(&OperatorGraph::from_yaml(operators).unwrap());
        let mut common = LogEntry::default();
        common.attributes.insert("log.file.name".into(), "a.log".into());
        let settings = RecordSettings { adds_record_offset: true, ..RecordSettings::default() };
        let limits = RequestLimits { max_bytes: 1 << 20, max_records };
        OperatorSink::new(chain, EntryTemplate::default(), common, settings, limits)
    }

    fn position(offset: u64) -> LinePosition {
        LinePosition { generation: 1, offset }
    }

    fn bodies(request: &LogRequest) -> Vec<String> {
        let request = ExportLogsServiceRequest::decode(request.body.as_ref()).unwrap();
        let records = request.resource_logs.iter().flat_map(|resource| &resource.scope_logs);
        let records = records.flat_map(|scope| &scope.log_records);
        let body = |record: &opentelemetry_proto::tonic::logs::v1::LogRecord| {
            let keys: Vec<&str> = record.attributes.iter().map(|pair| pair.key.as_str()).collect();
            assert_eq!(keys, ["log.file.name", "log.file.record_offset"]);
            match record.body.as_ref().and_then(|body| body.value.clone()) {
                Some(opentelemetry_proto::tonic::common::v1::any_value::Value::StringValue(text)) => text,
                other => panic!("{other:?}"),
            }
        };
        records.map(body).collect()
    }

    #[test]
    fn request_commits_up_to_the_first_line_that_is_held() {
        let mut sink = sink("[{type: recombine, combine_field: body, is_first_entry: 'body startsWith \"S\"'}]", 10);
        let mut decoder = PlainLogDecoder::new(PlainSettings::default());
        let lines = b"S1\nx\nS2\ny\n";
        assert_eq!(decoder.push(lines, position(0), 7, &mut sink), lines.len());
        let request = sink.finish(position(10)).unwrap();
        assert_eq!(
            (bodies(&request), request.start, request.commit),
            (vec!["S1\nx".to_owned()], position(0), position(5))
        );
        assert!(sink.finish(position(10)).is_none());
        assert_eq!(sink.held_since(), Some(position(5)));
        sink.flush_due(sink.next_deadline().unwrap());
        let request = sink.finish(position(10)).unwrap();
        assert_eq!((bodies(&request), request.commit), (vec!["S2\ny".to_owned()], position(10)));
    }

    #[test]
    fn decoder_stops_when_the_request_is_full() {
        let mut sink = sink("[{type: noop}]", 2);
        let mut decoder = PlainLogDecoder::new(PlainSettings::default());
        assert_eq!(decoder.push(b"a\nb\nc\n", position(0), 7, &mut sink), 4);
        assert!(sink.is_full());
        assert_eq!(bodies(&sink.finish(position(4)).unwrap()), ["a", "b"]);
        assert!(!sink.is_full());
    }
}
