//! Operators that move, add and remove fields, and the router.

use kubewake_config::file_log::{FieldRoot, OperatorKind, RecordField, operator::AddedValue};

use super::{RecordError, Verdict, interpret, unquote};
use crate::{
    entry::{LogEntry, set_templates},
    evaluate::{evaluate, is_true},
    field,
    value::{LogMap, LogValue},
};

/// Applies an operator that needs no state.
pub(super) fn apply(kind: &OperatorKind, entry: &mut LogEntry) -> Result<(), RecordError> {
    match kind {
        OperatorKind::Add { field, value } => {
            let value = match value {
                AddedValue::Constant(value) => LogValue::from(value),
                AddedValue::Expression(expression) => evaluate(expression.root(), entry)?.into_value()?,
            };
            field::set(entry, field, value)
        }
        OperatorKind::Remove { field } => field::remove(entry, field).map(|_| ()).ok_or_else(|| missing(field)),
        OperatorKind::Move { from, to } => {
            let value = field::remove(entry, from).ok_or_else(|| missing(from))?;
            field::set(entry, to, value)
        }
        OperatorKind::Copy { from, to } => {
            let value = field::get(entry, from).ok_or_else(|| missing(from))?.to_value();
            field::set(entry, to, value)
        }
        OperatorKind::Retain { fields } => retain(entry, fields),
        OperatorKind::Flatten { field } => flatten(entry, field),
        OperatorKind::RegexReplace { field, pattern, replacement } => {
            let Some(found) = field::get(entry, field) else { return Ok(()) };
            let replaced = match found {
                field::FoundValue::Value(LogValue::Text(text)) => {
                    pattern.regex().replace_all(text, replacement.as_bytes()).into_owned()
                }
                other => {
                    return Err(RecordError::new(format!("`{field}` is {} and no text", other.to_value().type_name())));
                }
            };
            field::set(entry, field, LogValue::Text(replaced))
        }
        OperatorKind::SanitizeUtf8 { field } => {
            let Some(found) = field::get(entry, field) else { return Err(missing(field)) };
            let sanitized = match found {
                field::FoundValue::Value(LogValue::Text(text)) => String::from_utf8_lossy(text).into_owned(),
                other => {
                    return Err(RecordError::new(format!("`{field}` is {} and no text", other.to_value().type_name())));
                }
            };
            field::set(entry, field, sanitized.into())
        }
        OperatorKind::Unquote { field } => {
            let text = field::get_text(entry, field)
                .ok_or_else(|| RecordError::new(format!("`{field}` is missing or no text")))?;
            let unquoted = unquote::unquote(text)?;
            field::set(entry, field, LogValue::Text(unquoted))
        }
        OperatorKind::AssignKeys { field, keys } => assign_keys(entry, field, keys),
        OperatorKind::Severity(parse) => interpret::severity(parse, entry),
        OperatorKind::Trace(parse) => interpret::trace(parse, entry),
        OperatorKind::ScopeName { from } => interpret::scope_name(from, entry),
        // These have state, or are made into operators of another kind.
        OperatorKind::Noop
        | OperatorKind::Filter { .. }
        | OperatorKind::Router { .. }
        | OperatorKind::Recombine(_)
        | OperatorKind::Time(_)
        | OperatorKind::Parser(_) => Ok(()),
    }
}

pub(super) fn missing(field: &RecordField) -> RecordError {
    RecordError::new(format!("the record has no `{field}`"))
}

/// Keeps fields. Of the body, the attributes and the resource those stay whole of which no field is named.
fn retain(entry: &mut LogEntry, fields: &[RecordField]) -> Result<(), RecordError> {
    let names = |root: FieldRoot| fields.iter().any(|field| field.root == root);
    let mut kept = LogEntry::default();
    for field in fields {
        if let Some(found) = field::get(entry, field) {
            field::set(&mut kept, field, found.to_value())?;
        }
    }
    if names(FieldRoot::Body) {
        entry.body = kept.body;
    }
    if names(FieldRoot::Attributes) {
        entry.attributes = kept.attributes;
    }
    if names(FieldRoot::Resource) {
        entry.resource = kept.resource;
    }
    Ok(())
}

/// Moves the keys of a map to where the map is.
fn flatten(entry: &mut LogEntry, field: &RecordField) -> Result<(), RecordError> {
    let value = field::remove(entry, field).ok_or_else(|| missing(field))?;
    let LogValue::Map(map) = value else {
        let error = RecordError::new(format!("`{field}` is {} and no map", value.type_name()));
        field::set(entry, field, value)?;
        return Err(error);
    };
    let parent = RecordField {
        root: field.root,
        keys: field.keys.split_last().map(|(_, parents)| parents.to_vec()).unwrap_or_default(),
    };
    for (key, value) in map {
        let mut target = parent.clone();
        target.keys.push(key);
        field::set(entry, &target, value)?;
    }
    Ok(())
}

/// Makes a map of a list that has as many items as there are keys.
fn assign_keys(entry: &mut LogEntry, field: &RecordField, keys: &[String]) -> Result<(), RecordError> {
    let items = match field::get(entry, field).ok_or_else(|| missing(field))? {
        field::FoundValue::Value(LogValue::List(items)) if items.len() == keys.len() => items.clone(),
        field::FoundValue::Value(LogValue::List(items)) => {
            let problem = format!("`{field}` has {} items and not {}", items.len(), keys.len());
            return Err(RecordError::new(problem));
        }
        other => return Err(RecordError::new(format!("`{field}` is {} and no list", other.to_value().type_name()))),
    };
    field::set(entry, field, LogValue::Map(keys.iter().cloned().zip(items).collect()))
}

/// Chooses the first route that fits. A route whose condition has no value does not fit.
pub(super) fn route(kind: &OperatorKind, mut entry: LogEntry) -> Verdict {
    let OperatorKind::Router { routes } = kind else { return Verdict::Forward(entry) };
    for (index, route) in routes.iter().enumerate() {
        let fits = match &route.condition {
            None => true,
            Some(condition) => is_true(condition, &entry).unwrap_or(false),
        };
        if fits {
            return match set_templates(&route.attributes, &mut entry, false) {
                Ok(()) => Verdict::Route(entry, index),
                Err(error) => Verdict::Fail(entry, error),
            };
        }
    }
    Verdict::Drop
}

/// An empty map where a parser found nothing.
pub(super) fn no_values() -> LogValue {
    LogValue::Map(LogMap::new())
}
