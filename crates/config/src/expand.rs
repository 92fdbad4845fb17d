//! Expansion of `${env:…}` and `${file:…}`, as in the Collector.
//!
//! A value that consists of one reference becomes the YAML value of the referenced text: a number, a boolean, a
//! map; where a text is expected, the text itself is used. Within a longer text a reference is replaced by
//! text. Results are expanded again, within bounds. `$$` is a dollar; `$NAME`, and `${` without an end, are
//! literal.

mod reference;

#[cfg(test)]
mod tests;

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
    sync::Arc,
};

use reference::{ExpansionError, SourceReference};

use crate::{
    decode::DecodeReport,
    problem::{DocumentFinding, crop, label},
    sources::ConfigSources,
    yaml::{self, MAX_DEPTH, MAX_DOCUMENT_BYTES, MAX_NODES, NodeValue, TextSpan, ValueOrigin, YamlNode},
};

/// How often one value may be expanded, as in the Collector. More is a cycle.
const MAX_EXPANSION_ROUNDS: usize = 1000;

/// The limit of bytes from all references of a document: twice the longest document, so that one can be
/// included.
const MAX_EXPANDED_BYTES: usize = 2 * MAX_DOCUMENT_BYTES;

/// Expands every reference in a tree. Errors and warnings go to the report; values that failed become
/// [`NodeValue::Bad`].
///
/// Returns the files that were read, or should have been.
pub(crate) fn expand(root: &mut YamlNode, sources: &dyn ConfigSources, report: &DecodeReport) -> BTreeSet<PathBuf> {
    let mut expansion =
        ReferenceExpander { sources, report, files: BTreeSet::new(), expanded_bytes: 0, expanded_nodes: 0 };
    expansion.expand_node(root, "", 0);
    expansion.files
}

struct ReferenceExpander<'s> {
    sources: &'s dyn ConfigSources,
    report: &'s DecodeReport<'s>,
    files: BTreeSet<PathBuf>,
    /// Bytes and nodes that references have added so far.
    expanded_bytes: usize,
    expanded_nodes: usize,
}

enum ExpandedValue {
    Text(String),
    Node(NodeValue, ValueOrigin),
}

impl ReferenceExpander<'_> {
    fn expand_node(&mut self, node: &mut YamlNode, path: &str, depth: usize) {
        let join = |name: &str| if path.is_empty() { label(name) } else { format!("{path}::{}", label(name)) };
        match &mut node.value {
            NodeValue::Map(entries) => {
                for entry in entries {
                    self.expand_node(&mut entry.value, &join(&entry.key.text), depth + 1);
                }
            }
            NodeValue::Seq(items) => {
                for (index, item) in items.iter_mut().enumerate() {
                    self.expand_node(item, &join(&index.to_string()), depth + 1);
                }
            }
            NodeValue::String(text) if text.contains('$') => {
                let text = std::mem::take(text);
                self.expand_string(node, text, path, depth);
            }
            _ => {}
        }
    }

    fn expand_string(&mut self, node: &mut YamlNode, text: String, path: &str, depth: usize) {
        let shown = reference::display_reference(&text);
        match self.resolve(text, node.span, path) {
            Ok((ExpandedValue::Text(text), changed)) => {
                node.value = NodeValue::String(unescape(&text));
                if changed && node.origin.is_none() {
                    node.origin = Some(Arc::new(ValueOrigin { reference: shown, text: None, syntax: None }));
                }
            }
            Ok((ExpandedValue::Node(value, origin), _)) => {
                node.value = value;
                node.origin = Some(Arc::new(origin));
                self.expand_inserted(node, path, depth);
            }
            Err(error) => {
                node.value = NodeValue::Bad;
                self.fail(path, node.span, &error);
            }
        }
    }

    /// Expands the value that replaced a reference, which may contain references itself.
    fn expand_inserted(&mut self, node: &mut YamlNode, path: &str, depth: usize) {
        self.expanded_nodes += node.count();
        if depth + depth_of(node) > MAX_DEPTH || self.expanded_nodes > MAX_NODES {
            node.value = NodeValue::Bad;
            return self.fail(path, node.span, &ExpansionError::TooLarge);
        }
        inherit_origin(node);
        if let NodeValue::String(text) = &mut node.value {
            *text = unescape(text);
        } else {
            self.expand_node(node, path, depth);
        }
    }

    /// Expands a text until no reference is left. The flag says whether there was any.
    fn resolve(&mut self, text: String, span: TextSpan, path: &str) -> Result<(ExpandedValue, bool), ExpansionError> {
        let mut text = text;
        let mut whole: Option<String> = None;
        for round in 0..MAX_EXPANSION_ROUNDS {
            let Some(range) = reference::find(&text) else {
                return Ok((outcome(text, whole), round > 0));
            };
            let written = text.get(range.clone()).unwrap_or_default().to_owned();
            let value = self.read_source(&SourceReference::parse(&written)?, span, path)?;
            if written.len() < text.len() {
                text.replace_range(range, &value);
                whole = None;
                continue;
            }
            whole = Some(whole.unwrap_or_else(|| reference::display_reference(&written)));
            text = value;
            if let (value, None) = parse_as_yaml(&text)
                && !matches!(value, NodeValue::String(_))
            {
                return Ok((self.structured(value, text, whole, span, path), true));
            }
        }
        Err(ExpansionError::Circle)
    }

    /// A reference whose value is a collection. References in it are expanded in place; those in its text,
    /// here.
    fn structured(
        &mut self,
        value: NodeValue,
        text: String,
        whole: Option<String>,
        span: TextSpan,
        path: &str,
    ) -> ExpandedValue {
        let reference = whole.unwrap_or_default();
        let text = if text.contains("${") { self.flatten(text, span, path).ok() } else { Some(unescape(&text)) };
        ExpandedValue::Node(value, ValueOrigin { reference, text, syntax: None })
    }

    fn flatten(&mut self, mut text: String, span: TextSpan, path: &str) -> Result<String, ExpansionError> {
        for _ in 0..MAX_EXPANSION_ROUNDS {
            let Some(range) = reference::find(&text) else { return Ok(unescape(&text)) };
            let written = text.get(range.clone()).unwrap_or_default().to_owned();
            let value = self.read_source(&SourceReference::parse(&written)?, span, path)?;
            text.replace_range(range, &value);
        }
        Err(ExpansionError::Circle)
    }

    fn read_source(
        &mut self,
        reference: &SourceReference<'_>,
        span: TextSpan,
        path: &str,
    ) -> Result<String, ExpansionError> {
        let value = match reference {
            SourceReference::Env { name, default } => match (self.sources.env(name), default) {
                (Some(value), _) => value,
                (None, Some(default)) => (*default).to_owned(),
                (None, None) => {
                    self.warn_unset(name, span, path);
                    String::new()
                }
            },
            SourceReference::File(file) => {
                let located = self.sources.locate(Path::new(file));
                let content = self.sources.read(&located);
                self.files.insert(located);
                content.map_err(|source| ExpansionError::File { path: PathBuf::from(file), source })?
            }
        };
        self.expanded_bytes += value.len();
        if self.expanded_bytes > MAX_EXPANDED_BYTES { Err(ExpansionError::TooLarge) } else { Ok(value) }
    }

    fn warn_unset(&self, name: &str, span: TextSpan, path: &str) {
        let message = format!("the environment variable `{}` is not set; its value is empty", crop(name));
        let help = Some(format!("give it a default: ${{env:{}:-default}}", crop(name)));
        self.report.add_warning(DocumentFinding { path: path.to_owned(), span, message, help });
    }

    fn fail(&self, path: &str, span: TextSpan, error: &ExpansionError) {
        self.report.add_error(DocumentFinding {
            path: path.to_owned(),
            span,
            message: error.to_string(),
            help: error.help(),
        });
    }
}

