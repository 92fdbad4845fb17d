//! Requests of the push API: protobuf in Snappy's block format.
//!
//! *Guarantees.* Every line and name is UTF-8. A request has at most the given size before compression, unless it is of
//! a single line. Memory is reserved before it is allocated; if it runs short, the request ends early. A small request
//! needs none, so that full queues empty themselves.

use bytes::Bytes;
use kubewake_config::model::{LokiExporter, LongLineBehavior, StructuredMetadataConfig};
use kubewake_otlp::{
    Allowance, NoMemory,
    view::{LogRecord, MessageView, Resource, Scope},
    wire::{close, len_field_size, open, put_bytes, put_header, put_uint, varint_size},
    work_bytes,
};

use super::{
    metadata::{MetadataWriter, SharedMetadata},
    push_plan::{PlannedEntry, PushPlan, TenantPlan},
    stream_labels::StreamLabels,
};
use crate::{
    core::{Charge, SendError, WorkMemory},
    exporter::log_source::push,
};

/// `PushRequest.streams`
const STREAMS: u32 = 1;
/// `Stream.labels`
const LABELS: u32 = 1;
/// `Stream.entries`
const ENTRIES: u32 = 2;
/// `Entry.timestamp`
const TIMESTAMP: u32 = 1;
/// `Entry.line`
const LINE: u32 = 2;

const NANOSECONDS_PER_SECOND: u64 = 1_000_000_000;

/// The first allocation of a request.
const FIRST_BYTES: usize = 1 << 10;

/// Memory for a request that is granted when the pipeline has none.
const UNCHARGED_BYTES: u64 = 32 << 10;

/// Tags and lengths around an entry, and its timestamp.
const ENTRY_OVERHEAD_BYTES: usize = 64;

/// What a line may be.
#[derive(Clone, Copy, Debug)]
pub(super) struct LineLimits {
    max_bytes: usize,
    behavior: LongLineBehavior,
    metadata: Option<StructuredMetadataConfig>,
}

impl LineLimits {
    pub(super) fn new(settings: &LokiExporter) -> Self {
        Self {
            max_bytes: settings.max_line_bytes as usize,
            behavior: settings.max_line_behavior,
            metadata: settings.structured_metadata,
        }
    }
}

/// A request with some of the records of a tenant.
pub(super) struct PushRequest {
    /// Empty if none of the records can be sent.
    pub(super) body: Bytes,
    /// The size of the body before compression.
    pub(super) plain_bytes: usize,
    /// The index of the first entry that is not in the request.
    pub(super) end: usize,
    /// The number of lines in the body.
    pub(super) lines: usize,
    /// The records before `end` that are not in the body, because their lines are too long.
    pub(super) too_long: Vec<usize>,
    /// Records whose line was cut, or whose metadata did not fit.
    pub(super) truncated: u64,
    /// The memory of the body.
    _charge: Option<Charge>,
}

impl PushRequest {
    /// Encodes the entries of a tenant from `start` on, until the request has `max_bytes`.
    pub(super) fn encode(
        plan: &PushPlan,
        tenant: &TenantPlan,
        start: usize,
        max_bytes: usize,
        labels: &StreamLabels,
        limits: LineLimits,
    ) -> Result<Self, SendError> {
        let memory = WorkMemory::for_delivery(&plan.batch).ok_or_else(|| SendError::local("the batch is empty"))?;
        let memory = memory.with_uncharged(UNCHARGED_BYTES);
        let mut writer = RequestWriter {
            plan,
            limits,
            max_bytes,
            metadata: limits.metadata.map(|limits| MetadataWriter::new(limits, labels)),
            shared: None,
            out: Vec::new(),
            memory,
            reserved_work: 0,
            lines: 0,
            too_long: Vec::new(),
            truncated: 0,
        };
        let end = match writer.streams(tenant, start) {
            (end, Ok(())) => end,
            (end, Err(NoMemory)) if end > start => end,
            (_, Err(NoMemory)) => return Err(writer.memory.send_error()),
        };
        writer.finish(end)
    }
}

struct RequestWriter<'p> {
    plan: &'p PushPlan,
    limits: LineLimits,
    max_bytes: usize,
    metadata: Option<MetadataWriter<'p>>,
    /// The resource and scope that the metadata begins with, and whether labels are omitted.
    shared: Option<((u32, u32, bool), SharedMetadata)>,
    out: Vec<u8>,
    memory: WorkMemory<'p>,
    /// Memory reserved to read a record or a resource.
    reserved_work: usize,
    lines: usize,
    too_long: Vec<usize>,
    truncated: u64,
}

/// What became of an entry.
enum EntryResult {
    Written,
    TooLong,
    /// There is no room for it in this request.
    RequestFull,
}

