//! JSON to values.
//!
//! Numbers are floats as in Go unless whole numbers shall stay whole; of a key that is there twice the last one counts.
//! *Guarantees*: time and memory in proportion to the text, and a bounded depth.

use crate::value::{LogMap, LogValue};

/// The deepest nesting that a value of OTLP may have in a request.
const MAX_DEPTH: usize = 64;

/// Why a text is not JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct JsonError {
    /// The byte at which the problem is.
    pub(crate) offset: usize,
    pub(crate) problem: &'static str,
}

/// What the numbers of a text become.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum JsonNumbers {
    Floats,
    /// Whole numbers stay whole if they fit 64 bits.
    Integers,
}

/// The value that a text is.
pub(crate) fn parse(text: &[u8], numbers: JsonNumbers) -> Result<LogValue, JsonError> {
    let mut reader = JsonReader { text, offset: 0, numbers };
    reader.skip_space();
    let value = reader.value(0)?;
    reader.skip_space();
    match reader.peek() {
        // As in the Collector, what follows is only looked at when numbers are floats.
        Some(_) if numbers == JsonNumbers::Floats => Err(reader.error("something follows the value")),
        _ => Ok(value),
    }
}

struct JsonReader<'t> {
    text: &'t [u8],
    offset: usize,
    numbers: JsonNumbers,
}

