//! The tokens of JSON. An error names the first invalid byte and the state of Go's scanner.

use super::{JsonDecodeError, text};

/// A position in a text.
pub(super) struct JsonScanner<'i> {
    input: &'i [u8],
    at: usize,
}

impl<'i> JsonScanner<'i> {
    pub(super) fn new(input: &'i [u8]) -> Self {
        Self { input, at: 0 }
    }

    /// Skips white space and returns the first byte of a value.
    pub(super) fn begin_value(&mut self) -> Result<u8, JsonDecodeError> {
        match self.next()? {
            first @ (b'{' | b'[' | b'"' | b't' | b'f' | b'n' | b'-' | b'0'..=b'9') => Ok(first),
            byte => Err(JsonDecodeError::Character { byte, context: "looking for beginning of value" }),
        }
    }

    /// After `{`: whether a key follows, whose quote is skipped.
    pub(super) fn first_key(&mut self) -> Result<bool, JsonDecodeError> {
        match self.next()? {
            b'"' => Ok(true),
            b'}' => Ok(false),
            byte => Err(JsonDecodeError::Character { byte, context: "looking for beginning of object key string" }),
        }
    }

    /// After a value in an object.
    pub(super) fn next_key(&mut self) -> Result<bool, JsonDecodeError> {
        match self.next()? {
            b'}' => Ok(false),
            b',' => match self.next()? {
                b'"' => Ok(true),
                byte => Err(JsonDecodeError::Character { byte, context: "looking for beginning of object key string" }),
            },
            byte => Err(JsonDecodeError::Character { byte, context: "after object key:value pair" }),
        }
    }

    pub(super) fn colon(&mut self) -> Result<(), JsonDecodeError> {
        match self.next()? {
            b':' => Ok(()),
            byte => Err(JsonDecodeError::Character { byte, context: "after object key" }),
        }
    }

    /// After `[`: whether an item follows.
    pub(super) fn first_item(&mut self) -> Result<bool, JsonDecodeError> {
        if self.next()? == b']' {
            return Ok(false);
        }
        self.at -= 1;
        Ok(true)
    }

    /// After an item of an array.
    pub(super) fn next_item(&mut self) -> Result<bool, JsonDecodeError> {
        match self.next()? {
            b']' => Ok(false),
            b',' => Ok(true),
            byte => Err(JsonDecodeError::Character { byte, context: "after array element" }),
        }
    }

    /// Checks that only white space is left.
    pub(super) fn end(&mut self) -> Result<(), JsonDecodeError> {
        match self.next() {
            Ok(byte) => Err(JsonDecodeError::Character { byte, context: "after top-level value" }),
            Err(_) => Ok(()),
        }
    }

    /// The rest of `true`, `false` or `null`.
    pub(super) fn literal(&mut self, literal: &'static str) -> Result<(), JsonDecodeError> {
        for expected in literal.bytes().skip(1) {
            let byte = self.peek().ok_or(JsonDecodeError::End)?;
            if byte != expected {
                return Err(JsonDecodeError::Literal { byte, literal, expected });
            }
            self.at += 1;
        }
        Ok(())
    }

    /// The rest of a string, after its opening quote.
    pub(super) fn string(&mut self) -> Result<String, JsonDecodeError> {
        let rest = self.input.get(self.at..).unwrap_or_default();
        let plain = rest.iter().position(|&byte| byte == b'"' || byte == b'\\' || byte < b' ');
        match plain.and_then(|end| Some((end, rest.get(..end)?, *rest.get(end)?))) {
            None => Err(JsonDecodeError::End),
            Some((end, text, b'"')) => {
                self.at += end + 1;
                Ok(text::from_utf8(text))
            }
            Some(_) => {
                let (text, length) = text::unescape(rest)?;
                self.at += length;
                Ok(text)
            }
        }
    }

    /// A number, whose first byte was consumed.
    pub(super) fn number(&mut self, first: u8) -> Result<&'i str, JsonDecodeError> {
        let start = self.at - 1;
        let leading = if first == b'-' { self.digit("in numeric literal")? } else { first };
        if leading != b'0' {
            self.digits();
        }
        if self.peek() == Some(b'.') {
            self.at += 1;
            self.digit("after decimal point in numeric literal")?;
            self.digits();
        }
        if let Some(b'e' | b'E') = self.peek() {
            self.at += 1;
            if let Some(b'+' | b'-') = self.peek() {
                self.at += 1;
            }
            self.digit("in exponent of numeric literal")?;
            self.digits();
        }
        let digits = self.input.get(start..self.at).unwrap_or_default();
        std::str::from_utf8(digits).map_err(|_| JsonDecodeError::End)
    }

    fn digit(&mut self, context: &'static str) -> Result<u8, JsonDecodeError> {
        match self.peek().ok_or(JsonDecodeError::End)? {
            digit @ b'0'..=b'9' => {
                self.at += 1;
                Ok(digit)
            }
            byte => Err(JsonDecodeError::Character { byte, context }),
        }
    }

    fn digits(&mut self) {
        while let Some(b'0'..=b'9') = self.peek() {
            self.at += 1;
        }
    }

    fn peek(&self) -> Option<u8> {
        self.input.get(self.at).copied()
    }

    /// The next byte that is not white space.
    fn next(&mut self) -> Result<u8, JsonDecodeError> {
        loop {
            let byte = self.peek().ok_or(JsonDecodeError::End)?;
            self.at += 1;
            if !matches!(byte, b' ' | b'\t' | b'\r' | b'\n') {
                return Ok(byte);
            }
        }
    }
}
