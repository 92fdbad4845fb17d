//! Every operation on bytes equals the same operation on decoded data, by an independent decoder.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, missing_docs)]

#[path = "support/fuzz_bodies.rs"]
mod fuzz_bodies;
#[path = "support/model.rs"]
mod model;
#[path = "support/requests.rs"]
mod requests;
#[path = "support/unknown.rs"]
mod unknown;

use std::collections::BTreeSet;
use std::num::NonZeroUsize;

use bytes::Bytes;
use kubewake_otlp::view::RecordRef;
use kubewake_otlp::wire::{WireFields, put_bytes};
use kubewake_otlp::{
    MessageEdit, PartitionGrain, Signal, SplitLimit, UniformEditor, clear_zero_ids, group_by_trace, index, join,
    partition, retain, rewrite, scan, select, split,
};
use model::{Decoded, Record};
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value as Any;
use opentelemetry_proto::tonic::common::v1::{AnyValue, KeyValue};
use opentelemetry_proto::tonic::logs::v1::LogRecord;
use opentelemetry_proto::tonic::metrics::v1::Metric;
use opentelemetry_proto::tonic::resource::v1::Resource;
use opentelemetry_proto::tonic::trace::v1::Span;
use proptest::prelude::*;
use prost::Message;
use unknown::{inject, leaves, markers};

/// The request as bytes, mostly with unknown fields in it.
fn encode<R: Record>(request: &impl Message, choices: u64) -> Bytes {
    Bytes::from(inject(R::SIGNAL, &request.encode_to_vec(), choices))
}

const LEVELS: [usize; 6] = [0, 1, 2, 3, 4, 5];

fn all_markers(signal: Signal, bytes: &[u8]) -> Vec<Vec<u64>> {
    LEVELS.map(|level| markers(signal, level, bytes)).to_vec()
}

fn scan_counts_what_is_there<R: Record>(bytes: &Bytes) {
    let decoded = Decoded::<R>::of(bytes);
    let summary = scan(R::SIGNAL, bytes).unwrap();
    assert_eq!(summary.items, decoded.items());
    assert_eq!(summary.records, decoded.records().count());
    assert_eq!(summary.resources, decoded.0.len());
    assert_eq!(summary.scopes, decoded.0.iter().map(|entry| entry.scopes.len()).sum::<usize>());
    let zero = |id: &Vec<u8>| !id.is_empty() && id.iter().all(|&byte| byte == 0);
    let zero_ids = decoded.records().any(|record| record.clone().ids().iter().any(|id| zero(id)));
    assert_eq!(summary.zero_ids, zero_ids);

    let index = index(R::SIGNAL, bytes).unwrap();
    assert_eq!(index.summary, summary);
    let records = decoded.0.iter().enumerate().flat_map(|(ordinal, entry)| {
        entry.scopes.iter().flat_map(|scope| &scope.records).map(move |record| (ordinal, record))
    });
    assert_eq!(index.records.len(), summary.records);
    for (place, (resource, record)) in index.records.iter().zip(records) {
        assert_eq!(&R::decode(&bytes[place.range.clone()]).unwrap(), record);
        assert_eq!(place.resource, resource);
        assert_eq!(place.items, record.items());
        let trace_id: [u8; 16] = record.trace_id().try_into().unwrap_or_default();
        assert_eq!(place.trace_id, trace_id);
    }
}

fn join_is_one_behind_the_other<R: Record>(first: &Bytes, second: &Bytes) {
    let joined = join(&[first.clone(), second.clone()]);
    let mut both = Decoded::<R>::of(first);
    both.0.extend(Decoded::<R>::of(second).0);
    assert_eq!(Decoded::<R>::of(&joined), both);
}

