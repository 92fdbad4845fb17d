//! A pull parser for JSON in memory. It never recurses, and keeps strings as the bytes that they are.

use memchr::memchr2;

use super::error::Reason;
use crate::schema::Field;

/// What is wrong and where; the caller knows in which field.
#[derive(Debug)]
pub(super) struct Fault {
    pub(super) reason: Reason,
    pub(super) offset: usize,
    pub(super) field: Option<&'static str>,
}

impl Fault {
    /// Names the field that it is in, unless a field inside that one is named.
    pub(super) fn in_field(mut self, field: &'static Field) -> Fault {
        self.field.get_or_insert(field.name);
        self
    }
}

/// A place in the input.
#[derive(Clone, Copy)]
pub(super) struct Place(usize);

impl Place {
    pub(super) fn fault(self, reason: Reason) -> Fault {
        Fault { reason, offset: self.0, field: None }
    }
}

pub(super) struct Reader<'a> {
    input: &'a [u8],
    at: usize,
    /// The last string that had escapes, without them. Never longer than the input.
    unescaped: Vec<u8>,
}

impl<'a> Reader<'a> {
    pub(super) fn new(input: &'a [u8]) -> Self {
        Reader { input, at: 0, unescaped: Vec::new() }
    }

    /// How many bytes were read.
    pub(super) fn taken(&self) -> usize {
        self.at
    }

    /// What is wrong is wrong here.
    pub(super) fn fault(&self, reason: Reason) -> Fault {
        Place(self.at).fault(reason)
    }

    /// Where the next token starts, to complain about it once it is read.
    pub(super) fn start(&mut self) -> Result<Place, Fault> {
        self.peek()?;
        Ok(Place(self.at))
    }

    /// The first byte of the next token.
    pub(super) fn peek(&mut self) -> Result<u8, Fault> {
        while let Some(&byte) = self.input.get(self.at) {
            if !matches!(byte, b' ' | b'\n' | b'\t' | b'\r') {
                return Ok(byte);
            }
            self.at += 1;
        }
        Err(self.fault(Reason::End))
    }

    /// Takes the next token if it is this one.
    pub(super) fn eat(&mut self, token: u8) -> Result<bool, Fault> {
        let found = self.peek()? == token;
        self.at += usize::from(found);
        Ok(found)
    }

    pub(super) fn expect(&mut self, token: u8, name: &'static str) -> Result<(), Fault> {
        if self.eat(token)? { Ok(()) } else { Err(self.fault(Reason::Expected(name))) }
    }

    /// After a member of an object or a list: whether another one follows.
    pub(super) fn more(&mut self, close: u8) -> Result<bool, Fault> {
        if self.eat(b',')? {
            return Ok(true);
        }
        if self.eat(close)? {
            return Ok(false);
        }
        Err(self.fault(Reason::Expected(if close == b'}' { "',' or '}'" } else { "',' or ']'" })))
    }

    /// Takes a `null` if there is one.
    pub(super) fn null(&mut self) -> Result<bool, Fault> {
        Ok(self.peek()? == b'n' && self.word(b"null", "null").map(|()| true)?)
    }

    pub(super) fn bool(&mut self) -> Result<bool, Fault> {
        match self.peek()? {
            b't' => self.word(b"true", "true").map(|()| true),
            b'f' => self.word(b"false", "false").map(|()| false),
            _ => Err(self.fault(Reason::Expected("true or false"))),
        }
    }

    fn word(&mut self, word: &[u8], name: &'static str) -> Result<(), Fault> {
        if !self.rest().starts_with(word) {
            return Err(self.fault(Reason::Expected(name)));
        }
        self.at += word.len();
        Ok(())
    }

    pub(super) fn colon(&mut self) -> Result<(), Fault> {
        self.expect(b':', "':'")
    }

    /// A string, without quotes and escapes; whatever else it holds is not looked at.
    pub(super) fn string(&mut self) -> Result<&[u8], Fault> {
        self.expect(b'"', "a string")?;
        let start = self.at;
        let (plain, end) = self.until_special()?;
        if end == b'"' {
            return Ok(self.input.get(start..start + plain).unwrap_or_default());
        }
        self.unescape(start)?;
        Ok(&self.unescaped)
    }

