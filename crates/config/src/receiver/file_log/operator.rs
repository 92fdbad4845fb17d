//! `operators`: what happens to each record, as a graph.
//!
//! Each operator passes records to the next one of the list, unless `output` names others.
//!
//! *Guarantees*: every output exists, and no record passes an operator twice.

mod decode;
mod graph;
mod parsers;
mod severity;
mod transformers;

#[cfg(test)]
mod tests;

use std::time::Duration;

use kubewake_otlp::Value;

use super::{expression::Expression, record_field::RecordField, template::TextTemplate, time_layout::TimeLayout};
use crate::{
    FixedSources, RegexPattern,
    decode::{Cursor, DecodeReport},
    encode::{WrittenSection, YamlMap},
    yaml,
};

pub(super) use graph::graph;
pub use severity::SeverityMapping;

/// The operators and how records pass from one to the next. Records begin at the first one.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct OperatorGraph {
    pub operators: Vec<OperatorConfig>,
    /// The list as it was read.
    pub(crate) written: WrittenSection,
}

impl OperatorGraph {
    /// Reads a list of operators that is not part of a document.
    ///
    /// # Errors
    ///
    /// The first thing that is wrong with it.
    pub fn from_yaml(text: &str) -> Result<Self, String> {
        let sources = FixedSources::new();
        let report = DecodeReport::with_sources(&sources);
        let mut faults = Vec::new();
        let tree = yaml::parse(text, &mut faults).ok_or("the text is not YAML")?;
        let found = graph(&Cursor::root(&tree), &report);
        let errors = report.into_findings().errors;
        match errors.first() {
            Some(error) => Err(error.message.clone()),
            None => found.ok_or_else(|| "the list cannot be read".to_owned()),
        }
    }

    /// The operator `container` with its defaults, and no other.
    pub fn for_containers() -> Self {
        let format = ContainerFormat { runtime: None, adds_metadata: true, max_log_size: DEFAULT_CONTAINER_LOG_BYTES };
        let parser = ParserConfig {
            format: ParserFormat::Container(format),
            from: RecordField::BODY,
            to: RecordField::ATTRIBUTES,
            body: None,
            timestamp: None,
            severity: None,
            trace: None,
            scope_name: None,
        };
        let operator = OperatorConfig {
            id: "container".to_owned(),
            kind: OperatorKind::Parser(parser.into()),
            condition: None,
            on_error: OnError::default(),
            outputs: Vec::new(),
        };
        let written = WrittenSection::from_items([YamlMap::default().with_field("type", "container")]);
        Self { operators: vec![operator], written }
    }
}

/// The default of `max_log_size` of the operator `container`.
pub(super) const DEFAULT_CONTAINER_LOG_BYTES: usize = 1 << 20;

/// An operator.
#[derive(Clone, Debug, PartialEq)]
pub struct OperatorConfig {
    /// `id`; its type, with a number if others have it, unless it is set.
    pub id: String,
    pub kind: OperatorKind,
    /// `if`: records for which it is false pass as they are.
    pub condition: Option<Expression>,
    /// `on_error`: what happens to a record that cannot be processed.
    pub on_error: OnError,
    /// `output`: the places in the list of the operators that get the records. Empty: the receiver's output.
    pub outputs: Vec<usize>,
}

/// `on_error`
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct OnError {
    /// The record is dropped.
    pub drops: bool,
    /// The error is not written to the log.
    pub is_quiet: bool,
}

/// The types of operators, with their settings.
#[derive(Clone, Debug, PartialEq)]
pub enum OperatorKind {
    /// `noop`: nothing.
    Noop,
    /// `add`: sets a field.
    Add { field: RecordField, value: AddedValue },
    /// `remove`: removes a field.
    Remove { field: RecordField },
    /// `move`: sets a field to the value of another one, which is removed.
    Move { from: RecordField, to: RecordField },
    /// `copy`: sets a field to the value of another one.
    Copy { from: RecordField, to: RecordField },
    /// `retain`: removes all other fields.
    Retain { fields: Vec<RecordField> },
    /// `flatten`: moves the keys of a map to where the map is.
    Flatten { field: RecordField },
    /// `regex_replace`: replaces what matches in a text.
    RegexReplace { field: RecordField, pattern: RegexPattern, replacement: String },
    /// `sanitize_utf8`: replaces bytes that are not UTF-8.
    SanitizeUtf8 { field: RecordField },
    /// `unquote`: removes the quotes around a text, and its escapes.
    Unquote { field: RecordField },
    /// `assign_keys`: makes a map of a list.
    AssignKeys { field: RecordField, keys: Vec<String> },
    /// `filter`: drops records for which an expression is true.
    Filter { expression: Expression, drop_ratio: f64 },
    /// `router`: passes each record to the outputs of the first route that fits.
    Router { routes: Vec<RouterRoute> },
    /// `recombine`: joins consecutive records.
    Recombine(Box<RecombineConfig>),
    /// `severity_parser`
    Severity(SeverityParse),
    /// `time_parser`
    Time(TimeParse),
    /// `trace_parser`
    Trace(TraceParse),
    /// `scope_name_parser`
    ScopeName { from: RecordField },
    /// The operators that read a structure from a text.
    Parser(Box<ParserConfig>),
}

/// `value` of `add`.
#[derive(Clone, Debug, PartialEq)]
pub enum AddedValue {
    Constant(Value),
    /// `EXPR(…)`
    Expression(Expression),
}

/// A route of a `router`.
#[derive(Clone, Debug, PartialEq)]
pub struct RouterRoute {
    /// `expr`; `default` has none and fits always.
    pub condition: Option<Expression>,
    /// `attributes` that the record gets.
    pub attributes: Vec<(String, TextTemplate)>,
    /// `output`: places in the list of operators.
    pub outputs: Vec<usize>,
}

