//! The members of an object, gathered before they are written, so that no key occurs twice.

use std::{borrow::Cow, cmp::Ordering};

use kubewake_config::model::Dedot;
use kubewake_otlp::view::{AnyValue, KeyValue, LogRecord};

use super::{
    JsonOutput, key_style, label_style, push_rfc3339, push_text,
    value::{push_hex, push_value},
};

/// What a member holds.
#[derive(Clone, Copy)]
pub(crate) enum FieldValue<'a> {
    Attribute(KeyValue<'a>),
    Body(LogRecord<'a>),
    Text(&'a [u8]),
    /// Bytes in hexadecimal.
    Hex(&'a [u8]),
    Integer(i64),
    /// Nanoseconds since 1970, as a time of RFC 3339.
    Time(u64),
    Name(&'static str),
    /// An attribute that a function writes.
    Converted(KeyValue<'a>, fn(KeyValue<'_>, Dedot, &mut JsonOutput<'_>)),
    /// A value that a function writes.
    Written(&'a dyn Fn(&mut JsonOutput<'_>)),
}

struct Field<'a> {
    key: Cow<'a, [u8]>,
    /// Which of the merged lists it is from. Of equal keys the one from the first list counts.
    rank: u8,
    prefix: &'static str,
    /// The key in the request.
    source: &'a [u8],
    value: FieldValue<'a>,
}

/// Memory for a member: in the list and in its twice as long successor while they grow, while they are sorted, and
/// for what is appended to a key.
const BYTES_PER_FIELD: usize = 4 * size_of::<Field<'_>>() + 64;

/// The members of an object. When it is finished they are written in the order of their keys.
pub(crate) struct FieldList<'a, 'o, 'm> {
    out: &'o mut JsonOutput<'m>,
    fields: Vec<Field<'a>>,
    dedot: Dedot,
    depth: usize,
    rank: u8,
    work: usize,
}

impl<'a, 'o, 'm> FieldList<'a, 'o, 'm> {
    /// Writes an object of the members that `gather` adds. `depth` is the number of values around its members.
    pub(crate) fn write_object(
        out: &'o mut JsonOutput<'m>,
        dedot: Dedot,
        depth: usize,
        gather: impl FnOnce(&mut FieldList<'a, 'o, 'm>),
    ) {
        let mut list = Self { out, fields: Vec::new(), dedot, depth, rank: 0, work: 0 };
        gather(&mut list);
        list.finish();
    }

    /// Begins a list whose members count less than those before.
    pub(crate) fn next_rank(&mut self) {
        self.rank = self.rank.saturating_add(1);
    }

    /// Adds attributes.
    pub(crate) fn attributes(&mut self, pairs: impl IntoIterator<Item = KeyValue<'a>>) {
        pairs.into_iter().for_each(|pair| self.attribute("", pair.key(), pair));
    }

    /// Adds an attribute under another key, unless it has no value.
    pub(crate) fn attribute(&mut self, prefix: &'static str, key: &'a [u8], pair: KeyValue<'a>) {
        if !matches!(pair.value(), AnyValue::None) {
            self.field(prefix, key, FieldValue::Attribute(pair));
        }
    }

    /// Adds a member whose key is the prefix and the key.
    pub(crate) fn field(&mut self, prefix: &'static str, source: &'a [u8], value: FieldValue<'a>) {
        let work = BYTES_PER_FIELD + 4 * (prefix.len() + source.len());
        if !self.out.begin_work(work) {
            return;
        }
        self.work += work;
        let key = match prefix {
            "" => key_style(source, self.dedot),
            prefix => {
                let whole = [prefix.as_bytes(), source].concat();
                let styled = match key_style(&whole, self.dedot) {
                    Cow::Owned(styled) => Some(styled),
                    Cow::Borrowed(_) => None,
                };
                Cow::Owned(styled.unwrap_or(whole))
            }
        };
        self.fields.push(Field { key, rank: self.rank, prefix, source, value });
    }

    /// Adds a label or an annotation of Kubernetes under its name alone, unless it has no value.
    pub(crate) fn label(&mut self, name: &'a [u8], pair: KeyValue<'a>) {
        let work = BYTES_PER_FIELD + 4 * name.len();
        if matches!(pair.value(), AnyValue::None) || !self.out.begin_work(work) {
            return;
        }
        self.work += work;
        let key = label_style(name, self.dedot);
        self.fields.push(Field { key, rank: self.rank, prefix: "", source: name, value: FieldValue::Attribute(pair) });
    }

    /// Adds text, unless it is empty.
    pub(crate) fn text(&mut self, key: &'static str, text: &'a [u8]) {
        if !text.is_empty() {
            self.field("", key.as_bytes(), FieldValue::Text(text));
        }
    }

    /// Adds bytes in hexadecimal, unless there are none.
    pub(crate) fn hex(&mut self, key: &'static str, bytes: &'a [u8]) {
        if !bytes.is_empty() {
            self.field("", key.as_bytes(), FieldValue::Hex(bytes));
        }
    }

    /// Adds a number, unless it is zero.
    pub(crate) fn number(&mut self, key: &'static str, number: impl Into<i64>) {
        let number = number.into();
        if number != 0 {
            self.field("", key.as_bytes(), FieldValue::Integer(number));
        }
    }

    /// Adds a time, unless it is unknown.
    pub(crate) fn time(&mut self, key: &'static str, nanoseconds: u64) {
        if nanoseconds > 0 {
            self.field("", key.as_bytes(), FieldValue::Time(nanoseconds));
        }
    }

    fn finish(self) {
        let Self { out, mut fields, dedot, depth, work, .. } = self;
        fields.sort_by(|a, b| {
            compare_keys(&a.key, &b.key).then_with(|| (a.rank, a.prefix, a.source).cmp(&(b.rank, b.prefix, b.source)))
        });
        if resolve_shadowing(&mut fields) {
            fields.sort_by(|a, b| {
                compare_keys(&a.key, &b.key)
                    .then_with(|| (a.rank, a.prefix, a.source).cmp(&(b.rank, b.prefix, b.source)))
            });
        }
        if fields.windows(2).any(|pair| matches!(pair, [a, b] if a.key == b.key)) {
            resolve_equal_keys(&mut fields);
        }
        let writer = MemberWriter { dedot, depth };
        match dedot {
            Dedot::Nested => writer.nested(&fields, 0, None, out),
            _ => writer.flat(&fields, out),
        }
        out.end_work(work);
    }
}

/// Orders keys so that those below a key follow it: the dot is less than any other byte.
fn compare_keys(a: &[u8], b: &[u8]) -> Ordering {
    let weight = |byte: &u8| if *byte == b'.' { 0 } else { u16::from(*byte) + 1 };
    a.iter().map(weight).cmp(b.iter().map(weight))
}

/// Renames members of later lists that a reader could take for a part of a member of an earlier list, or for an object
/// around one: `kubernetes.pod` beside an object `kubernetes`, and an object `kubernetes` beside `kubernetes.pod`. True
/// if there was one.
fn resolve_shadowing(fields: &mut [Field<'_>]) -> bool {
    let Some(first) = fields.iter().map(|field| field.rank).min() else { return false };
    if fields.iter().all(|field| field.rank == first) {
        return false;
    }
    let above: Vec<bool> = (0..fields.len()).map(|at| is_above_earlier(fields, at)).collect();
    let below: Vec<bool> = (0..fields.len()).map(|at| is_below_earlier(fields, at)).collect();
    for (field, (is_above, is_below)) in fields.iter_mut().zip(above.iter().zip(&below)) {
        let key: Vec<u8> = field.key.iter().map(|byte| if *byte == b'.' { b'_' } else { *byte }).collect();
        match (is_above, is_below) {
            (_, true) => field.key = Cow::Owned(key),
            (true, false) => field.key = Cow::Owned([&field.key, b"_2".as_slice()].concat()),
            (false, false) => {}
        }
    }
    above.contains(&true) || below.contains(&true)
}

/// Whether a member of an earlier list has a key that the key of this one begins, up to a dot. These follow it.
fn is_above_earlier(fields: &[Field<'_>], at: usize) -> bool {
    let Some(field) = fields.get(at) else { return false };
    let is_below = |other: &&Field<'_>| {
        other.key.strip_prefix(&*field.key).is_some_and(|rest| rest.first().is_none_or(|byte| *byte == b'.'))
    };
    let mut following = fields.get(at + 1..).unwrap_or_default().iter().take_while(is_below);
    following.any(|other| other.key.len() > field.key.len() && other.rank < field.rank)
}

/// More components than the key of any member of the first lists has.
const MAX_COMPARED_COMPONENTS: usize = 64;

/// Whether a member of an earlier list has a key that begins the key of this one, up to a dot.
fn is_below_earlier(fields: &[Field<'_>], at: usize) -> bool {
    let Some(field) = fields.get(at) else { return false };
    let dots = field.key.iter().enumerate().filter(|(_, byte)| **byte == b'.').map(|(dot, _)| dot);
    dots.take(MAX_COMPARED_COMPONENTS).any(|dot| {
        let prefix = field.key.get(..dot).unwrap_or_default();
        let start = fields.partition_point(|other| compare_keys(&other.key, prefix) == Ordering::Less);
        // Of equal keys the one from the earliest list comes first.
        fields.get(start).is_some_and(|other| *other.key == *prefix && other.rank < field.rank)
    })
}

/// Of members that had the same key the first one stays. Others that have become equal get a number.
fn resolve_equal_keys(fields: &mut Vec<Field<'_>>) {
    let mut new_keys: Vec<(usize, Option<Vec<u8>>)> = Vec::new();
    let mut start = 0;
    while let Some(first) = fields.get(start) {
        let rest = fields.get(start..).unwrap_or_default();
        let run = rest.get(..rest.partition_point(|field| field.key == first.key)).unwrap_or_default();
        let mut number = 2_usize;
        for (at, field) in run.iter().enumerate().skip(1) {
            let before = run.get(..at).unwrap_or_default();
            new_keys
                .push((start + at, (!is_repeated(before, field)).then(|| free_key(fields, &field.key, &mut number))));
        }
        start += run.len();
    }
    let mut dropped = Vec::new();
    for (at, key) in new_keys {
        match (fields.get_mut(at), key) {
            (Some(field), Some(key)) => field.key = Cow::Owned(key),
            _ => dropped.push(at),
        }
    }
    let mut at = 0;
    fields.retain(|_| {
        at += 1;
        dropped.binary_search(&(at - 1)).is_err()
    });
    fields.sort_by(|a, b| compare_keys(&a.key, &b.key));
}

/// Whether one of the members before has the same key in the request. They are sorted by rank and key.
fn is_repeated(before: &[Field<'_>], field: &Field<'_>) -> bool {
    (0..=field.rank).any(|rank| {
        before
            .binary_search_by(|other| (other.rank, other.prefix, other.source).cmp(&(rank, field.prefix, field.source)))
            .is_ok()
    })
}

/// `key_2`, or the next number that no other member has.
fn free_key(fields: &[Field<'_>], key: &[u8], number: &mut usize) -> Vec<u8> {
    loop {
        let candidate = [key, format!("_{number}").as_bytes()].concat();
        *number += 1;
        if fields.binary_search_by(|field| compare_keys(&field.key, &candidate)).is_err() {
            return candidate;
        }
    }
}

#[derive(Clone, Copy)]
struct MemberWriter {
    dedot: Dedot,
    depth: usize,
}

impl MemberWriter {
    fn flat(self, fields: &[Field<'_>], out: &mut JsonOutput<'_>) {
        out.push_byte(b'{');
        for field in fields {
            push_text(&field.key, out);
            out.push_byte(b':');
            self.value(&field.value, out);
            out.push_byte(b',');
        }
        out.pop_if(b',');
        out.push_byte(b'}');
    }

    /// Writes members whose keys are equal before `offset`, and one of its own that stands where the object is.
    fn nested(self, mut fields: &[Field<'_>], offset: usize, own: Option<&Field<'_>>, out: &mut JsonOutput<'_>) {
        out.push_byte(b'{');
        if let Some(own) = own {
            let mut name = b"value".to_vec();
            while fields.iter().any(|field| component(field, offset) == name) {
                name.insert(0, b'_');
            }
            push_text(&name, out);
            out.push_byte(b':');
            self.value(&own.value, out);
            out.push_byte(b',');
        }
        while let Some(first) = fields.first() {
            let name = component(first, offset);
            let (group, rest) = fields.split_at(fields.partition_point(|field| component(field, offset) == name));
            fields = rest;
            push_text(name, out);
            out.push_byte(b':');
            let below = offset + name.len() + 1;
            match (group, first.key.len() < below) {
                ([leaf], true) => self.value(&leaf.value, out),
                ([leaf, children @ ..], true) => self.nested(children, below, Some(leaf), out),
                (children, _) => self.nested(children, below, None, out),
            }
            out.push_byte(b',');
        }
        out.pop_if(b',');
        out.push_byte(b'}');
    }

    fn value(self, value: &FieldValue<'_>, out: &mut JsonOutput<'_>) {
        match *value {
            FieldValue::Attribute(pair) => push_value(&pair.value(), self.dedot, self.depth, out),
            FieldValue::Body(record) => push_value(&record.body(), self.dedot, self.depth, out),
            FieldValue::Text(text) => push_text(text, out),
            FieldValue::Hex(bytes) => push_hex(bytes, out),
            FieldValue::Integer(number) => out.push_display(number),
            FieldValue::Time(time) => push_rfc3339(time, out),
            FieldValue::Name(name) => push_text(name.as_bytes(), out),
            FieldValue::Converted(pair, write) => write(pair, self.dedot, out),
            FieldValue::Written(write) => write(out),
        }
    }
}

/// The part of the key from `offset` to the next dot.
fn component<'f>(field: &'f Field<'_>, offset: usize) -> &'f [u8] {
    let rest = field.key.get(offset..).unwrap_or_default();
    rest.iter().position(|byte| *byte == b'.').and_then(|end| rest.get(..end)).unwrap_or(rest)
}
