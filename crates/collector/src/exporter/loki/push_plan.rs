//! Which records of a batch go to which tenant and stream, and in which order.
//!
//! *Guarantees.* A request of a tenant has its records by stream, and within a stream by time; records of the same time
//! stay in the order of the batch. The plan refers to the bytes of the batch and copies none of them; what it takes
//! beside them is reserved first.

use std::collections::HashMap;

use kubewake_otlp::{
    Allowance, NoMemory,
    view::{LogRecord, MessageView, ResourceEntry, ScopeEntry, resources},
};

use super::stream_labels::{StreamLabels, StreamNames};
use crate::{
    core::{Batch, Charge, RecordOutcomes, RejectReason, SendError, WorkMemory},
    exporter::{
        log_source::{LogSource, SourceBytes, push},
        name_resolver::NameSubject,
    },
};

/// Memory for the plan of a small batch that is granted when the pipeline has none, so that full queues empty
/// themselves.
const UNCHARGED_BYTES: u64 = 16 << 10;

/// The memory of an entry of a map, beside its key.
const MAP_ENTRY_BYTES: usize = 128;

/// The requests to be made of a batch.
pub(super) struct PushPlan {
    pub(super) batch: Batch,
    pub(super) sources: SourceBytes,
    pub(super) tenants: Vec<TenantPlan>,
    /// Records that cannot be sent.
    pub(super) rejected: Vec<(usize, RejectReason)>,
    /// The memory of the plan, and of the outcomes of its records.
    _charge: Option<Charge>,
}

/// The records of one tenant.
pub(super) struct TenantPlan {
    /// `None` without a tenant header.
    pub(super) id: Option<String>,
    pub(super) streams: Vec<PlannedStream>,
    /// In the order in which they are sent.
    pub(super) entries: Vec<PlannedEntry>,
}

/// A set of labels.
pub(super) struct PlannedStream {
    /// `{a="b"}`
    pub(super) labels: String,
    /// Whether the labels hold all the attributes that they should, so that these need not be in the metadata.
    pub(super) is_complete: bool,
}

/// One log record.
#[derive(Clone, Copy, Debug)]
pub(super) struct PlannedEntry {
    /// Index of the stream in its tenant.
    pub(super) stream: u32,
    /// The number of the record in the batch.
    pub(super) record: u32,
    /// In nanoseconds since 1970.
    pub(super) time: u64,
    pub(super) source: LogSource,
}

impl PushPlan {
    /// Plans the requests for a batch. `now` is the time of records without one, in nanoseconds since 1970.
    pub(super) fn make(batch: Batch, labels: &StreamLabels, now: u64) -> Result<Self, SendError> {
        let Some(memory) = WorkMemory::for_delivery(&batch) else {
            return Ok(Self::empty(batch));
        };
        let memory = memory.with_uncharged(UNCHARGED_BYTES);
        let mut planner = Planner {
            labels,
            now,
            memory,
            sources: SourceBytes::default(),
            tenants: Vec::new(),
            tenant_numbers: HashMap::new(),
            stream_numbers: HashMap::new(),
            rejected: Vec::new(),
            next_record: 0,
        };
        match planner.plan(&batch) {
            Ok(()) => {
                let Planner { sources, mut tenants, rejected, memory, .. } = planner;
                for tenant in &mut tenants {
                    tenant.entries.sort_unstable_by_key(|entry| (entry.stream, entry.time, entry.record));
                }
                let charge = memory.into_charge();
                Ok(Self { batch, sources, tenants, rejected, _charge: charge })
            }
            Err(NoMemory) => Err(planner.memory.send_error()),
        }
    }

    fn empty(batch: Batch) -> Self {
        let sources = SourceBytes::default();
        Self { batch, sources, tenants: Vec::new(), rejected: Vec::new(), _charge: None }
    }
}

struct Planner<'b> {
    labels: &'b StreamLabels,
    now: u64,
    memory: WorkMemory<'b>,
    sources: SourceBytes,
    tenants: Vec<TenantPlan>,
    tenant_numbers: HashMap<Option<String>, u32>,
    stream_numbers: HashMap<(u32, String), u32>,
    rejected: Vec<(usize, RejectReason)>,
    next_record: usize,
}

/// Where the records of a resource go, or why they go nowhere.
type Target = Result<(u32, u32), RejectReason>;

