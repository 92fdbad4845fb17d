//! One request for each destination.

use std::ops::Range;

use bytes::Bytes;

use crate::Signal;
use crate::level::{RECORD, count_items, is_child};
use crate::memory::{Allowance, Meter};
use crate::plan::Plan;
use crate::view::{MetricKind, Point, RecordRef, ResourceEntry, ScopeEntry};
use crate::wire::{Field, Fields};

/// What [`partition`] keeps together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Grain {
    /// Spans, log records, whole metrics.
    Records,
    /// Spans, log records, data points.
    Items,
}

/// The part of a request that goes to one destination, as a request of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Share {
    /// The destination.
    pub to: usize,
    /// The encoded request.
    pub bytes: Bytes,
    /// How many items are in it.
    pub items: usize,
}

/// Takes a request apart into one for each destination, in the order of the destinations' numbers. `assign` says where a
/// record goes, or where a data point of a metric goes.
///
/// Guaranteed for bytes that [`scan`](crate::scan) accepted: `assign` is asked once for each record or point, in order;
/// every one of them is in exactly one share, with all that is around it, unknown fields included, and in its order. A
/// request with a single destination is returned as it is. A metric without points is asked for as a whole. Unknown fields
/// of the request itself go with the first share. Not done: entries without records go, unless there is just one
/// destination.
///
/// What is around a record is repeated in each share, so the shares together may be far larger than the request. They are
/// written one by one, as they are asked for; whoever keeps them counts their bytes.
///
/// Assumed: the bytes were scanned. Others do not panic; what is not understood goes.
pub fn partition(
    signal: Signal,
    bytes: &Bytes,
    grain: Grain,
    assign: impl FnMut(&RecordRef<'_>, Option<&Point<'_>>) -> usize,
) -> Shares<'static> {
    Shares::new(signal, bytes, grain, assign, Meter::unlimited())
}

/// As [`partition`], with memory that is asked for before it is allocated. When there is none the shares end early, and
/// [`Shares::is_exhausted`] says so. `assign` may then not have been asked for all.
pub fn partition_within<'m>(
    signal: Signal,
    bytes: &Bytes,
    grain: Grain,
    assign: impl FnMut(&RecordRef<'_>, Option<&Point<'_>>) -> usize,
    allowance: &'m mut dyn Allowance,
) -> Shares<'m> {
    Shares::new(signal, bytes, grain, assign, Meter::new(allowance))
}

/// The shares of a request; see [`partition`].
#[derive(Debug)]
pub struct Shares<'m> {
    bytes: Bytes,
    is_single: bool,
    /// The first leaf of the next share.
    next: usize,
    map: Map,
    plan: Plan<'m>,
}

impl<'m> Shares<'m> {
    fn new(
        signal: Signal,
        bytes: &Bytes,
        grain: Grain,
        assign: impl FnMut(&RecordRef<'_>, Option<&Point<'_>>) -> usize,
        meter: Meter<'m>,
    ) -> Self {
        let points = signal == Signal::Metrics && grain == Grain::Items;
        let mut mapper = Mapper { signal, source: bytes, points, assign, map: Map::default(), meter };
        mapper.request();
        let Mapper { mut map, mut meter, .. } = mapper;
        // Most requests are in order already: of one destination. The sort needs room for as many leaves again.
        if !map.leaves.is_sorted_by_key(|leaf| leaf.to) && meter.reserve(size_of_val(map.leaves.as_slice())) {
            // Stable, so that what goes to one destination stays in order.
            map.leaves.sort_by_key(|leaf| leaf.to);
        }
        let is_single = map.leaves.chunk_by(|a, b| a.to == b.to).take(2).count() < 2;
        let mut plan = Plan::new(meter);
        plan.extend(&map.request);
        Self { bytes: bytes.clone(), is_single, next: 0, map, plan }
    }

    /// Whether the shares ended for want of memory.
    pub fn is_exhausted(&self) -> bool {
        self.plan.is_exhausted()
    }
}

impl Iterator for Shares<'_> {
    type Item = Share;

    fn next(&mut self) -> Option<Share> {
        if self.plan.is_exhausted() {
            return None;
        }
        let rest = self.map.leaves.get(self.next..)?;
        let leaves = rest.chunk_by(|a, b| a.to == b.to).next()?;
        let (to, items) = (leaves.first()?.to, leaves.iter().map(|leaf| leaf.items).sum());
        self.next += leaves.len();
        if self.is_single {
            return Some(Share { to, bytes: self.bytes.clone(), items });
        }
        self.map.plan(&mut self.plan, leaves);
        let bytes = self.plan.write(&self.bytes).ok()?;
        self.plan.clear();
        Some(Share { to, bytes, items })
    }
}

/// Where everything is.
#[derive(Debug, Default)]
struct Map {
    /// Messages around leaves, each after the one that it is in.
    entries: Vec<Entry>,
    /// What is in entries beside their children. One list for all: an allocation for each entry would take more than the
    /// entry itself.
    headers: Vec<Header>,
    leaves: Vec<Leaf>,
    /// Unknown fields of the request.
    request: Vec<Range<usize>>,
}

#[derive(Debug)]
struct Entry {
    /// Its field in the message around it.
    number: u32,
    around: Option<usize>,
    /// Its first and its last header, if it has any.
    headers: Option<(usize, usize)>,
}

#[derive(Debug)]
struct Header {
    /// The whole field.
    raw: Range<usize>,
    /// The next one of the same entry.
    next: Option<usize>,
}

#[derive(Debug)]
struct Leaf {
    to: usize,
    items: usize,
    /// The whole field.
    raw: Range<usize>,
    within: usize,
}

