//! `${env:…}` and `${file:…}`, as the Collector expands them.
//!
//! A value that is one reference as a whole becomes what the text behind it means as YAML: a number, a boolean, a map;
//! where text belongs, the text itself counts. Inside a longer text a reference becomes text. What comes out is expanded
//! again, within bounds. `$$` is a dollar, `$NAME` is itself, and so is `${` without an end.

mod reference;

#[cfg(test)]
mod tests;

use std::{collections::BTreeSet, path::PathBuf, sync::Arc};

use reference::{Reference, ReferenceError};

use crate::{
    decode::Report,
    problem::{Finding, crop, label},
    sources::Sources,
    yaml::{self, MAX_BYTES, MAX_DEPTH, MAX_NODES, Node, Origin, Span, Value},
};

/// How often one value may be expanded; the Collector's number. More is a circle.
const MAX_ROUNDS: usize = 1000;

/// How many bytes all references of a document may bring. Twice the longest document, so that one can be included.
const MAX_BROUGHT: usize = 2 * MAX_BYTES;

/// Expands every reference in a tree. Errors and warnings go to the report; what failed becomes [`Value::Bad`].
///
/// The answer is the files that were read, or should have been.
pub(crate) fn expand(root: &mut Node, sources: &dyn Sources, report: &Report) -> BTreeSet<PathBuf> {
    let mut expansion = Expansion { sources, report, files: BTreeSet::new(), brought: 0, nodes: 0 };
    expansion.node(root, "", 0);
    expansion.files
}

struct Expansion<'s> {
    sources: &'s dyn Sources,
    report: &'s Report,
    files: BTreeSet<PathBuf>,
    /// Bytes and nodes that came from outside so far.
    brought: usize,
    nodes: usize,
}

/// What a value became.
enum Outcome {
    Text(String),
    Node(Value, Origin),
}

impl Expansion<'_> {
    fn node(&mut self, node: &mut Node, path: &str, depth: usize) {
        let join = |name: &str| if path.is_empty() { label(name) } else { format!("{path}::{}", label(name)) };
        match &mut node.value {
            Value::Map(entries) => {
                for entry in entries {
                    self.node(&mut entry.value, &join(&entry.key.text), depth + 1);
                }
            }
            Value::Seq(items) => {
                for (index, item) in items.iter_mut().enumerate() {
                    self.node(item, &join(&index.to_string()), depth + 1);
                }
            }
            Value::String(text) if text.contains('$') => {
                let text = std::mem::take(text);
                self.string(node, text, path, depth);
            }
            _ => {}
        }
    }

    fn string(&mut self, node: &mut Node, text: String, path: &str, depth: usize) {
        let shown = reference::shown(&text);
        match self.resolve(text, node.span, path) {
            Ok((Outcome::Text(text), changed)) => {
                node.value = Value::String(unescape(&text));
                if changed && node.origin.is_none() {
                    node.origin = Some(Arc::new(Origin { reference: shown, text: None, syntax: None }));
                }
            }
            Ok((Outcome::Node(value, origin), _)) => {
                node.value = value;
                node.origin = Some(Arc::new(origin));
                self.settle(node, path, depth);
            }
            Err(error) => {
                node.value = Value::Bad;
                self.fail(path, node.span, &error);
            }
        }
    }

    /// What a reference brought stands where the reference stood, and may hold references itself.
    fn settle(&mut self, node: &mut Node, path: &str, depth: usize) {
        self.nodes += node.count();
        if depth + depth_of(node) > MAX_DEPTH || self.nodes > MAX_NODES {
            node.value = Value::Bad;
            return self.fail(path, node.span, &ReferenceError::TooLarge);
        }
        adopt(node);
        if let Value::String(text) = &mut node.value {
            *text = unescape(text);
        } else {
            self.node(node, path, depth);
        }
    }

    /// Expands a text until nothing is left to expand. The flag says whether anything was.
    fn resolve(&mut self, text: String, span: Span, path: &str) -> Result<(Outcome, bool), ReferenceError> {
        let mut text = text;
        let mut whole: Option<String> = None;
        for round in 0..MAX_ROUNDS {
            let Some(range) = reference::find(&text) else {
                return Ok((outcome(text, whole), round > 0));
            };
            let written = text.get(range.clone()).unwrap_or_default().to_owned();
            let value = self.retrieve(&Reference::parse(&written)?, span, path)?;
            if written.len() < text.len() {
                text.replace_range(range, &value);
                whole = None;
                continue;
            }
            whole = Some(whole.unwrap_or_else(|| reference::shown(&written)));
            text = value;
            if let (value, None) = parsed(&text)
                && !matches!(value, Value::String(_))
            {
                return Ok((self.structured(value, text, whole, span, path), true));
            }
        }
        Err(ReferenceError::Circle)
    }

    /// A whole value that is more than text. References in it are expanded where they stand; in its text, here.
    fn structured(&mut self, value: Value, text: String, whole: Option<String>, span: Span, path: &str) -> Outcome {
        let reference = whole.unwrap_or_default();
        let text = match text.contains("${") {
            false => Some(unescape(&text)),
            true => self.flatten(text, span, path).ok(),
        };
        Outcome::Node(value, Origin { reference, text, syntax: None })
    }

    fn flatten(&mut self, mut text: String, span: Span, path: &str) -> Result<String, ReferenceError> {
        for _ in 0..MAX_ROUNDS {
            let Some(range) = reference::find(&text) else { return Ok(unescape(&text)) };
            let written = text.get(range.clone()).unwrap_or_default().to_owned();
            let value = self.retrieve(&Reference::parse(&written)?, span, path)?;
            text.replace_range(range, &value);
        }
        Err(ReferenceError::Circle)
    }

    fn retrieve(&mut self, reference: &Reference<'_>, span: Span, path: &str) -> Result<String, ReferenceError> {
        let value = match reference {
            Reference::Env { name, default } => match (self.sources.env(name), default) {
                (Some(value), _) => value,
                (None, Some(default)) => (*default).to_owned(),
                (None, None) => {
                    self.warn_unset(name, span, path);
                    String::new()
                }
            },
            Reference::File(file) => {
                let file = PathBuf::from(file);
                let content = self.sources.read(&file);
                self.files.insert(file.clone());
                content.map_err(|source| ReferenceError::File { path: file, source })?
            }
        };
        self.brought += value.len();
        if self.brought > MAX_BROUGHT { Err(ReferenceError::TooLarge) } else { Ok(value) }
    }

    fn warn_unset(&self, name: &str, span: Span, path: &str) {
        let message = format!("the environment variable `{}` is not set; its value is empty", crop(name));
        let help = Some(format!("give it a default: ${{env:{}:-default}}", crop(name)));
        self.report.add_warning(Finding { path: path.to_owned(), span, message, help });
    }

    fn fail(&self, path: &str, span: Span, error: &ReferenceError) {
        self.report.add_error(Finding { path: path.to_owned(), span, message: error.to_string(), help: error.help() });
    }
}

