//! Writes an object whose members are known and come in order.

use kubewake_config::model::Dedot;
use kubewake_otlp::view::KeyValue;

use super::{FieldList, JsonOutput, push_milliseconds, push_rfc3339, push_text, value::push_hex};

/// An object. Members that are empty, zero or unknown are left out.
pub(crate) struct ObjectWriter<'o, 'm> {
    out: &'o mut JsonOutput<'m>,
    is_empty: bool,
}

impl<'o, 'm> ObjectWriter<'o, 'm> {
    pub(crate) fn begin(out: &'o mut JsonOutput<'m>) -> Self {
        out.push_byte(b'{');
        Self { out, is_empty: true }
    }

    pub(crate) fn end(self) {
        self.out.push_byte(b'}');
    }

    /// Writes a key; the caller writes its value.
    pub(crate) fn member(&mut self, key: &str) -> &mut JsonOutput<'m> {
        self.out.push(if self.is_empty { b"\"" } else { b",\"" });
        self.is_empty = false;
        self.out.push(key.as_bytes());
        self.out.push(b"\":");
        self.out
    }

    /// Adds members that were written before.
    pub(crate) fn members(&mut self, text: &[u8]) {
        if !text.is_empty() {
            if !self.is_empty {
                self.out.push_byte(b',');
            }
            self.is_empty = false;
            self.out.push(text);
        }
    }

    pub(crate) fn text(&mut self, key: &str, text: &[u8]) {
        if !text.is_empty() {
            push_text(text, self.member(key));
        }
    }

    pub(crate) fn hex(&mut self, key: &str, bytes: &[u8]) {
        if !bytes.is_empty() {
            push_hex(bytes, self.member(key));
        }
    }

    pub(crate) fn number(&mut self, key: &str, number: impl Into<i64>) {
        let number = number.into();
        if number != 0 {
            self.member(key).push_display(number);
        }
    }

    pub(crate) fn milliseconds(&mut self, key: &str, nanoseconds: u64) {
        if nanoseconds > 0 {
            push_milliseconds(nanoseconds, self.member(key));
        }
    }

    pub(crate) fn rfc3339(&mut self, key: &str, nanoseconds: u64) {
        if nanoseconds > 0 {
            push_rfc3339(nanoseconds, self.member(key));
        }
    }

    /// Adds an object of attributes, if there are any.
    pub(crate) fn attributes<'a>(&mut self, key: &str, pairs: impl IntoIterator<Item = KeyValue<'a>>, dedot: Dedot) {
        let mut pairs = pairs.into_iter().peekable();
        if pairs.peek().is_some() {
            FieldList::write_object(self.member(key), dedot, 1, |fields| fields.attributes(pairs));
        }
    }
}
