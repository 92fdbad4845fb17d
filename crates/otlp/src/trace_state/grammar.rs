//! The grammar of a list of members, and of OpenTelemetry's member.

use super::TraceStateError;

const MAX_KEY_BYTES: usize = 256;
/// Characters before the `@` of a key.
const MAX_TENANT_BYTES: usize = 241;
/// Characters behind the `@` of a key.
const MAX_SYSTEM_BYTES: usize = 14;
const MAX_VALUE_BYTES: usize = 256;

/// The members without the white space around them. Empty members are valid, and skipped.
pub(super) fn members(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    text.split(|byte| *byte == b',').map(trim).filter(|member| !member.is_empty())
}

fn trim(mut text: &[u8]) -> &[u8] {
    while let [b' ' | b'\t', rest @ ..] | [rest @ .., b' ' | b'\t'] = text {
        text = rest;
    }
    text
}

/// Parses a member into key and value.
pub(super) fn member(member: &[u8]) -> Result<(&[u8], &[u8]), TraceStateError> {
    let (key, value) = split_at(member, b'=').ok_or(TraceStateError::Syntax)?;
    let well_formed = match split_at(key, b'@') {
        None => key.first().is_some_and(u8::is_ascii_lowercase) && is_key(key),
        Some((tenant, system)) => {
            tenant.first().is_some_and(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit())
                && system.first().is_some_and(u8::is_ascii_lowercase)
                && is_key(tenant)
                && is_key(system)
        }
    };
    if !well_formed || !is_value(value) {
        return Err(TraceStateError::Syntax);
    }
    let too_long = match split_at(key, b'@') {
        None => key.len() > MAX_KEY_BYTES,
        Some((tenant, system)) => tenant.len() > MAX_TENANT_BYTES || system.len() > MAX_SYSTEM_BYTES,
    };
    if too_long { Err(TraceStateError::TooLong) } else { Ok((key, value)) }
}

/// Parses a pair of OpenTelemetry's member; its value may be empty.
pub(super) fn ot_member(pair: &[u8]) -> Result<(&[u8], &[u8]), TraceStateError> {
    let (key, value) = split_at(pair, b':').ok_or(TraceStateError::Syntax)?;
    let is_key = key.first().is_some_and(u8::is_ascii_lowercase)
        && key.iter().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit());
    let is_value = value.iter().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-'));
    if is_key && is_value { Ok((key, value)) } else { Err(TraceStateError::Syntax) }
}

fn split_at(text: &[u8], separator: u8) -> Option<(&[u8], &[u8])> {
    let place = text.iter().position(|byte| *byte == separator)?;
    Some((text.get(..place)?, text.get(place + 1..)?))
}

fn is_key(text: &[u8]) -> bool {
    let is_char =
        |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'_' | b'-' | b'*' | b'/');
    text.iter().all(is_char)
}

/// Printable characters without `,` and `=`, and no trailing space.
fn is_value(text: &[u8]) -> bool {
    let is_char = |byte: &u8| matches!(byte, 0x20..=0x7e) && !matches!(byte, b',' | b'=');
    (1..=MAX_VALUE_BYTES).contains(&text.len()) && text.last() != Some(&b' ') && text.iter().all(is_char)
}
