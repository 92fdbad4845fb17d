//! Which lines are one record: `multiline`, `max_log_size_behavior` and `header`.

use super::operator::{self, OperatorGraph};
use crate::{
    RegexPattern,
    decode::{Cursor, DecodeReport, FieldReader, value},
    encode::YamlMap,
};

/// `max_log_size_behavior`: what happens to a record that is longer than `max_log_size`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum LongLineBehavior {
    /// `split`: its rest is the next record.
    #[default]
    Split,
    /// `truncate`: its rest is dropped.
    Truncate,
}

pub(super) const LONG_LINE_BEHAVIORS: [(&str, LongLineBehavior); 2] =
    [("split", LongLineBehavior::Split), ("truncate", LongLineBehavior::Truncate)];

/// `multiline`: where a record begins or ends. In the patterns `^` and `$` match at every line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MultilinePattern {
    /// `line_start_pattern`: a match begins a record.
    LineStart {
        pattern: RegexPattern,
        /// `omit_pattern`: what matched is not part of the record.
        omit: bool,
    },
    /// `line_end_pattern`: a match ends a record.
    LineEnd {
        pattern: RegexPattern,
        /// `omit_pattern`: what matched is not part of the record.
        omit: bool,
    },
}

/// `header`: the first lines of a file that match a pattern give attributes to all of its records.
#[derive(Clone, Debug, PartialEq)]
pub struct FileHeader {
    /// `pattern` of such a line.
    pub pattern: RegexPattern,
    /// `metadata_operators`, which read the attributes from each such line.
    pub metadata_operators: OperatorGraph,
}

pub(super) fn multiline(at: &Cursor<'_>, report: &DecodeReport) -> Option<Option<MultilinePattern>> {
    let mut fields = FieldReader::new(at, report);
    let start = fields.find("line_start_pattern").filter(|at| !is_empty(at));
    let end = fields.find("line_end_pattern").filter(|at| !is_empty(at));
    let omit = fields.flag("omit_pattern");
    if let (Some(_), Some(end)) = (&start, &end) {
        report.error(end, "only one of `line_start_pattern` and `line_end_pattern` can be set", None);
    }
    fields.finish();
    let begins =
        start.and_then(|at| line_pattern(&at, report)).map(|pattern| MultilinePattern::LineStart { pattern, omit });
    let ends = end.and_then(|at| line_pattern(&at, report)).map(|pattern| MultilinePattern::LineEnd { pattern, omit });
    Some(begins.or(ends))
}

/// In the patterns `^` and `$` match at every line.
const MULTI_LINE_FLAG: &str = "(?m)";

/// A pattern that is applied to several lines at once.
fn line_pattern(at: &Cursor<'_>, report: &DecodeReport) -> Option<RegexPattern> {
    let text = crate::decode::scalar::text(at, report)?;
    value::compile(at, report, &format!("{MULTI_LINE_FLAG}{text}"))
}

fn is_empty(at: &Cursor<'_>) -> bool {
    matches!(&at.node.value, crate::yaml::NodeValue::String(text) if text.is_empty())
}

pub(super) fn header(at: &Cursor<'_>, report: &DecodeReport) -> Option<FileHeader> {
    let mut fields = FieldReader::new(at, report);
    let pattern = fields.get("pattern", value::pattern);
    let operators = fields.get("metadata_operators", operator::graph);
    if pattern.is_none() {
        fields.require("pattern", "`header` needs a `pattern`", None);
    }
    match &operators {
        None => fields.require("metadata_operators", "`header` needs `metadata_operators`", None),
        Some(graph) if graph.operators.is_empty() && !fields.failed("metadata_operators") => {
            fields.report.error(&fields.cursor_at("metadata_operators"), "`header` needs `metadata_operators`", None);
        }
        Some(_) => {}
    }
    fields.finish();
    Some(FileHeader { pattern: pattern?, metadata_operators: operators? })
}

impl MultilinePattern {
    pub(super) fn encode(&self) -> YamlMap {
        let (name, pattern, omit) = match self {
            Self::LineStart { pattern, omit } => ("line_start_pattern", pattern, *omit),
            Self::LineEnd { pattern, omit } => ("line_end_pattern", pattern, *omit),
        };
        let text = pattern.as_str();
        YamlMap::default()
            .with_field(name, text.strip_prefix(MULTI_LINE_FLAG).unwrap_or(text))
            .with_flag("omit_pattern", omit)
    }
}

impl FileHeader {
    pub(super) fn encode(&self) -> YamlMap {
        YamlMap::default()
            .with_field("pattern", &self.pattern)
            .with_optional("metadata_operators", self.metadata_operators.written.encode())
    }
}