impl JsonReader<'_> {
    fn peek(&self) -> Option<u8> {
        self.text.get(self.offset).copied()
    }

    fn error(&self, problem: &'static str) -> JsonError {
        JsonError { offset: self.offset, problem }
    }

    fn skip_space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.offset += 1;
        }
    }

    fn expect(&mut self, text: &'static [u8], value: LogValue) -> Result<LogValue, JsonError> {
        if self.text.get(self.offset..).is_some_and(|rest| rest.starts_with(text)) {
            self.offset += text.len();
            return Ok(value);
        }
        Err(self.error("a word is not true, false or null"))
    }

    fn value(&mut self, depth: usize) -> Result<LogValue, JsonError> {
        if depth > MAX_DEPTH {
            return Err(self.error("it is nested too deeply"));
        }
        match self.peek() {
            Some(b'{') => self.object(depth),
            Some(b'[') => self.array(depth),
            Some(b'"') => self.string().map(LogValue::Text),
            Some(b't') => self.expect(b"true", LogValue::Bool(true)),
            Some(b'f') => self.expect(b"false", LogValue::Bool(false)),
            Some(b'n') => self.expect(b"null", LogValue::Null),
            Some(b'-' | b'0'..=b'9') => self.number(),
            Some(_) => Err(self.error("a value was expected")),
            None => Err(self.error("the text ends too early")),
        }
    }

    fn object(&mut self, depth: usize) -> Result<LogValue, JsonError> {
        self.offset += 1;
        let mut map = LogMap::new();
        self.skip_space();
        if self.peek() == Some(b'}') {
            self.offset += 1;
            return Ok(LogValue::Map(map));
        }
        loop {
            self.skip_space();
            if self.peek() != Some(b'"') {
                return Err(self.error("a key in quotes was expected"));
            }
            let key = self.string()?;
            let key =
                String::from_utf8(key).unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned());
            self.skip_space();
            if self.peek() != Some(b':') {
                return Err(self.error("a colon was expected"));
            }
            self.offset += 1;
            self.skip_space();
            map.insert(key, self.value(depth + 1)?);
            self.skip_space();
            match self.peek() {
                Some(b',') => self.offset += 1,
                Some(b'}') => {
                    self.offset += 1;
                    return Ok(LogValue::Map(map));
                }
                _ => return Err(self.error("a comma or the end of the object was expected")),
            }
        }
    }

    fn array(&mut self, depth: usize) -> Result<LogValue, JsonError> {
        self.offset += 1;
        let mut items = Vec::new();
        self.skip_space();
        if self.peek() == Some(b']') {
            self.offset += 1;
            return Ok(LogValue::List(items));
        }
        loop {
            self.skip_space();
            items.push(self.value(depth + 1)?);
            self.skip_space();
            match self.peek() {
                Some(b',') => self.offset += 1,
                Some(b']') => {
                    self.offset += 1;
                    return Ok(LogValue::List(items));
                }
                _ => return Err(self.error("a comma or the end of the list was expected")),
            }
        }
    }

    fn string(&mut self) -> Result<Vec<u8>, JsonError> {
        self.offset += 1;
        let mut text = Vec::new();
        loop {
            let rest = self.text.get(self.offset..).unwrap_or_default();
            let plain = memchr::memchr2(b'"', b'\\', rest).ok_or_else(|| self.error("a text is not closed"))?;
            text.extend_from_slice(rest.get(..plain).unwrap_or_default());
            self.offset += plain + 1;
            if rest.get(plain) == Some(&b'"') {
                return Ok(text);
            }
            self.escape(&mut text)?;
        }
    }

    /// Reads what follows a backslash.
    fn escape(&mut self, text: &mut Vec<u8>) -> Result<(), JsonError> {
        let byte = match self.peek() {
            Some(byte @ (b'"' | b'\\' | b'/')) => byte,
            Some(b'b') => 8,
            Some(b'f') => 12,
            Some(b'n') => b'\n',
            Some(b'r') => b'\r',
            Some(b't') => b'\t',
            Some(b'u') => {
                self.offset += 1;
                let character = self.code_unit()?;
                text.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
                return Ok(());
            }
            _ => return Err(self.error("a backslash is followed by an unknown letter")),
        };
        self.offset += 1;
        text.push(byte);
        Ok(())
    }

    /// Reads four digits, and those of a second half. A half without the other becomes U+FFFD.
    fn code_unit(&mut self) -> Result<char, JsonError> {
        let first = self.hex()?;
        if let Some(character) = char::from_u32(first) {
            return Ok(character);
        }
        let follows = self.text.get(self.offset..).is_some_and(|rest| rest.starts_with(b"\\u"));
        if !(0xD800..0xDC00).contains(&first) || !follows {
            return Ok(char::REPLACEMENT_CHARACTER);
        }
        let before = self.offset;
        self.offset += 2;
        let second = self.hex()?;
        if (0xDC00..0xE000).contains(&second) {
            let code = 0x10000 + ((first - 0xD800) << 10) + (second - 0xDC00);
            return Ok(char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER));
        }
        self.offset = before;
        Ok(char::REPLACEMENT_CHARACTER)
    }

    fn hex(&mut self) -> Result<u32, JsonError> {
        let digits = self.text.get(self.offset..self.offset + 4).unwrap_or_default();
        let digits = std::str::from_utf8(digits).ok().filter(|digits| digits.len() == 4 && !digits.starts_with('+'));
        let code = digits.and_then(|digits| u32::from_str_radix(digits, 16).ok());
        let code = code.ok_or_else(|| self.error("four digits were expected"))?;
        self.offset += 4;
        Ok(code)
    }

    fn digits(&mut self) -> Result<(), JsonError> {
        let start = self.offset;
        while matches!(self.peek(), Some(b'0'..=b'9')) {
            self.offset += 1;
        }
        if self.offset == start { Err(self.error("a digit was expected")) } else { Ok(()) }
    }

    fn number(&mut self) -> Result<LogValue, JsonError> {
        let start = self.offset;
        if self.peek() == Some(b'-') {
            self.offset += 1;
        }
        let leading_zero = self.peek() == Some(b'0');
        let whole = self.offset;
        self.digits()?;
        if leading_zero && self.offset - whole > 1 {
            return Err(self.error("a number begins with a zero"));
        }
        let mut is_whole = true;
        if self.peek() == Some(b'.') {
            is_whole = false;
            self.offset += 1;
            self.digits()?;
        }
        if matches!(self.peek(), Some(b'e' | b'E')) {
            is_whole = false;
            self.offset += 1;
            if matches!(self.peek(), Some(b'+' | b'-')) {
                self.offset += 1;
            }
            self.digits()?;
        }
        let text =
            self.text.get(start..self.offset).and_then(|text| std::str::from_utf8(text).ok()).unwrap_or_default();
        if is_whole
            && self.numbers == JsonNumbers::Integers
            && let Ok(value) = text.parse()
        {
            return Ok(LogValue::Int(value));
        }
        let value: f64 = text.parse().map_err(|_| self.error("a number cannot be read"))?;
        if value.is_finite() { Ok(LogValue::Double(value)) } else { Err(self.error("a number is too large")) }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn parsed(text: &str) -> LogValue {
        parse(text.as_bytes(), JsonNumbers::Floats).unwrap_or_else(|error| panic!("{text}: {error:?}"))
    }

    #[test]
    fn values_are_read_as_go_reads_them() {
        let LogValue::Map(map) =
            parsed(r#" {"a": 1, "a": 2.5e1, "u": "\u00e9\n\ud83d\ude00\ud83d", "l": [true, null, {}]} "#)
        else {
            panic!()
        };
        assert_eq!(map["a"], LogValue::Double(25.0));
        assert_eq!(map["u"], LogValue::from("é\n😀\u{fffd}"));
        assert_eq!(map["l"], LogValue::List(vec![LogValue::Bool(true), LogValue::Null, LogValue::Map(LogMap::new())]));
    }

    #[test]
    fn whole_numbers_stay_whole_when_asked_for() {
        let text = b"[1, -9007199254740993, 1.0, 123456789012345678901]";
        let LogValue::List(items) = parse(text, JsonNumbers::Integers).unwrap() else { panic!() };
        let expected = [
            LogValue::Int(1),
            LogValue::Int(-9_007_199_254_740_993),
            LogValue::Double(1.0),
            LogValue::Double(123456789012345678901.0),
        ];
        assert_eq!(items, expected);
    }

    #[test]
    fn text_that_is_not_json_has_an_error_at_its_place() {
        for (text, offset) in [
            ("", 0),
            ("no json", 0),
            ("{\"a\" 1}", 5),
            ("{a: 1}", 1),
            ("[1,]", 3),
            ("\"x", 1),
            ("\"\\x\"", 2),
            ("01", 2),
            ("1.", 2),
            ("{} x", 3),
            ("\"\\u12\"", 3),
            ("1e999", 5),
        ] {
            let error = parse(text.as_bytes(), JsonNumbers::Floats).unwrap_err();
            assert_eq!(error.offset, offset, "{text}: {error:?}");
        }
    }

    #[test]
    fn depth_is_bounded() {
        let nested = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
        assert!(parse(nested(60).as_bytes(), JsonNumbers::Floats).is_ok());
        assert!(parse(nested(100_000).as_bytes(), JsonNumbers::Floats).is_err());
    }

    proptest! {
        #[test]
        fn any_bytes_are_a_value_or_an_error_within_them(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            if let Err(error) = parse(&bytes, JsonNumbers::Floats) {
                prop_assert!(error.offset <= bytes.len());
            }
        }
    }
}