/// The settings of `recombine`.
#[derive(Clone, Debug, PartialEq)]
pub struct RecombineConfig {
    /// `is_first_entry` or `is_last_entry`
    pub boundary: Expression,
    /// Whether the boundary is the first record of those that are joined, and not the last one.
    pub boundary_is_first: bool,
    /// `combine_field`: the text that is joined.
    pub combine_field: RecordField,
    /// `combine_with`: what stands between the texts.
    pub combine_with: String,
    /// `source_identifier`: records with different values are joined apart.
    pub source_identifier: RecordField,
    /// `overwrite_with: newest`: the other fields are those of the last record.
    pub keeps_newest: bool,
    /// `max_batch_size`: the most records that are joined. `None`: any number.
    pub max_batch_size: Option<usize>,
    /// `max_unmatched_batch_size`: the same as long as no boundary was found.
    pub max_unmatched_batch_size: Option<usize>,
    /// `max_log_size`: the most bytes of joined text, after which it is passed on.
    pub max_log_size: usize,
    /// `max_sources`: the most values of `source_identifier` at once.
    pub max_sources: usize,
    /// `force_flush_period`: what is held for this long is passed on.
    pub force_flush_period: Duration,
}

/// `severity_parser`, or `severity` of a parser.
#[derive(Clone, Debug, PartialEq)]
pub struct SeverityParse {
    /// `parse_from`
    pub from: RecordField,
    /// `preset` and `mapping`
    pub mapping: SeverityMapping,
    /// `overwrite_text`: the text is replaced by the name of the severity.
    pub overwrites_text: bool,
}

/// `time_parser`, or `timestamp` of a parser.
#[derive(Clone, Debug, PartialEq)]
pub struct TimeParse {
    /// `parse_from`
    pub from: RecordField,
    pub layout: TimeLayout,
}

/// `trace_parser`, or `trace` of a parser.
#[derive(Clone, Debug, PartialEq)]
pub struct TraceParse {
    pub trace_id: RecordField,
    pub span_id: RecordField,
    pub trace_flags: RecordField,
}

/// An operator that reads a structure from a text.
#[derive(Clone, Debug, PartialEq)]
pub struct ParserConfig {
    pub format: ParserFormat,
    /// `parse_from`
    pub from: RecordField,
    /// `parse_to`
    pub to: RecordField,
    /// `body`: a field that becomes the body afterwards.
    pub body: Option<RecordField>,
    pub timestamp: Option<TimeParse>,
    pub severity: Option<SeverityParse>,
    pub trace: Option<TraceParse>,
    /// `scope_name`: a field that is the name of the scope.
    pub scope_name: Option<RecordField>,
}

/// What a parser reads.
#[derive(Clone, Debug, PartialEq)]
pub enum ParserFormat {
    /// `json_parser`
    Json {
        /// `parse_ints`: whole numbers stay whole.
        keeps_integers: bool,
    },
    /// `json_array_parser`
    JsonArray {
        /// `header`: the keys of the items; without it the array stays one.
        header: Option<Vec<String>>,
    },
    /// `regex_parser`: the named groups.
    Regex(RegexPattern),
    /// `key_value_parser`
    KeyValue { delimiter: String, pair_delimiter: String },
    /// `csv_parser`
    Csv(CsvFormat),
    /// `uri_parser`
    Uri,
    /// `syslog_parser`
    Syslog(SyslogFormat),
    /// `container`
    Container(ContainerFormat),
}

/// `csv_parser`
#[derive(Clone, Debug, PartialEq)]
pub struct CsvFormat {
    pub header: CsvHeader,
    pub delimiter: char,
    /// `header_delimiter`
    pub header_delimiter: char,
    /// `lazy_quotes`: a quote within a field stands for itself.
    pub lazy_quotes: bool,
    /// `ignore_quotes`: all quotes stand for themselves.
    pub ignore_quotes: bool,
}

/// The names of the columns.
#[derive(Clone, Debug, PartialEq)]
pub enum CsvHeader {
    /// `header`
    Names(Vec<String>),
    /// `header_attribute`: the attribute that holds the names.
    Attribute(String),
}

/// `syslog_parser`
#[derive(Clone, Debug, PartialEq)]
pub struct SyslogFormat {
    pub protocol: SyslogProtocol,
    /// `location`: the time zone of RFC 3164. `None`: UTC.
    pub location: Option<String>,
    /// `enable_octet_counting`: a message begins with its length.
    pub octet_counting: bool,
    /// `allow_skip_pri_header`: a message may lack its priority.
    pub priority_is_optional: bool,
    /// `non_transparent_framing_trailer`: a message ends with this byte.
    pub trailer: Option<u8>,
    /// `max_octets`: the longest message with `octet_counting`.
    pub max_octets: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SyslogProtocol {
    /// `rfc3164`
    Rfc3164,
    /// `rfc5424`
    Rfc5424,
    /// `none`: only the priority is read.
    None,
}

/// `container`
#[derive(Clone, Debug, PartialEq)]
pub struct ContainerFormat {
    /// `format`; `None`: it is found for each line.
    pub runtime: Option<ContainerRuntime>,
    /// `add_metadata_from_filepath`: the resource gets what the path of the file says.
    pub adds_metadata: bool,
    /// `max_log_size` of joined lines in bytes.
    pub max_log_size: usize,
}

/// The writer of a container's log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ContainerRuntime {
    /// `docker`
    Docker,
    /// `crio`: times have an offset.
    Crio,
    /// `containerd`: times end in `Z`.
    Containerd,
}