    /// Goes behind the next quote or backslash: how many bytes lie before it, and which of the two it is.
    fn until_special(&mut self) -> Result<(usize, u8), Fault> {
        let rest = self.rest();
        let Some(length) = memchr2(b'"', b'\\', rest) else {
            self.at = self.input.len();
            return Err(self.fault(Reason::End));
        };
        let (plain, special) = rest.split_at(length);
        if let Some(control) = plain.iter().position(|&byte| byte < b' ') {
            self.at += control;
            return Err(self.fault(Reason::Control));
        }
        self.at += length + 1;
        Ok((length, special.first().copied().unwrap_or(b'"')))
    }

    fn unescape(&mut self, start: usize) -> Result<(), Fault> {
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

    /// What the escape stands for whose backslash was just taken.
    fn escape(&mut self) -> Result<char, Fault> {
        let Some(&byte) = self.input.get(self.at) else { return Err(self.fault(Reason::End)) };
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
            _ => return Err(self.fault(Reason::Escape)),
        };
        self.at += 1;
        Ok(char)
    }

    /// The character of a `\u` escape, with the second half of a surrogate pair taken if there is one.
    fn code_point(&mut self) -> Result<char, Fault> {
        let unit = self.code_unit()?;
        if (0xd800..0xdc00).contains(&unit) && self.rest().starts_with(b"\\u") {
            let behind_first = self.at;
            self.at += 2;
            let low = self.code_unit()?;
            if let Some(Ok(char)) = char::decode_utf16([unit, low]).next() {
                return Ok(char);
            }
            // No pair: the second escape stands for itself.
            self.at = behind_first;
        }
        Ok(char::from_u32(u32::from(unit)).unwrap_or(char::REPLACEMENT_CHARACTER))
    }

    fn code_unit(&mut self) -> Result<u16, Fault> {
        let mut unit = 0;
        for _ in 0..4 {
            let digit = self.input.get(self.at).and_then(|&byte| char::from(byte).to_digit(16));
            let Some(digit) = digit else { return Err(self.fault(Reason::Escape)) };
            unit = unit << 4 | digit as u16;
            self.at += 1;
        }
        Ok(unit)
    }

    /// The text of a number, as JSON spells them.
    pub(super) fn number(&mut self) -> Result<&'a [u8], Fault> {
        self.peek()?;
        let start = self.at;
        self.at += usize::from(self.here(b'-'));
        // A leading zero stands alone.
        if self.here(b'0') {
            self.at += 1;
        } else {
            self.digits()?;
        }
        if self.here(b'.') {
            self.at += 1;
            self.digits()?;
        }
        if self.here(b'e') || self.here(b'E') {
            self.at += 1;
            self.at += usize::from(self.here(b'+') || self.here(b'-'));
            self.digits()?;
        }
        Ok(self.input.get(start..self.at).unwrap_or_default())
    }

    fn digits(&mut self) -> Result<(), Fault> {
        let count = self.rest().iter().take_while(|byte| byte.is_ascii_digit()).count();
        self.at += count;
        if count == 0 { Err(self.fault(Reason::Expected("a number"))) } else { Ok(()) }
    }

    fn here(&self, byte: u8) -> bool {
        self.input.get(self.at) == Some(&byte)
    }

    fn rest(&self) -> &'a [u8] {
        self.input.get(self.at..).unwrap_or_default()
    }

    /// Skips a value of any kind and depth, at the cost of one byte for each object or list that is open.
    pub(super) fn skip(&mut self) -> Result<(), Fault> {
        let mut open = Vec::new();
        loop {
            if let Some(close) = self.skip_start()? {
                open.push(close);
                continue;
            }
            // A value is complete, and with it whatever it was the last member of.
            loop {
                let Some(&close) = open.last() else { return Ok(()) };
                if self.more(close)? {
                    self.skip_name(close)?;
                    break;
                }
                open.pop();
            }
        }
    }

    /// Skips a value, or of an object or list that is not empty the start: then the byte that will close it.
    fn skip_start(&mut self) -> Result<Option<u8>, Fault> {
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
            b'n' => self.null().map(|_| None),
            b'-' | b'0'..=b'9' => self.number().map(|_| None),
            _ => Err(self.fault(Reason::Expected("a value"))),
        }
    }

    fn skip_open(&mut self, close: u8) -> Result<Option<u8>, Fault> {
        if self.eat(close)? {
            return Ok(None);
        }
        self.skip_name(close)?;
        Ok(Some(close))
    }

    /// In an object, skips the name of the next member.
    fn skip_name(&mut self, close: u8) -> Result<(), Fault> {
        if close == b'}' {
            self.string()?;
            self.colon()?;
        }
        Ok(())
    }
}
