//! The text of a document without its secrets.
//!
//! A problem shows its line, which may hold a secret: its own, or a neighbour's in `{token: abc, colour: red}`.
//! A list of secret fields would not help with a field whose name is misspelt, or that appears twice. So lines
//! show only what is known to be public: the keys of maps that were read as maps, and values that were read as
//! something that is no secret. All else is masked.

use std::collections::HashMap;

use super::crop;
use crate::{
    component::{ComponentKind, ComponentRow},
    model::{ConnectorConfig, ExporterConfig, ExtensionConfig, ProcessorConfig, ReceiverConfig},
    yaml::{NodeValue, TextSpan, YamlKey, YamlNode},
};

const MASK: &str = "***";

/// Longer lines were not written by a person, and are not shown.
const MAX_LINE_BYTES: usize = 64 << 10;

/// Maps with more entries were not written by a person either, and are not searched for names.
const MAX_SEARCHED_ENTRIES: usize = 1000;

/// Words that may be shown of a text that is not YAML, where it is unknown which words are keys. The names of
/// components and the fields that only one component has come from the tables of components.
const PUBLIC_WORDS: &[&str] = &[
    "receivers",
    "processors",
    "exporters",
    "extensions",
    "connectors",
    "service",
    "pipelines",
    "telemetry",
    "traces",
    "metrics",
    "logs",
    "endpoint",
    "tls",
    "insecure",
    "headers",
    "timeout",
    "compression",
    "sending_queue",
    "retry_on_failure",
    "enabled",
    "auth",
    "authenticator",
    "level",
    "readers",
    "true",
    "false",
];

/// A text whose lines are shown without possible secrets.
pub(crate) struct MaskedText<'t> {
    lines: Vec<&'t str>,
    /// `None` if the text is not YAML.
    read: Option<ParsedText<'t>>,
}

/// The tree of a text, and what may be shown of it.
struct ParsedText<'t> {
    tree: &'t YamlNode,
    /// By line: the parts that may be shown, as columns from 0.
    open: ColumnRanges,
    /// By line: where keys and values begin and end. Each is masked by itself, so that a line keeps its shape.
    cuts: HashMap<usize, Vec<usize>>,
}

type ColumnRanges = HashMap<usize, Vec<(usize, usize)>>;

impl<'t> MaskedText<'t> {
    /// A text that is not YAML.
    pub(crate) fn new_unparsed(text: &'t str) -> Self {
        Self { lines: text.lines().collect(), read: None }
    }

    /// A text with its tree, and the positions of public values.
    pub(crate) fn new(text: &'t str, tree: &'t YamlNode, public: &[TextSpan]) -> Self {
        let mut open = HashMap::new();
        let mut units = HashMap::new();
        collect_ranges(tree, &mut open, &mut units);
        for span in public.iter().filter(|span| span.line == span.last_line) {
            add(&mut open, *span, span.width);
        }
        open.values_mut().for_each(|stretches| stretches.sort_unstable());
        let cuts = units.into_iter().map(|(line, units)| (line, range_bounds(units)));
        Self { lines: text.lines().collect(), read: Some(ParsedText { tree, open, cuts: cuts.collect() }) }
    }

    /// A path with the names of the list items on it: `policies::0 (errors)`.
    pub(super) fn display_path(&self, path: &str) -> String {
        let Some(read) = &self.read else { return path.to_owned() };
        let mut place = String::new();
        let mut at = Some(read.tree);
        for segment in path.split("::").filter(|segment| !segment.is_empty()) {
            let separator = if place.is_empty() { "" } else { "::" };
            place.push_str(separator);
            place.push_str(segment);
            let listed = at.is_some_and(|node| matches!(node.value, NodeValue::Seq(_)));
            at = at.and_then(|node| child(node, segment));
            if let Some(name) = at.filter(|_| listed).and_then(|item| read.name(item)) {
                place.push_str(&format!(" ({name})"));
            }
        }
        place
    }

