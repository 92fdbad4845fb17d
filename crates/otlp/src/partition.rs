//! Partitions a request by destination.

use std::ops::Range;

use bytes::Bytes;

use crate::Signal;
use crate::memory::{Allowance, MemoryMeter};
use crate::nesting::{RECORD_LEVEL, count_items, is_child};
use crate::view::{DataPoint, MetricKind, RecordRef, ResourceEntry, ScopeEntry};
use crate::wire::{WireField, WireFields};
use crate::write_plan::WritePlan;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PartitionGrain {
    /// Spans, log records and whole metrics.
    Records,
    /// Spans, log records and data points.
    Items,
}

/// The part of a request that goes to one destination, as a request of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartitionShare {
    pub to: usize,
    /// The encoded request.
    pub bytes: Bytes,
    /// Number of items in the request.
    pub items: usize,
}

/// Divides a request into one for each destination, in the order of the destinations' numbers. `assign` returns
/// the destination of a record, or of a data point of a metric.
///
/// Guaranteed for bytes that [`scan`](crate::scan) accepted: `assign` is called once for each record or point,
/// in order; each of them is in exactly one share, with everything around it, unknown fields included, and in
/// its order. A request with a single destination is returned unchanged. A metric without points is assigned as
/// a whole. Unknown fields of the request itself go with the first share. Not done: entries without records are
/// dropped, unless there is just one destination.
///
/// The messages around a record are repeated in each share, so the shares together may be far larger than the
/// request. They are written one by one, on demand; a caller that keeps them counts their bytes.
///
/// Assumed: the bytes were scanned. Other bytes do not panic; parts that are not understood are dropped.
pub fn partition(
    signal: Signal,
    bytes: &Bytes,
    grain: PartitionGrain,
    assign: impl FnMut(&RecordRef<'_>, Option<&DataPoint<'_>>) -> usize,
) -> PartitionShares<'static> {
    PartitionShares::new(signal, bytes, grain, assign, MemoryMeter::unlimited())
}

/// As [`partition`], but reserves memory before it allocates. After a refusal the shares end early, and
/// [`PartitionShares::is_exhausted`] is true. `assign` may then not have been called for all records.
pub fn partition_within<'m>(
    signal: Signal,
    bytes: &Bytes,
    grain: PartitionGrain,
    assign: impl FnMut(&RecordRef<'_>, Option<&DataPoint<'_>>) -> usize,
    allowance: &'m mut dyn Allowance,
) -> PartitionShares<'m> {
    PartitionShares::new(signal, bytes, grain, assign, MemoryMeter::new(allowance))
}

/// The shares of a request; see [`partition`].
#[derive(Debug)]
pub struct PartitionShares<'m> {
    bytes: Bytes,
    is_single: bool,
    /// The first leaf of the next share.
    next: usize,
    map: PartitionMap,
    plan: WritePlan<'m>,
}

impl<'m> PartitionShares<'m> {
    fn new(
        signal: Signal,
        bytes: &Bytes,
        grain: PartitionGrain,
        assign: impl FnMut(&RecordRef<'_>, Option<&DataPoint<'_>>) -> usize,
        meter: MemoryMeter<'m>,
    ) -> Self {
        let points = signal == Signal::Metrics && grain == PartitionGrain::Items;
        let mut mapper = PartitionMapper { signal, source: bytes, points, assign, map: PartitionMap::default(), meter };
        mapper.request();
        let PartitionMapper { mut map, mut meter, .. } = mapper;
        // Most requests are sorted already: they have one destination. The sort needs room for as many leaves
        // again.
        if !map.leaves.is_sorted_by_key(|leaf| leaf.to) && meter.reserve(size_of_val(map.leaves.as_slice())) {
            // Stable, so that the leaves of one destination stay in order.
            map.leaves.sort_by_key(|leaf| leaf.to);
        }
        let is_single = map.leaves.chunk_by(|a, b| a.to == b.to).take(2).count() < 2;
        let mut plan = WritePlan::new(meter);
        plan.extend(&map.request);
        Self { bytes: bytes.clone(), is_single, next: 0, map, plan }
    }

    /// Whether the shares ended because memory was refused.
    pub fn is_exhausted(&self) -> bool {
        self.plan.is_exhausted()
    }
}

impl Iterator for PartitionShares<'_> {
    type Item = PartitionShare;

    fn next(&mut self) -> Option<PartitionShare> {
        if self.plan.is_exhausted() {
            return None;
        }
        let rest = self.map.leaves.get(self.next..)?;
        let leaves = rest.chunk_by(|a, b| a.to == b.to).next()?;
        let to = leaves.first()?.to;
        let items = leaves.iter().map(|leaf| leaf.items).sum();
        self.next += leaves.len();
        if self.is_single {
            return Some(PartitionShare { to, bytes: self.bytes.clone(), items });
        }
        self.map.plan(&mut self.plan, leaves);
        let bytes = self.plan.write(&self.bytes).ok()?;
        self.plan.clear();
        Some(PartitionShare { to, bytes, items })
    }
}

