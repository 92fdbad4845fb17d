//! The settings of operators that change, choose or join records.

use std::time::Duration;

use super::{
    AddedValue, OperatorKind, RecombineConfig, RouterRoute,
    decode::{self, OutputReference},
};
use crate::{
    RegexPattern,
    decode::{Cursor, DecodeReport, FieldReader, scalar, value},
    receiver::file_log::{
        byte_size,
        expression::{self, Expression, ExpressionError},
        record_field::{self, FieldRoot, RecordField},
        template,
    },
    yaml::NodeValue,
};

/// The most routes of a router.
const MAX_ROUTES: usize = 500;
/// The most fields of `retain`.
const MAX_FIELDS: usize = 1000;
/// The most bytes of joined text if `max_log_size` sets no bound, and the greatest bound.
const MAX_COMBINED_BYTES: usize = 16 << 20;
/// The greatest `max_sources` of `recombine`: each holds a record.
const MAX_SOURCES: i64 = 100_000;

pub(super) fn noop(_: &mut FieldReader<'_, '_>) -> Option<OperatorKind> {
    Some(OperatorKind::Noop)
}

pub(super) fn add(fields: &mut FieldReader<'_, '_>) -> Option<OperatorKind> {
    let field = field(fields, "field");
    let place = fields.find("value");
    if place.is_none() {
        fields.require("value", "`add` needs a `value`", None);
    }
    let place = place?;
    let value = match &place.node.value {
        NodeValue::String(text) if text.starts_with("EXPR(") && text.ends_with(')') => {
            let inner = text.get("EXPR(".len()..text.len() - 1).unwrap_or_default();
            let parsed = Expression::parse(inner)
                .map_err(|error| ExpressionError { column: error.column + "EXPR(".len(), problem: error.problem });
            fields.report.mark_public(&place);
            AddedValue::Expression(expression::reported(&place, fields.report, text, parsed)?)
        }
        _ => AddedValue::Constant(value::value(&place, fields.report)?),
    };
    Some(OperatorKind::Add { field: field?, value })
}

pub(super) fn remove(fields: &mut FieldReader<'_, '_>) -> Option<OperatorKind> {
    let field = fields.get("field", record_field::decode_rootable);
    require_field(fields, "field", field.is_some());
    Some(OperatorKind::Remove { field: field? })
}

pub(super) fn move_field(fields: &mut FieldReader<'_, '_>) -> Option<OperatorKind> {
    let from = field(fields, "from");
    let to = field(fields, "to");
    Some(OperatorKind::Move { from: from?, to: to? })
}

pub(super) fn copy(fields: &mut FieldReader<'_, '_>) -> Option<OperatorKind> {
    let from = field(fields, "from");
    let to = field(fields, "to");
    Some(OperatorKind::Copy { from: from?, to: to? })
}

pub(super) fn retain(fields: &mut FieldReader<'_, '_>) -> Option<OperatorKind> {
    let Some(at) = fields.find("fields") else {
        fields.require("fields", "`retain` needs `fields`", None);
        return None;
    };
    let report = fields.report;
    let kept: Vec<RecordField> = match at.items() {
        Some(items) => items.filter_map(|item| record_field::decode_rootable(&item, report)).collect(),
        None => scalar::wrong_type(&at, report, "a list of fields", None)?,
    };
    if kept.is_empty() || kept.len() > MAX_FIELDS {
        report.error(&at, format!("`fields` must name between 1 and {MAX_FIELDS} fields"), None);
    }
    Some(OperatorKind::Retain { fields: kept })
}

pub(super) fn flatten(fields: &mut FieldReader<'_, '_>) -> Option<OperatorKind> {
    Some(OperatorKind::Flatten { field: field(fields, "field")? })
}

pub(super) fn sanitize_utf8(fields: &mut FieldReader<'_, '_>) -> Option<OperatorKind> {
    let field = fields.get_or("field", RecordField::BODY, record_field::decode);
    Some(OperatorKind::SanitizeUtf8 { field })
}

