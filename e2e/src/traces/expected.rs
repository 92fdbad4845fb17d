//! What a trace must be, written as it is shown: a span on each line, its children indented beneath it.
//!
//! ```text
//! POST /apis/…/heads [apiserver] server
//!   stamp Head [kubewake-webhook] server
//!     reconcile Head [head-operator] consumer        # how often does not matter
//!       create ChildA [head-operator] internal x2    # exactly two
//!     ? reconcile Head [head-operator] consumer error ~> stamp Head   # may be missing, with all beneath it
//! ```

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write,
};

use super::tree::{API_SERVER, Callers, Path, Tree};

/// What is said about the spans of one path.
#[derive(Clone, Debug, Default)]
struct Line {
    may_be_missing: bool,
    count: Option<usize>,
}

/// A tree that is expected.
#[derive(Clone, Debug, Default)]
pub struct Expected {
    lines: BTreeMap<Path, Line>,
}

impl Expected {
    /// Reads it. Where nobody gets the API server's spans, none are expected, and what is beneath them moves up.
    pub fn read(text: &str, callers: Callers) -> Self {
        let mut expected = Self::default();
        // The lines around this one: how far each is indented, and its label unless it is left out.
        let mut around: Vec<(usize, Option<String>)> = Vec::new();
        for line in text.lines() {
            let content = line.split("  #").next().unwrap_or_default().trim_end();
            let words = content.trim_start();
            if words.is_empty() || words.starts_with('#') {
                continue;
            }
            let depth = content.len() - words.len();
            around.retain(|(other, _)| *other < depth);
            let (label, line) = read_line(words);
            let is_dark = callers == Callers::Dark && label.contains(&format!("[{API_SERVER}]"));
            around.push((depth, (!is_dark).then_some(label)));
            if !is_dark {
                let path: Path = around.iter().filter_map(|(_, label)| label.clone()).collect();
                expected.lines.entry(path).or_insert(line);
            }
        }
        expected
    }

    /// Everything in which a trace differs, with the trace itself; nothing if it is as expected.
    pub fn differences(&self, tree: &Tree) -> Option<String> {
        let missing: BTreeSet<&Path> = self.missing(tree).collect();
        let counts: Vec<String> = self.wrong_counts(tree).collect();
        let unexpected = self.unexpected(tree);
        if missing.is_empty() && unexpected.is_none() && counts.is_empty() {
            return None;
        }
        let mut text = String::new();
        section(&mut text, "missing", missing.iter().map(|path| path.join("\n      > ")));
        section(&mut text, "another number", counts.into_iter());
        text += &unexpected.unwrap_or_else(|| shown(tree));
        Some(text)
    }

    /// What a trace has that is not expected, with the trace itself; nothing if all of it is.
    pub fn unexpected(&self, tree: &Tree) -> Option<String> {
        let extra: BTreeSet<&Path> = tree.0.keys().filter(|path| !self.lines.contains_key(*path)).collect();
        let mut text = String::new();
        section(&mut text, "not expected", extra.iter().map(|path| path.join("\n      > ")));
        (!extra.is_empty()).then(|| text + &shown(tree))
    }

    /// Of a branch that is missing only where it begins.
    fn missing<'a>(&'a self, tree: &'a Tree) -> impl Iterator<Item = &'a Path> {
        let absent = self.lines.iter().filter(|(path, line)| !line.may_be_missing && !tree.0.contains_key(*path));
        absent.map(|(path, _)| path).filter(|path| {
            let parent = path.split_last().map_or(&[][..], |(_, parent)| parent);
            parent.is_empty() || tree.0.contains_key(parent)
        })
    }

    fn wrong_counts<'a>(&'a self, tree: &'a Tree) -> impl Iterator<Item = String> {
        self.lines.iter().filter_map(|(path, line)| {
            let (wanted, node) = (line.count?, tree.0.get(path)?);
            (wanted != node.count).then(|| format!("{} is there {} times, not {wanted}", path.join(" > "), node.count))
        })
    }
}

fn shown(tree: &Tree) -> String {
    let mut text = String::new();
    section(&mut text, "the trace is", tree.to_string().lines().map(str::to_owned));
    text
}

fn section(text: &mut String, title: &str, mut entries: impl Iterator<Item = String>) {
    let Some(first) = entries.next() else { return };
    // Writing to a String cannot fail.
    let _ = writeln!(text, "  {title}:\n    {first}");
    entries.for_each(|entry| _ = writeln!(text, "    {entry}"));
}

fn read_line(words: &str) -> (String, Line) {
    let may_be_missing = words.starts_with("? ");
    let words = words.trim_start_matches("? ");
    let counted = words.rsplit_once(" x").and_then(|(label, count)| Some((label, count.parse().ok()?)));
    let (label, count) = counted.map_or((words, None), |(label, count)| (label, Some(count)));
    assert!(label.contains('['), "an expected span is `name [service] kind`, and not {words:?}");
    (label.split_whitespace().collect::<Vec<_>>().join(" "), Line { may_be_missing, count })
}
