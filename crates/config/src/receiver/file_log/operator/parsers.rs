//! The settings of operators that read a structure from a text.

use super::{
    ContainerFormat, ContainerRuntime, CsvFormat, CsvHeader, DEFAULT_CONTAINER_LOG_BYTES, OperatorKind, ParserConfig,
    ParserFormat, SeverityParse, SyslogFormat, SyslogProtocol, TimeParse, TraceParse, severity as severities,
};
use crate::{
    decode::{Cursor, DecodeReport, FieldReader, scalar, value},
    receiver::file_log::{
        byte_size,
        record_field::{self, FieldRoot, RecordField},
        time_layout,
    },
};

/// The greatest `max_log_size` of joined lines of a container, in bytes.
const MAX_CONTAINER_LOG_BYTES: u64 = 64 << 20;
/// The most columns of a table.
const MAX_COLUMNS: usize = 1000;
/// The longest syslog message with octet counting unless `max_octets` says otherwise, in bytes.
const DEFAULT_MAX_OCTETS: usize = 8192;
/// The greatest `max_octets`.
const MAX_OCTETS: i64 = 64 << 20;

/// What all parsers have in common.
fn parser(fields: &mut FieldReader<'_, '_>, format: Option<ParserFormat>) -> Option<OperatorKind> {
    let from = fields.get_or("parse_from", RecordField::BODY, record_field::decode);
    let to = fields.get_or("parse_to", RecordField::ATTRIBUTES, record_field::decode_rootable);
    let body = fields.get("body", record_field::decode);
    if body.is_some() && to == RecordField::BODY {
        let message = "`parse_to: body` cannot be used with `body`";
        fields.report.error(&fields.cursor_at("body"), message, None);
    }
    let errors = fields.report.errors();
    let timestamp = nested(fields, "timestamp", time_of);
    let severity = nested(fields, "severity", severity_of);
    let trace = nested(fields, "trace", |fields| Some(trace_of(fields)));
    let scope_name = nested(fields, "scope_name", scope_name_of);
    if fields.report.errors() > errors {
        return None;
    }
    let config = ParserConfig { format: format?, from, to, body, timestamp, severity, trace, scope_name };
    Some(OperatorKind::Parser(config.into()))
}

/// A parser within a parser. It may have no fields at all.
fn nested<T>(
    fields: &mut FieldReader<'_, '_>,
    name: &'static str,
    read: impl FnOnce(&mut FieldReader<'_, '_>) -> Option<T>,
) -> Option<T> {
    let at = fields.find(name)?;
    let mut inner = FieldReader::new(&at, fields.report);
    let parsed = read(&mut inner);
    inner.warn_unknown();
    parsed
}

fn required(fields: &mut FieldReader<'_, '_>, name: &'static str) -> Option<RecordField> {
    let field = fields.get(name, record_field::decode);
    if field.is_none() {
        fields.require(name, &format!("`{name}` is missing: the field to read"), None);
    }
    field
}

fn time_of(fields: &mut FieldReader<'_, '_>) -> Option<TimeParse> {
    let from = required(fields, "parse_from");
    let layout = time_layout::decode(fields);
    Some(TimeParse { from: from?, layout: layout? })
}

fn severity_of(fields: &mut FieldReader<'_, '_>) -> Option<SeverityParse> {
    let from = required(fields, "parse_from");
    let mapping = severities::mapping(fields);
    let overwrites_text = fields.flag("overwrite_text");
    Some(SeverityParse { from: from?, mapping, overwrites_text })
}

fn trace_of(fields: &mut FieldReader<'_, '_>) -> TraceParse {
    let mut source = |name: &'static str| {
        let default = RecordField::new(FieldRoot::Body, name);
        let field = nested(fields, name, |fields| fields.get("parse_from", record_field::decode));
        field.unwrap_or(default)
    };
    TraceParse { trace_id: source("trace_id"), span_id: source("span_id"), trace_flags: source("trace_flags") }
}

fn scope_name_of(fields: &mut FieldReader<'_, '_>) -> Option<RecordField> {
    required(fields, "parse_from")
}

pub(super) fn time(fields: &mut FieldReader<'_, '_>) -> Option<OperatorKind> {
    time_of(fields).map(OperatorKind::Time)
}