impl Map {
    /// Plans the leaves of one share, after what is in the plan already.
    fn plan(&self, plan: &mut Plan<'_>, leaves: &[Leaf]) {
        for of_entry in leaves.chunk_by(|a, b| self.outermost(a.within) == self.outermost(b.within)) {
            self.nested(plan, of_entry, 0);
        }
    }

    /// Plans leaves that share their entry at `depth`.
    fn nested(&self, plan: &mut Plan<'_>, leaves: &[Leaf], depth: usize) {
        let Some(entry) = leaves.first().and_then(|leaf| self.at(leaf.within, depth)) else {
            leaves.iter().for_each(|leaf| plan.range(leaf.raw.start, leaf.raw.end));
            return;
        };
        let Some(Entry { number, headers, .. }) = self.entries.get(entry) else { return };
        plan.open(*number);
        let mut next = headers.map(|(first, _)| first);
        while let Some(Header { raw, next: after }) = next.and_then(|at| self.headers.get(at)) {
            plan.range(raw.start, raw.end);
            next = *after;
        }
        for inner in leaves.chunk_by(|a, b| self.at(a.within, depth + 1) == self.at(b.within, depth + 1)) {
            self.nested(plan, inner, depth + 1);
        }
        plan.close();
    }

    fn outermost(&self, entry: usize) -> Option<usize> {
        self.at(entry, 0)
    }

    /// The entry at `depth` on the way down to `entry`, if it is that deep.
    fn at(&self, entry: usize, depth: usize) -> Option<usize> {
        // Four at most: resource, scope, metric, data.
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

struct Mapper<'s, 'm, A> {
    signal: Signal,
    source: &'s [u8],
    points: bool,
    assign: A,
    map: Map,
    meter: Meter<'m>,
}

impl<'s, A: FnMut(&RecordRef<'_>, Option<&Point<'_>>) -> usize> Mapper<'s, '_, A> {
    fn request(&mut self) {
        for field in Fields::new(self.source) {
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

    fn resource_entry(&mut self, entry: &Field<'s>) {
        let index = self.open(entry.number, None);
        let resource = ResourceEntry::new(entry.value);
        for field in Fields::new(entry.value) {
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

    fn scope_entry(&mut self, resource: &ResourceEntry<'_>, entry: &Field<'s>, around: usize) {
        let index = self.open(entry.number, Some(around));
        let scope = ScopeEntry::new(entry.value);
        for field in Fields::new(entry.value) {
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

    fn record(&mut self, record: &RecordRef<'_>, field: &Field<'s>, within: usize) {
        if self.points && self.metric(record, field, within) {
            return;
        }
        let to = (self.assign)(record, None);
        let items = count_items(self.signal, RECORD, field.value, usize::MAX);
        let raw = self.range(field);
        self.meter.push(&mut self.map.leaves, Leaf { to, items, raw, within });
    }

    /// Takes a metric apart; false if it has no points.
    fn metric(&mut self, record: &RecordRef<'_>, metric: &Field<'s>, around: usize) -> bool {
        // Of several data messages the last one counts; the others are passed on in front of it.
        let Some(data) = Fields::new(metric.value).filter(|field| is_child(3, field)).last() else { return false };
        let Some(kind) = MetricKind::of(data.number) else { return false };
        if !Fields::new(data.value).any(|field| is_child(4, &field)) {
            return false;
        }
        let index = self.open(metric.number, Some(around));
        for field in Fields::new(metric.value).filter(|field| !std::ptr::eq(field.raw, data.raw)) {
            self.header(index, &field);
        }
        let within = self.open(data.number, Some(index));
        for field in Fields::new(data.value) {
            if is_child(4, &field) {
                let to = (self.assign)(record, Some(&Point::new(kind, field.value)));
                let raw = self.range(&field);
                self.meter.push(&mut self.map.leaves, Leaf { to, items: 1, raw, within });
            } else {
                self.header(within, &field);
            }
        }
        true
    }

    fn open(&mut self, number: u32, around: Option<usize>) -> usize {
        let index = self.map.entries.len();
        self.meter.push(&mut self.map.entries, Entry { number, around, headers: None });
        index
    }

    fn header(&mut self, entry: usize, field: &Field<'_>) {
        let (raw, at) = (self.range(field), self.map.headers.len());
        self.meter.push(&mut self.map.headers, Header { raw, next: None });
        let Some(Entry { headers, .. }) = self.map.entries.get_mut(entry) else { return };
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

    /// Where a field is in the request that it was read from.
    fn range(&self, field: &Field<'_>) -> Range<usize> {
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
        let shares: Vec<_> = partition(Signal::Traces, &request, Grain::Items, |_, _| 7).collect();
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
        let assign = |_: &RecordRef<'_>, point: Option<&Point<'_>>| match point {
            Some(point) => usize::from(point.attributes().get("two").is_some()),
            None => 5,
        };
        let shares: Vec<_> = partition(Signal::Metrics, &request, Grain::Items, assign).collect();
        let counts: Vec<_> = shares.iter().map(|share| (share.to, share.items)).collect();
        assert_eq!(counts, [(0, 2), (1, 1), (5, 0)]);
        for share in &shares {
            assert_eq!(scan(Signal::Metrics, &share.bytes).unwrap().items, share.items);
            let entry = resources(&share.bytes).next().unwrap();
            let name = entry.scopes().next().unwrap().metrics().next().unwrap().name();
            assert_eq!(name, if share.to == 5 { &b"empty"[..] } else { b"name" });
        }
        let whole: Vec<_> = partition(Signal::Metrics, &request, Grain::Records, |_, point| {
            assert!(point.is_none());
            0
        })
        .collect();
        assert_eq!(whole.len(), 1);
    }
}
