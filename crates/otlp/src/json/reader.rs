//! A pull parser for JSON in memory. It never recurses, and returns strings as raw bytes.

use memchr::memchr2;

use super::error::JsonErrorKind;
use crate::schema::FieldSchema;

/// An error and its position; the caller adds the field.
#[derive(Debug)]
pub(super) struct JsonFault {
    pub(super) reason: JsonErrorKind,
    pub(super) offset: usize,
    pub(super) field: Option<&'static str>,
}

impl JsonFault {
    /// Adds the name of the field, unless a nested field is named already.
    pub(super) fn in_field(mut self, field: &'static FieldSchema) -> JsonFault {
        self.field.get_or_insert(field.name);
        self
    }
}

/// Position of a token.
#[derive(Clone, Copy)]
pub(super) struct TokenOffset(usize);

impl TokenOffset {
    pub(super) fn fault(self, reason: JsonErrorKind) -> JsonFault {
        JsonFault { reason, offset: self.0, field: None }
    }
}

pub(super) struct JsonReader<'a> {
    input: &'a [u8],
    at: usize,
    /// The last string that had escapes, unescaped. Never longer than the input.
    unescaped: Vec<u8>,
}

impl<'a> JsonReader<'a> {
    pub(super) fn new(input: &'a [u8]) -> Self {
        JsonReader { input, at: 0, unescaped: Vec::new() }
    }

    /// Number of bytes read.
    pub(super) fn bytes_read(&self) -> usize {
        self.at
    }

    /// An error at the current position.
    pub(super) fn fault(&self, reason: JsonErrorKind) -> JsonFault {
        TokenOffset(self.at).fault(reason)
    }

    /// The position of the next token, for an error after it is read.
    pub(super) fn start(&mut self) -> Result<TokenOffset, JsonFault> {
        self.peek()?;
        Ok(TokenOffset(self.at))
    }

    /// The first byte of the next token.
    pub(super) fn peek(&mut self) -> Result<u8, JsonFault> {
        while let Some(&byte) = self.input.get(self.at) {
            if !matches!(byte, b' ' | b'\n' | b'\t' | b'\r') {
                return Ok(byte);
            }
            self.at += 1;
        }
        Err(self.fault(JsonErrorKind::End))
    }

    /// Takes the next token if it is this one.
    pub(super) fn take_if(&mut self, token: u8) -> Result<bool, JsonFault> {
        let found = self.peek()? == token;
        self.at += usize::from(found);
        Ok(found)
    }

    pub(super) fn expect(&mut self, token: u8, name: &'static str) -> Result<(), JsonFault> {
        if self.take_if(token)? { Ok(()) } else { Err(self.fault(JsonErrorKind::Expected(name))) }
    }

    /// After a member of an object or a list: whether another one follows.
    pub(super) fn has_next(&mut self, close: u8) -> Result<bool, JsonFault> {
        if self.take_if(b',')? {
            return Ok(true);
        }
        if self.take_if(close)? {
            return Ok(false);
        }
        Err(self.fault(JsonErrorKind::Expected(if close == b'}' { "',' or '}'" } else { "',' or ']'" })))
    }

    /// Takes a `null` if there is one.
    pub(super) fn take_null(&mut self) -> Result<bool, JsonFault> {
        Ok(self.peek()? == b'n' && self.expect_word(b"null", "null").map(|()| true)?)
    }

    pub(super) fn bool(&mut self) -> Result<bool, JsonFault> {
        match self.peek()? {
            b't' => self.expect_word(b"true", "true").map(|()| true),
            b'f' => self.expect_word(b"false", "false").map(|()| false),
            _ => Err(self.fault(JsonErrorKind::Expected("true or false"))),
        }
    }

    fn expect_word(&mut self, word: &[u8], name: &'static str) -> Result<(), JsonFault> {
        if !self.rest().starts_with(word) {
            return Err(self.fault(JsonErrorKind::Expected(name)));
        }
        self.at += word.len();
        Ok(())
    }

    pub(super) fn colon(&mut self) -> Result<(), JsonFault> {
        self.expect(b':', "':'")
    }

    /// A string, without quotes and escapes. Its other content is not checked.
    pub(super) fn string(&mut self) -> Result<&[u8], JsonFault> {
        self.expect(b'"', "a string")?;
        let start = self.at;
        let (plain, end) = self.until_special()?;
        if end == b'"' {
            return Ok(self.input.get(start..start + plain).unwrap_or_default());
        }
        self.unescape(start)?;
        Ok(&self.unescaped)
    }

    /// Advances behind the next quote or backslash; returns the number of bytes before it, and the byte.
    fn until_special(&mut self) -> Result<(usize, u8), JsonFault> {
        let rest = self.rest();
        let Some(length) = memchr2(b'"', b'\\', rest) else {
            self.at = self.input.len();
            return Err(self.fault(JsonErrorKind::End));
        };
        let (plain, special) = rest.split_at(length);
        if let Some(control) = plain.iter().position(|&byte| byte < b' ') {
            self.at += control;
            return Err(self.fault(JsonErrorKind::Control));
        }
        self.at += length + 1;
        Ok((length, special.first().copied().unwrap_or(b'"')))
    }

