//! `syslog_parser`: RFC 5424, and RFC 3164 as it is usually written.

use jiff::tz::TimeZone;
use kubewake_config::file_log::{
    operator::{SyslogFormat, SyslogProtocol},
    time_layout::{LayoutPart, NumberField, OffsetDigits, OffsetForm},
};

use super::RecordError;
use crate::{
    time::{self, TimeFields},
    value::{LogMap, LogValue},
};

/// A message that was parsed.
pub(super) struct SyslogMessage {
    pub(super) values: LogMap,
    /// The time in nanoseconds since 1970.
    pub(super) timestamp: Option<u64>,
    /// The severity number and text that the priority states.
    pub(super) severity: Option<(u8, &'static str)>,
}

pub(super) struct SyslogParser {
    format: SyslogFormat,
    zone: TimeZone,
    /// The time of the message is that of the record.
    sets_time: bool,
}

/// The severity numbers and texts of the severities of syslog.
const SEVERITIES: [(u8, &str); 8] = [
    (21, "emerg"),
    (19, "alert"),
    (18, "crit"),
    (17, "err"),
    (13, "warning"),
    (10, "notice"),
    (9, "info"),
    (5, "debug"),
];

const FACILITIES: [&str; 24] = [
    "kern",
    "user",
    "mail",
    "daemon",
    "auth",
    "syslog",
    "lpr",
    "news",
    "uucp",
    "cron",
    "authpriv",
    "ftp",
    "ntp",
    "security",
    "console",
    "solaris-cron",
    "local0",
    "local1",
    "local2",
    "local3",
    "local4",
    "local5",
    "local6",
    "local7",
];

const fn number(field: NumberField) -> LayoutPart {
    LayoutPart::Number { field, two_digits: true }
}

fn literal(text: &str) -> LayoutPart {
    LayoutPart::Literal(text.to_owned())
}

impl SyslogParser {
    pub(super) fn new(format: &SyslogFormat, sets_time: bool) -> Self {
        Self { format: format.clone(), zone: time::zone(format.location.as_deref()), sets_time }
    }

    /// Parses a message that was read at `now`.
    pub(super) fn parse(&self, text: &[u8], now: u64) -> Result<SyslogMessage, RecordError> {
        let text = self.frame(text)?;
        let mut reader = MessageReader { rest: text, values: LogMap::new() };
        let priority = match reader.priority() {
            Some(priority) => Some(priority),
            None if self.format.protocol == SyslogProtocol::None => None,
            None if self.format.priority_is_optional && !text.starts_with(b"<") => None,
            None => return Err(RecordError::new("the message does not begin with a priority such as <34>")),
        };
        let timestamp = match self.format.protocol {
            SyslogProtocol::Rfc5424 => reader.rfc5424(priority.is_some())?,
            SyslogProtocol::Rfc3164 => Some(reader.rfc3164(now, &self.zone)?),
            SyslogProtocol::None => {
                reader.put_text("message", text);
                None
            }
        };
        let mut values = reader.values;
        let mut severity = None;
        if let Some(priority) = priority {
            let facility = priority / 8;
            values.insert("priority".into(), LogValue::Int(priority.into()));
            values.insert("facility".into(), LogValue::Int(facility.into()));
            if let Some(name) = FACILITIES.get(usize::from(facility)) {
                values.insert("facility_text".into(), (*name).into());
            }
            severity = SEVERITIES.get(usize::from(priority % 8)).copied();
        }
        Ok(SyslogMessage { values, timestamp: timestamp.filter(|_| self.sets_time), severity })
    }

