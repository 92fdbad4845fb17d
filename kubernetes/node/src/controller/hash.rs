//! The short hash in the names of revisions.

/// Letters and digits that form no words.
const ALPHABET: &[u8; 27] = b"bcdfghjklmnpqrstvwxz2456789";

/// The hash of a serialized object. Another `collisions` gives another hash.
pub fn short(serialized: &[u8], collisions: i32) -> String {
    let collisions = collisions.to_string();
    let bytes = serialized.iter().chain(collisions.as_bytes());
    let sum = bytes.fold(0x811c_9dc5_u32, |sum, byte| sum.wrapping_mul(0x0100_0193) ^ u32::from(*byte));
    let letter = |digit: u8| char::from(ALPHABET.get(usize::from(digit) % ALPHABET.len()).copied().unwrap_or(b'x'));
    sum.to_string().bytes().map(letter).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hash_is_short_and_depends_on_everything() {
        let hash = short(b"template", 0);
        assert!((1..=10).contains(&hash.len()), "{hash}");
        assert_eq!(hash, short(b"template", 0));
        assert_ne!(hash, short(b"template", 1));
        assert_ne!(hash, short(b"templatf", 0));
    }

    /// FNV-1 of "a0", 32 bits wide, is 1749302706; its digits are mapped to an alphabet without vowels.
    #[test]
    fn it_is_written_as_kubernetes_does() {
        let sum =
            (0x811c_9dc5_u32.wrapping_mul(0x0100_0193) ^ u32::from(b'a')).wrapping_mul(0x0100_0193) ^ u32::from(b'0');
        let expected: String =
            sum.to_string().bytes().map(|digit| char::from(ALPHABET[usize::from(digit) % 27])).collect();
        assert_eq!(short(b"a", 0), expected);
    }
}
