//! Decodes the actions of `attributes` and `resource`.

use kubewake_otlp::SetCondition;

use super::{AttributeAction, AttributeValueSource, ContextKey, ConvertedType, KeySelector};
use crate::{
    decode::{ContextUse, Cursor, DecodeReport, FieldReader, scalar, value},
    encode::{self, YamlMap},
};

/// Reads the actions, of which there must be at least one.
pub(super) fn read(fields: &mut FieldReader<'_, '_>, name: &'static str) -> Vec<AttributeAction> {
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
enum ActionKind {
    Set(SetCondition),
    Delete,
    Hash,
    Extract,
    Convert,
    Rename,
}

const ACTION_KINDS: [(&str, ActionKind); 8] = [
    ("insert", ActionKind::Set(SetCondition::Absent)),
    ("update", ActionKind::Set(SetCondition::Present)),
    ("upsert", ActionKind::Set(SetCondition::Always)),
    ("delete", ActionKind::Delete),
    ("hash", ActionKind::Hash),
    ("extract", ActionKind::Extract),
    ("convert", ActionKind::Convert),
    ("rename", ActionKind::Rename),
];

/// The operands of actions, each of which only some actions use.
const ACTION_OPERANDS: [&str; 6] =
    ["value", "default_value", "from_attribute", "from_context", "pattern", "converted_type"];

impl ActionKind {
    fn uses(self, operand: &str) -> bool {
        match self {
            Self::Set(_) => matches!(operand, "value" | "default_value" | "from_attribute" | "from_context"),
            Self::Delete | Self::Hash | Self::Extract => operand == "pattern",
            Self::Convert => operand == "converted_type",
            Self::Rename => operand == "from_attribute",
        }
    }
}

fn action(at: &Cursor<'_>, report: &DecodeReport) -> Option<AttributeAction> {
    let mut fields = FieldReader::new(at, report);
    let key = fields.text("key");
    let kind = fields.get("action", |at, report| scalar::keyword_any_case(at, report, &ACTION_KINDS));
    let Some(kind) = kind else {
        let names = ACTION_KINDS.map(|(name, _)| name);
        fields.require("action", "`action` is missing", report.suggest("", &names, "known actions"));
        return None;
    };
    for operand in ACTION_OPERANDS.into_iter().filter(|operand| !kind.uses(operand)) {
        if let Some(at) = fields.find(operand) {
            let name = ACTION_KINDS.iter().find(|(_, one)| *one == kind).map_or("", |(name, _)| *name);
            report.error(&at, format!("`{name}` does not use `{operand}`"), Some("remove it".into()));
        }
    }
    if key.is_none() && !(matches!(kind, ActionKind::Delete | ActionKind::Hash) && fields.has("pattern")) {
        let (message, help) = match kind {
            ActionKind::Delete | ActionKind::Hash => ("`key` or `pattern` must be set", None),
            ActionKind::Rename => {
                ("`key` is missing", Some("`key` is the new name, `from_attribute` the old name".to_owned()))
            }
            _ => ("`key` is missing", None),
        };
        fields.require("key", message, help);
    }
    let action = match kind {
        ActionKind::Set(when) => set(&mut fields, key, when),
        ActionKind::Delete => keys(&mut fields, key).map(AttributeAction::Delete),
        ActionKind::Hash => keys(&mut fields, key).map(AttributeAction::Hash),
        ActionKind::Extract => extract(&mut fields, key),
        ActionKind::Convert => convert(&mut fields, key),
        ActionKind::Rename => rename(&mut fields, key),
    };
    fields.finish();
    action
}

fn set(fields: &mut FieldReader<'_, '_>, key: Option<String>, when: SetCondition) -> Option<AttributeAction> {
    let given: Vec<_> =
        ["value", "from_attribute", "from_context"].into_iter().filter(|name| fields.has(name)).collect();
    if let [_, second, ..] = given.as_slice() {
        let message = format!("the value has more than one source: {}", quoted(&given));
        fields.report.error(&fields.cursor_at(second), message, Some("keep one of them".into()));
    }
    let (value, default) = (fields.get("value", value::value), fields.get("default_value", value::value));
    let attribute = fields.text("from_attribute");
    let context = fields.text("from_context");
    let from = match (value, attribute, context) {
        (Some(value), ..) => AttributeValueSource::Value(value),
        (_, Some(name), _) => AttributeValueSource::Attribute(name),
        (.., Some(name)) => {
            let context = self::context(&name);
            let place = fields.cursor_at("from_context");
            let path = place.path().to_owned();
            let span = place.span();
            fields.report.add_context_use(ContextUse { context: context.clone(), path, span });
            AttributeValueSource::Context(context)
        }
        _ => AttributeValueSource::Nothing,
    };
    if from == AttributeValueSource::Nothing && default.is_none() {
        let help = "set `value`, `from_attribute`, `from_context` or `default_value`";
        fields.require("value", "the action has no value to set", Some(help.into()));
        return None;
    }
    Some(AttributeAction::Set { key: key?, when, from, default })
}

fn quoted(names: &[&str]) -> String {
    names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}

/// Any other name is a header, too.
fn context(name: &str) -> ContextKey {
    match (name, name.strip_prefix("metadata."), name.strip_prefix("auth.")) {
        ("client.address", ..) => ContextKey::ClientAddress,
        (_, Some(header), _) => ContextKey::Metadata(header.to_lowercase()),
        (.., Some(attribute)) => ContextKey::Auth(attribute.to_owned()),
        _ => ContextKey::Metadata(name.to_lowercase()),
    }
}

fn keys(fields: &mut FieldReader<'_, '_>, key: Option<String>) -> Option<KeySelector> {
    let pattern = pattern(fields);
    Some(KeySelector { key, pattern }).filter(|keys| keys.key.is_some() || keys.pattern.is_some())
}

/// An empty one counts as absent, as in the Collector.
fn pattern(fields: &mut FieldReader<'_, '_>) -> Option<crate::RegexPattern> {
    fields.get("pattern", value::pattern).filter(|pattern| !pattern.as_str().is_empty())
}

fn extract(fields: &mut FieldReader<'_, '_>, key: Option<String>) -> Option<AttributeAction> {
    let Some(pattern) = pattern(fields) else {
        fields.require(
            "pattern",
            "`pattern` is missing",
            Some("`extract` creates attributes from the named groups of `pattern`".into()),
        );
        return None;
    };
    let mut groups = pattern.groups().peekable();
    if groups.peek().is_none() || groups.any(|name| name.is_none()) {
        let message = "`pattern` must have at least one group, and every group needs a name";
        fields.report.error(
            &fields.cursor_at("pattern"),
            message,
            Some("write (?P<name>…), and (?:…) to group only".into()),
        );
        return None;
    }
    drop(groups);
    Some(AttributeAction::Extract { key: key?, pattern })
}

const CONVERTED_TYPES: [(&str, ConvertedType); 3] =
    [("string", ConvertedType::String), ("int", ConvertedType::Int), ("double", ConvertedType::Double)];

fn convert(fields: &mut FieldReader<'_, '_>, key: Option<String>) -> Option<AttributeAction> {
    let to = fields.get("converted_type", |at, report| scalar::keyword(at, report, &CONVERTED_TYPES));
    if to.is_none() {
        fields.require(
            "converted_type",
            "`converted_type` is missing",
            Some("`converted_type` is string, int or double".into()),
        );
    }
    Some(AttributeAction::Convert { key: key?, to: to? })
}

fn rename(fields: &mut FieldReader<'_, '_>, key: Option<String>) -> Option<AttributeAction> {
    let from = fields.text("from_attribute");
    if from.is_none() {
        fields.require(
            "from_attribute",
            "`from_attribute` is missing",
            Some("`from_attribute` is the old name, `key` the new name".into()),
        );
    }
    Some(AttributeAction::Rename { from: from?, to: key? })
}

impl AttributeAction {
    pub(super) fn encode(&self) -> YamlMap {
        let action = |kind: ActionKind| YamlMap::default().with_field("action", encode::keyword(&ACTION_KINDS, &kind));
        match self {
            Self::Set { key, when, from, default } => from
                .add_to(action(ActionKind::Set(*when)).with_field("key", key))
                .with_optional("default_value", default.as_ref()),
            Self::Delete(keys) => keys.add_to(action(ActionKind::Delete)),
            Self::Hash(keys) => keys.add_to(action(ActionKind::Hash)),
            Self::Extract { key, pattern } => {
                action(ActionKind::Extract).with_field("key", key).with_field("pattern", pattern)
            }
            Self::Convert { key, to } => action(ActionKind::Convert)
                .with_field("key", key)
                .with_field("converted_type", encode::keyword(&CONVERTED_TYPES, to)),
            Self::Rename { from, to } => {
                action(ActionKind::Rename).with_field("key", to).with_field("from_attribute", from)
            }
        }
    }
}

impl AttributeValueSource {
    fn add_to(&self, map: YamlMap) -> YamlMap {
        match self {
            Self::Value(value) => map.with_field("value", value),
            Self::Attribute(name) => map.with_field("from_attribute", name),
            Self::Context(context) => map.with_field("from_context", &context.name()),
            Self::Nothing => map,
        }
    }
}

impl ContextKey {
    fn name(&self) -> String {
        match self {
            Self::ClientAddress => "client.address".to_owned(),
            Self::Metadata(header) => format!("metadata.{header}"),
            Self::Auth(attribute) => format!("auth.{attribute}"),
        }
    }
}

impl KeySelector {
    fn add_to(&self, map: YamlMap) -> YamlMap {
        map.with_optional("key", self.key.as_deref()).with_optional("pattern", self.pattern.as_ref())
    }
}
