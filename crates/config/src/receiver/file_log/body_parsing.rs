//! `body_parsing`: what is read from lines that are JSON objects.

use crate::{
    decode::{Cursor, DecodeReport, FieldReader, scalar},
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
    let json = fields.flag("json");
    for name in ["message", "severity", "trace_context", "keep_original"] {
        let is_set = fields.find(name).is_some_and(|at| scalar::boolean(&at, report) == Some(true));
        if is_set && !json {
            let help = "set `json: true`, or remove it".to_owned();
            report.error(&fields.cursor_at(name), format!("`{name}` needs `json`"), help);
        }
    }
    let parsing = BodyParsing {
        json,
        message: fields.flag("message"),
        severity: fields.flag("severity"),
        trace_context: fields.flag("trace_context"),
        keep_original: fields.flag("keep_original"),
    };
    fields.finish();
    Some(parsing)
}