fn split_loses_nothing<R: Record>(bytes: &Bytes, limit: SplitLimit) {
    let decoded = Decoded::<R>::of(bytes);
    let pieces: Vec<_> = split(R::SIGNAL, bytes, limit).collect();
    let parts: Vec<_> = pieces.iter().map(|piece| Decoded::<R>::of(&piece.bytes)).collect();
    assert_eq!(parts.iter().flat_map(Decoded::flat).collect::<Vec<_>>(), decoded.flat());
    let empties = parts.iter().map(Decoded::empty_entries).fold((0, 0), |sum, part| (sum.0 + part.0, sum.1 + part.1));
    assert_eq!(empties, decoded.empty_entries());
    for (piece, part) in pieces.iter().zip(&parts) {
        assert_eq!(piece.items, part.items());
        assert_eq!(scan(R::SIGNAL, &piece.bytes).unwrap().items, piece.items);
    }
    match limit {
        // Every piece but the last is full.
        SplitLimit::Items(limit) => {
            assert!(pieces.iter().rev().skip(1).all(|piece| piece.items == limit.get()));
            assert!(pieces.last().is_none_or(|piece| piece.items <= limit.get()));
        }
        SplitLimit::Bytes(limit) => {
            for (piece, part) in pieces.iter().zip(&parts).filter(|(piece, _)| piece.bytes.len() > limit.get()) {
                let headers = piece.bytes.len() - leaves(R::SIGNAL, 0, &piece.bytes);
                let is_header = part.0.len() == 1 && headers * 8 > limit.get() * 7;
                assert!(part.flat().len() <= 1 || is_header, "an item alone, or an entry of little but headers");
            }
        }
    }
    let survived = |level| pieces.iter().flat_map(|piece| markers(R::SIGNAL, level, &piece.bytes)).collect::<Vec<_>>();
    let leaf = if R::SIGNAL == Signal::Metrics { 5 } else { 3 };
    for level in LEVELS {
        let before = markers(R::SIGNAL, level, bytes);
        let after = survived(level);
        if level == 0 || level == leaf {
            assert_eq!(after, before, "what is not cut is there once");
        } else {
            let set = |markers: Vec<u64>| markers.into_iter().collect::<BTreeSet<_>>();
            assert_eq!(set(after), set(before), "what is cut is repeated");
        }
    }
}

fn a_partition_has_every_item_once<R: Record>(bytes: &Bytes, destinations: usize) {
    let decoded = Decoded::<R>::of(bytes);
    let mut asked = 0;
    // Neighbours mostly go to different destinations, and sometimes to the same.
    let destination = |item: usize| item * 7 / 3 % destinations;
    let shares: Vec<_> = partition(R::SIGNAL, bytes, PartitionGrain::Items, |_, _| {
        asked += 1;
        destination(asked - 1)
    })
    .collect();
    assert_eq!(asked, decoded.flat().len());
    for share in &shares {
        let part = Decoded::<R>::of(&share.bytes);
        let mut item = 0;
        let mut expected = decoded.flat();
        expected.retain(|_| {
            item += 1;
            destination(item - 1) == share.to
        });
        assert_eq!(part.flat(), expected);
        assert_eq!((share.items, scan(R::SIGNAL, &share.bytes).unwrap().items), (part.items(), part.items()));
        assert!(shares.len() == 1 || part.empty_entries() == (0, 0));
    }
    assert!(shares.is_sorted_by_key(|share| share.to));
    assert_eq!(shares.iter().map(|share| share.items).sum::<usize>(), decoded.items());
    let survived = |level| shares.iter().flat_map(|share| markers(R::SIGNAL, level, &share.bytes)).collect::<Vec<_>>();
    if !shares.is_empty() {
        assert_eq!(survived(0), markers(R::SIGNAL, 0, bytes));
    }
}

/// A choice that both sides can compute: by the record, its resource and its scope.
fn chosen(record: usize, attributes: usize, scope: &[u8], salt: usize) -> bool {
    (record + attributes + scope.len() + salt).is_multiple_of(2)
}

