//! The `trace_state` policy: the value of one member.

const MAX_MEMBERS: usize = 32;
/// Limits of a key and of a value.
const MAX_KEY_OR_VALUE_BYTES: usize = 256;

/// The value of `key`, if the text as a whole is a trace state as OpenTelemetry's API for Go reads it and holds
/// it.
pub(super) fn member_value<'a>(text: &'a [u8], key: &[u8]) -> Option<&'a [u8]> {
    let mut keys: Vec<&[u8]> = Vec::new();
    let mut found = None;
    for member in text.split(|byte| *byte == b',').filter(|member| !member.is_empty()) {
        let (name, value) = parse_member(member)?;
        if keys.contains(&name) || keys.len() == MAX_MEMBERS {
            return None;
        }
        keys.push(name);
        if name == key {
            found = Some(value);
        }
    }
    found
}

fn parse_member(member: &[u8]) -> Option<(&[u8], &[u8])> {
    let at = member.iter().position(|byte| *byte == b'=')?;
    let key = member.get(..at)?;
    let value = member.get(at + 1..)?;
    let blank = |byte: &u8| matches!(byte, b' ' | b'\t');
    let key = key.get(key.iter().take_while(|byte| blank(byte)).count()..)?;
    let value = value.get(..value.len() - value.iter().rev().take_while(|byte| blank(byte)).count())?;
    (is_key(key) && is_value(value)).then_some((key, value))
}

fn is_key(key: &[u8]) -> bool {
    let letter = |byte: &u8| byte.is_ascii_lowercase();
    let rest = |part: &[u8]| {
        part.iter().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || matches!(b, b'_' | b'-' | b'*' | b'/'))
    };
    match key.iter().position(|byte| *byte == b'@').and_then(|at| Some((key.get(..at)?, key.get(at + 1..)?))) {
        None => key.len() <= MAX_KEY_OR_VALUE_BYTES && key.first().is_some_and(letter) && rest(key),
        Some((tenant, system)) => {
            let begins = tenant.first().is_some_and(|byte| letter(byte) || byte.is_ascii_digit());
            begins
                && tenant.len() <= 241
                && rest(tenant)
                && system.len() <= 14
                && system.first().is_some_and(letter)
                && rest(system)
        }
    }
}

fn is_value(value: &[u8]) -> bool {
    let allowed = |byte: &u8| matches!(byte, b' '..=b'~') && !matches!(byte, b',' | b'=');
    (1..=MAX_KEY_OR_VALUE_BYTES).contains(&value.len()) && value.iter().all(allowed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_member_is_found_in_a_good_list_only() {
        for (text, found) in [
            ("a=1,b=2", Some("2")),
            ("b=2 \t,,a=1", Some("2")),
            (" b=x y", Some("x y")),
            ("a=1", None),
            ("", None),
            ("b=2,b=3", None),
            ("b=2,A=1", None),
            ("b=2,c", None),
            ("b=", None),
            ("b=2=3", None),
            ("b=2,1t@sys=x", Some("2")),
            ("b=2,1t=x", None),
        ] {
            assert_eq!(member_value(text.as_bytes(), b"b"), found.map(str::as_bytes), "{text}");
        }
    }
}