pub(super) fn severity(fields: &mut FieldReader<'_, '_>) -> Option<OperatorKind> {
    severity_of(fields).map(OperatorKind::Severity)
}

pub(super) fn trace(fields: &mut FieldReader<'_, '_>) -> Option<OperatorKind> {
    Some(OperatorKind::Trace(trace_of(fields)))
}

pub(super) fn scope_name(fields: &mut FieldReader<'_, '_>) -> Option<OperatorKind> {
    scope_name_of(fields).map(|from| OperatorKind::ScopeName { from })
}

pub(super) fn json(fields: &mut FieldReader<'_, '_>) -> Option<OperatorKind> {
    let format = ParserFormat::Json { keeps_integers: fields.flag("parse_ints") };
    parser(fields, Some(format))
}

pub(super) fn json_array(fields: &mut FieldReader<'_, '_>) -> Option<OperatorKind> {
    let header = fields.text("header").map(|header| names(&header, ','));
    parser(fields, Some(ParserFormat::JsonArray { header }))
}

pub(super) fn regex(fields: &mut FieldReader<'_, '_>) -> Option<OperatorKind> {
    let place = fields.find("regex");
    if place.is_none() {
        fields.require("regex", "`regex_parser` needs a `regex`", None);
    }
    let pattern = place.and_then(|at| {
        let pattern = value::pattern(&at, fields.report)?;
        if pattern.groups().all(|name| name.is_none()) {
            let help = "give a name to each group whose text is wanted: (?P<name>…)";
            fields.report.error(&at, "the expression has no named group", Some(help.into()));
            return None;
        }
        Some(pattern)
    });
    // A cache of results has no effect but speed.
    fields.accept_any("cache");
    parser(fields, pattern.map(ParserFormat::Regex))
}

pub(super) fn key_value(fields: &mut FieldReader<'_, '_>) -> Option<OperatorKind> {
    let delimiter = fields.get_or("delimiter", "=".to_owned(), scalar::text);
    let pair_delimiter = fields.text("pair_delimiter").unwrap_or_else(|| " ".to_owned());
    let problem = match delimiter.as_str() {
        "" => Some("`delimiter` must not be empty"),
        same if same == pair_delimiter => Some("`delimiter` and `pair_delimiter` must differ"),
        _ => None,
    };
    if let Some(problem) = problem {
        fields.report.error(&fields.cursor_at("delimiter"), problem, None);
    }
    parser(fields, problem.is_none().then_some(ParserFormat::KeyValue { delimiter, pair_delimiter }))
}

pub(super) fn csv(fields: &mut FieldReader<'_, '_>) -> Option<OperatorKind> {
    let delimiter = character(fields, "delimiter", ',');
    let header_delimiter = character(fields, "header_delimiter", delimiter);
    let header = fields.text("header");
    let attribute = fields.text("header_attribute");
    let lazy_quotes = fields.flag("lazy_quotes");
    let ignore_quotes = fields.flag("ignore_quotes");
    let report = fields.report;
    if lazy_quotes && ignore_quotes {
        report.error(
            &fields.cursor_at("lazy_quotes"),
            "only one of `lazy_quotes` and `ignore_quotes` can be set",
            None,
        );
    }
    let header = match (header, attribute) {
        (Some(_), Some(_)) => {
            let message = "only one of `header` and `header_attribute` can be set";
            report.error(&fields.cursor_at("header"), message, None);
            None
        }
        (Some(header), None) if !header.contains(header_delimiter) => {
            let message = format!("`header` must name the columns, with {header_delimiter:?} between them");
            report.error(&fields.cursor_at("header"), message, None);
            None
        }
        (Some(header), None) => Some(names(&header, header_delimiter)),
        (None, Some(attribute)) => {
            let format = CsvFormat {
                header: CsvHeader::Attribute(attribute),
                delimiter,
                header_delimiter,
                lazy_quotes,
                ignore_quotes,
            };
            return parser(fields, Some(ParserFormat::Csv(format)));
        }
        (None, None) => {
            fields.require("header", "`csv_parser` needs a `header` or a `header_attribute`", None);
            None
        }
    };
    if header.as_ref().is_some_and(|header| header.len() > MAX_COLUMNS) {
        report.error(&fields.cursor_at("header"), format!("`header` must have at most {MAX_COLUMNS} columns"), None);
    }
    let header = header.map(CsvHeader::Names);
    let format = header.map(|header| CsvFormat { header, delimiter, header_delimiter, lazy_quotes, ignore_quotes });
    parser(fields, format.map(ParserFormat::Csv))
}