    /// A line as it may be shown, and the position of a span of the original line in it, as columns from 0.
    pub(super) fn line(&self, span: TextSpan) -> Option<(Vec<char>, usize, usize)> {
        let real = self.lines.get(span.line.checked_sub(1)?).filter(|line| line.len() <= MAX_LINE_BYTES)?;
        let real: Vec<char> = real.chars().collect();
        let (open, cuts) = match &self.read {
            Some(read) => (read.open.get(&span.line).cloned().unwrap_or_default(), read.cuts.get(&span.line)),
            None => (known_words(&real), None),
        };
        let cuts = cuts.map_or(&[][..], Vec::as_slice);
        let mut shown = MaskedLine { text: Vec::new(), places: Vec::new() };
        let mut at = 0;
        for (from, to) in open {
            let from = from.clamp(at, real.len());
            let to = to.min(real.len());
            shown.push_units(&real, (at, from), cuts);
            shown.push_plain(real.get(from..to).unwrap_or_default());
            at = at.max(to);
        }
        shown.push_units(&real, (at, real.len()), cuts);
        let from = shown.masked_column(span.column.saturating_sub(1));
        let to = shown.masked_column(span.column.saturating_sub(1).saturating_add(span.width));
        Some((shown.text, from, to.max(from + 1)))
    }
}

/// A masked line in progress, with the new column of each original character.
struct MaskedLine {
    text: Vec<char>,
    places: Vec<usize>,
}

impl MaskedLine {
    fn push_plain(&mut self, part: &[char]) {
        for character in part {
            self.places.push(self.text.len());
            self.text.push(*character);
        }
    }

    /// Appends text between public parts, key by key and value by value.
    fn push_units(&mut self, line: &[char], (from, to): (usize, usize), cuts: &[usize]) {
        let first = cuts.partition_point(|cut| *cut <= from);
        let within = cuts.iter().copied().skip(first).take_while(|cut| *cut < to);
        let mut at = from;
        for cut in within.chain([to]) {
            self.push_masked(line.get(at..cut).unwrap_or_default());
            at = cut;
        }
    }

    /// Appends the outer punctuation with one quote at each end, and a mask for the text within.
    fn push_masked(&mut self, part: &[char]) {
        let is_quote = |c: &char| "'\"".contains(*c);
        let encloses = |c: &char| c.is_whitespace() || "{}[],:?-".contains(*c);
        if part.iter().all(|c| encloses(c) || is_quote(c)) {
            return self.push_plain(part);
        }
        let outer = |count: usize, next: Option<&char>| count + usize::from(next.is_some_and(is_quote));
        let before = part.iter().take_while(|c| encloses(c)).count();
        let first = outer(before, part.get(before));
        let after = part.iter().rev().take_while(|c| encloses(c)).count();
        let last = part.len().saturating_sub(outer(after, part.iter().rev().nth(after)));
        self.push_plain(part.get(..first).unwrap_or_default());
        self.places.extend(std::iter::repeat_n(self.text.len(), last.saturating_sub(first)));
        self.text.extend(MASK.chars());
        self.push_plain(part.get(last..).unwrap_or_default());
    }

    fn masked_column(&self, column: usize) -> usize {
        self.places.get(column).copied().unwrap_or(self.text.len())
    }
}

impl ParsedText<'_> {
    /// The name of a list item, if its line may show it.
    fn name(&self, item: &YamlNode) -> Option<String> {
        let said = |key: &str| {
            let node = child(item, key)?;
            let from = node.span.column.saturating_sub(1);
            let shown = self.open.get(&node.span.line)?.binary_search_by_key(&from, |(start, _)| *start).is_ok();
            match &node.value {
                NodeValue::String(text) if shown && !text.is_empty() => Some(crop(text)),
                _ => None,
            }
        };
        said("name").or_else(|| match (said("action"), said("key")) {
            (Some(action), Some(key)) => Some(format!("{action} {key}")),
            (action, key) => action.or(key),
        })
    }
}

