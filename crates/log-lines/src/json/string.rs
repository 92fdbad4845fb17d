//! Strings of JSON: where they end, and what they mean.

/// A string of JSON without its quotes, borrowed from the line.
#[derive(Clone, Copy, Debug)]
pub(crate) struct JsonString<'a> {
    /// The text between the quotes, as written.
    pub(crate) raw: &'a [u8],
    /// Whether `raw` holds escapes; if not it is the text itself.
    pub(crate) has_escapes: bool,
}

impl<'a> JsonString<'a> {
    /// Reads a string whose opening quote has been read. Returns it with the bytes behind its closing quote. Escapes
    /// are checked when they are resolved.
    #[inline]
    pub(crate) fn read(text: &'a [u8]) -> Option<(Self, &'a [u8])> {
        let mut has_escapes = false;
        let mut at = 0;
        loop {
            at += plain_length(text.get(at..)?);
            match text.get(at)? {
                b'"' => {
                    let (raw, rest) = text.split_at_checked(at)?;
                    return Some((Self { raw, has_escapes }, rest.get(1..)?));
                }
                b'\\' => {
                    has_escapes = true;
                    // Whatever is escaped is not the end.
                    at += 2;
                }
                // A control character, which has to be escaped.
                _ => return None,
            }
        }
    }

    /// The text, which is written to `scratch` if it has escapes. `None` if an escape is malformed.
    #[inline]
    pub(crate) fn resolve<'b>(&self, scratch: &'b mut Vec<u8>) -> Option<&'b [u8]>
    where
        'a: 'b,
    {
        if !self.has_escapes {
            return Some(self.raw);
        }
        scratch.clear();
        unescape(self.raw, scratch)?;
        Some(scratch)
    }
}

/// Bytes in front of the first quote, backslash or control character. Eight bytes are tested at once.
#[inline]
fn plain_length(text: &[u8]) -> usize {
    const ONES: u64 = 0x0101_0101_0101_0101;
    const HIGHS: u64 = 0x8080_8080_8080_8080;
    // The high bit of each byte that is zero. Bytes above the first hit may be wrong, and are not looked at.
    let zeros = |word: u64| word.wrapping_sub(ONES) & !word & HIGHS;
    let mut length = 0;
    let mut words = text.chunks_exact(8);
    for word in words.by_ref() {
        let word = word.try_into().map_or(0, u64::from_le_bytes);
        let below_blank = word.wrapping_sub(ONES * 0x20) & !word & HIGHS;
        let hits = zeros(word ^ (ONES * u64::from(b'"'))) | zeros(word ^ (ONES * u64::from(b'\\'))) | below_blank;
        if hits != 0 {
            return length + hits.trailing_zeros() as usize / 8;
        }
        length += 8;
    }
    let is_plain = |byte: &&u8| !matches!(**byte, b'"' | b'\\' | 0..0x20);
    length + words.remainder().iter().take_while(is_plain).count()
}

/// Appends the text that a string with escapes means. `None` if an escape is malformed; `out` may then hold a part.
pub(crate) fn unescape(raw: &[u8], out: &mut Vec<u8>) -> Option<()> {
    let mut rest = raw;
    while let Some(at) = memchr::memchr(b'\\', rest) {
        out.extend_from_slice(rest.get(..at)?);
        let (&escape, tail) = rest.get(at + 1..)?.split_first()?;
        rest = tail;
        match escape {
            b'"' | b'\\' | b'/' => out.push(escape),
            b'b' => out.push(0x08),
            b'f' => out.push(0x0c),
            b'n' => out.push(b'\n'),
            b'r' => out.push(b'\r'),
            b't' => out.push(b'\t'),
            b'u' => rest = unescape_unit(rest, out)?,
            _ => return None,
        }
    }
    out.extend_from_slice(rest);
    Some(())
}

/// Appends the character of `\uXXXX`, or of the pair of them that is a character beyond 16 bits. Half a pair becomes
/// U+FFFD, as in the Collector.
fn unescape_unit<'a>(text: &'a [u8], out: &mut Vec<u8>) -> Option<&'a [u8]> {
    let (unit, mut rest) = read_unit(text)?;
    let mut character = char::from_u32(unit);
    if let (0xd800..0xdc00, [b'\\', b'u', tail @ ..]) = (unit, rest)
        && let (low @ 0xdc00..0xe000, behind) = read_unit(tail)?
    {
        character = char::from_u32(0x1_0000 + ((unit - 0xd800) << 10) + (low - 0xdc00));
        rest = behind;
    }
    let character = character.unwrap_or(char::REPLACEMENT_CHARACTER);
    out.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
    Some(rest)
}

/// Reads four hexadecimal digits.
fn read_unit(text: &[u8]) -> Option<(u32, &[u8])> {
    let (digits, rest) = text.split_first_chunk::<4>()?;
    let unit = digits.iter().try_fold(0, |unit, digit| Some(unit << 4 | char::from(*digit).to_digit(16)?))?;
    Some((unit, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Option<(String, usize)> {
        let (string, rest) = JsonString::read(text.as_bytes())?;
        let mut scratch = Vec::new();
        let resolved = string.resolve(&mut scratch)?;
        Some((String::from_utf8(resolved.to_vec()).unwrap(), rest.len()))
    }

    #[test]
    fn strings_end_at_their_quote_and_escapes_are_resolved() {
        for (text, expected, rest) in [
            (r#"" x"#, "", 2),
            (r#"abc""#, "abc", 0),
            (r#"eight bytes and more, and ünïcödé" "#, "eight bytes and more, and ünïcödé", 1),
            (r#"a\"b\\c\/d\b\f\n\r\t""#, "a\"b\\c/d\u{8}\u{c}\n\r\t", 0),
            (r#"\u00e9\u4e16\ud83d\ude00""#, "é世😀", 0),
            (r#"\ud83d \ud83dx\ude00\ud83d\u0041""#, "\u{fffd} \u{fffd}x\u{fffd}\u{fffd}A", 0),
            (r#"1234567\\""#, "1234567\\", 0),
        ] {
            assert_eq!(read(text), Some((expected.to_owned(), rest)), "{text}");
        }
    }

    #[test]
    fn malformed_strings_are_refused() {
        for text in ["", "abc", "abc\\", "abc\\\"", "tab\there\"", "1234567\n\"", r#"\x""#, r#"\u12""#, r#"\u12g4""#] {
            assert_eq!(read(text), None, "{text}");
        }
    }

    #[test]
    fn special_byte_is_found_at_every_place() {
        for special in *b"\"\\\n\x1f" {
            for at in 0..40 {
                let mut text = [b'\x7f'; 40];
                text[at] = special;
                assert_eq!(plain_length(&text), at);
            }
        }
        assert_eq!(plain_length("\u{e9}\u{4e16}\u{1f600} !#[]\u{7f}".as_bytes()), 15);
    }
}
