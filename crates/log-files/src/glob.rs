//! Patterns of paths, as the Collector has them (Go's doublestar): `*`, `?`, `[class]`, `{alternatives}`, `**` and `\`.
//!
//! *Guarantees*: parsing and matching end soon for every input: alternatives and components are bounded, and a
//! component is matched in a number of steps that is at most the product of the lengths.
//!
//! *Does not*: regard hidden files specially; `*` matches them, as in the Collector.

use std::{
    ffi::OsStr,
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
};

mod component;

use component::NamePattern;

/// The number of patterns that the alternatives of one pattern may stand for.
const MAX_ALTERNATIVES: usize = 1_024;

/// The length of one pattern in bytes, which is that of the longest path.
const MAX_PATTERN_BYTES: usize = 4_096;

/// The number of components of a pattern.
const MAX_COMPONENTS: usize = 128;

/// A pattern for paths.
#[derive(Debug, Clone)]
pub struct GlobPattern {
    text: String,
    alternatives: Vec<PathPattern>,
}

/// A pattern that does not parse.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum GlobError {
    #[error("syntax error in pattern: {reason} at byte {at}")]
    Syntax { at: usize, reason: &'static str },
    #[error("the pattern is too large: it has more than {limit} {what}")]
    TooLarge { what: &'static str, limit: usize },
}

/// A pattern without alternatives between components.
#[derive(Debug, Clone)]
pub(crate) struct PathPattern {
    /// The directory that all matches are below; it contains no pattern.
    pub(crate) base: PathBuf,
    /// What follows below it.
    pub(crate) components: Vec<Component>,
}

/// One name of a path.
#[derive(Debug, Clone)]
pub(crate) enum Component {
    /// `**`: any number of directories.
    AnyDepth,
    Name(NamePattern),
}

impl GlobPattern {
    pub fn parse(text: &str) -> Result<Self, GlobError> {
        if text.len() > MAX_PATTERN_BYTES {
            return Err(GlobError::TooLarge { what: "bytes", limit: MAX_PATTERN_BYTES });
        }
        component::validate(text)?;
        let mut expanded = vec![String::new()];
        expand_alternatives(text, &mut expanded)?;
        let alternatives = expanded.iter().map(|pattern| PathPattern::parse(pattern)).collect::<Result<_, _>>()?;
        Ok(Self { text: text.to_owned(), alternatives })
    }

    /// The pattern as it was written.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    pub fn matches(&self, path: &Path) -> bool {
        self.alternatives.iter().any(|pattern| pattern.matches(path))
    }

    pub(crate) fn alternatives(&self) -> &[PathPattern] {
        &self.alternatives
    }
}

impl PathPattern {
    fn parse(text: &str) -> Result<Self, GlobError> {
        let mut base = PathBuf::new();
        let mut components = Vec::new();
        if text.starts_with('/') {
            base.push("/");
        }
        let names: Vec<&str> = text.split('/').filter(|name| !name.is_empty() && *name != ".").collect();
        if names.len() > MAX_COMPONENTS {
            return Err(GlobError::TooLarge { what: "components", limit: MAX_COMPONENTS });
        }
        for (index, name) in names.iter().enumerate() {
            let is_last = index + 1 == names.len();
            if *name == "**" {
                // Two in a row mean no more than one.
                if !matches!(components.last(), Some(Component::AnyDepth)) {
                    components.push(Component::AnyDepth);
                }
                continue;
            }
            let pattern = NamePattern::parse(name);
            match pattern.literal() {
                // The last name is listed with its directory, even if it is no pattern.
                Some(literal) if components.is_empty() && !is_last => base.push(OsStr::from_bytes(literal)),
                _ => components.push(Component::Name(pattern)),
            }
        }
        Ok(Self { base, components })
    }

    fn matches(&self, path: &Path) -> bool {
        let Ok(rest) = path.strip_prefix(&self.base) else { return false };
        let names: Vec<&[u8]> = rest.iter().map(OsStr::as_bytes).collect();
        matches_names(&self.components, &names)
    }
}

/// Keeps for each number of names whether the components so far match them, so that several `**` cost no more than
/// the product of both lengths.
fn matches_names(components: &[Component], names: &[&[u8]]) -> bool {
    let mut reached = vec![false; names.len() + 1];
    if let Some(first) = reached.first_mut() {
        *first = true;
    }
    for component in components {
        match component {
            Component::AnyDepth => {
                let mut seen = false;
                for place in &mut reached {
                    seen |= *place;
                    *place = seen;
                }
            }
            Component::Name(pattern) => {
                let mut before = false;
                for (index, place) in reached.iter_mut().enumerate() {
                    let matched = before
                        && index.checked_sub(1).and_then(|at| names.get(at)).is_some_and(|name| pattern.matches(name));
                    before = *place;
                    *place = matched;
                }
            }
        }
    }
    reached.last().copied().unwrap_or(false)
}

/// Appends `text` to each of `out`, once for each combination of its alternatives.
fn expand_alternatives(text: &str, out: &mut Vec<String>) -> Result<(), GlobError> {
    let Some((before, inner, after)) = split_alternatives(text) else {
        out.iter_mut().for_each(|pattern| pattern.push_str(text));
        return Ok(());
    };
    let mut expanded = Vec::new();
    for alternative in split_commas(inner) {
        let mut variants: Vec<String> = out.iter().map(|pattern| format!("{pattern}{before}")).collect();
        expand_alternatives(alternative, &mut variants)?;
        expanded.append(&mut variants);
        if expanded.len() > MAX_ALTERNATIVES {
            return Err(GlobError::TooLarge { what: "alternatives", limit: MAX_ALTERNATIVES });
        }
    }
    *out = expanded;
    expand_alternatives(after, out)
}

/// The text before the first `{`, between it and its `}`, and after that.
fn split_alternatives(text: &str) -> Option<(&str, &str, &str)> {
    let mut open = None;
    let mut depth = 0_usize;
    for (at, byte) in component::unquoted_bytes(text) {
        match byte {
            b'{' => {
                open = open.or(Some(at));
                depth += 1;
            }
            b'}' => {
                depth = depth.saturating_sub(1);
                if let (0, Some(start)) = (depth, open) {
                    return Some((text.get(..start)?, text.get(start + 1..at)?, text.get(at + 1..)?));
                }
            }
            _ => {}
        }
    }
    None
}

/// The alternatives between a pair of braces; commas of inner braces do not separate.
fn split_commas(text: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    let mut start = 0;
    let mut depth = 0_usize;
    for (at, byte) in component::unquoted_bytes(text) {
        match byte {
            b'{' => depth += 1,
            b'}' => depth = depth.saturating_sub(1),
            b',' if depth == 0 => {
                parts.extend(text.get(start..at));
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.extend(text.get(start..));
    parts
}

#[cfg(test)]
mod tests;
