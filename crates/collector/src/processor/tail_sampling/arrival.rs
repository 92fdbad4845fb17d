//! A request as it arrives: every span read once, without a lock, before any shard is touched.

use std::ops::Range;

use bytes::Bytes;
use kubewake_otlp::wire::{Fields, len_field_size};

use super::{
    id::{IdHash, TraceId},
    policy::{Policies, Seen},
    store::{RESOURCE_WORDS, SCOPE_WORDS, SPAN_WORDS},
    wire,
};
use crate::core::Charge;

/// Lists of resources and of scopes up to this length are not charged for: they are a few kilobytes, and few requests have more.
const FREE_ENTRIES: usize = 64;

/// What a trace may take in tables and lists, beside its spans.
pub(super) const TRACE_COST: usize = 192;

/// A request, read.
pub(super) struct Arrival {
    bytes: Bytes,
    /// The fields of resource and scope entries without what is in them, one behind the other.
    headers: Vec<u8>,
    resources: Vec<Range<usize>>,
    scopes: Vec<Scope>,
    pub(super) records: Vec<Record>,
    /// What each shard will hold of it.
    shares: Vec<Share>,
    /// The policies that it was read for.
    pub(super) generation: u32,
    /// For what was read.
    charge: Charge,
}

/// Why a request was not read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NotRead {
    /// It is longer than offsets reach.
    TooLong,
    /// There is no memory to note what is in it, which is so much in all.
    NoMemory(u64),
}

struct Scope {
    resource: u32,
    fields: Range<usize>,
}

/// A span of it.
#[derive(Clone, Copy)]
pub(super) struct Record {
    pub(super) seen: Seen,
    /// The conditions that it meets, those of its resource included.
    pub(super) bits: u64,
    pub(super) hash: u64,
    pub(super) scope: u32,
    pub(super) shard: u16,
    start: u32,
    end: u32,
}

/// What a shard needs for its part of a request.
#[derive(Clone, Copy, Default)]
pub(super) struct Share {
    /// Bytes of a segment.
    pub(super) space: usize,
    /// How often the trace changes from one span to the next.
    runs: usize,
    last: Option<(u32, u32, TraceId)>,
}

impl Share {
    /// What is charged for it at most, if each change is to a trace that is new.
    pub(super) fn cost(&self) -> u64 {
        (self.space + self.runs * TRACE_COST) as u64
    }
}

impl Arrival {
    /// Reads a request of so many spans. What it takes to note what is in it is reserved in the account of `account` first.
    pub(super) fn read(
        bytes: Bytes,
        items: usize,
        policies: &Policies,
        hash: &IdHash,
        shards: usize,
        account: &Charge,
    ) -> Result<Self, NotRead> {
        if bytes.len() > i32::MAX as usize {
            return Err(NotRead::TooLong);
        }
        let cost = (items * size_of::<Record>()) as u64;
        let mut arrival = Self {
            bytes: Bytes::new(),
            headers: Vec::new(),
            resources: Vec::new(),
            scopes: Vec::new(),
            charge: account.another(cost).ok_or(NotRead::NoMemory(cost))?,
            records: Vec::with_capacity(items),
            shares: vec![Share::default(); shards],
            generation: policies.generation,
        };
        for entry in Fields::new(&bytes).filter(|field| field.is_len(wire::RESOURCE_ENTRY)) {
            arrival.resource(&bytes, entry.value, policies, hash)?;
        }
        arrival.bytes = bytes;
        Ok(arrival)
    }

    fn resource(&mut self, bytes: &[u8], entry: &[u8], policies: &Policies, hash: &IdHash) -> Result<(), NotRead> {
        let fields = self.header(entry, wire::SCOPE_ENTRY);
        let mut bits = [0];
        policies.observer.resource(self.headers.get(fields.clone()).unwrap_or_default(), &mut bits);
        let resource = self.resources.len() as u32;
        let [bits] = bits;
        make_room(&mut self.resources, &mut self.charge)?;
        self.resources.push(fields);
        for scope in Fields::new(entry).filter(|field| field.is_len(wire::SCOPE_ENTRY)) {
            let fields = self.header(scope.value, wire::SPAN);
            make_room(&mut self.scopes, &mut self.charge)?;
            self.scopes.push(Scope { resource, fields });
            for span in Fields::new(scope.value).filter(|field| field.is_len(wire::SPAN)) {
                self.span(bytes, span.value, bits, policies, hash);
            }
        }
        Ok(())
    }

