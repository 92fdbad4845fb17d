use super::*;
use crate::wire::{put_bytes, put_uint};

fn field(number: u32, content: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    put_bytes(&mut out, number, content);
    out
}

fn attribute(key: &[u8], value: &[u8]) -> Vec<u8> {
    field(1, &[field(1, key), field(2, &field(1, value))].concat())
}

#[test]
fn a_resource_that_was_sent_in_parts_is_read_as_one() {
    let content = [field(1, &attribute(b"a", b"1")), field(2, b""), field(1, &attribute(b"b", b"2"))].concat();
    let entry = ResourceEntry::new(&content);
    assert_eq!(entry.resource().attributes().text("a"), Some(&b"1"[..]));
    assert_eq!(entry.resource().attributes().text("b"), Some(&b"2"[..]));
    assert_eq!(entry.scopes().count(), 1);
}

#[test]
fn the_last_of_a_field_counts_and_one_of_another_type_does_not() {
    let mut content = [field(5, b"first"), field(5, b"last")].concat();
    put_uint(&mut content, 5, 7);
    assert_eq!(Span::new(&content).name(), b"last");
    assert_eq!(Span::new(&content).kind(), 0);
}

#[test]
fn an_iterator_ends_at_bytes_that_are_no_field() {
    let content = [field(9, b""), vec![0x07], field(9, b"")].concat();
    assert_eq!(Span::new(&content).attributes().iter().count(), 1);
}

#[test]
fn text_that_is_not_utf_8_is_kept_and_can_be_shown() {
    let content = attribute(b"k", b"a\xff");
    let resource = Resource::new(&content);
    let value = resource.attributes().get("k").unwrap();
    assert_eq!(value.as_text(), Some(&b"a\xff"[..]));
    assert_eq!(value.as_str(), None);
    assert_eq!(lossy(b"a\xff"), "a\u{fffd}");
}

#[test]
fn repeated_numbers_are_read_packed_and_not() {
    let packed = field(6, &[1u64.to_le_bytes(), 2u64.to_le_bytes()].concat());
    let mut content = packed;
    crate::wire::put_fixed64(&mut content, 6, 3);
    assert_eq!(Histogram::new(&content).bucket_counts().collect::<Vec<_>>(), [1, 2, 3]);
    let mut content = field(2, &[0x01, 0x80, 0x01]);
    put_uint(&mut content, 2, 9);
    assert_eq!(Buckets::new(&content).counts().collect::<Vec<_>>(), [1, 128, 9]);
}
