//! A node of the tree with its path.

use crate::{
    problem::{crop, label},
    yaml::{NodeValue, TextSpan, YamlEntry, YamlNode},
};

/// A node, its path in the document, and the key that it stands under.
#[derive(Clone)]
pub(crate) struct Cursor<'a> {
    pub(crate) node: &'a YamlNode,
    path: String,
    key: TextSpan,
}

impl<'a> Cursor<'a> {
    pub(crate) fn root(node: &'a YamlNode) -> Self {
        Self { node, path: String::new(), key: TextSpan::start() }
    }

    /// Moves to the value of one of this map's entries.
    pub(crate) fn entry(&self, entry: &'a YamlEntry) -> Self {
        Self { node: &entry.value, path: self.join(&entry.key.text), key: entry.key.span }
    }

    /// Moves to one of this list's items.
    pub(crate) fn item(&self, index: usize, node: &'a YamlNode) -> Self {
        Self { node, path: self.join(&index.to_string()), key: node.span }
    }

    /// A missing field of this map, as an empty one at its path.
    pub(crate) fn absent(&self, field: &str) -> Self {
        static NOTHING: YamlNode = YamlNode {
            value: NodeValue::Null,
            span: TextSpan { line: 0, column: 0, width: 1, last_line: 0 },
            origin: None,
        };
        Self { node: &NOTHING, path: self.join(field), key: self.key }
    }

    pub(crate) fn key_span(&self) -> TextSpan {
        self.key
    }

    /// The position for messages: that of a scalar itself, or of the key of a collection or an empty value.
    pub(crate) fn span(&self) -> TextSpan {
        match self.node.value {
            NodeValue::Map(_) | NodeValue::Seq(_) => self.key,
            NodeValue::Null if self.node.origin.is_none() => self.key,
            _ => self.node.span,
        }
    }

    pub(crate) fn path(&self) -> &str {
        &self.path
    }

    /// The path of a field in here.
    pub(crate) fn join(&self, field: &str) -> String {
        let field = label(field);
        if self.path.is_empty() { field } else { format!("{}::{field}", self.path) }
    }

    /// The name of the field; for an item of a list, that of the list.
    pub(crate) fn name(&self) -> &str {
        let is_index = |part: &&str| part.bytes().all(|byte| byte.is_ascii_digit());
        self.path.rsplit("::").find(|part| !is_index(part)).unwrap_or_default()
    }

    /// Whether the value may be a URL with a user and password in it.
    pub(crate) fn holds_credentials(&self) -> bool {
        matches!(&self.node.value, NodeValue::String(text) if crate::problem::has_credentials(text))
    }

    /// Quotes a part of this value for a message. A value from outside the document may be a secret, whatever
    /// the field, so only its reference is shown.
    pub(crate) fn quote(&self, part: &str) -> String {
        match &self.node.origin {
            // A user and password may stand before the `@` of an address.
            None if self.holds_credentials() => "\"***\"".into(),
            None => format!("\"{}\"", crop(part)),
            Some(origin) => format!("in the value of {}", crop(&origin.reference)),
        }
    }

    /// The whole value as the subject of a message, under the same rule.
    pub(crate) fn subject(&self, whole: &str) -> String {
        match &self.node.origin {
            None => self.quote(whole),
            Some(origin) => format!("the value of {}", crop(&origin.reference)),
        }
    }

    /// The items of a list; `None` for any other value.
    pub(crate) fn items(&self) -> Option<impl Iterator<Item = Cursor<'a>>> {
        match &self.node.value {
            NodeValue::Seq(items) => {
                let here = self.clone();
                Some(items.iter().enumerate().map(move |(index, item)| here.item(index, item)))
            }
            _ => None,
        }
    }
}