pub(super) fn unquote(fields: &mut FieldReader<'_, '_>) -> Option<OperatorKind> {
    Some(OperatorKind::Unquote { field: field(fields, "field")? })
}

pub(super) fn assign_keys(fields: &mut FieldReader<'_, '_>) -> Option<OperatorKind> {
    let field = field(fields, "field");
    let keys = fields.get("keys", scalar::texts).unwrap_or_default();
    if keys.is_empty() || keys.len() > MAX_FIELDS {
        fields.require("keys", &format!("`keys` must have between 1 and {MAX_FIELDS} names"), None);
        return None;
    }
    Some(OperatorKind::AssignKeys { field: field?, keys })
}

/// The control sequences of terminals, such as colours.
const ANSI_CONTROL_SEQUENCES: &str = r"\x1B\[[\x30-\x3F]*[\x20-\x2F]*[\x40-\x7E]";

pub(super) fn regex_replace(fields: &mut FieldReader<'_, '_>) -> Option<OperatorKind> {
    let field = fields.get_or("field", RecordField::BODY, record_field::decode);
    let replacement = fields.text("replace_with").unwrap_or_default();
    let name = fields.find("regex_name").filter(decode::is_set);
    let regex = fields.find("regex").filter(decode::is_set);
    let pattern = match (name, regex) {
        (None, Some(at)) => value::pattern(&at, fields.report),
        (Some(at), None) => {
            scalar::keyword(&at, fields.report, &[("ansi_control_sequences", ())])?;
            RegexPattern::new(ANSI_CONTROL_SEQUENCES).ok()
        }
        (Some(at), Some(_)) => {
            fields.report.error(&at, "only one of `regex` and `regex_name` can be set", None);
            None
        }
        (None, None) => {
            fields.require("regex", "`regex_replace` needs a `regex`", None);
            None
        }
    };
    Some(OperatorKind::RegexReplace { field, pattern: pattern?, replacement })
}

pub(super) fn filter(fields: &mut FieldReader<'_, '_>) -> Option<OperatorKind> {
    let drop_ratio = fields.get_or("drop_ratio", 1.0, |at, report| {
        let ratio = scalar::float(at, report)?;
        let valid = (0.0..=1.0).contains(&ratio);
        if !valid {
            report.error(at, "`drop_ratio` must be between 0 and 1", None);
        }
        valid.then_some(ratio)
    });
    let expression = condition(fields, "expr", "filter");
    Some(OperatorKind::Filter { expression: expression?, drop_ratio })
}

/// A `router`, and the ids of the outputs of each of its routes.
pub(super) fn router<'a>(fields: &mut FieldReader<'a, '_>) -> (Option<OperatorKind>, Vec<Vec<OutputReference<'a>>>) {
    let report = fields.report;
    let mut routes = Vec::new();
    let mut outputs = Vec::new();
    let mut is_valid = true;
    let place = fields.find("routes");
    match place.as_ref().map(|at| at.items()) {
        Some(Some(items)) => {
            for item in items {
                match route(&item, report) {
                    Some((route, output)) => {
                        routes.push(route);
                        outputs.push(output);
                    }
                    None => is_valid = false,
                }
            }
        }
        Some(None) => {
            if let Some(at) = &place {
                scalar::wrong_type::<()>(at, report, "a list of routes", None);
            }
            is_valid = false;
        }
        None => {}
    }
    if let Some(default) = fields.get("default", decode::outputs) {
        routes.push(RouterRoute { condition: None, attributes: Vec::new(), outputs: Vec::new() });
        outputs.push(default);
    }
    if routes.is_empty() && is_valid {
        fields.require("routes", "`router` needs `routes`", None);
        is_valid = false;
    }
    if routes.len() > MAX_ROUTES {
        report.error(&fields.at, format!("a router must have at most {MAX_ROUTES} routes"), None);
        is_valid = false;
    }
    (is_valid.then_some(OperatorKind::Router { routes }), outputs)
}

