//! The part of DER that subjects of certificates and public keys need.

pub(super) const INTEGER: u8 = 0x02;
pub(super) const BIT_STRING: u8 = 0x03;
pub(super) const OBJECT_IDENTIFIER: u8 = 0x06;
pub(super) const SEQUENCE: u8 = 0x30;
pub(super) const SET: u8 = 0x31;

/// The content of the first element, which must have this tag, and the bytes after it.
pub(super) fn expect(wanted: u8, input: &[u8]) -> Option<(&[u8], &[u8])> {
    let (tag, contents, rest) = element(input)?;
    (tag == wanted).then_some((contents, rest))
}

/// The first element: its tag, its content, and the bytes after it.
pub(super) fn element(input: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let (&[tag, first], rest) = input.split_first_chunk::<2>()?;
    let (length, rest) = match first {
        0..=0x7f => (usize::from(first), rest),
        0x81 => rest.split_first_chunk().map(|(length, rest)| (usize::from(u8::from_be_bytes(*length)), rest))?,
        0x82 => rest.split_first_chunk().map(|(length, rest)| (usize::from(u16::from_be_bytes(*length)), rest))?,
        // No subject and no key has a longer or an indefinite length.
        _ => return None,
    };
    let (contents, rest) = rest.split_at_checked(length)?;
    Some((tag, contents, rest))
}