fn names(header: &str, delimiter: char) -> Vec<String> {
    header.split(delimiter).map(str::to_owned).collect()
}

/// A text of one character.
fn character(fields: &mut FieldReader<'_, '_>, name: &'static str, default: char) -> char {
    let Some(text) = fields.text(name) else { return default };
    let mut chars = text.chars();
    match (chars.next(), chars.next()) {
        (Some(c), None) if !matches!(c, '"' | '\r' | '\n') => c,
        _ => {
            fields.report.error(&fields.cursor_at(name), format!("`{name}` must be one character"), None);
            default
        }
    }
}

pub(super) fn uri(fields: &mut FieldReader<'_, '_>) -> Option<OperatorKind> {
    parser(fields, Some(ParserFormat::Uri))
}

pub(super) fn syslog(fields: &mut FieldReader<'_, '_>) -> Option<OperatorKind> {
    const PROTOCOLS: [(&str, SyslogProtocol); 3] =
        [("rfc3164", SyslogProtocol::Rfc3164), ("rfc5424", SyslogProtocol::Rfc5424), ("none", SyslogProtocol::None)];
    let protocol = fields.get("protocol", |at, report| scalar::keyword_any_case(at, report, &PROTOCOLS));
    if protocol.is_none() {
        fields.require("protocol", "`protocol` is missing: rfc3164 or rfc5424", None);
    }
    let location = fields.get("location", time_layout::location);
    let octet_counting = fields.flag("enable_octet_counting");
    let priority_is_optional = fields.flag("allow_skip_pri_header");
    let trailer = fields
        .get("non_transparent_framing_trailer", |at, report| scalar::keyword(at, report, &[("LF", b'\n'), ("NUL", 0)]));
    let max_octets = fields
        .get("max_octets", |at, report| scalar::integer_in_range(at, report, 0, MAX_OCTETS))
        .and_then(|octets| usize::try_from(octets).ok())
        .filter(|octets| *octets > 0)
        .unwrap_or(DEFAULT_MAX_OCTETS);
    if trailer.is_some() {
        let problem = match protocol {
            _ if octet_counting => {
                "only one of `enable_octet_counting` and `non_transparent_framing_trailer` can be set"
            }
            Some(SyslogProtocol::Rfc3164 | SyslogProtocol::None) => {
                "`non_transparent_framing_trailer` needs `protocol: rfc5424`"
            }
            _ => "",
        };
        if !problem.is_empty() {
            fields.report.error(&fields.cursor_at("non_transparent_framing_trailer"), problem, None);
        }
    }
    let format = protocol.map(|protocol| {
        ParserFormat::Syslog(SyslogFormat {
            protocol,
            location,
            octet_counting,
            priority_is_optional,
            trailer,
            max_octets,
        })
    });
    parser(fields, format)
}

pub(super) fn container(fields: &mut FieldReader<'_, '_>) -> Option<OperatorKind> {
    let runtime = fields.get("format", runtime);
    let is_valid = !fields.failed("format");
    let format = ContainerFormat {
        runtime: runtime.flatten(),
        adds_metadata: fields.get_or("add_metadata_from_filepath", true, scalar::boolean),
        max_log_size: fields.get_or("max_log_size", DEFAULT_CONTAINER_LOG_BYTES, |at, report| {
            byte_size::read_in_range(at, report, 0, MAX_CONTAINER_LOG_BYTES)
        }),
    };
    parser(fields, is_valid.then_some(ParserFormat::Container(format)))
}

fn runtime(at: &Cursor<'_>, report: &DecodeReport) -> Option<Option<ContainerRuntime>> {
    const RUNTIMES: [(&str, Option<ContainerRuntime>); 4] = [
        ("", None),
        ("docker", Some(ContainerRuntime::Docker)),
        ("crio", Some(ContainerRuntime::Crio)),
        ("containerd", Some(ContainerRuntime::Containerd)),
    ];
    scalar::keyword(at, report, &RUNTIMES)
}