#[derive(Debug, Default)]
struct PartitionMap {
    /// Parents of leaves, each behind its own parent.
    entries: Vec<PartitionEntry>,
    /// The fields of entries beside their children. One list for all: an allocation for each entry would take
    /// more memory than the entry itself.
    headers: Vec<HeaderField>,
    leaves: Vec<PartitionLeaf>,
    /// Unknown fields of the request.
    request: Vec<Range<usize>>,
}

#[derive(Debug)]
struct PartitionEntry {
    /// The number of its field in its parent.
    number: u32,
    around: Option<usize>,
    /// The indices of its first and its last header, if it has any.
    headers: Option<(usize, usize)>,
}

#[derive(Debug)]
struct HeaderField {
    raw: Range<usize>,
    /// The next header of the same entry.
    next: Option<usize>,
}

#[derive(Debug)]
struct PartitionLeaf {
    to: usize,
    items: usize,
    raw: Range<usize>,
    within: usize,
}

impl PartitionMap {
    /// Plans the leaves of one share, behind the current content of the plan.
    fn plan(&self, plan: &mut WritePlan<'_>, leaves: &[PartitionLeaf]) {
        for of_entry in leaves.chunk_by(|a, b| self.outermost(a.within) == self.outermost(b.within)) {
            self.nested(plan, of_entry, 0);
        }
    }

    /// Plans leaves that share their entry at `depth`.
    fn nested(&self, plan: &mut WritePlan<'_>, leaves: &[PartitionLeaf], depth: usize) {
        let Some(entry) = leaves.first().and_then(|leaf| self.ancestor_at_depth(leaf.within, depth)) else {
            leaves.iter().for_each(|leaf| plan.range(leaf.raw.start, leaf.raw.end));
            return;
        };
        let Some(PartitionEntry { number, headers, .. }) = self.entries.get(entry) else { return };
        plan.open(*number);
        let mut next = headers.map(|(first, _)| first);
        while let Some(HeaderField { raw, next: after }) = next.and_then(|at| self.headers.get(at)) {
            plan.range(raw.start, raw.end);
            next = *after;
        }
        for inner in leaves
            .chunk_by(|a, b| self.ancestor_at_depth(a.within, depth + 1) == self.ancestor_at_depth(b.within, depth + 1))
        {
            self.nested(plan, inner, depth + 1);
        }
        plan.close();
    }

    fn outermost(&self, entry: usize) -> Option<usize> {
        self.ancestor_at_depth(entry, 0)
    }

    /// The ancestor of `entry` at `depth`, if it is that deep.
    fn ancestor_at_depth(&self, entry: usize, depth: usize) -> Option<usize> {
        // Four levels at most: resource, scope, metric, data.
        let mut path = [None; 4];
        let mut next = Some(entry);
        let mut length = 0;
        while let (Some(index), Some(slot)) = (next, path.get_mut(length)) {
            *slot = Some(index);
            length += 1;
            next = self.entries.get(index).and_then(|entry| entry.around);
        }
        path.get(length.checked_sub(depth + 1)?).copied().flatten()
    }
}

struct PartitionMapper<'s, 'm, A> {
    signal: Signal,
    source: &'s [u8],
    points: bool,
    assign: A,
    map: PartitionMap,
    meter: MemoryMeter<'m>,
}

