//! `body_parsing`: what is read from lines that are JSON objects.

use crate::{
    decode::{Cursor, DecodeReport, FieldReader},
    encode::YamlMap,
};

/// `body_parsing`, which the Collector does not have. Its operators do the same in several steps, and much slower.
///
/// A line of anything but a JSON object keeps its text as its body.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct BodyParsing {
    /// `json`: members become attributes. Without it nothing else of this happens.
    pub json: bool,
    /// `message`: the member `msg` or `message` becomes the body.
    pub message: bool,
    /// `severity`: the member `level`, `severity` or another usual spelling becomes the severity.
    pub severity: bool,
    /// `trace_context`: the ids of trace and span are those of the record.
    pub trace_context: bool,
    /// `keep_original`: a line whose body was replaced by its message stays as the attribute `log.original`.
    pub keep_original: bool,
}

impl BodyParsing {
    pub(super) fn encode(self) -> YamlMap {
        YamlMap::default()
            .with_flag("json", self.json)
            .with_flag("message", self.message)
            .with_flag("severity", self.severity)
            .with_flag("trace_context", self.trace_context)
            .with_flag("keep_original", self.keep_original)
    }
}

pub(super) fn decode(at: &Cursor<'_>, report: &DecodeReport) -> Option<BodyParsing> {
    let mut fields = FieldReader::new(at, report);
    let parsing = BodyParsing {
        json: fields.flag("json"),
        message: fields.flag("message"),
        severity: fields.flag("severity"),
        trace_context: fields.flag("trace_context"),
        keep_original: fields.flag("keep_original"),
    };
    let parts = [
        ("message", parsing.message),
        ("severity", parsing.severity),
        ("trace_context", parsing.trace_context),
        ("keep_original", parsing.keep_original),
    ];
    for (name, _) in parts.iter().filter(|(_, is_set)| *is_set && !parsing.json) {
        let help = "set `json: true`, or remove it".to_owned();
        report.error(&fields.cursor_at(name), format!("`{name}` needs `json`"), help);
    }
    fields.finish();
    Some(parsing)
}
