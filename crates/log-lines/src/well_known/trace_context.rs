//! Ids of traces and spans, in the forms that logging libraries write.

use super::IdForm;

/// A trace, a span and flags.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TraceContext {
    pub(crate) trace_id: [u8; 16],
    pub(crate) span_id: [u8; 8],
    pub(crate) flags: u8,
}

/// Reads the id of a trace. One of 64 bits gets zeros in front. Zero is no id.
pub(crate) fn read_trace_id(text: &[u8], form: IdForm) -> Option<[u8; 16]> {
    let id = match form {
        IdForm::Decimal if text.len() != 32 => u128::from(read_decimal(text)?),
        IdForm::ResourceName => {
            // projects/PROJECT/traces/ID
            let id = text.rsplit(|byte| *byte == b'/').next()?;
            read_hex(id, &[32])?
        }
        _ => read_hex(text, &[32, 16])?,
    };
    (id != 0).then(|| id.to_be_bytes())
}

/// Reads the id of a span. Zero is no id.
pub(crate) fn read_span_id(text: &[u8], form: IdForm) -> Option<[u8; 8]> {
    let id = match form {
        IdForm::Decimal => read_decimal(text)?,
        _ => u64::try_from(read_hex(text, &[16])?).ok()?,
    };
    (id != 0).then(|| id.to_be_bytes())
}

/// Reads trace flags: two hexadecimal digits, a number, or whether the trace is sampled.
pub(crate) fn read_flags(text: &[u8], is_text: bool) -> Option<u8> {
    match text {
        b"true" | b"True" => Some(1),
        b"false" | b"False" => Some(0),
        [_, _] if is_text => u8::try_from(read_hex(text, &[2])?).ok(),
        _ => u8::try_from(read_decimal(text)?).ok(),
    }
}

/// Reads `traceparent`: `00-TRACE-SPAN-FLAGS`, and later versions, which may have more behind it.
pub(crate) fn read_trace_context(text: &[u8]) -> Option<TraceContext> {
    let mut parts = text.split(|byte| *byte == b'-');
    let version = read_hex(parts.next()?, &[2])?;
    let trace_id = read_hex(parts.next()?, &[32])?;
    let span_id = u64::try_from(read_hex(parts.next()?, &[16])?).ok()?;
    let flags = u8::try_from(read_hex(parts.next()?, &[2])?).ok()?;
    let is_valid = version != 0xff && (version > 0 || parts.next().is_none()) && trace_id != 0 && span_id != 0;
    is_valid.then(|| TraceContext { trace_id: trace_id.to_be_bytes(), span_id: span_id.to_be_bytes(), flags })
}

/// Reads hexadecimal digits, of which there must be one of these numbers, at most 32.
#[inline]
fn read_hex(text: &[u8], lengths: &[usize]) -> Option<u128> {
    if !lengths.contains(&text.len()) {
        return None;
    }
    let (high, low) = text.split_at_checked(text.len().saturating_sub(16))?;
    Some(u128::from(read_hex_word(high)?) << 64 | u128::from(read_hex_word(low)?))
}

/// Reads up to 16 hexadecimal digits.
#[inline]
fn read_hex_word(text: &[u8]) -> Option<u64> {
    let mut word = 0;
    let mut seen = 0;
    for byte in text {
        let digit = HEX_DIGITS.get(usize::from(*byte)).copied().unwrap_or(NO_DIGIT);
        seen |= digit;
        word = word << 4 | u64::from(digit & 15);
    }
    (seen != NO_DIGIT).then_some(word)
}

/// What each byte is as a hexadecimal digit.
static HEX_DIGITS: [u8; 256] = make_hex_digits();
/// A byte that is none. Its bits remain visible whatever digits are combined with it.
const NO_DIGIT: u8 = 0xff;

#[allow(clippy::indexing_slicing, reason = "evaluated when it is compiled")]
const fn make_hex_digits() -> [u8; 256] {
    let mut digits = [NO_DIGIT; 256];
    let mut digit = 0;
    while digit < 16 {
        digits[b"0123456789abcdef"[digit] as usize] = digit as u8;
        digits[b"0123456789ABCDEF"[digit] as usize] = digit as u8;
        digit += 1;
    }
    digits
}

fn read_decimal(text: &[u8]) -> Option<u64> {
    let digits = text.first()?.is_ascii_digit().then_some(text)?;
    std::str::from_utf8(digits).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "0102030405060708090a0b0c0d0e0f10";

    #[test]
    fn trace_ids_are_read_in_their_forms() {
        let expected = Some([1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16]);
        assert_eq!(read_trace_id(ID.as_bytes(), IdForm::Hex), expected);
        assert_eq!(read_trace_id(ID.to_uppercase().as_bytes(), IdForm::Hex), expected);
        assert_eq!(read_trace_id(ID.as_bytes(), IdForm::Decimal), expected);
        assert_eq!(read_trace_id(format!("projects/p/traces/{ID}").as_bytes(), IdForm::ResourceName), expected);
        let short = Some([0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 255]);
        assert_eq!(read_trace_id(b"00000000000001ff", IdForm::Hex), short);
        assert_eq!(read_trace_id(b"511", IdForm::Decimal), short);
        for text in ["", "short", "00000000000000000000000000000000", "g102030405060708090a0b0c0d0e0f10"] {
            assert_eq!(read_trace_id(text.as_bytes(), IdForm::Hex), None, "{text}");
        }
        for text in ["", "0", "-1", "+1", "18446744073709551616", "1.5"] {
            assert_eq!(read_trace_id(text.as_bytes(), IdForm::Decimal), None, "{text}");
        }
    }

    #[test]
    fn span_ids_and_flags_are_read_in_their_forms() {
        assert_eq!(read_span_id(b"a1a2a3a4a5a6a7a8", IdForm::Hex), Some([161, 162, 163, 164, 165, 166, 167, 168]));
        assert_eq!(read_span_id(b"18446744073709551615", IdForm::Decimal), Some([255; 8]));
        assert_eq!(read_span_id(b"0000000000000000", IdForm::Hex), None);
        assert_eq!(read_span_id(b"0102030405060708090a0b0c0d0e0f10", IdForm::Hex), None);
        for (text, is_text, flags) in [
            ("01", true, Some(1)),
            ("1", false, Some(1)),
            ("true", false, Some(1)),
            ("False", true, Some(0)),
            ("gg", true, None),
        ] {
            assert_eq!(read_flags(text.as_bytes(), is_text), flags, "{text}");
        }
    }

    #[test]
    fn traceparent_is_read() {
        let text = format!("00-{ID}-a1a2a3a4a5a6a7a8-01");
        let context = read_trace_context(text.as_bytes()).unwrap();
        assert_eq!((context.trace_id[15], context.span_id[0], context.flags), (16, 161, 1));
        assert!(read_trace_context(format!("01-{ID}-a1a2a3a4a5a6a7a8-01-more").as_bytes()).is_some());
        for text in [
            format!("ff-{ID}-a1a2a3a4a5a6a7a8-01"),
            format!("00-{ID}-a1a2a3a4a5a6a7a8-01-more"),
            format!("00-{ID}-a1a2a3a4a5a6a7a8"),
            format!("00-{ID}-0000000000000000-01"),
            String::new(),
        ] {
            assert_eq!(read_trace_context(text.as_bytes()), None, "{text}");
        }
    }
}
