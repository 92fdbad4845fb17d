//! The tree.

use std::sync::Arc;

/// A stretch of the text, on one line. Lines and columns count from 1, columns in characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(crate) struct Span {
    pub(crate) line: usize,
    pub(crate) column: usize,
    /// How many characters of that line belong to it; at least one.
    pub(crate) width: usize,
    /// The last line of what begins here.
    pub(crate) last_line: usize,
}

/// Where a value came from, if not from the text itself.
#[derive(Debug, PartialEq)]
pub(crate) struct Origin {
    /// The reference as the document writes it: `${env:ENDPOINT}`.
    pub(crate) reference: String,
    /// What was read, before it was parsed; where text belongs, this counts. Only if the reference is the whole value.
    pub(crate) text: Option<String>,
    /// Why the text is not YAML, when it is not.
    pub(crate) syntax: Option<String>,
}

/// A value with its place.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Node {
    pub(crate) value: Value,
    pub(crate) span: Span,
    pub(crate) origin: Option<Arc<Origin>>,
}

/// What a node holds.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Value {
    Null,
    Bool(bool),
    Int(i64),
    Float(f64),
    String(String),
    Seq(Vec<Node>),
    Map(Vec<Entry>),
    /// Something that was reported already and must not be reported again.
    Bad,
}

/// One entry of a map, in the order of the text.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Entry {
    pub(crate) key: Key,
    pub(crate) value: Node,
}

/// The key of an entry.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Key {
    pub(crate) text: String,
    pub(crate) span: Span,
}

impl Node {
    /// A node that stands in the text.
    pub(crate) fn new(value: Value, span: Span) -> Self {
        Self { value, span, origin: None }
    }

    /// Whether nothing was written: the field keeps its default. A reference that came out empty is not nothing.
    pub(crate) fn is_absent(&self) -> bool {
        matches!(self.value, Value::Null) && self.origin.is_none()
    }

    /// The kind of value, for messages.
    pub(crate) fn kind(&self) -> &'static str {
        match &self.value {
            Value::Null => "nothing",
            Value::Bool(_) => "a boolean",
            Value::Int(_) | Value::Float(_) => "a number",
            Value::String(_) => "text",
            Value::Seq(_) => "a list",
            Value::Map(_) => "a map",
            Value::Bad => "an invalid value",
        }
    }

    /// How many nodes there are from here on.
    pub(crate) fn count(&self) -> usize {
        1 + match &self.value {
            Value::Seq(items) => items.iter().map(Node::count).sum(),
            Value::Map(entries) => entries.iter().map(|entry| entry.value.count()).sum(),
            _ => 0,
        }
    }
}
