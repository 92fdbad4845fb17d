//! The nodes of the tree.

use std::sync::Arc;

/// A range of the text on one line. Lines and columns count from 1, columns in characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(crate) struct TextSpan {
    pub(crate) line: usize,
    pub(crate) column: usize,
    /// The width in characters of that line; at least one.
    pub(crate) width: usize,
    /// The last line of a collection that begins here.
    pub(crate) last_line: usize,
}

/// The origin of a value that is not from the text itself.
#[derive(Debug, PartialEq)]
pub(crate) struct ValueOrigin {
    /// The reference as the document writes it: `${env:ENDPOINT}`.
    pub(crate) reference: String,
    /// The text before it was parsed, which is used where text is expected. Only if the reference is the whole
    /// value.
    pub(crate) text: Option<String>,
    /// Why the text is not YAML, when it is not.
    pub(crate) syntax: Option<String>,
}

/// A value with its position.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct YamlNode {
    pub(crate) value: NodeValue,
    pub(crate) span: TextSpan,
    pub(crate) origin: Option<Arc<ValueOrigin>>,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum NodeValue {
    Null,
    Bool(bool),
    Int(i64),
    Float(f64),
    String(String),
    Seq(Vec<YamlNode>),
    Map(Vec<YamlEntry>),
    /// A value that was reported already, and must not be reported again.
    Bad,
}

/// One entry of a map, in the order of the text.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct YamlEntry {
    pub(crate) key: YamlKey,
    pub(crate) value: YamlNode,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct YamlKey {
    pub(crate) text: String,
    pub(crate) span: TextSpan,
}

impl YamlNode {
    /// A node from the text.
    pub(crate) fn new(value: NodeValue, span: TextSpan) -> Self {
        Self { value, span, origin: None }
    }

    /// Whether there is no value, so that the field keeps its default. A reference that expanded to nothing is
    /// a value.
    pub(crate) fn is_absent(&self) -> bool {
        matches!(self.value, NodeValue::Null) && self.origin.is_none()
    }

    /// The kind of value, for messages.
    pub(crate) fn kind(&self) -> &'static str {
        match &self.value {
            NodeValue::Null => "nothing",
            NodeValue::Bool(_) => "a boolean",
            NodeValue::Int(_) | NodeValue::Float(_) => "a number",
            NodeValue::String(_) => "text",
            NodeValue::Seq(_) => "a list",
            NodeValue::Map(_) => "a map",
            NodeValue::Bad => "an invalid value",
        }
    }

    /// The number of nodes in this subtree.
    pub(crate) fn count(&self) -> usize {
        1 + match &self.value {
            NodeValue::Seq(items) => items.iter().map(YamlNode::count).sum(),
            NodeValue::Map(entries) => entries.iter().map(|entry| entry.value.count()).sum(),
            _ => 0,
        }
    }
}
