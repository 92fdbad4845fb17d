//! Values of JSON that are not looked into.

use super::{JsonString, MAX_DEPTH, read_number, unescape};

/// Skips the blanks that may be between values.
#[inline]
pub(crate) fn skip_blanks(text: &[u8]) -> &[u8] {
    match text {
        [0..=b' ', ..] => skip_some_blanks(text),
        // Most programs write none.
        _ => text,
    }
}

fn skip_some_blanks(mut text: &[u8]) -> &[u8] {
    while let [b' ' | b'\t' | b'\n' | b'\r', rest @ ..] = text {
        text = rest;
    }
    text
}

/// Reads a value of any kind, and checks it. Returns its text and the bytes behind it.
pub(crate) fn skip_value(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let rest = skip_nested(text, MAX_DEPTH)?;
    Some((text.get(..text.len() - rest.len())?, rest))
}

fn skip_nested(text: &[u8], depth: usize) -> Option<&[u8]> {
    match text {
        [b'"', rest @ ..] => skip_string(rest),
        [b'{', rest @ ..] => skip_members(rest, depth.checked_sub(1)?, b'}'),
        [b'[', rest @ ..] => skip_members(rest, depth.checked_sub(1)?, b']'),
        [b't', b'r', b'u', b'e', rest @ ..]
        | [b'f', b'a', b'l', b's', b'e', rest @ ..]
        | [b'n', b'u', b'l', b'l', rest @ ..] => Some(rest),
        _ => read_number(text).map(|(_, _, rest)| rest),
    }
}

/// Skips a string behind its opening quote.
fn skip_string(text: &[u8]) -> Option<&[u8]> {
    let (string, rest) = JsonString::read(text)?;
    if string.has_escapes {
        unescape(string.raw, &mut Vec::new())?;
    }
    Some(rest)
}

/// Skips the content of an object or a list up to and with `end`.
fn skip_members(text: &[u8], depth: usize, end: u8) -> Option<&[u8]> {
    let mut rest = skip_blanks(text);
    if let [byte, tail @ ..] = rest
        && *byte == end
    {
        return Some(tail);
    }
    loop {
        if end == b'}' {
            let [b'"', key @ ..] = rest else { return None };
            let [b':', value @ ..] = skip_blanks(skip_string(key)?) else { return None };
            rest = skip_blanks(value);
        }
        rest = skip_blanks(skip_nested(rest, depth)?);
        match rest {
            [b',', tail @ ..] => rest = skip_blanks(tail),
            [byte, tail @ ..] if *byte == end => return Some(tail),
            _ => return None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_end_where_json_says() {
        for value in
            [r#""a\"b""#, "{}", "[]", r#"{"a": [1, {"b": null}], "c":"}"}"#, "true", "-1.5e3", "[[ ] ,[false]]"]
        {
            let text = format!("{value},x");
            assert_eq!(skip_value(text.as_bytes()), Some((value.as_bytes(), &b",x"[..])), "{value}");
        }
    }

    #[test]
    fn malformed_and_too_deep_values_are_refused() {
        for value in ["", "{", "[1", "[1,]", "{\"a\"}", "{\"a\":}", "{a:1}", "{\"a\":1,}", "nul", "[1 2]", "\"\\q\""] {
            assert_eq!(skip_value(value.as_bytes()), None, "{value}");
        }
        let nested = |depth: usize| [b"[".repeat(depth), b"]".repeat(depth)].concat();
        assert!(skip_value(&nested(MAX_DEPTH)).is_some());
        assert!(skip_value(&nested(MAX_DEPTH + 1)).is_none());
        assert!(skip_value(&nested(1_000_000)).is_none());
    }
}
