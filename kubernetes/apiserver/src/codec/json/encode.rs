//! Encodes JSON, with numbers as Go writes them.

use std::io;

use serde::Serialize as _;
use serde_json::{
    Serializer, Value,
    ser::{CompactFormatter, Formatter, PrettyFormatter},
};

use crate::api::go_format;

/// One line with a line feed, as kube-apiserver sends objects.
pub fn encode(value: &Value) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(512);
    write(&mut bytes, value);
    bytes.push(b'\n');
    bytes
}

pub fn encode_pretty(value: &Value) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(1024);
    let formatter = GoNumbers(PrettyFormatter::new());
    // Every value has a JSON form, and writing to memory cannot fail.
    _ = value.serialize(&mut Serializer::with_formatter(&mut bytes, formatter));
    bytes
}

/// Appends a value on one line, without a line feed.
pub fn write(to: &mut Vec<u8>, value: &Value) {
    // Cannot fail, as above.
    _ = value.serialize(&mut Serializer::with_formatter(to, GoNumbers(CompactFormatter)));
}

/// Writes floats as Go does (`1`, not `1.0`), and all else by the inner formatter.
struct GoNumbers<F>(F);

impl<F: Formatter> Formatter for GoNumbers<F> {
    fn write_f64<W: ?Sized + io::Write>(&mut self, writer: &mut W, value: f64) -> io::Result<()> {
        writer.write_all(go_format::float(value).as_bytes())
    }

    fn begin_array<W: ?Sized + io::Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.0.begin_array(writer)
    }

    fn end_array<W: ?Sized + io::Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.0.end_array(writer)
    }

    fn begin_array_value<W: ?Sized + io::Write>(&mut self, writer: &mut W, first: bool) -> io::Result<()> {
        self.0.begin_array_value(writer, first)
    }

    fn end_array_value<W: ?Sized + io::Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.0.end_array_value(writer)
    }

    fn begin_object<W: ?Sized + io::Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.0.begin_object(writer)
    }

    fn end_object<W: ?Sized + io::Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.0.end_object(writer)
    }

    fn begin_object_key<W: ?Sized + io::Write>(&mut self, writer: &mut W, first: bool) -> io::Result<()> {
        self.0.begin_object_key(writer, first)
    }

    fn begin_object_value<W: ?Sized + io::Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.0.begin_object_value(writer)
    }

    fn end_object_value<W: ?Sized + io::Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.0.end_object_value(writer)
    }
}