    fn unescape(&mut self, start: usize) -> Result<(), JsonFault> {
        self.at = start;
        self.unescaped.clear();
        loop {
            let from = self.at;
            let (plain, end) = self.until_special()?;
            self.unescaped.extend_from_slice(self.input.get(from..from + plain).unwrap_or_default());
            if end == b'"' {
                return Ok(());
            }
            let char = self.escape()?;
            self.unescaped.extend_from_slice(char.encode_utf8(&mut [0; 4]).as_bytes());
        }
    }

    /// The character of an escape whose backslash was just read.
    fn escape(&mut self) -> Result<char, JsonFault> {
        let Some(&byte) = self.input.get(self.at) else { return Err(self.fault(JsonErrorKind::End)) };
        let char = match byte {
            b'"' | b'\\' | b'/' => char::from(byte),
            b'b' => '\x08',
            b'f' => '\x0c',
            b'n' => '\n',
            b'r' => '\r',
            b't' => '\t',
            b'u' => {
                self.at += 1;
                return self.code_point();
            }
            _ => return Err(self.fault(JsonErrorKind::Escape)),
        };
        self.at += 1;
        Ok(char)
    }

    /// The character of a `\u` escape, with the second half of a surrogate pair taken if there is one.
    fn code_point(&mut self) -> Result<char, JsonFault> {
        let unit = self.code_unit()?;
        if (0xd800..0xdc00).contains(&unit) && self.rest().starts_with(b"\\u") {
            let behind_first = self.at;
            self.at += 2;
            let low = self.code_unit()?;
            if let Some(Ok(char)) = char::decode_utf16([unit, low]).next() {
                return Ok(char);
            }
            // Not a surrogate pair: the second escape is a character of its own.
            self.at = behind_first;
        }
        Ok(char::from_u32(u32::from(unit)).unwrap_or(char::REPLACEMENT_CHARACTER))
    }

    fn code_unit(&mut self) -> Result<u16, JsonFault> {
        let mut unit = 0;
        for _ in 0..4 {
            let digit = self.input.get(self.at).and_then(|&byte| char::from(byte).to_digit(16));
            let Some(digit) = digit else { return Err(self.fault(JsonErrorKind::Escape)) };
            unit = unit << 4 | digit as u16;
            self.at += 1;
        }
        Ok(unit)
    }

    /// The text of a number, as JSON spells them.
    pub(super) fn number(&mut self) -> Result<&'a [u8], JsonFault> {
        self.peek()?;
        let start = self.at;
        self.at += usize::from(self.next_is(b'-'));
        // A leading zero stands alone.
        if self.next_is(b'0') {
            self.at += 1;
        } else {
            self.digits()?;
        }
        if self.next_is(b'.') {
            self.at += 1;
            self.digits()?;
        }
        if self.next_is(b'e') || self.next_is(b'E') {
            self.at += 1;
            self.at += usize::from(self.next_is(b'+') || self.next_is(b'-'));
            self.digits()?;
        }
        Ok(self.input.get(start..self.at).unwrap_or_default())
    }

    fn digits(&mut self) -> Result<(), JsonFault> {
        let count = self.rest().iter().take_while(|byte| byte.is_ascii_digit()).count();
        self.at += count;
        if count == 0 { Err(self.fault(JsonErrorKind::Expected("a number"))) } else { Ok(()) }
    }

    fn next_is(&self, byte: u8) -> bool {
        self.input.get(self.at) == Some(&byte)
    }

    fn rest(&self) -> &'a [u8] {
        self.input.get(self.at..).unwrap_or_default()
    }

    /// Skips a value of any type and depth, with one byte of memory for each open object or list.
    pub(super) fn skip(&mut self) -> Result<(), JsonFault> {
        let mut open = Vec::new();
        loop {
            if let Some(close) = self.skip_start()? {
                open.push(close);
                continue;
            }
            // A complete value may complete its parents, too.
            loop {
                let Some(&close) = open.last() else { return Ok(()) };
                if self.has_next(close)? {
                    self.skip_name(close)?;
                    break;
                }
                open.pop();
            }
        }
    }

    /// Skips a scalar or an empty value. Of an object or list skips the start; returns its closing byte.
    fn skip_start(&mut self) -> Result<Option<u8>, JsonFault> {
        match self.peek()? {
            b'{' => {
                self.at += 1;
                self.skip_open(b'}')
            }
            b'[' => {
                self.at += 1;
                self.skip_open(b']')
            }
            b'"' => self.string().map(|_| None),
            b't' | b'f' => self.bool().map(|_| None),
            b'n' => self.take_null().map(|_| None),
            b'-' | b'0'..=b'9' => self.number().map(|_| None),
            _ => Err(self.fault(JsonErrorKind::Expected("a value"))),
        }
    }

    fn skip_open(&mut self, close: u8) -> Result<Option<u8>, JsonFault> {
        if self.take_if(close)? {
            return Ok(None);
        }
        self.skip_name(close)?;
        Ok(Some(close))
    }

    /// In an object, skips the name of the next member.
    fn skip_name(&mut self, close: u8) -> Result<(), JsonFault> {
        if close == b'}' {
            self.string()?;
            self.colon()?;
        }
        Ok(())
    }
}