fn retain_keeps_what_was_chosen<R: Record>(bytes: &Bytes, salt: usize) {
    let decoded = Decoded::<R>::of(bytes);
    let sum = |content: &[u8]| content.iter().map(|&byte| usize::from(byte)).sum::<usize>();
    let mut asked = 0;
    let retained = retain(R::SIGNAL, bytes, |record: &RecordRef<'_>| {
        asked += 1;
        // Without the unknown fields, which the decoded record does not have.
        let plain = R::decode(record.as_bytes()).unwrap().encode_to_vec();
        chosen(sum(&plain), record.resource().attributes().iter().count(), record.scope().name(), salt)
    });
    assert_eq!(asked, decoded.records().count());
    let expected = decoded.clone().retain(|entry, scope, record| {
        let attributes = entry.resource.as_ref().map_or(0, |resource| resource.attributes.len());
        let name = scope.scope.as_ref().map_or("", |scope| &scope.name);
        chosen(sum(&record.encode_to_vec()), attributes, name.as_bytes(), salt)
    });
    assert_eq!(Decoded::<R>::of(&retained.bytes), expected);
    assert_eq!(retained.items, expected.items());
    assert_eq!(retained.dropped, decoded.items() - expected.items());
    let all = retain(R::SIGNAL, bytes, |_| true);
    assert_eq!((all.bytes.as_ptr(), all.bytes.len()), (bytes.as_ptr(), bytes.len()), "nothing was copied");
    if expected == decoded {
        assert_eq!(all_markers(R::SIGNAL, &retained.bytes), all_markers(R::SIGNAL, bytes));
    }
    assert_eq!(markers(R::SIGNAL, 0, &retained.bytes), markers(R::SIGNAL, 0, bytes));
}

/// A selection with edits equals a selection followed by the edits, byte for byte.
fn select_is_retain_and_rewrite<R: Record>(bytes: &Bytes, salt: usize, changes: &[Change], trace_state: Option<&str>) {
    let chosen = |record: &RecordRef<'_>| (record.as_bytes().len() + salt).is_multiple_of(2);
    let mut rules = UniformEditor::default();
    // Edits of a metric apply to its points, which a selection does not visit.
    if R::SIGNAL != Signal::Metrics {
        rules.records.extend(changes.iter().map(Change::edit));
        rules.records.extend(trace_state.map(|value| MessageEdit::trace_state(value.to_owned())));
    }
    let selected = select(R::SIGNAL, bytes, |record, edits| {
        edits.extend(rules.records.iter().cloned());
        chosen(record)
    });
    let retained = retain(R::SIGNAL, bytes, chosen);
    assert_eq!((selected.items, selected.dropped), (retained.items, retained.dropped));
    assert_eq!(selected.bytes, rewrite(R::SIGNAL, &retained.bytes, &mut rules));
    if R::SIGNAL == Signal::Traces
        && let Some(value) = trace_state
    {
        let spans = Decoded::<Span>::of(&selected.bytes);
        assert!(spans.records().all(|span| span.trace_state == value));
    }
    if selected.bytes == bytes {
        assert_eq!(selected.bytes.as_ptr(), bytes.as_ptr(), "nothing was copied");
    }
}

/// A request in the encoding of SDKs: every span begins with its trace id, and many neighbours share a trace.
fn with_plain_ids(mut request: ExportTraceServiceRequest, salt: u64) -> Bytes {
    let scopes = request.resource_spans.iter_mut().flat_map(|entry| &mut entry.scope_spans);
    let spans = scopes.flat_map(|scope| &mut scope.spans);
    for (i, span) in spans.enumerate() {
        span.trace_id = vec![1 + (salt >> (i % 64) & 3) as u8; 16];
        span.span_id = vec![1; 8];
        span.parent_span_id.clear();
        span.trace_state.clear();
    }
    rearranged(0, &request.encode_to_vec(), &mut salt.rotate_left(32)).into()
}

