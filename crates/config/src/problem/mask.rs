//! The text of a document without its secrets.
//!
//! A problem shows the line that it is on, and that line may hold a secret: its own, or a neighbour's in
//! `{token: abc, colour: red}`. Which fields are secret says nothing about one whose name is misspelt, or that is there
//! twice, so it goes the other way round: a line shows the keys of maps that were read as maps, and the values that were
//! read as something that is no secret. All else is masked.

use std::collections::HashMap;

use super::crop;
use crate::yaml::{Key, Node, Span, Value};

/// What is shown for what is not.
const MASK: &str = "***";

/// Longer lines were not written by a person, and are not shown.
const MAX_LINE: usize = 64 << 10;

/// Maps with more entries were not written by a person either, and are not searched for names.
const MAX_ENTRIES: usize = 1000;

/// What may be shown of a text that is not YAML, where no word is known to be a key.
const WORDS: &[&str] = &[
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
    "otlp",
    "otlp_grpc",
    "otlp_http",
    "otlphttp",
    "debug",
    "file",
    "nop",
    "batch",
    "memory_limiter",
    "filter",
    "attributes",
    "resource",
    "redaction",
    "probabilistic_sampler",
    "tail_sampling",
    "k8s_attributes",
    "k8sattributes",
    "load_balancing",
    "loadbalancing",
    "opencensus",
    "policies",
    "actions",
    "health_check",
    "basicauth",
    "bearertokenauth",
    "oauth2client",
    "protocols",
    "grpc",
    "http",
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

/// A text whose lines are shown without what may be secret.
pub(crate) struct Masked<'t> {
    lines: Vec<&'t str>,
    /// `None` if the text is not YAML.
    read: Option<Read<'t>>,
}

/// What is known of a text that was read.
struct Read<'t> {
    tree: &'t Node,
    /// By line: what may be shown, as columns from 0.
    open: Stretches,
    /// By line: where keys and values begin and end. Each is masked by itself, so that a line keeps its shape.
    cuts: HashMap<usize, Vec<usize>>,
}

type Stretches = HashMap<usize, Vec<(usize, usize)>>;

impl<'t> Masked<'t> {
    /// A text that is not YAML.
    pub(crate) fn unread(text: &'t str) -> Self {
        Self { lines: text.lines().collect(), read: None }
    }

    /// A text with the tree that was read from it, and the values of it that are no secrets.
    pub(crate) fn new(text: &'t str, tree: &'t Node, public: &[Span]) -> Self {
        let (mut open, mut units) = (HashMap::new(), HashMap::new());
        look_through(tree, &mut open, &mut units);
        for span in public.iter().filter(|span| span.line == span.last_line) {
            add(&mut open, *span, span.width);
        }
        open.values_mut().for_each(|stretches| stretches.sort_unstable());
        let cuts = units.into_iter().map(|(line, units)| (line, ends(units)));
        Self { lines: text.lines().collect(), read: Some(Read { tree, open, cuts: cuts.collect() }) }
    }

    /// A path with the names of the list's items on it: `policies::0 (errors)`.
    pub(super) fn place(&self, path: &str) -> String {
        let Some(read) = &self.read else { return path.to_owned() };
        let (mut place, mut at) = (String::new(), Some(read.tree));
        for segment in path.split("::").filter(|segment| !segment.is_empty()) {
            let separator = if place.is_empty() { "" } else { "::" };
            place.push_str(separator);
            place.push_str(segment);
            let listed = at.is_some_and(|node| matches!(node.value, Value::Seq(_)));
            at = at.and_then(|node| child(node, segment));
            if let Some(name) = at.filter(|_| listed).and_then(|item| read.name(item)) {
                place.push_str(&format!(" ({name})"));
            }
        }
        place
    }

    /// A line as it may be shown, with where in it a stretch of the real line is: columns from 0.
    pub(super) fn line(&self, span: Span) -> Option<(Vec<char>, usize, usize)> {
        let real = self.lines.get(span.line.checked_sub(1)?).filter(|line| line.len() <= MAX_LINE)?;
        let real: Vec<char> = real.chars().collect();
        let (open, cuts) = match &self.read {
            Some(read) => (read.open.get(&span.line).cloned().unwrap_or_default(), read.cuts.get(&span.line)),
            None => (known_words(&real), None),
        };
        let cuts = cuts.map_or(&[][..], Vec::as_slice);
        let mut shown = Shown { text: Vec::new(), places: Vec::new() };
        let mut at = 0;
        for (from, to) in open {
            let (from, to) = (from.clamp(at, real.len()), to.min(real.len()));
            shown.closed(&real, (at, from), cuts);
            shown.plain(real.get(from..to).unwrap_or_default());
            at = at.max(to);
        }
        shown.closed(&real, (at, real.len()), cuts);
        let from = shown.place(span.column.saturating_sub(1));
        let to = shown.place(span.column.saturating_sub(1).saturating_add(span.width));
        Some((shown.text, from, to.max(from + 1)))
    }
}

/// A line that is being put together, with the new place of each character of the real one.
struct Shown {
    text: Vec<char>,
    places: Vec<usize>,
}

impl Shown {
    fn plain(&mut self, part: &[char]) {
        for character in part {
            self.places.push(self.text.len());
            self.text.push(*character);
        }
    }