    /// The message without its frame.
    fn frame<'t>(&self, text: &'t [u8]) -> Result<&'t [u8], RecordError> {
        if self.format.octet_counting {
            let digits = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
            let (length, rest) = text.split_at_checked(digits).unwrap_or((text, &[]));
            let length: Option<usize> = std::str::from_utf8(length).ok().and_then(|length| length.parse().ok());
            let framed = length.zip(rest.strip_prefix(b" "));
            let Some((length, rest)) = framed else {
                return match self.format.protocol {
                    SyslogProtocol::None => Ok(text),
                    _ => Err(RecordError::new("the message does not begin with its length")),
                };
            };
            if length > self.format.max_octets {
                return Err(RecordError::new(format!("the message is longer than {} bytes", self.format.max_octets)));
            }
            return rest.get(..length).ok_or_else(|| RecordError::new("the message is shorter than its length says"));
        }
        match self.format.trailer {
            // A line feed at the end was removed with the line's own.
            Some(0) => text.strip_suffix(&[0]).ok_or_else(|| RecordError::new("the message does not end with NUL")),
            Some(byte) => Ok(text.strip_suffix(&[byte]).unwrap_or(text)),
            None => Ok(text),
        }
    }
}

struct MessageReader<'t> {
    rest: &'t [u8],
    values: LogMap,
}

impl<'t> MessageReader<'t> {
    fn put_text(&mut self, key: &str, text: &[u8]) {
        self.values.insert(key.to_owned(), LogValue::Text(text.to_vec()));
    }

    /// `<34>`; nothing is read if it is not there.
    fn priority(&mut self) -> Option<u8> {
        let rest = self.rest.strip_prefix(b"<")?;
        let end = rest.iter().take(4).position(|byte| *byte == b'>')?;
        let digits = rest.get(..end)?;
        let is_number = !digits.is_empty() && digits.iter().all(u8::is_ascii_digit);
        let priority: u8 = std::str::from_utf8(digits).ok().filter(|_| is_number)?.parse().ok()?;
        self.rest = rest.get(end + 1..)?;
        (priority <= 191).then_some(priority)
    }

