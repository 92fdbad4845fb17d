//! `attributes` and `resource`

use kubewake_otlp::When;

use super::{
    cursor::Cursor,
    fields::Fields,
    matching,
    report::{ContextUse, Report},
    scalar, value,
};
use crate::model::{Action, Attributes, Context, ConvertedType, Keys, Processor, Resource, Source};

/// `attributes`
pub(crate) fn attributes(at: &Cursor<'_>, report: &Report) -> Option<Processor> {
    let mut fields = Fields::of(at, report);
    let include = fields.get("include", matching::properties);
    let exclude = fields.get("exclude", matching::properties);
    let actions = actions(&mut fields, "actions");
    fields.finish();
    Some(Processor::Attributes(Box::new(Attributes { include, exclude, actions })))
}

/// `resource`
pub(crate) fn resource(at: &Cursor<'_>, report: &Report) -> Option<Processor> {
    let mut fields = Fields::of(at, report);
    let actions = actions(&mut fields, "attributes");
    fields.finish();
    Some(Processor::Resource(Resource { actions }))
}

/// The actions, of which there must be one.
fn actions(fields: &mut Fields<'_, '_>, name: &'static str) -> Vec<Action> {
    let report = fields.report;
    let found = fields.find(name).map(|at| match at.items() {
        Some(items) => items.map(|item| action(&item, report)).collect::<Vec<_>>(),
        None => {
            scalar::wrong_type::<()>(&at, report, "a list", Some("write `- action: …` for each".into()));
            Vec::new()
        }
    });
    let found = found.unwrap_or_default();
    if found.is_empty() {
        fields.require(name, &format!("`{name}` must name at least one action"), None);
    }
    found.into_iter().flatten().collect()
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Set(When),
    Delete,
    Hash,
    Extract,
    Convert,
    Rename,
}

const KINDS: [(&str, Kind); 8] = [
    ("insert", Kind::Set(When::Absent)),
    ("update", Kind::Set(When::Present)),
    ("upsert", Kind::Set(When::Always)),
    ("delete", Kind::Delete),
    ("hash", Kind::Hash),
    ("extract", Kind::Extract),
    ("convert", Kind::Convert),
    ("rename", Kind::Rename),
];

/// The fields that say what to do, each of which only some actions use.
const OPERANDS: [&str; 6] = ["value", "default_value", "from_attribute", "from_context", "pattern", "converted_type"];

impl Kind {
    fn uses(self, operand: &str) -> bool {
        match self {
            Self::Set(_) => matches!(operand, "value" | "default_value" | "from_attribute" | "from_context"),
            Self::Delete | Self::Hash | Self::Extract => operand == "pattern",
            Self::Convert => operand == "converted_type",
            Self::Rename => operand == "from_attribute",
        }
    }
}

fn action(at: &Cursor<'_>, report: &Report) -> Option<Action> {
    let mut fields = Fields::of(at, report);
    let key = fields.text("key");
    let kind = fields.get("action", |at, report| scalar::keyword_any_case(at, report, &KINDS));
    let Some(kind) = kind else {
        let names = KINDS.map(|(name, _)| name);
        fields.require("action", "`action` is missing", report.suggest("", &names, "known actions"));
        return None;
    };
    for operand in OPERANDS.into_iter().filter(|operand| !kind.uses(operand)) {
        if let Some(at) = fields.find(operand) {
            let name = KINDS.iter().find(|(_, one)| *one == kind).map_or("", |(name, _)| *name);
            report.error(&at, format!("`{name}` does not use `{operand}`"), Some("remove it".into()));
        }
    }
    if key.is_none() && !(matches!(kind, Kind::Delete | Kind::Hash) && fields.has("pattern")) {
        let (message, help) = match kind {
            Kind::Delete | Kind::Hash => ("`key` or `pattern` must say which attributes", None),
            Kind::Rename => ("`key` is missing", Some("it is the new name, `from_attribute` the old one".to_owned())),
            _ => ("`key` is missing", None),
        };
        fields.require("key", message, help);
    }
    let action = match kind {
        Kind::Set(when) => set(&mut fields, key, when),
        Kind::Delete => keys(&mut fields, key).map(Action::Delete),
        Kind::Hash => keys(&mut fields, key).map(Action::Hash),
        Kind::Extract => extract(&mut fields, key),
        Kind::Convert => convert(&mut fields, key),
        Kind::Rename => rename(&mut fields, key),
    };
    fields.finish();
    action
}