    /// Copies the fields of an entry but for one.
    fn header(&mut self, entry: &[u8], but: u32) -> Range<usize> {
        let start = self.headers.len();
        for field in Fields::new(entry).filter(|field| !field.is_len(but)) {
            self.headers.extend_from_slice(field.raw);
        }
        start..self.headers.len()
    }

    fn span(&mut self, bytes: &[u8], span: &[u8], bits: u64, policies: &Policies, hash: &IdHash) {
        let mut bits = [bits];
        let seen = policies.observer.span(span, &mut bits);
        let hash = match self.records.last() {
            Some(last) if last.seen.id == seen.id => last.hash,
            _ => hash.of(seen.id),
        };
        let start = (span.as_ptr().addr() - bytes.as_ptr().addr()) as u32;
        let [bits] = bits;
        let record = Record {
            seen,
            bits,
            hash,
            scope: (self.scopes.len() - 1) as u32,
            shard: IdHash::shard(hash, self.shares.len()) as u16,
            start,
            end: start + span.len() as u32,
        };
        self.reserve(&record, span.len());
        self.records.push(record);
    }

    fn reserve(&mut self, record: &Record, length: usize) {
        let Some(scope) = self.scopes.get(record.scope as usize) else { return };
        let Some(share) = self.shares.get_mut(usize::from(record.shard)) else { return };
        let now = (scope.resource, record.scope, record.seen.id);
        let last = share.last.replace(now);
        if last.is_none_or(|(resource, ..)| resource != scope.resource) {
            share.space += RESOURCE_WORDS + self.resources.get(scope.resource as usize).map_or(0, Range::len);
        }
        if last.is_none_or(|(_, scope, _)| scope != record.scope) {
            share.space += SCOPE_WORDS + scope.fields.len();
        }
        share.runs += usize::from(last.is_none_or(|(.., id)| id != record.seen.id));
        share.space += SPAN_WORDS + length;
    }

    /// What is held for what was read.
    pub(super) fn charge(&self) -> &Charge {
        &self.charge
    }

    /// What a shard needs, if anything.
    pub(super) fn share(&self, shard: usize) -> Option<&Share> {
        self.shares.get(shard).filter(|share| share.runs > 0)
    }

    /// The content of a span.
    pub(super) fn span_of(&self, record: &Record) -> &[u8] {
        self.bytes.get(record.start as usize..record.end as usize).unwrap_or_default()
    }

    /// Which resource a scope belongs to.
    pub(super) fn resource_of(&self, scope: u32) -> u32 {
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

    /// What a span adds to a request.
    pub(super) fn size_of(&self, record: &Record) -> u64 {
        len_field_size(wire::SPAN, (record.end - record.start) as usize) as u64
    }

    /// What the headers of a scope and its resource add to a request.
    pub(super) fn header_size(&self, scope: u32) -> u64 {
        let resource = self.resource_fields(self.resource_of(scope)).len();
        len_field_size(wire::SCOPE_ENTRY, self.scope_fields(scope).len()) as u64 + resource as u64
    }
}

/// Makes room for one more item. A list that becomes long is charged for before it grows, and while its items move both allocations are there.
fn make_room<T>(list: &mut Vec<T>, charge: &mut Charge) -> Result<(), NotRead> {
    if list.len() < list.capacity() || list.len() < FREE_ENTRIES {
        return Ok(());
    }
    let items = list.capacity() * 2;
    let more = (items * size_of::<T>()) as u64;
    if !charge.grow(more) {
        return Err(NotRead::NoMemory(charge.bytes() + more));
    }
    list.reserve_exact(items - list.len());
    Ok(())
}