impl RequestWriter<'_> {
    /// Writes streams; returns the index of the first entry that is not in the request.
    fn streams(&mut self, tenant: &TenantPlan, start: usize) -> (usize, Result<(), NoMemory>) {
        let mut at = start;
        while let Some(first) = tenant.entries.get(at) {
            let Some(stream) = tenant.streams.get(first.stream as usize) else { return (at, Ok(())) };
            if let Err(NoMemory) = self.make_room(stream.labels.len() + ENTRY_OVERHEAD_BYTES) {
                return (at, Err(NoMemory));
            }
            let before = self.out.len();
            let lines_before = self.lines;
            let content = open(&mut self.out, STREAMS);
            put_bytes(&mut self.out, LABELS, stream.labels.as_bytes());
            let mut stop = None;
            while let Some(entry) = tenant.entries.get(at).filter(|entry| entry.stream == first.stream) {
                match self.entry(entry, stream.is_complete) {
                    Ok(EntryResult::Written) => self.lines += 1,
                    Ok(EntryResult::TooLong) => {}
                    Ok(EntryResult::RequestFull) => stop = Some(Ok(())),
                    Err(NoMemory) => stop = Some(Err(NoMemory)),
                }
                if stop.is_some() {
                    break;
                }
                at += 1;
            }
            if self.lines == lines_before {
                // A stream without lines is not sent.
                self.out.truncate(before);
            } else {
                close(&mut self.out, content);
            }
            if let Some(result) = stop {
                return (at, result);
            }
        }
        (at, Ok(()))
    }

    fn entry(&mut self, entry: &PlannedEntry, omit_labels: bool) -> Result<EntryResult, NoMemory> {
        let plan = self.plan;
        let record = LogRecord::new(entry.source.record(&plan.batch));
        self.reserve_work(record.as_bytes())?;
        let body = record.body().to_text();
        let line = String::from_utf8_lossy(&body);
        let is_long = line.len() > self.limits.max_bytes;
        if is_long && self.limits.behavior == LongLineBehavior::Drop {
            push(&mut self.too_long, entry.record as usize, &mut self.memory)?;
            return Ok(EntryResult::TooLong);
        }
        let line = line.get(..line.floor_char_boundary(self.limits.max_bytes)).unwrap_or_default();
        let is_metadata_cut = self.prepare_metadata(entry, &record, omit_labels)?;
        let metadata_bytes = self.metadata.as_ref().map_or(0, |metadata| metadata.as_fields().len());
        let seconds = entry.time / NANOSECONDS_PER_SECOND;
        let nanoseconds = entry.time % NANOSECONDS_PER_SECOND;
        let timestamp = 2 + varint_size(seconds) + varint_size(nanoseconds);
        let content = len_field_size(TIMESTAMP, timestamp) + len_field_size(LINE, line.len()) + metadata_bytes;
        let is_full = self.out.len() + len_field_size(ENTRIES, content) > self.max_bytes;
        if is_full && self.lines > 0 {
            return Ok(EntryResult::RequestFull);
        }
        self.make_room(content + ENTRY_OVERHEAD_BYTES)?;
        let out = &mut self.out;
        put_header(out, ENTRIES, content);
        put_header(out, TIMESTAMP, timestamp);
        put_uint(out, 1, seconds);
        put_uint(out, 2, nanoseconds);
        put_bytes(out, LINE, line.as_bytes());
        out.extend_from_slice(self.metadata.as_ref().map_or(&[], MetadataWriter::as_fields));
        self.truncated += u64::from(is_long || is_metadata_cut);
        Ok(EntryResult::Written)
    }

    /// Fills the metadata of an entry; returns whether anything was left out.
    fn prepare_metadata(
        &mut self,
        entry: &PlannedEntry,
        record: &LogRecord<'_>,
        omit_labels: bool,
    ) -> Result<bool, NoMemory> {
        let plan = self.plan;
        let key = (entry.source.resource, entry.source.scope, omit_labels);
        let resource = plan.sources.content(entry.source.resource, &plan.batch);
        let scope = plan.sources.content(entry.source.scope, &plan.batch);
        let is_known = self.shared.is_some_and(|(known, _)| known == key);
        if self.metadata.is_some() && !is_known {
            self.reserve_work(resource)?;
            self.reserve_work(scope)?;
        }
        let Some(metadata) = &mut self.metadata else { return Ok(false) };
        loop {
            match self.shared {
                Some((known, shared)) if known == key => metadata.rewind(shared),
                _ => {
                    let shared = metadata.begin(&Resource::new(resource), &Scope::new(scope), omit_labels);
                    self.shared = Some((key, shared));
                }
            }
            metadata.add_record(record);
            let Some(capacity) = metadata.needed_capacity() else { return Ok(metadata.is_cut()) };
            if !self.memory.reserve(capacity) {
                return Err(NoMemory);
            }
            metadata.grow(capacity);
            self.shared = None;
        }
    }

    /// Reserves the memory to read a message. It is reused for the messages that follow.
    fn reserve_work(&mut self, message: &[u8]) -> Result<(), NoMemory> {
        let needed = work_bytes(message);
        if needed > self.reserved_work {
            if !self.memory.reserve(needed - self.reserved_work) {
                return Err(NoMemory);
            }
            self.reserved_work = needed;
        }
        Ok(())
    }

    /// Makes room in the body, and reserves as much for its compressed form.
    fn make_room(&mut self, bytes: usize) -> Result<(), NoMemory> {
        let needed = self.out.len().saturating_add(bytes);
        if needed <= self.out.capacity() {
            return Ok(());
        }
        let capacity = self.out.capacity().saturating_mul(2).max(needed).max(FIRST_BYTES);
        if !self.memory.reserve(capacity.saturating_add(snap::raw::max_compress_len(capacity))) {
            return Err(NoMemory);
        }
        self.out.reserve_exact(capacity - self.out.len());
        Ok(())
    }

    fn finish(self, end: usize) -> Result<PushRequest, SendError> {
        let Self { out, memory, lines, too_long, truncated, .. } = self;
        let body = match lines {
            0 => Vec::new(),
            _ => snap::raw::Encoder::new()
                .compress_vec(&out)
                .map_err(|error| SendError::malformed(format!("snappy compression failed: {error}")))?,
        };
        let plain_bytes = out.len();
        drop(out);
        Ok(PushRequest {
            body: body.into(),
            plain_bytes,
            end,
            lines,
            too_long,
            truncated,
            _charge: memory.into_charge(),
        })
    }
}