/// The same request in a valid but unusual encoding: tags of spans in two bytes, and fields of one number that
/// are not consecutive. The bits of `choices` select the places.
fn rearranged(level: usize, message: &[u8], choices: &mut u64) -> Vec<u8> {
    let mut out = Vec::new();
    for field in WireFields::new(message) {
        match (level, field.number) {
            (0, 1) | (1, 2) => put_bytes(&mut out, field.number, &rearranged(level + 1, field.value, choices)),
            (2, 2) => {
                *choices = choices.rotate_left(2);
                let fields: Vec<_> = WireFields::new(field.value).map(|field| field.raw).collect();
                let (ids, others) = fields.split_at(2);
                let step = 1 + (*choices & 1) as usize;
                let others = (0..step).flat_map(|from| others.iter().skip(from).step_by(step));
                let content: Vec<u8> = ids.iter().chain(others).copied().flatten().copied().collect();
                let start = out.len();
                put_bytes(&mut out, 2, &content);
                if *choices & 2 == 2 {
                    out.splice(start..=start, [0x92, 0]);
                }
            }
            _ => out.extend_from_slice(field.raw),
        }
    }
    out
}

fn traces_are_decided_on_as_their_spans_are(bytes: &Bytes, choice: usize) {
    let summary = scan(Signal::Traces, bytes).unwrap();
    assert!(summary.records == 0 || summary.traits.has_plain_ids());
    fuzz_bodies::by_trace(bytes, choice);
}

fn zero_ids_go<R: Record>(bytes: &Bytes) {
    let cleared = clear_zero_ids(R::SIGNAL, bytes);
    let mut expected = Decoded::<R>::of(bytes);
    for record in expected.0.iter_mut().flat_map(|entry| &mut entry.scopes).flat_map(|scope| &mut scope.records) {
        record.ids().into_iter().filter(|id| id.iter().all(|&byte| byte == 0)).for_each(Vec::clear);
    }
    assert_eq!(Decoded::<R>::of(&cleared), expected);
    assert!(!scan(R::SIGNAL, &cleared).unwrap().zero_ids);
    assert_eq!(all_markers(R::SIGNAL, &cleared), all_markers(R::SIGNAL, bytes));
}