/// The result for a text without references. If the value was a single reference, the text keeps its quotes and
/// line breaks, as in the Collector.
fn outcome(text: String, whole: Option<String>) -> ExpandedValue {
    let Some(reference) = whole else { return ExpandedValue::Text(text) };
    let syntax = parse_as_yaml(&text).1;
    let original = Some(unescape(&text));
    ExpandedValue::Node(NodeValue::String(text), ValueOrigin { reference, text: original, syntax })
}

/// Parses a text as YAML. If it is not YAML it stays text, with the reason.
fn parse_as_yaml(text: &str) -> (NodeValue, Option<String>) {
    let mut faults = Vec::new();
    match (yaml::parse(text, &mut faults), faults.first()) {
        (Some(node), None) => (node.value, None),
        (_, fault) => {
            let reason = fault.map(|fault| format!("line {}: {}", fault.span.line, fault.message));
            (NodeValue::String(text.to_owned()), reason)
        }
    }
}

fn unescape(text: &str) -> String {
    text.replace("$$", "$")
}

/// Gives all descendants of a node its position and origin.
fn inherit_origin(node: &mut YamlNode) {
    let span = node.span;
    let origin = node.origin.clone();
    let reference = origin.map(|origin| origin.reference.clone()).unwrap_or_default();
    let part = Arc::new(ValueOrigin { reference, text: None, syntax: None });
    inherit_origin_below(node, span, &part);
}

fn inherit_origin_below(node: &mut YamlNode, span: TextSpan, origin: &Arc<ValueOrigin>) {
    let place = |child: &mut YamlNode| {
        child.span = span;
        child.origin = (!matches!(child.value, NodeValue::Null)).then(|| Arc::clone(origin));
        inherit_origin_below(child, span, origin);
    };
    match &mut node.value {
        NodeValue::Seq(items) => items.iter_mut().for_each(place),
        NodeValue::Map(entries) => {
            for entry in entries {
                entry.key.span = span;
                place(&mut entry.value);
            }
        }
        _ => {}
    }
}

fn depth_of(node: &YamlNode) -> usize {
    match &node.value {
        NodeValue::Seq(items) => 1 + items.iter().map(depth_of).max().unwrap_or(0),
        NodeValue::Map(entries) => 1 + entries.iter().map(|entry| depth_of(&entry.value)).max().unwrap_or(0),
        _ => 0,
    }
}
