//! Sections that are compiled when they are read, and written as they were.

use super::{YamlMap, YamlValue, escape};
use crate::{
    decode::Cursor,
    yaml::{NodeValue, YamlNode},
};

/// The fields of a section that is not kept in the form of its fields, such as a graph of operators. References in it
/// are expanded.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct WrittenSection(Option<YamlValue>);

impl WrittenSection {
    pub(crate) fn new(at: &Cursor<'_>) -> Self {
        Self(Some(at.node.into()))
    }

    /// A section with these items.
    pub(crate) fn from_items(items: impl IntoIterator<Item = YamlMap>) -> Self {
        Self(Some(YamlValue::List(items.into_iter().map(YamlValue::Map).collect())))
    }

    pub(crate) fn encode(&self) -> Option<YamlValue> {
        self.0.clone()
    }
}

impl From<&YamlNode> for YamlValue {
    fn from(node: &YamlNode) -> Self {
        match &node.value {
            NodeValue::Null | NodeValue::Bad => Self::Null,
            NodeValue::Bool(value) => Self::Bool(*value),
            NodeValue::Int(value) => Self::Int(*value),
            NodeValue::Float(value) => Self::Float(*value),
            NodeValue::String(text) => Self::Text(escape(text)),
            NodeValue::Seq(items) => Self::List(items.iter().map(Self::from).collect()),
            NodeValue::Map(entries) => {
                let fields: YamlMap = entries.iter().map(|entry| (entry.key.text.as_str(), &entry.value)).collect();
                Self::Map(fields)
            }
        }
    }
}
