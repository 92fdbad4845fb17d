//! The requests that make components allocate most.

use kubewake_otlp::{Signal, wire::put_bytes};

/// Requests of one sender, one after another.
pub struct Load {
    pub name: &'static str,
    pub requests: Vec<Vec<u8>>,
}

impl Load {
    /// Whether it is one of the few that represent the others if there is no time for all: each of them makes
    /// another kind of list long.
    pub fn stands_for_others(&self) -> bool {
        const NAMES: [&str; 5] = [
            "empty records",
            "every other record has a name",
            "resources with an empty record each",
            "records of many traces in a resource with a long key",
            "tiny requests",
        ];
        NAMES.contains(&self.name)
    }
}

pub fn field(number: u32, content: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    put_bytes(&mut out, number, content);
    out
}

/// Repetitions of `piece` up to about this many bytes.
pub fn many(piece: &[u8], bytes: usize) -> Vec<u8> {
    piece.repeat(bytes / piece.len())
}

/// A resource entry of one scope with these record fields.
pub fn entry(resource: &[u8], records: &[u8]) -> Vec<u8> {
    let content = match resource {
        [] => field(2, records),
        resource => [field(1, resource), field(2, records)].concat(),
    };
    field(1, &content)
}

pub fn attribute(key: &[u8], value: &[u8]) -> Vec<u8> {
    [field(1, key), field(2, value)].concat()
}

pub fn text(bytes: &[u8]) -> Vec<u8> {
    field(1, bytes)
}

/// A record with these attributes, as a field of its scope.
pub fn record(signal: Signal, attributes: &[Vec<u8>]) -> Vec<u8> {
    let all = |number: u32| attributes.iter().flat_map(|attribute| field(number, attribute)).collect::<Vec<u8>>();
    match signal {
        Signal::Traces => field(2, &all(9)),
        Signal::Logs => field(2, &all(6)),
        // A gauge of one point.
        Signal::Metrics => field(2, &field(5, &field(1, &all(7)))),
    }
}

/// A record in a trace of its own.
fn record_of_trace(signal: Signal, number: u32) -> Vec<u8> {
    let id = u128::from(number + 1).to_be_bytes();
    match signal {
        Signal::Traces => field(2, &field(1, &id)),
        Signal::Logs => field(2, &field(9, &id)),
        Signal::Metrics => field(2, &[field(1, &number.to_be_bytes()), field(5, &field(1, &[]))].concat()),
    }
}

/// Lists in lists, as deep as they fit.
fn deep_value(bytes: usize) -> Vec<u8> {
    // From the inside, backwards: what is appended comes first in the end.
    let mut reversed = Vec::new();
    while reversed.len() < bytes / 2 {
        for number in [1, 5] {
            let mut header = Vec::new();
            kubewake_otlp::wire::put_header(&mut header, number, reversed.len());
            reversed.extend(header.iter().rev());
        }
    }
    // A list is field 5 of a value, and values are field 1 of a list: the outermost is a list.
    reversed.reverse();
    reversed
}

/// The worst requests of a signal, in bodies of about this many bytes.
pub fn worst(signal: Signal, bytes: usize) -> Vec<Load> {
    let many = |piece: &[u8]| many(piece, bytes);
    let deep_value = || deep_value(bytes);
    let empty = record(signal, &[]);
    let named = match signal {
        Signal::Metrics => field(2, &[field(1, b"x"), field(5, &field(1, &[]))].concat()),
        Signal::Logs => field(2, &field(3, b"x")),
        Signal::Traces => field(2, &field(5, b"x")),
    };
    let long = vec![b'k'; bytes / 2];
    let long_attribute = attribute(&long, &text(&long));
    let tiny = entry(&[], &empty);
    let traces: Vec<u8> = (0..2000).flat_map(|number| record_of_trace(signal, number)).collect();
    let spread: Vec<u8> = (0..2000).flat_map(|number| entry(&[], &record_of_trace(signal, number))).collect();
    let numbers: Vec<u8> = (0..1000_u32)
        .flat_map(|number| entry(&field(1, &attribute(b"service.name", &text(&number.to_be_bytes()))), &empty))
        .collect();
    let mut loads = vec![
        ("empty records", entry(&[], &many(&empty))),
        ("every other record has a name", entry(&[], &many(&[&*empty, &*named].concat()))),
        ("resources with an empty record each", many(&tiny)),
        ("scopes with an empty record each", field(1, &many(&field(2, &empty)))),
        ("empty resources and one record", [many(&field(1, &[])), tiny.clone()].concat()),
        ("empty scopes and one record", field(1, &[many(&field(2, &[])), field(2, &empty)].concat())),
        ("one record with empty attributes", entry(&[], &record(signal, &vec![Vec::new(); bytes / 2]))),
        ("one resource with empty attributes", entry(&many(&field(1, &[])), &empty)),
        (
            "one record with a long key and a long text",
            entry(&[], &record(signal, std::slice::from_ref(&long_attribute))),
        ),
        ("one record with a text of control characters", {
            entry(&[], &record(signal, &[attribute(b"key", &text(&vec![1; bytes]))]))
        }),
        ("records of many traces in a resource with a long key", entry(&field(1, &long_attribute), &traces)),
        ("resources with a record of a trace each", spread),
        ("resources with names", numbers),
        ("one record with a deep value", entry(&[], &record(signal, &[attribute(b"key", &deep_value())]))),
        ("one resource with a deep value", entry(&field(1, &attribute(b"key", &deep_value())), &empty)),
    ];
    match signal {
        Signal::Traces => {
            loads.push(("one span with empty events", entry(&[], &field(2, &many(&field(11, &[]))))));
            loads.push(("one span with empty links", entry(&[], &field(2, &many(&field(13, &[]))))));
        }
        Signal::Logs => {
            loads.push(("one log record with a deep body", entry(&[], &field(2, &field(5, &deep_value())))));
        }
        Signal::Metrics => {
            let points = many(&field(1, &[]));
            loads.push(("one gauge with empty points", entry(&[], &field(2, &field(5, &points)))));
            loads.push(("one summary with empty points", entry(&[], &field(2, &field(11, &points)))));
            let buckets = field(1, &field(8, &field(2, &vec![0; bytes])));
            loads.push(("one histogram with empty buckets", entry(&[], &field(2, &field(10, &buckets)))));
        }
    }
    let single = loads.into_iter().map(|(name, body)| Load { name, requests: vec![body] });
    single.chain([Load { name: "tiny requests", requests: vec![tiny; 1000] }]).collect()
}