fn set(fields: &mut Fields<'_, '_>, key: Option<String>, when: When) -> Option<Action> {
    let given: Vec<_> =
        ["value", "from_attribute", "from_context"].into_iter().filter(|name| fields.has(name)).collect();
    if let [_, second, ..] = given.as_slice() {
        let message = format!("there is more than one source of the value: {}", quoted(&given));
        fields.report.error(&fields.place(second), message, Some("keep one of them".into()));
    }
    let (value, default) = (fields.get("value", value::value), fields.get("default_value", value::value));
    let (attribute, context) = (fields.text("from_attribute"), fields.text("from_context"));
    let from = match (value, attribute, context) {
        (Some(value), ..) => Source::Value(value),
        (_, Some(name), _) => Source::Attribute(name),
        (.., Some(name)) => {
            let (context, place) = (self::context(&name), fields.place("from_context"));
            let (path, span) = (place.path().to_owned(), place.span());
            fields.report.uses_context(ContextUse { context: context.clone(), path, span });
            Source::Context(context)
        }
        _ => Source::Nothing,
    };
    if from == Source::Nothing && default.is_none() {
        let help = "set `value`, `from_attribute`, `from_context` or `default_value`";
        fields.require("value", "there is no value to set", Some(help.into()));
        return None;
    }
    Some(Action::Set { key: key?, when, from, default })
}

fn quoted(names: &[&str]) -> String {
    names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}

/// What is none of the others is a header, too.
fn context(name: &str) -> Context {
    match (name, name.strip_prefix("metadata."), name.strip_prefix("auth.")) {
        ("client.address", ..) => Context::ClientAddress,
        (_, Some(header), _) => Context::Metadata(header.to_lowercase()),
        (.., Some(attribute)) => Context::Auth(attribute.to_owned()),
        _ => Context::Metadata(name.to_lowercase()),
    }
}

fn keys(fields: &mut Fields<'_, '_>, key: Option<String>) -> Option<Keys> {
    let pattern = pattern(fields);
    Some(Keys { key, pattern }).filter(|keys| keys.key.is_some() || keys.pattern.is_some())
}

/// An empty one counts as absent, as in the Collector.
fn pattern(fields: &mut Fields<'_, '_>) -> Option<crate::Pattern> {
    fields.get("pattern", value::pattern).filter(|pattern| !pattern.as_str().is_empty())
}

fn extract(fields: &mut Fields<'_, '_>, key: Option<String>) -> Option<Action> {
    let Some(pattern) = pattern(fields) else {
        fields.require("pattern", "`pattern` is missing", Some("`extract` takes what its named groups match".into()));
        return None;
    };
    let mut groups = pattern.groups().peekable();
    if groups.peek().is_none() || groups.any(|name| name.is_none()) {
        let message = "every group of the `pattern` needs a name, and there must be one";
        fields.report.error(
            &fields.place("pattern"),
            message,
            Some("write (?P<name>…), and (?:…) to group only".into()),
        );
        return None;
    }
    drop(groups);
    Some(Action::Extract { key: key?, pattern })
}

fn convert(fields: &mut Fields<'_, '_>, key: Option<String>) -> Option<Action> {
    const TYPES: [(&str, ConvertedType); 3] =
        [("string", ConvertedType::String), ("int", ConvertedType::Int), ("double", ConvertedType::Double)];
    let to = fields.get("converted_type", |at, report| scalar::keyword(at, report, &TYPES));
    if to.is_none() {
        fields.require("converted_type", "`converted_type` is missing", Some("it is string, int or double".into()));
    }
    Some(Action::Convert { key: key?, to: to? })
}

fn rename(fields: &mut Fields<'_, '_>, key: Option<String>) -> Option<Action> {
    let from = fields.text("from_attribute");
    if from.is_none() {
        fields.require(
            "from_attribute",
            "`from_attribute` is missing",
            Some("it is the old name, `key` the new one".into()),
        );
    }
    Some(Action::Rename { from: from?, to: key? })
}