fn route<'a>(at: &Cursor<'a>, report: &DecodeReport) -> Option<(RouterRoute, Vec<OutputReference<'a>>)> {
    let mut fields = FieldReader::new(at, report);
    let condition = condition(&mut fields, "expr", "route");
    let outputs = fields.get("output", decode::outputs);
    let attributes = fields.get("attributes", template::map).unwrap_or_default();
    if outputs.is_none() {
        fields.require("output", "the route has no `output`", None);
    }
    fields.warn_unknown();
    let route =
        RouterRoute { condition: Some(condition?), attributes: attributes.into_iter().collect(), outputs: Vec::new() };
    Some((route, outputs?))
}

pub(super) fn recombine(fields: &mut FieldReader<'_, '_>) -> Option<OperatorKind> {
    let report = fields.report;
    let first = fields.find("is_first_entry").filter(decode::is_set);
    let last = fields.find("is_last_entry").filter(decode::is_set);
    let boundary = match (&first, &last) {
        (Some(_), Some(last)) => {
            report.error(last, "only one of `is_first_entry` and `is_last_entry` can be set", None);
            None
        }
        (Some(at), None) | (None, Some(at)) => expression::condition(at, report),
        (None, None) => {
            fields.require("is_first_entry", "`recombine` needs `is_first_entry` or `is_last_entry`", None);
            None
        }
    };
    let combine_field = field(fields, "combine_field");
    let size = fields
        .get_or("max_log_size", 0, |at, report| byte_size::read_in_range(at, report, 0, MAX_COMBINED_BYTES as u64));
    let period = fields.get_or("force_flush_period", Duration::from_secs(5), scalar::duration);
    if period.is_zero() {
        report.error(&fields.cursor_at("force_flush_period"), "`force_flush_period` must be positive", None);
    }
    let config = RecombineConfig {
        boundary_is_first: first.is_some(),
        combine_with: fields.get_or("combine_with", "\n".to_owned(), scalar::text),
        source_identifier: fields.get_or(
            "source_identifier",
            RecordField::new(FieldRoot::Attributes, "log.file.path"),
            record_field::decode,
        ),
        keeps_newest: fields.get_or("overwrite_with", false, |at, report| {
            scalar::keyword(at, report, &[("", false), ("oldest", false), ("newest", true)])
        }),
        max_batch_size: count(fields, "max_batch_size", 1000),
        max_unmatched_batch_size: count(fields, "max_unmatched_batch_size", 100),
        max_log_size: if size == 0 { MAX_COMBINED_BYTES } else { size },
        max_sources: fields
            .get("max_sources", |at, report| scalar::integer_in_range(at, report, 1, MAX_SOURCES))
            .and_then(|count| count.try_into().ok())
            .unwrap_or(1000),
        force_flush_period: period,
        boundary: boundary?,
        combine_field: combine_field?,
    };
    Some(OperatorKind::Recombine(config.into()))
}

/// A number of records; zero is any number.
fn count(fields: &mut FieldReader<'_, '_>, name: &'static str, default: usize) -> Option<usize> {
    let count = fields.get(name, |at, report| scalar::integer_in_range(at, report, 0, i64::MAX));
    Some(count.map_or(default, |count| usize::try_from(count).unwrap_or(usize::MAX))).filter(|count| *count > 0)
}

/// A field that has to be there.
fn field(fields: &mut FieldReader<'_, '_>, name: &'static str) -> Option<RecordField> {
    let field = fields.get(name, record_field::decode);
    require_field(fields, name, field.is_some());
    field
}

fn require_field(fields: &FieldReader<'_, '_>, name: &str, is_there: bool) {
    if !is_there {
        fields.require(name, &format!("`{name}` is missing: the field of the record"), None);
    }
}

fn condition(fields: &mut FieldReader<'_, '_>, name: &'static str, owner: &str) -> Option<Expression> {
    let Some(at) = fields.find(name).filter(decode::is_set) else {
        fields.require(name, &format!("the {owner} has no `{name}`"), None);
        return None;
    };
    expression::condition(&at, fields.report)
}