impl Planner<'_> {
    fn plan(&mut self, batch: &Batch) -> Result<(), NoMemory> {
        self.reserve(RecordOutcomes::bytes_for(batch.items()))?;
        let mut first = 0;
        for (number, part) in batch.parts().iter().enumerate() {
            self.next_record = first;
            first += part.items;
            for entry in resources(&part.bytes) {
                self.resource(number, &part.bytes, &entry)?;
            }
        }
        Ok(())
    }

    fn resource(&mut self, part: usize, bytes: &[u8], entry: &ResourceEntry<'_>) -> Result<(), NoMemory> {
        let resource = self.sources.locate(part, bytes, entry.resource().as_bytes(), &mut self.memory)?;
        // The target of all records of the resource, if they have the same.
        let mut shared = None;
        for scope in entry.scopes() {
            self.scope(part, bytes, (entry, resource), &scope, &mut shared)?;
        }
        Ok(())
    }

    fn scope(
        &mut self,
        part: usize,
        bytes: &[u8],
        (entry, resource): (&ResourceEntry<'_>, u32),
        scope: &ScopeEntry<'_>,
        shared: &mut Option<Target>,
    ) -> Result<(), NoMemory> {
        let mut located = None;
        for record in scope.log_records() {
            let number = self.next_record;
            self.next_record += 1;
            let time = [record.time(), record.observed_time()].into_iter().find(|time| *time > 0).unwrap_or(self.now);
            let target = match *shared {
                Some(target) => target,
                None => self.target(entry, &record, time)?,
            };
            if !self.labels.depend_on_record() {
                *shared = Some(target);
            }
            let (tenant, stream) = match target {
                Ok(target) => target,
                Err(reason) => {
                    push(&mut self.rejected, (number, reason), &mut self.memory)?;
                    continue;
                }
            };
            let scope = match located {
                Some(scope) => scope,
                None => self.sources.locate(part, bytes, scope.scope().as_bytes(), &mut self.memory)?,
            };
            located = Some(scope);
            let source = LogSource::new(part, bytes, record.as_bytes(), resource, scope);
            let record = u32::try_from(number).unwrap_or(u32::MAX);
            if let Some(tenant) = self.tenants.get_mut(tenant as usize) {
                push(&mut tenant.entries, PlannedEntry { stream, record, time, source }, &mut self.memory)?;
            }
        }
        Ok(())
    }

    fn target(&mut self, entry: &ResourceEntry<'_>, record: &LogRecord<'_>, time: u64) -> Result<Target, NoMemory> {
        let subject = NameSubject { resource: entry.resource(), attributes: record.attributes(), time };
        let StreamNames { tenant, labels, is_complete } = match self.labels.resolve(&subject) {
            Ok(names) => names,
            Err(reason) => return Ok(Err(reason)),
        };
        let tenant = self.tenant_number(tenant)?;
        let stream = match self.stream_numbers.get(&(tenant, labels.clone())) {
            Some(stream) => *stream,
            None => self.add_stream(tenant, PlannedStream { labels, is_complete })?,
        };
        Ok(Ok((tenant, stream)))
    }

    fn tenant_number(&mut self, id: Option<String>) -> Result<u32, NoMemory> {
        if let Some(number) = self.tenant_numbers.get(&id) {
            return Ok(*number);
        }
        let number = u32::try_from(self.tenants.len()).unwrap_or(u32::MAX);
        // The id is here and in the plan.
        self.reserve(MAP_ENTRY_BYTES + 2 * id.as_ref().map_or(0, String::len))?;
        self.tenant_numbers.insert(id.clone(), number);
        let tenant = TenantPlan { id, streams: Vec::new(), entries: Vec::new() };
        push(&mut self.tenants, tenant, &mut self.memory)?;
        Ok(number)
    }

    fn add_stream(&mut self, tenant: u32, stream: PlannedStream) -> Result<u32, NoMemory> {
        self.reserve(MAP_ENTRY_BYTES + 2 * stream.labels.len())?;
        let Some(streams) = self.tenants.get_mut(tenant as usize).map(|tenant| &mut tenant.streams) else {
            return Ok(0);
        };
        let number = u32::try_from(streams.len()).unwrap_or(u32::MAX);
        self.stream_numbers.insert((tenant, stream.labels.clone()), number);
        push(streams, stream, &mut self.memory)?;
        Ok(number)
    }

    fn reserve(&mut self, bytes: usize) -> Result<(), NoMemory> {
        if self.memory.reserve(bytes) { Ok(()) } else { Err(NoMemory) }
    }
}