    /// The text up to the next space, which is removed.
    fn word(&mut self) -> &'t [u8] {
        let end = memchr::memchr(b' ', self.rest).unwrap_or(self.rest.len());
        let (word, rest) = self.rest.split_at_checked(end).unwrap_or((self.rest, &[]));
        self.rest = rest.strip_prefix(b" ").unwrap_or(rest);
        word
    }

    /// A field of the header; `-` stands for none.
    fn header_field(&mut self, key: &str) -> Result<(), RecordError> {
        let word = self.word();
        if word.is_empty() {
            return Err(RecordError::new(format!("the message ends before its {key}")));
        }
        if word != b"-" {
            self.put_text(key, word);
        }
        Ok(())
    }

    fn rfc5424(&mut self, has_priority: bool) -> Result<Option<u64>, RecordError> {
        let version = self.word();
        let number: Option<i64> = std::str::from_utf8(version).ok().and_then(|version| version.parse().ok());
        match number.filter(|version| (1..1000).contains(version)) {
            Some(version) => self.values.insert("version".into(), LogValue::Int(version)),
            None if has_priority => return Err(RecordError::new("the priority is not followed by a version")),
            None => return Err(RecordError::new("the message does not begin with a version")),
        };
        let timestamp = match self.word() {
            b"-" => None,
            text => Some(rfc3339(text)?),
        };
        for key in ["hostname", "appname", "proc_id", "msg_id"] {
            self.header_field(key)?;
        }
        if let Some(rest) = self.rest.strip_prefix(b"-") {
            self.rest = rest;
        } else {
            self.structured_data()?;
        }
        match self.rest.split_first() {
            None => {}
            Some((b' ', message)) => self.put_text("message", message),
            Some(_) => return Err(RecordError::new("the structured data is not followed by a space")),
        }
        Ok(timestamp)
    }

    /// `[id name="value"][id name="value"]`
    fn structured_data(&mut self) -> Result<(), RecordError> {
        let wrong = || RecordError::new("the structured data is not valid");
        let mut elements = LogMap::new();
        while let Some(rest) = self.rest.strip_prefix(b"[") {
            let end = rest.iter().position(|byte| matches!(byte, b' ' | b']')).ok_or_else(wrong)?;
            let id = String::from_utf8_lossy(rest.get(..end).unwrap_or_default()).into_owned();
            if id.is_empty() {
                return Err(wrong());
            }
            self.rest = rest.get(end..).unwrap_or_default();
            let mut parameters = LogMap::new();
            while let Some(rest) = self.rest.strip_prefix(b" ") {
                let equals = memchr::memchr(b'=', rest).ok_or_else(wrong)?;
                let name = String::from_utf8_lossy(rest.get(..equals).unwrap_or_default()).into_owned();
                self.rest = rest.get(equals + 1..).and_then(|rest| rest.strip_prefix(b"\"")).ok_or_else(wrong)?;
                let value = self.parameter_value().ok_or_else(wrong)?;
                parameters.insert(name, LogValue::Text(value));
            }
            self.rest = self.rest.strip_prefix(b"]").ok_or_else(wrong)?;
            elements.insert(id, LogValue::Map(parameters));
        }
        if elements.is_empty() {
            return Err(wrong());
        }
        self.values.insert("structured_data".into(), LogValue::Map(elements));
        Ok(())
    }

    /// A value after its opening quote.
    fn parameter_value(&mut self) -> Option<Vec<u8>> {
        let mut value = Vec::new();
        loop {
            let (byte, rest) = self.rest.split_first()?;
            self.rest = rest;
            match byte {
                b'"' => return Some(value),
                b'\\' if matches!(rest.first(), Some(b'"' | b'\\' | b']')) => {
                    value.extend(rest.first());
                    self.rest = rest.get(1..)?;
                }
                byte => value.push(*byte),
            }
        }
    }

    /// `Oct 11 22:14:15 host tag[pid]: message`
    fn rfc3164(&mut self, now: u64, zone: &TimeZone) -> Result<u64, RecordError> {
        let parts = [
            LayoutPart::ShortMonthName,
            literal(" "),
            LayoutPart::PaddedDay,
            literal(" "),
            number(NumberField::Hour),
            literal(":"),
            number(NumberField::Minute),
            literal(":"),
            number(NumberField::Second),
        ];
        // The day has one digit or two, with a space before a single one or not.
        let colon = memchr::memmem::find(self.rest, b":").unwrap_or(0);
        let length = colon + ":MM:SS".len();
        let (time, rest) =
            self.rest.split_at_checked(length).ok_or_else(|| RecordError::new("the message ends within its time"))?;
        let timestamp = TimeFields::read(time, &parts, true)?.resolve(zone, now)?;
        self.rest = rest.strip_prefix(b" ").ok_or_else(|| RecordError::new("the time is not followed by a space"))?;
        self.header_field("hostname")?;
        self.tag();
        if !self.rest.is_empty() {
            self.put_text("message", self.rest);
        }
        Ok(timestamp)
    }

    /// The program and its process, if the text begins with them.
    fn tag(&mut self) {
        let is_tag = |byte: &u8| byte.is_ascii_graphic() && !matches!(byte, b'[' | b':' | b' ');
        let length = self.rest.iter().take(64).take_while(|byte| is_tag(byte)).count();
        let (name, rest) = self.rest.split_at_checked(length).unwrap_or((&[], self.rest));
        if name.is_empty() {
            return;
        }
        let (process, rest) = match rest.strip_prefix(b"[") {
            Some(inner) => match memchr::memchr(b']', inner) {
                Some(end) => (inner.get(..end), inner.get(end + 1..).unwrap_or_default()),
                None => return,
            },
            None => (None, rest),
        };
        let Some(message) = rest.strip_prefix(b":") else { return };
        self.put_text("appname", name);
        if let Some(process) = process {
            self.put_text("proc_id", process);
        }
        self.rest = message.strip_prefix(b" ").unwrap_or(message);
    }
}

/// A time of RFC 3339, with an offset.
pub(super) fn rfc3339(text: &[u8]) -> Result<u64, RecordError> {
    let parts = [
        LayoutPart::Year,
        literal("-"),
        number(NumberField::Month),
        literal("-"),
        number(NumberField::Day),
        literal("T"),
        number(NumberField::Hour),
        literal(":"),
        number(NumberField::Minute),
        literal(":"),
        number(NumberField::Second),
        LayoutPart::Fraction,
        LayoutPart::Offset(OffsetForm { accepts_z: true, digits: OffsetDigits::ColonMinutes }),
    ];
    TimeFields::read(text, &parts, false)?.resolve(&TimeZone::UTC, 0)
}
