//! The text of a document without its secrets.
//!
//! A problem shows the line that it is on, and that line may hold a secret: its own, or a neighbour's in
//! `{token: abc, colour: red}`. Which fields are secret says nothing about one whose name is misspelt, or that is there
//! twice, so it goes the other way round: a line shows the keys of maps that were read as maps, and the values that were
//! read as something that is no secret. All else is masked.

use std::collections::HashMap;

use crate::yaml::{Key, Node, Span, Value};

/// What is shown for what is not.
const MASK: &str = "***";

/// Longer lines were not written by a person, and are not shown.
const MAX_LINE: usize = 64 << 10;

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
    /// By line: what may be shown, as columns from 0. `None` if the text is not YAML.
    open: Option<HashMap<usize, Vec<(usize, usize)>>>,
}

impl<'t> Masked<'t> {
    /// A text that is not YAML.
    pub(crate) fn unread(text: &'t str) -> Self {
        Self { lines: text.lines().collect(), open: None }
    }

    /// A text with the tree that was read from it, and the values of it that are no secrets.
    pub(crate) fn new(text: &'t str, tree: &Node, public: &[Span]) -> Self {
        let mut open = HashMap::new();
        references(tree, &mut open);
        for span in public.iter().filter(|span| span.line == span.last_line) {
            add(&mut open, *span, span.width);
        }
        open.values_mut().for_each(|stretches| stretches.sort_unstable());
        Self { lines: text.lines().collect(), open: Some(open) }
    }

    /// A line as it may be shown, with where in it a stretch of the real line is: columns from 0.
    pub(super) fn line(&self, span: Span) -> Option<(Vec<char>, usize, usize)> {
        let real = self.lines.get(span.line.checked_sub(1)?).filter(|line| line.len() <= MAX_LINE)?;
        let real: Vec<char> = real.chars().collect();
        let open = match &self.open {
            Some(open) => open.get(&span.line).cloned().unwrap_or_default(),
            None => known_words(&real),
        };
        let mut shown = Shown { text: Vec::new(), places: Vec::new() };
        let mut at = 0;
        for (from, to) in open {
            let (from, to) = (from.clamp(at, real.len()), to.min(real.len()));
            shown.closed(real.get(at..from).unwrap_or_default());
            shown.plain(real.get(from..to).unwrap_or_default());
            at = at.max(to);
        }
        shown.closed(real.get(at..).unwrap_or_default());
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

    /// What stands between things that may be shown: its outer punctuation, and a mask for what that encloses.
    fn closed(&mut self, part: &[char]) {
        let content = |c: &char| !(c.is_whitespace() || "{}[],:?-'\"".contains(*c));
        let (Some(first), Some(last)) = (part.iter().position(content), part.iter().rposition(content)) else {
            return self.plain(part);
        };
        self.plain(part.get(..first).unwrap_or_default());
        self.places.extend(std::iter::repeat_n(self.text.len(), last + 1 - first));
        self.text.extend(MASK.chars());
        self.plain(part.get(last + 1..).unwrap_or_default());
    }

    fn place(&self, column: usize) -> usize {
        self.places.get(column).copied().unwrap_or(self.text.len())
    }
}

fn add(open: &mut HashMap<usize, Vec<(usize, usize)>>, span: Span, width: usize) {
    let from = span.column.saturating_sub(1);
    open.entry(span.line).or_default().push((from, from.saturating_add(width)));
}

/// Values that only say where something is found.
fn references(node: &Node, open: &mut HashMap<usize, Vec<(usize, usize)>>) {
    match &node.value {
        Value::Map(entries) => entries.iter().for_each(|entry| references(&entry.value, open)),
        Value::Seq(items) => items.iter().for_each(|item| references(item, open)),
        Value::String(text) if is_reference(text) => add(open, node.span, node.span.width),
        _ => {}
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
