//! A node together with how one got there.

use crate::{
    problem::{crop, label},
    yaml::{Entry, Node, Span, Value},
};

/// A node, its path in the document, and the key that it stands under.
#[derive(Clone)]
pub(crate) struct Cursor<'a> {
    pub(crate) node: &'a Node,
    path: String,
    key: Span,
}

impl<'a> Cursor<'a> {
    /// The whole document.
    pub(crate) fn root(node: &'a Node) -> Self {
        Self { node, path: String::new(), key: Span::start() }
    }

    /// The value of one of this map's entries.
    pub(crate) fn entry(&self, entry: &'a Entry) -> Self {
        Self { node: &entry.value, path: self.join(&entry.key.text), key: entry.key.span }
    }

    /// One of this list's items.
    pub(crate) fn item(&self, index: usize, node: &'a Node) -> Self {
        Self { node, path: self.join(&index.to_string()), key: node.span }
    }

    /// A field of this map that is not there, as if it were there and empty.
    pub(crate) fn absent(&self, field: &str) -> Self {
        static NOTHING: Node =
            Node { value: Value::Null, span: Span { line: 0, column: 0, width: 1, last_line: 0 }, origin: None };
        Self { node: &NOTHING, path: self.join(field), key: self.key }
    }

    /// The same place with the caret under the key instead of the value.
    pub(crate) fn key_span(&self) -> Span {
        self.key
    }

    /// Where the caret goes: under a scalar itself, under the key of what is larger or empty.
    pub(crate) fn span(&self) -> Span {
        match self.node.value {
            Value::Map(_) | Value::Seq(_) => self.key,
            Value::Null if self.node.origin.is_none() => self.key,
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

    /// The field's own name; for an item of a list, that of the list.
    pub(crate) fn name(&self) -> &str {
        let is_index = |part: &&str| part.bytes().all(|byte| byte.is_ascii_digit());
        self.path.rsplit("::").find(|part| !is_index(part)).unwrap_or_default()
    }

    /// Whether this is a URL with a user and password in it.
    pub(crate) fn holds_credentials(&self) -> bool {
        matches!(&self.node.value, Value::String(text) if crate::problem::has_credentials(text))
    }

    /// A part of this value for a message. What came from outside the document is not shown, only its reference: it
    /// may be a secret, whatever the field.
    pub(crate) fn quote(&self, part: &str) -> String {
        match &self.node.origin {
            // A user and password may stand before the `@` of an address.
            None if self.holds_credentials() => "\"***\"".into(),
            None => format!("\"{}\"", crop(part)),
            Some(origin) => format!("in the value of {}", crop(&origin.reference)),
        }
    }

    /// The whole value as the subject of a message, shown by the same rule.
    pub(crate) fn subject(&self, whole: &str) -> String {
        match &self.node.origin {
            None => self.quote(whole),
            Some(origin) => format!("the value of {}", crop(&origin.reference)),
        }
    }

    /// The items of a list; `None` if it is none.
    pub(crate) fn items(&self) -> Option<impl Iterator<Item = Cursor<'a>>> {
        match &self.node.value {
            Value::Seq(items) => {
                let here = self.clone();
                Some(items.iter().enumerate().map(move |(index, item)| here.item(index, item)))
            }
            _ => None,
        }
    }
}
