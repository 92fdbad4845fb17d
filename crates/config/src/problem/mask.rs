//! The text of a document without its secrets.
//!
//! A problem shows the line that it is on, and that line may hold a secret: its own, or a neighbour's in
//! `{token: abc, colour: red}`. So the values of fields that hold secrets are masked before any line is shown. It goes
//! by the name of the field, so that it also works for what is misplaced or not known at all.

use std::collections::HashMap;

use crate::yaml::{Node, Span, Value};

/// What is shown for a secret.
const MASK: &str = "***";

/// Longer lines were not written by a person, and are not shown.
const MAX_LINE: usize = 64 << 10;

/// A text whose lines are shown with the secrets in them masked.
pub(crate) struct Masked<'t> {
    lines: Vec<&'t str>,
    /// By line: the masked stretches as columns from 0, in order, without overlap.
    secrets: HashMap<usize, Vec<(usize, usize)>>,
}

impl<'t> Masked<'t> {
    /// A text, with the tree that was read from it. Without a tree (it is not YAML) the guess goes line by line.
    pub(crate) fn new(text: &'t str, tree: Option<&Node>) -> Self {
        let lines: Vec<&str> = text.lines().collect();
        let mut masked = Self { lines, secrets: HashMap::new() };
        match tree {
            Some(tree) => masked.mask_tree(tree, false),
            None => masked.mask_lines(),
        }
        for stretches in masked.secrets.values_mut() {
            stretches.sort_unstable();
            stretches.dedup();
        }
        masked
    }

    /// A line as it may be shown, and where in it a column of the real line is; columns of the answer are from 0.
    pub(super) fn line(&self, line: usize, column: usize) -> Option<(Vec<char>, usize)> {
        let real = self.lines.get(line.checked_sub(1)?).filter(|line| line.len() <= MAX_LINE)?;
        let real: Vec<char> = real.chars().collect();
        let column = column.saturating_sub(1).min(real.len());
        let mut shown = Vec::with_capacity(real.len());
        let mut moved = column;
        let mut at = 0;
        for &(from, to) in self.secrets.get(&line).map(Vec::as_slice).unwrap_or_default() {
            let (from, to) = (from.clamp(at, real.len()), to.min(real.len()));
            if to <= from {
                continue;
            }
            shown.extend(real.iter().skip(at).take(from - at));
            if column >= to {
                moved = (moved + MASK.len()).saturating_sub(to - from);
            } else if column >= from {
                moved = shown.len();
            }
            shown.extend(MASK.chars());
            at = to;
        }
        shown.extend(real.iter().skip(at));
        Some((shown, moved))
    }

    /// How wide the caret under a span is, once the line is masked.
    pub(super) fn width(&self, span: Span) -> usize {
        let from = span.column.saturating_sub(1);
        let to = from.saturating_add(span.width);
        let stretches = self.secrets.get(&span.line).map(Vec::as_slice).unwrap_or_default();
        let masked = stretches.iter().any(|&(start, end)| start < to && from < end);
        if masked { MASK.len() } else { span.width }
    }

    fn mask_tree(&mut self, node: &Node, secret: bool) {
        match &node.value {
            Value::Map(entries) => {
                for entry in entries {
                    self.mask_tree(&entry.value, secret || is_secret(&entry.key.text));
                }
            }
            Value::Seq(items) => items.iter().for_each(|item| self.mask_tree(item, secret)),
            // A reference shows where a secret is, not what it is.
            Value::String(text) if text.starts_with("${") && text.ends_with('}') && !text.contains(":-") => {}
            Value::Null => {}
            _ if secret => self.mask(node.span),
            Value::String(text) if super::has_credentials(text) => self.mask(node.span),
            _ => {}
        }
    }

    fn mask(&mut self, span: Span) {
        let from = span.column.saturating_sub(1);
        self.stretch(span.line, from, from.saturating_add(span.width));
        for line in span.line + 1..=span.last_line.min(self.lines.len()) {
            self.stretch(line, 0, usize::MAX);
        }
    }

    fn stretch(&mut self, line: usize, from: usize, to: usize) {
        self.secrets.entry(line).or_default().push((from, to));
    }

    /// Masks what follows a secret's name on its line, and the lines after it that name nothing themselves.
    fn mask_lines(&mut self) {
        let mut within = false;
        for (index, line) in self.lines.clone().into_iter().enumerate() {
            match line.split_once(':') {
                None if within => self.stretch(index + 1, 0, usize::MAX),
                None => {}
                Some(_) => {
                    let after = secret_in_line(line);
                    within = after.is_some();
                    if let Some(column) = after {
                        self.stretch(index + 1, column, usize::MAX);
                    }
                }
            }
        }
    }
}

/// Where the value of the first secret on a line begins, in characters.
fn secret_in_line(line: &str) -> Option<usize> {
    let mut column = 0;
    let mut parts = line.split(':');
    let mut part = parts.next()?;
    for next in parts {
        column += part.chars().count() + 1;
        let name = part.rsplit(|c: char| c.is_whitespace() || "{[,'\"-".contains(c)).find(|word| !word.is_empty());
        if name.is_some_and(is_secret) || is_secret(part.trim()) {
            return Some(column);
        }
        part = next;
    }
    None
}

/// Whether the value of a field of this name is a secret, or holds some.
fn is_secret(name: &str) -> bool {
    /// What these name is found elsewhere: a path, an address.
    const PLACES: [&str; 5] = ["_file", "_url", "filename", "_path", "_endpoint"];
    const WORDS: [&str; 13] = [
        "password",
        "passwd",
        "secret",
        "token",
        "credential",
        "authorization",
        "apikey",
        "api_key",
        "api-key",
        "private_key",
        "certificate_key",
        "_pem",
        "cookie",
    ];
    let name = name.to_ascii_lowercase();
    // Ids of components are no fields.
    if name.contains('/') || name == "bearertokenauth" {
        return false;
    }
    if PLACES.iter().any(|place| name.ends_with(place)) {
        return false;
    }
    matches!(name.as_str(), "headers" | "response_headers" | "inline" | "endpoint_params")
        || WORDS.iter().any(|word| name.contains(word))
}
