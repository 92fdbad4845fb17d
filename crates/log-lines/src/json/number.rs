//! Numbers of JSON.

/// A number of JSON.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum JsonNumber {
    /// A number without fraction and exponent that fits 64 bits with sign.
    Int(i64),
    /// Every other number, as the nearest double.
    Double(f64),
}

/// Reads a number at the beginning of `text`. Returns it with its text and the bytes behind it. `None` if there is
/// none, or if it is beyond the range of doubles.
#[inline]
pub(crate) fn read_number(text: &[u8]) -> Option<(JsonNumber, &[u8], &[u8])> {
    let (is_negative, digits) = match text {
        [b'-', rest @ ..] => (true, rest),
        _ => (false, text),
    };
    let mut value = Some(0i64);
    let mut rest = digits;
    while let [digit @ b'0'..=b'9', tail @ ..] = rest {
        // Negative numbers reach one further.
        value = value.and_then(|value| value.checked_mul(10)?.checked_sub(i64::from(digit - b'0')));
        rest = tail;
    }
    let count = digits.len() - rest.len();
    if count == 0 || (count > 1 && digits.first() == Some(&b'0')) {
        return None;
    }
    if matches!(rest, [b'.' | b'e' | b'E', ..]) {
        rest = skip_exponent(skip_fraction(rest)?)?;
        value = None;
    }
    let written = text.get(..text.len() - rest.len())?;
    let value = value.and_then(|value| if is_negative { Some(value) } else { value.checked_neg() });
    let number = match value {
        // -0 is a double, as it is not 0.
        Some(value) if !(is_negative && value == 0) => JsonNumber::Int(value),
        _ => JsonNumber::Double(read_double(written)?),
    };
    Some((number, written, rest))
}

fn read_double(text: &[u8]) -> Option<f64> {
    std::str::from_utf8(text).ok()?.parse().ok().filter(|value: &f64| value.is_finite())
}

fn skip_fraction(text: &[u8]) -> Option<&[u8]> {
    match text {
        [b'.', rest @ ..] => skip_digits(rest),
        _ => Some(text),
    }
}

fn skip_exponent(text: &[u8]) -> Option<&[u8]> {
    match text {
        [b'e' | b'E', b'+' | b'-', rest @ ..] | [b'e' | b'E', rest @ ..] => skip_digits(rest),
        _ => Some(text),
    }
}

/// Skips digits, at least one.
fn skip_digits(text: &[u8]) -> Option<&[u8]> {
    let count = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    if count == 0 { None } else { text.get(count..) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Option<JsonNumber> {
        read_number(text.as_bytes()).filter(|(_, _, rest)| rest.is_empty()).map(|(number, ..)| number)
    }

    #[test]
    fn numbers_are_read() {
        use JsonNumber::{Double, Int};
        for (text, number) in [
            ("0", Int(0)),
            ("-1", Int(-1)),
            ("9007199254740993", Int(9_007_199_254_740_993)),
            ("9223372036854775807", Int(i64::MAX)),
            ("-9223372036854775808", Int(i64::MIN)),
            ("9223372036854775808", Double(9_223_372_036_854_775_808.0)),
            ("-0", Double(-0.0)),
            ("0.5", Double(0.5)),
            ("1e3", Double(1000.0)),
            ("-1.5E-2", Double(-0.015)),
            ("1e+2", Double(100.0)),
        ] {
            assert_eq!(read(text), Some(number), "{text}");
        }
    }

    #[test]
    fn other_text_is_no_number() {
        for text in ["", "-", "01", "1.", ".5", "1e", "1e+", "+1", "0x1", "NaN", "1e999", "--1", "1.e2"] {
            assert_eq!(read(text), None, "{text}");
        }
    }
}
