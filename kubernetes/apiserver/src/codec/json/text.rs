//! Decodes the content of JSON strings.

use super::JsonDecodeError;

/// Decodes UTF-8. Every invalid byte becomes U+FFFD, as in Go.
pub(super) fn from_utf8(bytes: &[u8]) -> String {
    match std::str::from_utf8(bytes) {
        Ok(text) => text.to_owned(),
        Err(_) => repair(bytes),
    }
}

#[cold]
fn repair(mut bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    loop {
        let (valid, rest) = match std::str::from_utf8(bytes) {
            Ok(valid) => return text + valid,
            Err(error) => bytes.split_at(error.valid_up_to()),
        };
        text.push_str(std::str::from_utf8(valid).unwrap_or_default());
        text.push('\u{fffd}');
        bytes = rest.get(1..).unwrap_or_default();
    }
}

/// Decodes up to the closing quote: the text, and the number of bytes including that quote.
pub(super) fn unescape(input: &[u8]) -> Result<(String, usize), JsonDecodeError> {
    let mut raw = Vec::with_capacity(32);
    let mut at = 0;
    loop {
        let rest = input.get(at..).unwrap_or_default();
        let plain =
            rest.iter().position(|&byte| byte == b'"' || byte == b'\\' || byte < b' ').ok_or(JsonDecodeError::End)?;
        raw.extend_from_slice(rest.get(..plain).unwrap_or_default());
        at += plain + 1;
        match rest.get(plain) {
            Some(b'"') => return Ok((from_utf8(&raw), at)),
            Some(b'\\') => at += escape(input.get(at..).unwrap_or_default(), &mut raw)?,
            other => return Err(bad(other, "in string literal")),
        }
    }
}

/// Decodes the characters after a backslash; returns their number.
fn escape(input: &[u8], raw: &mut Vec<u8>) -> Result<usize, JsonDecodeError> {
    let byte = match input.first().ok_or(JsonDecodeError::End)? {
        b'b' => 0x8,
        b'f' => 0xc,
        b'n' => b'\n',
        b'r' => b'\r',
        b't' => b'\t',
        same @ (b'"' | b'\\' | b'/') => *same,
        b'u' => return unicode(input, raw),
        other => return Err(bad(Some(other), "in string escape code")),
    };
    raw.push(byte);
    Ok(1)
}

/// `uXXXX`, or two of them with a backslash in between. Half a pair becomes U+FFFD.
fn unicode(input: &[u8], raw: &mut Vec<u8>) -> Result<usize, JsonDecodeError> {
    let first = hex(input.get(1..).unwrap_or_default())?;
    let (c, length) = match first {
        0xd800..=0xdbff => match low_surrogate(input.get(5..).unwrap_or_default()) {
            Some(second) => (char::from_u32(0x1_0000 + ((first - 0xd800) << 10) + (second - 0xdc00)), 11),
            None => (None, 5),
        },
        _ => (char::from_u32(first), 5),
    };
    let c = c.unwrap_or('\u{fffd}');
    raw.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
    Ok(length)
}

fn low_surrogate(input: &[u8]) -> Option<u32> {
    let digits = input.strip_prefix(b"\\u")?;
    hex(digits).ok().filter(|second| (0xdc00..=0xdfff).contains(second))
}

fn hex(input: &[u8]) -> Result<u32, JsonDecodeError> {
    let mut number = 0;
    for at in 0..4 {
        let byte = input.get(at).ok_or(JsonDecodeError::End)?;
        let digit = char::from(*byte).to_digit(16);
        number = number * 16 + digit.ok_or_else(|| bad(Some(byte), "in \\u hexadecimal character escape"))?;
    }
    Ok(number)
}

fn bad(byte: Option<&u8>, context: &'static str) -> JsonDecodeError {
    byte.map_or(JsonDecodeError::End, |&byte| JsonDecodeError::Character { byte, context })
}
