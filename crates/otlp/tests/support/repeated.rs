//! Messages in which any field may occur several times, in any order, between unknown fields and groups.
//!
//! Protobuf allows all of it: of a number or a text the last one counts, messages are merged, and of a `oneof`
//! the last member counts. member counts.

use kubewake_otlp::wire::{put_bytes, put_double, put_fixed64, put_tag, put_uint};
use proptest::collection::vec;
use proptest::prelude::*;

/// The content of a message, or one field of it.
type Content = Vec<u8>;

fn field(number: u32, content: &[u8]) -> Content {
    let mut out = Vec::new();
    put_bytes(&mut out, number, content);
    out
}

fn number(number: u32, value: u64) -> Content {
    let mut out = Vec::new();
    put_uint(&mut out, number, value);
    out
}

/// A message of any of these fields, one after another.
fn message(fields: impl Strategy<Value = Content>) -> impl Strategy<Value = Content> {
    vec(prop_oneof![8 => fields, 1 => unknown()], 0..5).prop_map(|fields| fields.concat())
}

/// An unknown field: a number, bytes, or a group with content.
fn unknown() -> impl Strategy<Value = Content> {
    let group = |inner: Content| {
        let mut out = Vec::new();
        put_tag(&mut out, 900, 3);
        out.extend_from_slice(&inner);
        put_tag(&mut out, 900, 4);
        out
    };
    prop_oneof![
        Just(number(901, 7)),
        Just(field(902, b"unknown")),
        Just(group(Vec::new())),
        Just(group([field(2, b"hidden"), group(number(1, 1))].concat())),
    ]
}

fn text() -> impl Strategy<Value = Content> {
    prop_oneof![Just(b"".to_vec()), Just(b"a".to_vec()), Just(b"4111".to_vec()), Just(vec![b'x'; 200])]
}

/// The content of an `AnyValue`.
fn value() -> impl Strategy<Value = Content> {
    let leaf = message(prop_oneof![
        text().prop_map(|text| field(1, &text)),
        any::<bool>().prop_map(|value| number(2, value.into())),
        any::<u64>().prop_map(|value| number(3, value)),
        Just({
            let mut out = Vec::new();
            put_double(&mut out, 4, 1.5);
            out
        }),
        text().prop_map(|bytes| field(7, &bytes)),
    ]);
    leaf.boxed().prop_recursive(2, 12, 3, |inner| {
        let inner = inner.boxed();
        let values = message(inner.clone().prop_map(|value| field(1, &value)));
        let pairs = message(pair_of(inner.clone()).prop_map(|pair| field(1, &pair)));
        message(prop_oneof![
            2 => values.prop_map(|values| field(5, &values)),
            2 => pairs.prop_map(|pairs| field(6, &pairs)),
            1 => text().prop_map(|text| field(1, &text)),
        ])
    })
}

fn pair_of(value: BoxedStrategy<Content>) -> impl Strategy<Value = Content> {
    message(prop_oneof![text().prop_map(|key| field(1, &key)), value.prop_map(|value| field(2, &value)),])
}

/// The content of a `KeyValue`.
pub(crate) fn pair() -> impl Strategy<Value = Content> {
    pair_of(value().boxed())
}

fn attribute(number: u32) -> impl Strategy<Value = Content> {
    pair().prop_map(move |pair| field(number, &pair))
}

/// The content of a `Span`.
pub(crate) fn span() -> impl Strategy<Value = Content> {
    let status =
        message(prop_oneof![text().prop_map(|text| field(2, &text)), (0u64..4).prop_map(|code| number(3, code)),]);
    let event = message(prop_oneof![text().prop_map(|name| field(2, &name)), attribute(3)]);
    let link = message(prop_oneof![text().prop_map(|state| field(3, &state)), attribute(4)]);
    message(prop_oneof![
        2 => status.prop_map(|status| field(15, &status)),
        2 => attribute(9),
        1 => event.prop_map(|event| field(11, &event)),
        1 => link.prop_map(|link| field(13, &link)),
        1 => text().prop_map(|name| field(5, &name)),
        1 => text().prop_map(|state| field(3, &state)),
        1 => (0u64..6).prop_map(|kind| number(6, kind)),
    ])
}

/// The content of a `LogRecord`.
pub(crate) fn log_record() -> impl Strategy<Value = Content> {
    message(prop_oneof![
        3 => value().prop_map(|body| field(5, &body)),
        1 => attribute(6),
        1 => text().prop_map(|severity| field(3, &severity)),
    ])
}

/// The content of an `ExponentialHistogramDataPoint`.
pub(crate) fn exponential_point() -> impl Strategy<Value = Content> {
    let buckets = || {
        message(prop_oneof![
            (0u64..9).prop_map(|offset| number(1, offset)),
            vec(0u8..9, 0..4).prop_map(|counts| field(2, &counts)),
            (0u64..9).prop_map(|count| number(2, count)),
        ])
    };
    message(prop_oneof![
        buckets().prop_map(|buckets| field(8, &buckets)),
        buckets().prop_map(|buckets| field(9, &buckets)),
        attribute(1),
        (0u64..9).prop_map(|count| {
            let mut out = Vec::new();
            put_fixed64(&mut out, 4, count);
            out
        }),
    ])
}

/// The content of a `ResourceSpans`.
pub(crate) fn resource_entry() -> impl Strategy<Value = Content> {
    let resource = message(prop_oneof![attribute(1), (0u64..3).prop_map(|dropped| number(2, dropped))]);
    let scope = message(prop_oneof![text().prop_map(|name| field(1, &name)), attribute(3)]);
    let scope_entry =
        message(prop_oneof![scope.prop_map(|scope| field(1, &scope)), span().prop_map(|span| field(2, &span)),]);
    message(prop_oneof![
        resource.prop_map(|resource| field(1, &resource)),
        scope_entry.prop_map(|entry| field(2, &entry)),
    ])
}
