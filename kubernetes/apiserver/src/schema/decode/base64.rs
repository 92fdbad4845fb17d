//! Bytes in JSON: base64 as Go decodes it, ignoring line ends and trailing bits.

use std::borrow::Cow;

use base64::{
    Engine, alphabet,
    engine::{GeneralPurpose, GeneralPurposeConfig, general_purpose::STANDARD},
};

/// Accepts what Go accepts, not only what base64 encoders produce.
const LENIENT: GeneralPurpose =
    GeneralPurpose::new(&alphabet::STANDARD, GeneralPurposeConfig::new().with_decode_allow_trailing_bits(true));

/// Normalizes the text as Go would encode the bytes again. Errors have Go's messages.
pub(super) fn normalize_base64(text: &str) -> Result<Cow<'_, str>, String> {
    if STANDARD.decode(text).is_ok() {
        return Ok(Cow::Borrowed(text));
    }
    if let Some(at) = first_wrong(text.as_bytes()) {
        return Err(format!("illegal base64 data at input byte {at}"));
    }
    let compact: String = text.chars().filter(|character| !is_line_end(*character as u32)).collect();
    let bytes = LENIENT.decode(compact).map_err(|error| error.to_string())?;
    Ok(Cow::Owned(STANDARD.encode(bytes)))
}

/// The position at which Go stops: an invalid byte, or the start of an incomplete last group.
fn first_wrong(text: &[u8]) -> Option<usize> {
    // The digits of the current group, and the bytes that it takes up with line ends.
    let mut digits = 0;
    let mut read = 0;
    let mut bytes = text.iter().enumerate().filter(|(_, byte)| !is_line_end(u32::from(**byte)));
    while let Some((at, byte)) = bytes.next() {
        match byte {
            b'=' if digits < 2 => return Some(at),
            b'=' => {
                if digits == 2 {
                    match bytes.next() {
                        Some((_, b'=')) => {}
                        Some((at, _)) => return Some(at - 1),
                        None => return Some(text.len()),
                    }
                }
                return bytes.next().map(|(at, _)| at);
            }
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'+' | b'/' => {
                digits = (digits + 1) % 4;
                read = if digits == 0 { 0 } else { digits };
            }
            _ => return Some(at),
        }
    }
    (digits != 0).then(|| text.len() - read)
}

fn is_line_end(character: u32) -> bool {
    character == u32::from(b'\n') || character == u32::from(b'\r')
}