impl<'s, A: FnMut(&RecordRef<'_>, Option<&DataPoint<'_>>) -> usize> PartitionMapper<'s, '_, A> {
    fn request(&mut self) {
        for field in WireFields::new(self.source) {
            if is_child(0, &field) {
                self.resource_entry(&field);
            } else {
                let range = self.range(&field);
                self.meter.push(&mut self.map.request, range);
            }
            if self.meter.is_exhausted() {
                return;
            }
        }
    }

    fn resource_entry(&mut self, entry: &WireField<'s>) {
        let index = self.open(entry.number, None);
        let resource = ResourceEntry::new(entry.value);
        for field in WireFields::new(entry.value) {
            if is_child(1, &field) {
                self.scope_entry(&resource, &field, index);
            } else {
                self.header(index, &field);
            }
            if self.meter.is_exhausted() {
                return;
            }
        }
    }

    fn scope_entry(&mut self, resource: &ResourceEntry<'_>, entry: &WireField<'s>, around: usize) {
        let index = self.open(entry.number, Some(around));
        let scope = ScopeEntry::new(entry.value);
        for field in WireFields::new(entry.value) {
            if is_child(2, &field) {
                let record = RecordRef::new(self.signal, resource, &scope, field.value);
                self.record(&record, &field, index);
            } else {
                self.header(index, &field);
            }
            if self.meter.is_exhausted() {
                return;
            }
        }
    }

    fn record(&mut self, record: &RecordRef<'_>, field: &WireField<'s>, within: usize) {
        if self.points && self.metric(record, field, within) {
            return;
        }
        let to = (self.assign)(record, None);
        let items = count_items(self.signal, RECORD_LEVEL, field.value, usize::MAX);
        let raw = self.range(field);
        self.meter.push(&mut self.map.leaves, PartitionLeaf { to, items, raw, within });
    }

    /// Visits the points of a metric; false if it has none.
    fn metric(&mut self, record: &RecordRef<'_>, metric: &WireField<'s>, around: usize) -> bool {
        // Of several data messages the last one counts; the others are copied in front of it.
        let Some(data) = WireFields::new(metric.value).filter(|field| is_child(3, field)).last() else { return false };
        let Some(kind) = MetricKind::from_field_number(data.number) else { return false };
        if !WireFields::new(data.value).any(|field| is_child(4, &field)) {
            return false;
        }
        let index = self.open(metric.number, Some(around));
        for field in WireFields::new(metric.value).filter(|field| !std::ptr::eq(field.raw, data.raw)) {
            self.header(index, &field);
        }
        let within = self.open(data.number, Some(index));
        for field in WireFields::new(data.value) {
            if is_child(4, &field) {
                let to = (self.assign)(record, Some(&DataPoint::new(kind, field.value)));
                let raw = self.range(&field);
                self.meter.push(&mut self.map.leaves, PartitionLeaf { to, items: 1, raw, within });
            } else {
                self.header(within, &field);
            }
        }
        true
    }

    fn open(&mut self, number: u32, around: Option<usize>) -> usize {
        let index = self.map.entries.len();
        self.meter.push(&mut self.map.entries, PartitionEntry { number, around, headers: None });
        index
    }

    fn header(&mut self, entry: usize, field: &WireField<'_>) {
        let raw = self.range(field);
        let at = self.map.headers.len();
        self.meter.push(&mut self.map.headers, HeaderField { raw, next: None });
        let Some(PartitionEntry { headers, .. }) = self.map.entries.get_mut(entry) else { return };
        let first = match *headers {
            None => at,
            Some((first, last)) => {
                if let Some(last) = self.map.headers.get_mut(last) {
                    last.next = Some(at);
                }
                first
            }
        };
        *headers = Some((first, at));
    }

    /// The range of a field in its request.
    fn range(&self, field: &WireField<'_>) -> Range<usize> {
        let start = field.raw.as_ptr().addr() - self.source.as_ptr().addr();
        start..start + field.raw.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scan;
    use crate::view::resources;
    use crate::wire::put_bytes;

    fn field(number: u32, content: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        put_bytes(&mut out, number, content);
        out
    }

    #[test]
    fn a_single_destination_gets_the_very_bytes() {
        let request = Bytes::from(field(1, &field(2, &field(2, &field(5, b"a")).repeat(3))));
        let shares: Vec<_> = partition(Signal::Traces, &request, PartitionGrain::Items, |_, _| 7).collect();
        assert_eq!(shares.len(), 1);
        assert_eq!((shares[0].to, shares[0].items), (7, 3));
        assert_eq!(shares[0].bytes.as_ptr(), request.as_ptr());
    }

    #[test]
    fn points_of_one_metric_go_their_ways_each_with_its_name() {
        let point = |value: &[u8]| field(1, &field(7, &[field(1, value), field(2, &field(1, b"v"))].concat()));
        let gauge = field(5, &[point(b"one"), point(b"two"), point(b"one")].concat());
        let empty = field(2, &field(1, b"empty"));
        let metric = field(2, &[gauge, field(1, b"name")].concat());
        let request = Bytes::from(field(1, &field(2, &[metric, empty].concat())));
        let assign = |_: &RecordRef<'_>, point: Option<&DataPoint<'_>>| match point {
            Some(point) => usize::from(point.attributes().get("two").is_some()),
            None => 5,
        };
        let shares: Vec<_> = partition(Signal::Metrics, &request, PartitionGrain::Items, assign).collect();
        let counts: Vec<_> = shares.iter().map(|share| (share.to, share.items)).collect();
        assert_eq!(counts, [(0, 2), (1, 1), (5, 0)]);
        for share in &shares {
            assert_eq!(scan(Signal::Metrics, &share.bytes).unwrap().items, share.items);
            let entry = resources(&share.bytes).next().unwrap();
            let name = entry.scopes().next().unwrap().metrics().next().unwrap().name();
            assert_eq!(name, if share.to == 5 { &b"empty"[..] } else { b"name" });
        }
        let whole: Vec<_> = partition(Signal::Metrics, &request, PartitionGrain::Records, |_, point| {
            assert!(point.is_none());
            0
        })
        .collect();
        assert_eq!(whole.len(), 1);
    }
}
