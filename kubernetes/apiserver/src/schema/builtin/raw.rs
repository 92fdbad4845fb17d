//! Types as in the table, for code that describes types: no tree is built, nothing is kept.

use super::parse::{self, FieldAttributes};

/// A type and its lines.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RawType {
    /// The package: `io.k8s.api.core.v1`.
    pub(crate) package: &'static str,
    /// The name in its package: `Container`.
    pub(crate) name: &'static str,
    pub(super) lines: &'static str,
}

impl RawType {
    /// The name of its representation, for a type without fields.
    pub(crate) fn alias(&self) -> Option<&'static str> {
        let mut words = first(self.lines).split(' ').skip(2);
        words.next().filter(|word| *word == "=").and(words.next())
    }

    /// Whether server-side apply owns it as a whole.
    pub(crate) fn is_atomic(&self) -> bool {
        first(self.lines).split(' ').any(|word| word == "map=atomic")
    }

    /// The groups and versions in which it is a kind.
    pub(crate) fn served_in(&self) -> impl Iterator<Item = (&'static str, &'static str)> {
        served_in(self.lines)
    }

    /// Each field: its name, the name of its type, and its attributes.
    pub(crate) fn fields(&self) -> impl Iterator<Item = (&'static str, &'static str, FieldAttributes<'static>)> {
        self.lines.lines().skip(1).filter_map(parse::field)
    }

    /// The full name of a referenced type, if it has one: `[]Container` refers to
    /// `io.k8s.api.core.v1.Container`.
    pub(crate) fn target(&self, word: &str) -> Option<String> {
        let word = word.trim_start_matches("[]").trim_start_matches("{}").trim_start_matches("[]");
        match parse::scalar(word) {
            Some(scalar) => Some(parse::named(scalar).name.to_string()).filter(|name| !name.is_empty()),
            None if word == "any" => None,
            None if word.contains('.') => Some(word.to_owned()),
            None => Some(format!("{}.{word}", self.package)),
        }
    }
}

/// The groups and versions in the lines of a type.
pub(super) fn served_in(lines: &'static str) -> impl Iterator<Item = (&'static str, &'static str)> {
    let list = first(lines).split(' ').find_map(|word| word.strip_prefix("kinds="));
    list.into_iter().flat_map(|list| list.split(',')).map(|gv| gv.split_once('/').unwrap_or(("", gv)))
}

fn first(lines: &'static str) -> &'static str {
    lines.lines().next().unwrap_or_default()
}
