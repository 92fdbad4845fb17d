//! An arriving request: every span is read once, without a lock, before any shard is touched.

use std::ops::Range;

use bytes::Bytes;
use kubewake_otlp::wire::{WireFields, len_field_size};

use super::{
    policy::{PolicySet, SpanFacts},
    span_store::{RESOURCE_HEADER_BYTES, SCOPE_HEADER_BYTES, SPAN_HEADER_BYTES},
    trace_id::{TraceId, TraceIdHashBuilder},
    wire,
};
use crate::core::Charge;

/// Lists of resources and scopes up to this length are not charged: they take a few kilobytes; few requests
/// have more.
const UNCHARGED_ENTRIES: usize = 64;

/// Memory of a trace in tables and lists, beside its spans.
pub(super) const TRACE_COST_BYTES: usize = 192;

pub(super) struct ParsedArrival {
    bytes: Bytes,
    /// The fields of resource and scope entries without their content, one behind the other.
    headers: Vec<u8>,
    resources: Vec<Range<usize>>,
    scopes: Vec<ArrivalScope>,
    pub(super) records: Vec<SpanRecord>,
    /// The needs of each shard.
    shares: Vec<ShardShare>,
    /// The policies that the spans were read for.
    pub(super) generation: u32,
    charge: Charge,
}

/// Why a request was not read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ArrivalError {
    /// The request is longer than offsets reach.
    TooLong,
    /// There is no memory for the facts, which need so many bytes in all.
    NoMemory(u64),
}

struct ArrivalScope {
    resource: u32,
    fields: Range<usize>,
}

#[derive(Clone, Copy)]
pub(super) struct SpanRecord {
    pub(super) seen: SpanFacts,
    /// The conditions that the span and its resource meet.
    pub(super) bits: u64,
    pub(super) hash: u64,
    pub(super) scope: u32,
    pub(super) shard: u16,
    start: u32,
    end: u32,
}

/// The needs of a shard for its part of a request.
#[derive(Clone, Copy, Default)]
pub(super) struct ShardShare {
    /// Bytes in a segment.
    pub(super) space: usize,
    /// Number of runs of consecutive spans of one trace.
    runs: usize,
    last: Option<(u32, u32, TraceId)>,
}

impl ShardShare {
    /// Limit of the charge, with a new trace for each run.
    pub(super) fn cost(&self) -> u64 {
        (self.space + self.runs * TRACE_COST_BYTES) as u64
    }
}

impl ParsedArrival {
    /// Reads a request of so many spans. Memory for the facts is reserved in the account of `account` first.
    pub(super) fn read(
        bytes: Bytes,
        items: usize,
        policies: &PolicySet,
        hash: &TraceIdHashBuilder,
        shards: usize,
        account: &Charge,
    ) -> Result<Self, ArrivalError> {
        if bytes.len() > i32::MAX as usize {
            return Err(ArrivalError::TooLong);
        }
        let cost = (items * size_of::<SpanRecord>()) as u64;
        let mut arrival = Self {
            bytes: Bytes::new(),
            headers: Vec::new(),
            resources: Vec::new(),
            scopes: Vec::new(),
            charge: account.reserve_copy(cost).ok_or(ArrivalError::NoMemory(cost))?,
            records: Vec::with_capacity(items),
            shares: vec![ShardShare::default(); shards],
            generation: policies.generation,
        };
        for entry in WireFields::new(&bytes).filter(|field| field.is_len(wire::RESOURCE_ENTRY)) {
            arrival.read_resource(&bytes, entry.value, policies, hash)?;
        }
        arrival.bytes = bytes;
        Ok(arrival)
    }

    fn read_resource(
        &mut self,
        bytes: &[u8],
        entry: &[u8],
        policies: &PolicySet,
        hash: &TraceIdHashBuilder,
    ) -> Result<(), ArrivalError> {
        let fields = self.copy_header(entry, wire::SCOPE_ENTRY);
        let mut bits = [0];
        policies.observer.observe_resource(self.headers.get(fields.clone()).unwrap_or_default(), &mut bits);
        let resource = self.resources.len() as u32;
        let [bits] = bits;
        reserve_entry(&mut self.resources, &mut self.charge)?;
        self.resources.push(fields);
        for scope in WireFields::new(entry).filter(|field| field.is_len(wire::SCOPE_ENTRY)) {
            let fields = self.copy_header(scope.value, wire::SPAN);
            reserve_entry(&mut self.scopes, &mut self.charge)?;
            self.scopes.push(ArrivalScope { resource, fields });
            for span in WireFields::new(scope.value).filter(|field| field.is_len(wire::SPAN)) {
                self.read_span(bytes, span.value, bits, policies, hash);
            }
        }
        Ok(())
    }

