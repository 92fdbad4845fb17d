//! go-yaml's order of keys: letters after everything else, numbers by their value.

use std::cmp::Ordering;

/// A key in that order. Different keys are never equal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct NaturalKey<'k>(pub(super) &'k str);

impl Ord for NaturalKey<'_> {
    fn cmp(&self, other: &Self) -> Ordering {
        if less(self.0, other.0) {
            Ordering::Less
        } else if less(other.0, self.0) {
            Ordering::Greater
        } else {
            self.0.cmp(other.0)
        }
    }
}

impl PartialOrd for NaturalKey<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

fn less(a: &str, b: &str) -> bool {
    let same = a.chars().zip(b.chars()).take_while(|(a, b)| a == b).map(|(c, _)| c.len_utf8()).sum();
    let (Some((before, a)), Some(b)) = (a.split_at_checked(same), b.get(same..)) else { return false };
    let (Some(first_a), Some(first_b)) = (a.chars().next(), b.chars().next()) else { return a.len() < b.len() };
    match (first_a.is_alphabetic(), first_b.is_alphabetic()) {
        (true, true) => first_a < first_b,
        (false, false) => {
            // Zeros after other digits are part of a number.
            let begun = (first_a == '0' || first_b == '0') && ends_in_number(before);
            let (number_a, length_a) = number(a, begun);
            let (number_b, length_b) = number(b, begun);
            (number_a, length_a, first_a) < (number_b, length_b, first_b)
        }
        (_, letter) => letter,
    }
}

fn ends_in_number(text: &str) -> bool {
    text.bytes().rev().take_while(u8::is_ascii_digit).any(|digit| digit != b'0')
}

fn number(text: &str, begun: bool) -> (i64, usize) {
    let digits = text.bytes().take_while(u8::is_ascii_digit);
    digits.fold((i64::from(begun), 0), |(number, length), digit| {
        (number.wrapping_mul(10).wrapping_add(i64::from(digit - b'0')), length + 1)
    })
}
