//! Joins several requests into one.

use bytes::Bytes;

/// Joins requests of one signal into one with the entries of all, in order.
///
/// Protobuf merges concatenated messages and appends their repeated fields, so joining is concatenation.
/// Nothing is merged further: equal resources stay apart. A single request that is not empty is returned
/// without a copy.
pub fn join(parts: &[Bytes]) -> Bytes {
    let mut filled = parts.iter().filter(|part| !part.is_empty());
    match (filled.next(), filled.next()) {
        (None, _) => Bytes::new(),
        (Some(part), None) => part.clone(),
        _ => {
            let mut out = Vec::with_capacity(parts.iter().map(Bytes::len).sum());
            for part in parts {
                out.extend_from_slice(part);
            }
            Bytes::from(out)
        }
    }
}
