//! Reads one operator: what all have in common, and its type.

use super::{OnError, OperatorKind, parsers, transformers};
use crate::{
    decode::{Cursor, DecodeReport, FieldReader, scalar},
    receiver::file_log::expression::{self, Expression},
};

/// An operator whose outputs are still ids.
pub(super) struct DecodedOperator<'a> {
    /// `id`, if it is set.
    pub(super) id: Option<(String, Cursor<'a>)>,
    pub(super) type_name: &'static str,
    pub(super) kind: Option<OperatorKind>,
    pub(super) condition: Option<Expression>,
    pub(super) on_error: OnError,
    /// `output`; `None`: the next operator.
    pub(super) output: Option<Vec<OutputReference<'a>>>,
    /// The outputs of each route of a router.
    pub(super) routes: Vec<Vec<OutputReference<'a>>>,
}

/// The id of an operator that gets records.
#[derive(Clone)]
pub(super) struct OutputReference<'a> {
    pub(super) id: String,
    pub(super) at: Cursor<'a>,
}

const ON_ERROR: [(&str, OnError); 4] = [
    ("send", OnError { drops: false, is_quiet: false }),
    ("send_quiet", OnError { drops: false, is_quiet: true }),
    ("drop", OnError { drops: true, is_quiet: false }),
    ("drop_quiet", OnError { drops: true, is_quiet: true }),
];

/// Reads the settings of one type of operator.
type KindReader = fn(&mut FieldReader<'_, '_>) -> Option<OperatorKind>;

const TYPES: &[(&str, KindReader)] = &[
    ("add", transformers::add),
    ("assign_keys", transformers::assign_keys),
    ("container", parsers::container),
    ("copy", transformers::copy),
    ("csv_parser", parsers::csv),
    ("filter", transformers::filter),
    ("flatten", transformers::flatten),
    ("json_array_parser", parsers::json_array),
    ("json_parser", parsers::json),
    ("key_value_parser", parsers::key_value),
    ("move", transformers::move_field),
    ("noop", transformers::noop),
    ("recombine", transformers::recombine),
    ("regex_parser", parsers::regex),
    ("regex_replace", transformers::regex_replace),
    ("remove", transformers::remove),
    ("retain", transformers::retain),
    ("router", transformers::noop),
    ("sanitize_utf8", transformers::sanitize_utf8),
    ("scope_name_parser", parsers::scope_name),
    ("severity_parser", parsers::severity),
    ("syslog_parser", parsers::syslog),
    ("time_parser", parsers::time),
    ("trace_parser", parsers::trace),
    ("unquote", transformers::unquote),
    ("uri_parser", parsers::uri),
];

/// Types that the Collector has and this build does not.
const UNSUPPORTED_TYPES: [&str; 10] = [
    "drop_output",
    "file_input",
    "file_output",
    "generate_input",
    "journald_input",
    "namedpipe",
    "stdin",
    "stdout",
    "tcp_input",
    "udp_input",
];

/// Reads an operator; `None` if it has no type that is known.
pub(super) fn operator<'a>(at: &Cursor<'a>, report: &DecodeReport) -> Option<DecodedOperator<'a>> {
    let mut fields = FieldReader::new(at, report);
    let place = fields.find("type");
    let name = place.as_ref().and_then(|at| scalar::text(at, report));
    let Some((place, name)) = place.zip(name) else {
        fields.require("type", "the operator has no `type`", None);
        return None;
    };
    let Some((type_name, read)) = TYPES.iter().find(|(known, _)| *known == name) else {
        report_unknown_type(&place, report, &name);
        return None;
    };
    let id = fields.find("id").and_then(|at| Some((scalar::text(&at, report)?, at))).filter(|(id, _)| !id.is_empty());
    let mut decoded = DecodedOperator {
        id,
        type_name,
        kind: None,
        condition: None,
        on_error: OnError::default(),
        output: None,
        routes: Vec::new(),
    };
    if *type_name == "router" {
        let (kind, routes) = transformers::router(&mut fields);
        decoded.kind = kind;
        decoded.routes = routes;
    } else {
        decoded.output = fields.get("output", outputs);
        // A filter has no use for `if` and `on_error`, as in the Collector.
        if *type_name != "filter" {
            decoded.condition = fields.find("if").filter(is_set).and_then(|at| expression::condition(&at, report));
            decoded.on_error =
                fields.get_or("on_error", OnError::default(), |at, report| scalar::keyword(at, report, &ON_ERROR));
        }
        decoded.kind = read(&mut fields);
    }
    fields.warn_unknown();
    Some(decoded)
}

/// `output`: an id, or a list of ids. Ids in one text are separated by commas.
pub(super) fn outputs<'a>(at: &Cursor<'a>, report: &DecodeReport) -> Option<Vec<OutputReference<'a>>> {
    let read = |at: &Cursor<'a>| {
        let ids = scalar::text(at, report)?;
        Some(OutputReference { id: ids, at: at.clone() }).filter(|output| !output.id.is_empty())
    };
    let outputs: Vec<OutputReference<'a>> = match at.items() {
        Some(items) => items.filter_map(|item| read(&item)).collect(),
        None => {
            let whole = read(at)?;
            let ids = whole.id.split(',').map(|id| OutputReference { id: id.trim().to_owned(), at: at.clone() });
            ids.collect()
        }
    };
    Some(outputs).filter(|outputs| !outputs.is_empty())
}

/// Whether a value is there and is not an empty text, which means the same as its absence.
pub(super) fn is_set(at: &Cursor<'_>) -> bool {
    !matches!(&at.node.value, crate::yaml::NodeValue::String(text) if text.is_empty())
}

fn report_unknown_type(at: &Cursor<'_>, report: &DecodeReport, name: &str) {
    let known: Vec<&str> = TYPES.iter().map(|(known, _)| *known).collect();
    let is_unsupported = UNSUPPORTED_TYPES.contains(&name);
    let state = if is_unsupported { "is not supported by this build" } else { "does not exist" };
    let word = if is_unsupported || at.node.origin.is_some() { "" } else { name };
    let help = report.suggest(word, &known, "known operators");
    report.error(at, format!("the operator {} {state}", at.quote(name)), help);
}