/// The child of a node for a segment of a path.
fn child<'n>(node: &'n YamlNode, segment: &str) -> Option<&'n YamlNode> {
    match &node.value {
        NodeValue::Map(entries) if entries.len() <= MAX_SEARCHED_ENTRIES => {
            entries.iter().find(|entry| entry.key.text == segment).map(|entry| &entry.value)
        }
        NodeValue::Seq(items) => items.get(segment.parse::<usize>().ok()?),
        _ => None,
    }
}

/// Where stretches begin and end, in order.
fn range_bounds(stretches: Vec<(usize, usize)>) -> Vec<usize> {
    let mut ends: Vec<usize> = stretches.into_iter().flat_map(|(from, to)| [from, to]).collect();
    ends.sort_unstable();
    ends.dedup();
    ends
}

fn add(open: &mut ColumnRanges, span: TextSpan, width: usize) {
    let from = span.column.saturating_sub(1);
    open.entry(span.line).or_default().push((from, from.saturating_add(width)));
}

/// Collects the ranges of keys and values, and of values that only refer to where a value is found.
fn collect_ranges(node: &YamlNode, open: &mut ColumnRanges, units: &mut ColumnRanges) {
    match &node.value {
        NodeValue::Map(entries) => {
            for entry in entries {
                add(units, entry.key.span, entry.key.span.width);
                collect_ranges(&entry.value, open, units);
            }
        }
        NodeValue::Seq(items) => items.iter().for_each(|item| collect_ranges(item, open, units)),
        NodeValue::String(text) if is_reference(text) => add(open, node.span, node.span.width),
        _ => add(units, node.span, node.span.width),
    }
}

/// The name part of a key.
pub(crate) fn label_span(key: &YamlKey) -> TextSpan {
    let length = key.text.chars().count();
    let name = label_length(&key.text);
    let quote = usize::from(key.span.width > length);
    let width = if name == length { key.span.width } else { name + quote };
    TextSpan { width, ..key.span }
}

/// `${env:NAME}` or `${file:path}` as a whole, without a default.
fn is_reference(text: &str) -> bool {
    let inner = text.strip_prefix("${").and_then(|rest| rest.strip_suffix('}'));
    inner.is_some_and(|inner| {
        !inner.contains(":-") && inner.chars().all(|c| c.is_ascii_alphanumeric() || "_:/.-".contains(c))
    })
}

/// The length of the name in a key. In `token:abc` the space is missing, and the rest of the key is a value.
pub(super) fn label_length(key: &str) -> usize {
    key.chars().take_while(|c| !c.is_whitespace() && !":='\"{}[],".contains(*c)).count()
}

fn is_public_word(word: &str) -> bool {
    fn is_named<T: ComponentKind>(word: &str) -> bool {
        let named =
            |row: &ComponentRow<T>| row.component_type.names.contains(&word) || (row.public_fields)().contains(&word);
        T::ROWS.iter().any(named)
    }
    PUBLIC_WORDS.contains(&word)
        || is_named::<ReceiverConfig>(word)
        || is_named::<ProcessorConfig>(word)
        || is_named::<ExporterConfig>(word)
        || is_named::<ConnectorConfig>(word)
        || is_named::<ExtensionConfig>(word)
}

fn known_words(line: &[char]) -> Vec<(usize, usize)> {
    let is_word = |c: &char| c.is_alphanumeric() || *c == '_';
    let mut found = Vec::new();
    let mut at = 0;
    while at < line.len() {
        let rest = line.get(at..).unwrap_or_default();
        let length = rest.iter().take_while(|c| is_word(c)).count();
        let word: String = rest.iter().take(length).collect();
        if is_public_word(&word) {
            found.push((at, at + length));
        }
        at += length.max(1);
    }
    found
}