    /// Copies the fields of an entry, without field `but`.
    fn copy_header(&mut self, entry: &[u8], but: u32) -> Range<usize> {
        let start = self.headers.len();
        for field in WireFields::new(entry).filter(|field| !field.is_len(but)) {
            self.headers.extend_from_slice(field.raw);
        }
        start..self.headers.len()
    }

    fn read_span(&mut self, bytes: &[u8], span: &[u8], bits: u64, policies: &PolicySet, hash: &TraceIdHashBuilder) {
        let mut bits = [bits];
        let seen = policies.observer.observe_span(span, &mut bits);
        let hash = match self.records.last() {
            Some(last) if last.seen.id == seen.id => last.hash,
            _ => hash.hash_id(seen.id),
        };
        let start = (span.as_ptr().addr() - bytes.as_ptr().addr()) as u32;
        let [bits] = bits;
        let record = SpanRecord {
            seen,
            bits,
            hash,
            scope: (self.scopes.len() - 1) as u32,
            shard: TraceIdHashBuilder::shard_of_hash(hash, self.shares.len()) as u16,
            start,
            end: start + span.len() as u32,
        };
        self.add_to_share(&record, span.len());
        self.records.push(record);
    }

    fn add_to_share(&mut self, record: &SpanRecord, length: usize) {
        let Some(scope) = self.scopes.get(record.scope as usize) else { return };
        let Some(share) = self.shares.get_mut(usize::from(record.shard)) else { return };
        let now = (scope.resource, record.scope, record.seen.id);
        let last = share.last.replace(now);
        if last.is_none_or(|(resource, ..)| resource != scope.resource) {
            share.space += RESOURCE_HEADER_BYTES + self.resources.get(scope.resource as usize).map_or(0, Range::len);
        }
        if last.is_none_or(|(_, scope, _)| scope != record.scope) {
            share.space += SCOPE_HEADER_BYTES + scope.fields.len();
        }
        share.runs += usize::from(last.is_none_or(|(.., id)| id != record.seen.id));
        share.space += SPAN_HEADER_BYTES + length;
    }

    /// The charge for the facts.
    pub(super) fn charge(&self) -> &Charge {
        &self.charge
    }

    /// The needs of a shard, if it has any spans.
    pub(super) fn share(&self, shard: usize) -> Option<&ShardShare> {
        self.shares.get(shard).filter(|share| share.runs > 0)
    }

    /// The content of a span.
    pub(super) fn span_bytes(&self, record: &SpanRecord) -> &[u8] {
        self.bytes.get(record.start as usize..record.end as usize).unwrap_or_default()
    }

    /// The resource of a scope.
    pub(super) fn resource_of_scope(&self, scope: u32) -> u32 {
        self.scopes.get(scope as usize).map_or(0, |scope| scope.resource)
    }

    /// The fields of a resource entry.
    pub(super) fn resource_fields(&self, resource: u32) -> &[u8] {
        let fields = self.resources.get(resource as usize).cloned().unwrap_or_default();
        self.headers.get(fields).unwrap_or_default()
    }

    /// The fields of a scope entry.
    pub(super) fn scope_fields(&self, scope: u32) -> &[u8] {
        let fields = self.scopes.get(scope as usize).map_or(0..0, |scope| scope.fields.clone());
        self.headers.get(fields).unwrap_or_default()
    }

    /// The bytes that a span adds to a request.
    pub(super) fn span_size(&self, record: &SpanRecord) -> u64 {
        len_field_size(wire::SPAN, (record.end - record.start) as usize) as u64
    }

    /// The bytes that the headers of a scope and its resource add to a request.
    pub(super) fn header_size(&self, scope: u32) -> u64 {
        let resource = self.resource_fields(self.resource_of_scope(scope)).len();
        len_field_size(wire::SCOPE_ENTRY, self.scope_fields(scope).len()) as u64 + resource as u64
    }
}

/// Makes room for one more item. A list that becomes long is charged before it grows, and while its items move
/// both allocations exist.
fn reserve_entry<T>(list: &mut Vec<T>, charge: &mut Charge) -> Result<(), ArrivalError> {
    if list.len() < list.capacity() || list.len() < UNCHARGED_ENTRIES {
        return Ok(());
    }
    let items = list.capacity() * 2;
    let more = (items * size_of::<T>()) as u64;
    if !charge.grow(more) {
        return Err(ArrivalError::NoMemory(charge.bytes() + more));
    }
    list.reserve_exact(items - list.len());
    Ok(())
}
