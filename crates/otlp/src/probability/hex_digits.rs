//! Hexadecimal digits without an allocation.

use std::fmt;

use super::MAX_HEX_DIGITS;

/// Up to 14 hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct HexDigits {
    digits: [u8; MAX_HEX_DIGITS as usize],
    len: u8,
}

impl HexDigits {
    pub(super) const EMPTY: Self = Self { digits: [b'0'; MAX_HEX_DIGITS as usize], len: 0 };

    /// All digits of a 56-bit number.
    pub(super) fn full(value: u64) -> Self {
        let mut digits = [b'0'; MAX_HEX_DIGITS as usize];
        for (place, digit) in digits.iter_mut().rev().enumerate() {
            let nibble = (value >> (4 * place)) as u8 & 0xf;
            *digit = if nibble < 10 { b'0' + nibble } else { b'a' + nibble - 10 };
        }
        Self { digits, len: MAX_HEX_DIGITS }
    }

    /// The digits without trailing zeroes, but at least one.
    pub(super) fn trimmed(value: u64) -> Self {
        let zeroes = (value.trailing_zeros() / 4).min(u32::from(MAX_HEX_DIGITS) - 1) as u8;
        Self { len: MAX_HEX_DIGITS - zeroes, ..Self::full(value) }
    }

    pub fn as_bytes(&self) -> &[u8] {
        self.digits.get(..usize::from(self.len)).unwrap_or_default()
    }

    pub fn as_str(&self) -> &str {
        std::str::from_utf8(self.as_bytes()).unwrap_or_default()
    }
}

impl fmt::Debug for HexDigits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.as_str(), f)
    }
}

impl fmt::Display for HexDigits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Parses one to 16 digits, of either case.
pub(super) fn parse_hex(text: &[u8]) -> Option<u64> {
    if text.is_empty() || text.len() > 16 {
        return None;
    }
    text.iter().try_fold(0, |value, &byte| Some(value << 4 | u64::from(char::from(byte).to_digit(16)?)))
}
