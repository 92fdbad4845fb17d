//! `unquote`: a literal of Go to the text that it stands for.

use super::RecordError;

/// The text of a literal in double quotes, back quotes, or a single character in single quotes.
pub(super) fn unquote(text: &[u8]) -> Result<Vec<u8>, RecordError> {
    let wrong = || RecordError::new("the text is not in quotes");
    let (quote, inner) = match text {
        [quote @ (b'"' | b'`' | b'\''), inner @ .., last] if last == quote => (*quote, inner),
        _ => return Err(wrong()),
    };
    if quote == b'`' {
        let is_raw = !inner.contains(&b'`');
        return if is_raw { Ok(inner.iter().copied().filter(|byte| *byte != b'\r').collect()) } else { Err(wrong()) };
    }
    let mut out = Vec::with_capacity(inner.len());
    let mut rest = inner;
    let mut characters = 0_usize;
    while let Some((byte, after)) = rest.split_first() {
        // Bytes that continue a character are part of the one before.
        characters += usize::from(*byte & 0xC0 != 0x80);
        rest = after;
        match byte {
            b'\n' => return Err(wrong()),
            byte if *byte == quote => return Err(wrong()),
            b'\\' => rest = escape(after, quote, &mut out).ok_or_else(|| RecordError::new("unknown escape"))?,
            byte => out.push(*byte),
        }
    }
    if quote == b'\'' && characters != 1 {
        return Err(wrong());
    }
    Ok(out)
}

/// Writes what an escape stands for, and returns what follows it.
fn escape<'t>(text: &'t [u8], quote: u8, out: &mut Vec<u8>) -> Option<&'t [u8]> {
    let (first, rest) = text.split_first()?;
    let plain = match first {
        b'a' => 7,
        b'b' => 8,
        b'f' => 12,
        b'n' => b'\n',
        b'r' => b'\r',
        b't' => b'\t',
        b'v' => 11,
        b'\\' => b'\\',
        byte if *byte == quote => quote,
        b'x' => {
            let (code, rest) = number(rest, 2, 16)?;
            out.push(u8::try_from(code).ok()?);
            return Some(rest);
        }
        b'u' | b'U' => {
            let (code, rest) = number(rest, if *first == b'u' { 4 } else { 8 }, 16)?;
            out.extend_from_slice(char::from_u32(code)?.encode_utf8(&mut [0; 4]).as_bytes());
            return Some(rest);
        }
        b'0'..=b'7' => {
            let (code, rest) = number(text, 3, 8)?;
            out.push(u8::try_from(code).ok()?);
            return Some(rest);
        }
        _ => return None,
    };
    out.push(plain);
    Some(rest)
}

/// A number of exactly so many digits, and what follows it.
fn number(text: &[u8], digits: usize, radix: u32) -> Option<(u32, &[u8])> {
    let (number, rest) = text.split_at_checked(digits)?;
    let mut code = 0_u32;
    for digit in number {
        code = code.checked_mul(radix)?.checked_add(char::from(*digit).to_digit(radix)?)?;
    }
    Some((code, rest))
}
