//! Unknown fields, added to requests and found again.

use kubewake_otlp::Signal;
use kubewake_otlp::wire::{LEN, WireFields, put_bytes, put_uint};

/// A number that OTLP does not use, and whose tag has three bytes.
const UNKNOWN: u32 = 4000;

fn is_child(signal: Signal, level: usize, number: u32) -> bool {
    match (signal, level) {
        (_, 0) => number == 1,
        (_, 1 | 2) => number == 2,
        (Signal::Metrics, 3) => matches!(number, 5 | 7 | 9 | 10 | 11),
        (Signal::Metrics, 4) => number == 1,
        _ => false,
    }
}

/// Adds unknown fields, each with a number of its own, to the messages from the request down to the item. The
/// bits of `choices` select the places.
pub(crate) fn inject(signal: Signal, request: &[u8], choices: u64) -> Vec<u8> {
    let mut injector = Injector { signal, choices, next: 1 };
    injector.message(0, request)
}

struct Injector {
    signal: Signal,
    choices: u64,
    next: u64,
}

impl Injector {
    fn message(&mut self, level: usize, content: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        self.maybe_put(&mut out);
        for field in WireFields::new(content) {
            if field.wire == LEN && is_child(self.signal, level, field.number) {
                let inner = self.message(level + 1, field.value);
                put_bytes(&mut out, field.number, &inner);
                self.maybe_put(&mut out);
            } else {
                out.extend_from_slice(field.raw);
            }
        }
        self.maybe_put(&mut out);
        out
    }

    fn maybe_put(&mut self, out: &mut Vec<u8>) {
        self.choices = self.choices.rotate_left(1);
        if self.choices & 1 == 1 {
            put_bytes(out, UNKNOWN, &self.next.to_le_bytes());
            put_uint(out, UNKNOWN + 1, self.next);
            self.next += 1;
        }
    }
}

/// The numbers of the unknown fields in messages of that level, in their order.
pub(crate) fn markers(signal: Signal, level: usize, request: &[u8]) -> Vec<u64> {
    let mut found = Vec::new();
    collect(signal, level, 0, request, &mut found);
    found
}

fn collect(signal: Signal, wanted: usize, level: usize, content: &[u8], found: &mut Vec<u64>) {
    for field in WireFields::new(content) {
        if level == wanted && field.number == UNKNOWN {
            found.extend(field.as_len().and_then(|id| id.try_into().ok()).map(u64::from_le_bytes));
        } else if level == wanted && level > 0 && field.number == UNKNOWN + 1 {
            assert_eq!(field.as_varint(), found.last().copied(), "both fields of a marker stay together");
        } else if field.wire == LEN && is_child(signal, level, field.number) {
            collect(signal, wanted, level + 1, field.value, found);
        }
    }
}

/// Length of a message's items, with their tags and lengths.
pub(crate) fn leaves(signal: Signal, level: usize, content: &[u8]) -> usize {
    let leaf = if signal == Signal::Metrics { 5 } else { 3 };
    let children = WireFields::new(content).filter(|field| field.wire == LEN && is_child(signal, level, field.number));
    children.map(|field| if level + 1 == leaf { field.raw.len() } else { leaves(signal, level + 1, field.value) }).sum()
}