/// An edit that both sides can compute.
#[derive(Clone, Debug)]
enum Change {
    Set(&'static str, i64),
    Insert(&'static str, i64),
    Update(&'static str, i64),
    Remove(&'static str),
    Rename(&'static str, &'static str),
}

impl Change {
    fn edit(&self) -> MessageEdit {
        match *self {
            Change::Set(key, value) => MessageEdit::set(key, value),
            Change::Insert(key, value) => MessageEdit::insert(key, value),
            Change::Update(key, value) => MessageEdit::update(key, value),
            Change::Remove(key) => MessageEdit::remove(key),
            Change::Rename(from, to) => MessageEdit::rename(from, to),
        }
    }

    fn change(&self, attributes: &mut Vec<KeyValue>) {
        let has = |attributes: &[KeyValue], key: &str| attributes.iter().any(|pair| pair.key == key);
        match *self {
            Change::Insert(key, _) if has(attributes, key) => {}
            Change::Update(key, _) if !has(attributes, key) => {}
            Change::Set(key, value) | Change::Insert(key, value) | Change::Update(key, value) => {
                let value = Some(AnyValue { value: Some(Any::IntValue(value)) });
                let new = KeyValue { key: key.to_owned(), value, ..Default::default() };
                match attributes.iter().position(|pair| pair.key == key) {
                    None => attributes.push(new),
                    Some(place) => {
                        attributes[place] = new;
                        keep_first(attributes, key);
                    }
                }
            }
            Change::Remove(key) => attributes.retain(|pair| pair.key != key),
            Change::Rename(from, to) if from == to || !has(attributes, from) => keep_first(attributes, from),
            Change::Rename(from, to) => {
                keep_first(attributes, from);
                attributes.retain(|pair| pair.key != to);
                attributes.iter_mut().filter(|pair| pair.key == from).for_each(|pair| pair.key = to.to_owned());
            }
        }
    }
}

fn keep_first(attributes: &mut Vec<KeyValue>, key: &str) {
    let mut seen = false;
    attributes.retain(|pair| pair.key != key || !std::mem::replace(&mut seen, true));
}

fn changes() -> impl Strategy<Value = Vec<Change>> {
    let key = || prop_oneof![Just("a"), Just("b"), Just("service.name"), Just("new")];
    let change = prop_oneof![
        (key(), any::<i64>()).prop_map(|(key, value)| Change::Set(key, value)),
        (key(), any::<i64>()).prop_map(|(key, value)| Change::Insert(key, value)),
        (key(), any::<i64>()).prop_map(|(key, value)| Change::Update(key, value)),
        key().prop_map(Change::Remove),
        (key(), key()).prop_map(|(from, to)| Change::Rename(from, to)),
    ];
    proptest::collection::vec(change, 0..4)
}

fn rewrite_changes_what_it_says<R: Record>(bytes: &Bytes, resources: &[Change], records: &[Change]) {
    let edits = |changes: &[Change]| changes.iter().map(Change::edit).collect();
    let mut rules = UniformEditor { resources: edits(resources), records: edits(records) };
    let rewritten = rewrite(R::SIGNAL, bytes, &mut rules);
    let mut expected = Decoded::<R>::of(bytes);
    for entry in &mut expected.0 {
        let mut resource = entry.resource.clone().unwrap_or_default();
        resources.iter().for_each(|change| change.change(&mut resource.attributes));
        if entry.resource.is_some() || resource != Resource::default() {
            entry.resource = Some(resource);
        }
        for record in entry.scopes.iter_mut().flat_map(|scope| &mut scope.records) {
            for attributes in record.attribute_lists() {
                records.iter().for_each(|change| change.change(attributes));
            }
        }
    }
    assert_eq!(Decoded::<R>::of(&rewritten), expected);
    assert_eq!(all_markers(R::SIGNAL, &rewritten), all_markers(R::SIGNAL, bytes), "unknown fields survive");
    if rewritten == bytes {
        assert_eq!(rewritten.as_ptr(), bytes.as_ptr(), "nothing was copied");
    }
}

fn groups_are_the_traces(bytes: &Bytes) {
    let decoded = Decoded::<Span>::of(bytes);
    let id = |span: &Span| <[u8; 16]>::try_from(span.trace_id.as_slice()).unwrap_or_default();
    let mut traces: Vec<[u8; 16]> = Vec::new();
    for id in decoded.records().map(id) {
        if !traces.contains(&id) {
            traces.push(id);
        }
    }
    let groups: Vec<_> = group_by_trace(bytes).collect();
    assert_eq!(groups.iter().map(|group| group.trace_id).collect::<Vec<_>>(), traces);
    for group in &groups {
        let mut spans = decoded.flat();
        spans.retain(|item| id(&item.record) == group.trace_id);
        let part = Decoded::<Span>::of(&group.bytes);
        assert_eq!(part.flat(), spans);
        assert_eq!(group.items, spans.len());
        assert!(groups.len() == 1 || part.empty_entries() == (0, 0));
    }
    let survived = |level| groups.iter().flat_map(move |group| markers(Signal::Traces, level, &group.bytes));
    if !groups.is_empty() {
        assert_eq!(survived(0).collect::<Vec<_>>(), markers(Signal::Traces, 0, bytes));
    }
    assert_eq!(
        survived(3).collect::<BTreeSet<_>>(),
        markers(Signal::Traces, 3, bytes).into_iter().collect::<BTreeSet<_>>()
    );
}

/// The same properties for each signal.
macro_rules! properties {
    ($signal:ident, $record:ident) => {
        mod $signal {
            use super::*;

            proptest! {
                #![proptest_config(ProptestConfig::with_cases(192))]

                #[test]
                fn scan_counts(request in requests::$signal(), choices: u64) {
                    scan_counts_what_is_there::<$record>(&encode::<$record>(&request, choices));
                }

                #[test]
                fn join_appends(first in requests::$signal(), second in requests::$signal(), choices: u64) {
                    let first = encode::<$record>(&first, choices);
                    let second = encode::<$record>(&second, !choices);
                    join_is_one_behind_the_other::<$record>(&first, &second);
                }

                #[test]
                fn split_by_items(request in requests::$signal(), choices: u64, limit in 1usize..9) {
                    let limit = SplitLimit::Items(NonZeroUsize::new(limit).unwrap());
                    split_loses_nothing::<$record>(&encode::<$record>(&request, choices), limit);
                }

                #[test]
                fn split_by_bytes(request in requests::$signal(), choices: u64, limit in 1usize..3000) {
                    let limit = SplitLimit::Bytes(NonZeroUsize::new(limit).unwrap());
                    split_loses_nothing::<$record>(&encode::<$record>(&request, choices), limit);
                }

                #[test]
                fn retain_keeps(request in requests::$signal(), choices: u64, salt in 0usize..2) {
                    retain_keeps_what_was_chosen::<$record>(&encode::<$record>(&request, choices), salt);
                }

                #[test]
                fn partition_assigns(request in requests::$signal(), choices: u64, destinations in 1usize..5) {
                    a_partition_has_every_item_once::<$record>(&encode::<$record>(&request, choices), destinations);
                }

                #[test]
                fn select_keeps_and_edits(
                    request in requests::$signal(), choices: u64, salt in 0usize..2, changes in changes(),
                    trace_state in proptest::option::of("[a-z=]{0,5}"),
                ) {
                    select_is_retain_and_rewrite::<$record>(
                        &encode::<$record>(&request, choices), salt, &changes, trace_state.as_deref(),
                    );
                }

                #[test]
                fn zero_ids_are_cleared(request in requests::$signal(), choices: u64) {
                    zero_ids_go::<$record>(&encode::<$record>(&request, choices));
                }

                #[test]
                fn rewrite_edits(
                    request in requests::$signal(), choices: u64, resources in changes(), records in changes(),
                ) {
                    rewrite_changes_what_it_says::<$record>(
                        &encode::<$record>(&request, choices), &resources, &records,
                    );
                }

                #[test]
                fn a_damaged_request_is_handled(
                    request in requests::$signal(), choices: u64, choice: u8, at: prop::sample::Index, byte: u8, cut: bool,
                ) {
                    let mut bytes = encode::<$record>(&request, choices).to_vec();
                    bytes.insert(0, choice);
                    let at = at.index(bytes.len());
                    if cut { bytes.truncate(at) } else { bytes[at] = byte }
                    any_bytes_are_handled(&bytes);
                }
            }
        }
    };
}

properties!(traces, Span);
properties!(logs, LogRecord);
properties!(metrics, Metric);

fn any_bytes_are_handled(bytes: &[u8]) {
    fuzz_bodies::scan(bytes);
    fuzz_bodies::split(bytes);
    fuzz_bodies::retain(bytes);
    fuzz_bodies::rewrite(bytes);
    fuzz_bodies::opencensus(bytes);
}

proptest! {
    #[test]
    fn traces_are_grouped(request in requests::traces(), choices: u64) {
        groups_are_the_traces(&encode::<Span>(&request, choices));
    }

    #[test]
    fn traces_are_selected(request in requests::traces(), salt: u64, choice in 0usize..3) {
        traces_are_decided_on_as_their_spans_are(&with_plain_ids(request, salt), choice);
    }

    #[test]
    fn bytes_that_are_no_request_are_handled(bytes: Vec<u8>) {
        any_bytes_are_handled(&bytes);
    }
}
