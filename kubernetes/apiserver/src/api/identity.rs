//! The uids, generated names and timestamps of objects.

use std::fmt::Write as _;

use jiff::Timestamp;

/// Letters and digits that form no words by accident and are not mistaken for each other; the same as in
/// kube-apiserver.
const SUFFIX_ALPHABET: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";
/// The longest name that is valid for every kind.
const MAX_NAME_BYTES: usize = 63;
/// The length of the random suffix of a generated name.
const SUFFIX_BYTES: usize = 5;

/// A random UUID of version 4.
pub fn uid() -> String {
    let random = (fastrand::u128(..) & !(0xf << 76) | 0x4 << 76) & !(0x3 << 62) | 0x2 << 62;
    let hex = format!("{random:032x}");
    let mut uid = String::with_capacity(36);
    for (index, digit) in hex.chars().enumerate() {
        if matches!(index, 8 | 12 | 16 | 20) {
            uid.push('-');
        }
        uid.push(digit);
    }
    uid
}

/// A name generated from `generateName`, which is cut so that the result has at most 63 characters.
pub fn generate_name(base: &str) -> String {
    let mut name: String = base.chars().take(MAX_NAME_BYTES - SUFFIX_BYTES).collect();
    name.extend((0..SUFFIX_BYTES).filter_map(|_| fastrand::choice(SUFFIX_ALPHABET)).map(|byte| char::from(*byte)));
    name
}

/// A time as `metav1.Time` writes it: whole seconds.
pub fn time(at: Timestamp) -> String {
    let mut text = String::with_capacity(20);
    // Writing to a `String` cannot fail.
    let _ = write!(text, "{}", at.strftime("%Y-%m-%dT%H:%M:%SZ"));
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uids_are_of_version_four() {
        for _ in 0..100 {
            let uid = uid();
            let parts: Vec<&str> = uid.split('-').collect();
            assert_eq!(parts.iter().map(|part| part.len()).collect::<Vec<_>>(), [8, 4, 4, 4, 12], "{uid}");
            assert!(parts[2].starts_with('4') && "89ab".contains(&parts[3][..1]), "{uid}");
        }
    }

    #[test]
    fn generated_names_fit() {
        assert_eq!(generate_name("job-").len(), 9);
        assert_eq!(generate_name(&"x".repeat(80)).len(), 63);
    }

    #[test]
    fn times_are_whole_seconds() {
        assert_eq!(time(Timestamp::from_nanosecond(1_500_000_000_999_999_999).unwrap()), "2017-07-14T02:40:00Z");
    }
}
