use super::*;

fn varint(value: u64) -> Vec<u8> {
    let mut out = Vec::new();
    put_varint(&mut out, value);
    out
}

#[test]
fn a_varint_reads_back_and_has_the_size_that_was_said() {
    let mut values = vec![0, 1, u64::MAX];
    values.extend((0..64).flat_map(|bit| [(1u64 << bit) - 1, 1u64 << bit]));
    for value in values {
        let bytes = varint(value);
        assert_eq!(bytes.len(), varint_size(value), "{value}");
        let mut rest = bytes.as_slice();
        assert_eq!(read_varint(&mut rest), Ok(value));
        assert!(rest.is_empty());
    }
}

#[test]
fn a_varint_that_is_cut_short_or_too_long_is_an_error_and_moves_nothing() {
    let eleven = [0xff; 11];
    let mut overflow = [0xff; 10];
    overflow[9] = 0x02;
    for (bytes, error) in [
        (&[][..], WireError::Truncated),
        (&[0x80][..], WireError::Truncated),
        (&[0x80, 0x80, 0x80][..], WireError::Truncated),
        (&eleven[..], WireError::VarintOverflow),
        (&overflow[..], WireError::VarintOverflow),
    ] {
        let mut rest = bytes;
        assert_eq!(read_varint(&mut rest), Err(error));
        assert_eq!(rest, bytes);
    }
}

#[test]
fn a_field_keeps_its_raw_bytes_even_when_its_varints_are_longer_than_needed() {
    // Field 1, length 2, both padded to two bytes.
    let bytes = [0x8a, 0x00, 0x82, 0x00, b'h', b'i', 0x10, 0x01];
    let mut fields = WireFields::new(&bytes);
    let first = fields.next().unwrap();
    assert_eq!((first.number, first.wire, first.value), (1, LEN, &b"hi"[..]));
    assert_eq!(first.raw, &bytes[..6]);
    assert_eq!(fields.next().unwrap().as_varint(), Some(1));
    assert!(fields.next().is_none());
    assert!(fields.rest().is_empty());
}

#[test]
fn what_is_no_field_ends_the_iterator_and_stays_in_its_rest() {
    for (bad, error) in [
        (&[0x00, 0x01][..], WireError::FieldZero),
        (&[0x0b][..], WireError::Truncated),
        (&[0x0b, 0x08, 0x01][..], WireError::Truncated),
        (&[0x0b, 0x00, 0x0c][..], WireError::FieldZero),
        (&[0x0c][..], WireError::WireType(4)),
        (&[0x0e][..], WireError::WireType(6)),
        (&[0x0f][..], WireError::WireType(7)),
        (&[0x0a, 0x05, 0x00][..], WireError::Length),
        (&[0x09, 0x00][..], WireError::Truncated),
        (&[0x0d, 0x00][..], WireError::Truncated),
        (&[0x08][..], WireError::Truncated),
        (&[0xff, 0xff, 0xff, 0xff, 0x7f][..], WireError::TagOverflow),
    ] {
        assert_eq!(WireField::read(&mut &*bad), Err(error));
        let bytes = [&[0x08, 0x01], bad].concat();
        let mut fields = WireFields::new(&bytes);
        assert_eq!(fields.by_ref().count(), 1);
        assert_eq!(fields.rest(), bad);
    }
}

#[test]
fn group_is_passed_over_with_all_that_is_in_it() {
    // A group that holds a number and another group, and a field behind it.
    let bytes = [0x0b, 0x10, 0x07, 0x13, 0x0a, 0x01, b'x', 0x14, 0x0c, 0x18, 0x09];
    let fields: Vec<_> = WireFields::new(&bytes).map(|field| (field.number, field.wire, field.raw.len())).collect();
    assert_eq!(fields, [(1, 3, 9), (3, VARINT, 2)]);
}

#[test]
fn the_last_of_a_field_counts() {
    let mut bytes = Vec::new();
    put_uint(&mut bytes, 1, 7);
    put_bytes(&mut bytes, 2, b"x");
    put_uint(&mut bytes, 1, 8);
    assert_eq!(WireFields::new(&bytes).last_of(1).and_then(|field| field.as_varint()), Some(8));
    assert_eq!(WireFields::new(&bytes).last_of(3), None);
}