    /// What stands between things that may be shown, unit by unit.
    fn closed(&mut self, line: &[char], (from, to): (usize, usize), cuts: &[usize]) {
        let first = cuts.partition_point(|cut| *cut <= from);
        let within = cuts.iter().copied().skip(first).take_while(|cut| *cut < to);
        let mut at = from;
        for cut in within.chain([to]) {
            self.masked(line.get(at..cut).unwrap_or_default());
            at = cut;
        }
    }

    /// The outer punctuation with one quote at each end, and a mask for what that encloses.
    fn masked(&mut self, part: &[char]) {
        let is_quote = |c: &char| "'\"".contains(*c);
        let encloses = |c: &char| c.is_whitespace() || "{}[],:?-".contains(*c);
        if part.iter().all(|c| encloses(c) || is_quote(c)) {
            return self.plain(part);
        }
        let outer = |count: usize, next: Option<&char>| count + usize::from(next.is_some_and(is_quote));
        let before = part.iter().take_while(|c| encloses(c)).count();
        let first = outer(before, part.get(before));
        let after = part.iter().rev().take_while(|c| encloses(c)).count();
        let last = part.len().saturating_sub(outer(after, part.iter().rev().nth(after)));
        self.plain(part.get(..first).unwrap_or_default());
        self.places.extend(std::iter::repeat_n(self.text.len(), last.saturating_sub(first)));
        self.text.extend(MASK.chars());
        self.plain(part.get(last..).unwrap_or_default());
    }

    fn place(&self, column: usize) -> usize {
        self.places.get(column).copied().unwrap_or(self.text.len())
    }
}

impl Read<'_> {
    /// What an item of a list is called, if its line may show that.
    fn name(&self, item: &Node) -> Option<String> {
        let said = |key: &str| {
            let node = child(item, key)?;
            let from = node.span.column.saturating_sub(1);
            let shown = self.open.get(&node.span.line)?.binary_search_by_key(&from, |(start, _)| *start).is_ok();
            match &node.value {
                Value::String(text) if shown && !text.is_empty() => Some(crop(text)),
                _ => None,
            }
        };
        said("name").or_else(|| match (said("action"), said("key")) {
            (Some(action), Some(key)) => Some(format!("{action} {key}")),
            (action, key) => action.or(key),
        })
    }
}

/// What a segment of a path leads to.
fn child<'n>(node: &'n Node, segment: &str) -> Option<&'n Node> {
    match &node.value {
        Value::Map(entries) if entries.len() <= MAX_ENTRIES => {
            entries.iter().find(|entry| entry.key.text == segment).map(|entry| &entry.value)
        }
        Value::Seq(items) => items.get(segment.parse::<usize>().ok()?),
        _ => None,
    }
}

/// Where stretches begin and end, in order.
fn ends(stretches: Vec<(usize, usize)>) -> Vec<usize> {
    let mut ends: Vec<usize> = stretches.into_iter().flat_map(|(from, to)| [from, to]).collect();
    ends.sort_unstable();
    ends.dedup();
    ends
}

fn add(open: &mut Stretches, span: Span, width: usize) {
    let from = span.column.saturating_sub(1);
    open.entry(span.line).or_default().push((from, from.saturating_add(width)));
}

/// Finds keys and values, and among these the values that only say where something is found.
fn look_through(node: &Node, open: &mut Stretches, units: &mut Stretches) {
    match &node.value {
        Value::Map(entries) => {
            for entry in entries {
                add(units, entry.key.span, entry.key.span.width);
                look_through(&entry.value, open, units);
            }
        }
        Value::Seq(items) => items.iter().for_each(|item| look_through(item, open, units)),
        Value::String(text) if is_reference(text) => add(open, node.span, node.span.width),
        _ => add(units, node.span, node.span.width),
    }
}

/// The part of a key that is a name.
pub(crate) fn label_span(key: &Key) -> Span {
    let (length, name) = (key.text.chars().count(), label_length(&key.text));
    let quote = usize::from(key.span.width > length);
    let width = if name == length { key.span.width } else { name + quote };
    Span { width, ..key.span }
}

/// `${env:NAME}` or `${file:path}` as a whole, without a default.
fn is_reference(text: &str) -> bool {
    let inner = text.strip_prefix("${").and_then(|rest| rest.strip_suffix('}'));
    inner.is_some_and(|inner| {
        !inner.contains(":-") && inner.chars().all(|c| c.is_ascii_alphanumeric() || "_:/.-".contains(c))
    })
}

/// How much of a key is a name. In `token:abc` the space is missing, and the rest of the key is a value.
pub(super) fn label_length(key: &str) -> usize {
    key.chars().take_while(|c| !c.is_whitespace() && !":='\"{}[],".contains(*c)).count()
}

fn known_words(line: &[char]) -> Vec<(usize, usize)> {
    let is_word = |c: &char| c.is_alphanumeric() || *c == '_';
    let mut found = Vec::new();
    let mut at = 0;
    while at < line.len() {
        let rest = line.get(at..).unwrap_or_default();
        let length = rest.iter().take_while(|c| is_word(c)).count();
        let word: String = rest.iter().take(length).collect();
        if WORDS.contains(&word.as_str()) {
            found.push((at, at + length));
        }
        at += length.max(1);
    }
    found
}