/// A text that nothing is left to expand in. If it was one reference as a whole, it says so; as in the Collector it
/// keeps its quotes and line breaks.
fn outcome(text: String, whole: Option<String>) -> Outcome {
    let Some(reference) = whole else { return Outcome::Text(text) };
    let syntax = parsed(&text).1;
    let original = Some(unescape(&text));
    Outcome::Node(Value::String(text), Origin { reference, text: original, syntax })
}

/// A text as YAML. What is not YAML is text, with the reason.
fn parsed(text: &str) -> (Value, Option<String>) {
    let mut faults = Vec::new();
    match (yaml::parse(text, &mut faults), faults.first()) {
        (Some(node), None) => (node.value, None),
        (_, fault) => {
            let reason = fault.map(|fault| format!("line {}: {}", fault.span.line, fault.message));
            (Value::String(text.to_owned()), reason)
        }
    }
}

fn unescape(text: &str) -> String {
    text.replace("$$", "$")
}

/// Gives everything below a node that node's place and reference.
fn adopt(node: &mut Node) {
    let (span, origin) = (node.span, node.origin.clone());
    let reference = origin.map(|origin| origin.reference.clone()).unwrap_or_default();
    let part = Arc::new(Origin { reference, text: None, syntax: None });
    adopt_children(node, span, &part);
}

fn adopt_children(node: &mut Node, span: Span, origin: &Arc<Origin>) {
    let place = |child: &mut Node| {
        child.span = span;
        child.origin = (!matches!(child.value, Value::Null)).then(|| Arc::clone(origin));
        adopt_children(child, span, origin);
    };
    match &mut node.value {
        Value::Seq(items) => items.iter_mut().for_each(place),
        Value::Map(entries) => {
            for entry in entries {
                entry.key.span = span;
                place(&mut entry.value);
            }
        }
        _ => {}
    }
}

fn depth_of(node: &Node) -> usize {
    match &node.value {
        Value::Seq(items) => 1 + items.iter().map(depth_of).max().unwrap_or(0),
        Value::Map(entries) => 1 + entries.iter().map(|entry| depth_of(&entry.value)).max().unwrap_or(0),
        _ => 0,
    }
}
