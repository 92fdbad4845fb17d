//! A value as JSON, numbers as Go writes them.

use std::io;

use serde::Serialize as _;
use serde_json::{
    Serializer, Value,
    ser::{CompactFormatter, Formatter, PrettyFormatter},
};

use crate::api::go;

/// One line with an end, as kube-apiserver sends objects.
pub fn encode(value: &Value) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(512);
    write(&mut bytes, value);
    bytes.push(b'\n');
    bytes
}

/// Indented, for people.
pub fn encode_pretty(value: &Value) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(1024);
    let formatter = GoNumbers(PrettyFormatter::new());
    // A value always has a JSON form, and memory takes every write.
    _ = value.serialize(&mut Serializer::with_formatter(&mut bytes, formatter));
    bytes
}

/// Appends a value on one line, without an end.
pub fn write(to: &mut Vec<u8>, value: &Value) {
    // As above.
    _ = value.serialize(&mut Serializer::with_formatter(to, GoNumbers(CompactFormatter)));
}

/// Floats as Go writes them (`1`, not `1.0`); the rest by the inner formatter.
struct GoNumbers<F>(F);

impl<F: Formatter> Formatter for GoNumbers<F> {
    fn write_f64<W: ?Sized + io::Write>(&mut self, writer: &mut W, value: f64) -> io::Result<()> {
        writer.write_all(go::float(value).as_bytes())
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
