//! Reads, sets and removes the fields of records.
//!
//! As in the Collector a map that is set is merged into the map that is there, and a value on the way to a field that
//! is not a map is replaced by one.

use kubewake_config::file_log::{FieldRoot, RecordField};

use crate::{
    entry::LogEntry,
    operators::RecordError,
    value::{LogMap, LogValue},
};

/// A value that was found.
pub(crate) enum FoundValue<'a> {
    Value(&'a LogValue),
    /// All attributes, or the whole resource.
    Map(&'a LogMap),
}

impl FoundValue<'_> {
    pub(crate) fn to_value(&self) -> LogValue {
        match self {
            Self::Value(value) => (*value).clone(),
            Self::Map(map) => LogValue::Map((*map).clone()),
        }
    }
}

/// The value of a field; `None` if it is not there. The body is always there.
pub(crate) fn get<'a>(entry: &'a LogEntry, field: &RecordField) -> Option<FoundValue<'a>> {
    let map = match field.root {
        FieldRoot::Body => return descend(&entry.body, &field.keys).map(FoundValue::Value),
        FieldRoot::Attributes => &entry.attributes,
        FieldRoot::Resource => &entry.resource,
    };
    match field.keys.split_first() {
        None => Some(FoundValue::Map(map)),
        Some((first, rest)) => descend(map.get(first)?, rest).map(FoundValue::Value),
    }
}

/// The text of a field; `None` if it is not there or no text.
pub(crate) fn get_text<'a>(entry: &'a LogEntry, field: &RecordField) -> Option<&'a [u8]> {
    match get(entry, field)? {
        FoundValue::Value(LogValue::Text(text)) => Some(text),
        _ => None,
    }
}

fn descend<'a>(mut value: &'a LogValue, keys: &[String]) -> Option<&'a LogValue> {
    for key in keys {
        let LogValue::Map(map) = value else { return None };
        value = map.get(key)?;
    }
    Some(value)
}

/// Sets a field.
pub(crate) fn set(entry: &mut LogEntry, field: &RecordField, value: LogValue) -> Result<(), RecordError> {
    let root = match field.root {
        FieldRoot::Body if field.is_root() => {
            match value {
                LogValue::Map(values) => as_map(&mut entry.body).extend(values),
                value => entry.body = value,
            }
            return Ok(());
        }
        FieldRoot::Body => as_map(&mut entry.body),
        FieldRoot::Attributes => &mut entry.attributes,
        FieldRoot::Resource => &mut entry.resource,
    };
    let Some((last, parents)) = field.keys.split_last() else {
        return match value {
            LogValue::Map(values) => {
                root.extend(values);
                Ok(())
            }
            value => Err(RecordError::new(format!("all of `{field}` cannot be {}", value.type_name()))),
        };
    };
    let mut map = root;
    for key in parents {
        map = as_map(map.entry(key.clone()).or_default());
    }
    match value {
        LogValue::Map(values) => as_map(map.entry(last.clone()).or_default()).extend(values),
        value => {
            map.insert(last.clone(), value);
        }
    }
    Ok(())
}

/// The map that a value is; one that is not becomes an empty map.
fn as_map(value: &mut LogValue) -> &mut LogMap {
    match value {
        LogValue::Map(map) => map,
        other => {
            *other = LogValue::Map(LogMap::new());
            as_map(other)
        }
    }
}

/// Removes a field and returns its value; `None` if it is not there.
pub(crate) fn remove(entry: &mut LogEntry, field: &RecordField) -> Option<LogValue> {
    let root = match field.root {
        FieldRoot::Body if field.is_root() => return Some(std::mem::take(&mut entry.body)),
        FieldRoot::Body => match &mut entry.body {
            LogValue::Map(map) => map,
            _ => return None,
        },
        FieldRoot::Attributes => &mut entry.attributes,
        FieldRoot::Resource => &mut entry.resource,
    };
    let Some((last, parents)) = field.keys.split_last() else {
        return Some(LogValue::Map(std::mem::take(root)));
    };
    let mut map = root;
    for key in parents {
        let LogValue::Map(inner) = map.get_mut(key)? else { return None };
        map = inner;
    }
    map.remove(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn field(text: &str) -> RecordField {
        RecordField::parse(text).unwrap()
    }

    fn map(pairs: &[(&str, LogValue)]) -> LogValue {
        LogValue::Map(pairs.iter().map(|(key, value)| ((*key).to_owned(), value.clone())).collect())
    }

    #[test]
    fn field_that_was_set_is_found_and_removed() {
        let mut entry = LogEntry::new("text".into());
        set(&mut entry, &field("attributes.a.b"), 1.into_value()).unwrap();
        assert_eq!(get(&entry, &field("attributes.a")).unwrap().to_value(), map(&[("b", 1.into_value())]));
        assert_eq!(remove(&mut entry, &field("attributes.a.b")), Some(1.into_value()));
        assert_eq!(remove(&mut entry, &field("attributes.a.b")), None);
        assert_eq!(get(&entry, &field("attributes.a")).unwrap().to_value(), map(&[]));
        assert!(get(&entry, &field("body.x")).is_none());
    }

    #[test]
    fn map_is_merged_and_another_value_on_the_way_is_replaced() {
        let mut entry = LogEntry::new(map(&[("x", 1.into_value()), ("y", 2.into_value())]));
        set(&mut entry, &field("body"), map(&[("y", 3.into_value())])).unwrap();
        assert_eq!(entry.body, map(&[("x", 1.into_value()), ("y", 3.into_value())]));
        set(&mut entry, &field("body.x.z"), "t".into()).unwrap();
        assert_eq!(get(&entry, &field("body.x")).unwrap().to_value(), map(&[("z", "t".into())]));
        assert!(set(&mut entry, &field("attributes"), 1.into_value()).is_err());
    }

    trait IntoValue {
        fn into_value(self) -> LogValue;
    }

    impl IntoValue for i64 {
        fn into_value(self) -> LogValue {
            LogValue::Int(self)
        }
    }
}
