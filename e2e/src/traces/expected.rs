//! The expected form of a trace, in the notation of its rendering: one span per line, with its children
//! indented.
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

use super::tree::{API_SERVER_SERVICE, CallerVisibility, LabelPath, TraceTree};

/// What is expected of the spans at one path.
#[derive(Clone, Debug, Default)]
struct ExpectedSpans {
    may_be_missing: bool,
    count: Option<usize>,
}

#[derive(Clone, Debug, Default)]
pub struct ExpectedTrace {
    lines: BTreeMap<LabelPath, ExpectedSpans>,
}

impl ExpectedTrace {
    /// Parses the notation. Where the API server's spans are not received, none are expected, and their
    /// children move up.
    pub fn parse(text: &str, callers: CallerVisibility) -> Self {
        let mut expected = Self::default();
        // The enclosing lines: their indentation, and their label unless they are left out.
        let mut around: Vec<(usize, Option<String>)> = Vec::new();
        for line in text.lines() {
            let content = line.split("  #").next().unwrap_or_default().trim_end();
            let words = content.trim_start();
            if words.is_empty() || words.starts_with('#') {
                continue;
            }
            let depth = content.len() - words.len();
            around.retain(|(other, _)| *other < depth);
            let (label, line) = parse_line(words);
            let is_dark = callers == CallerVisibility::Hidden && label.contains(&format!("[{API_SERVER_SERVICE}]"));
            around.push((depth, (!is_dark).then_some(label)));
            if !is_dark {
                let path: LabelPath = around.iter().filter_map(|(_, label)| label.clone()).collect();
                expected.lines.entry(path).or_insert(line);
            }
        }
        expected
    }

    /// All differences together with the trace, or none if it is as expected.
    pub fn differences(&self, tree: &TraceTree) -> Option<String> {
        let missing: BTreeSet<&LabelPath> = self.missing_paths(tree).collect();
        let counts: Vec<String> = self.wrong_counts(tree).collect();
        let unexpected = self.unexpected(tree);
        if missing.is_empty() && unexpected.is_none() && counts.is_empty() {
            return None;
        }
        let mut text = String::new();
        append_section(&mut text, "missing", missing.iter().map(|path| path.join("\n      > ")));
        append_section(&mut text, "another number", counts.into_iter());
        text += &unexpected.unwrap_or_else(|| format_tree(tree));
        Some(text)
    }

    /// Unexpected spans together with the trace, or none if there are none.
    pub fn unexpected(&self, tree: &TraceTree) -> Option<String> {
        let extra: BTreeSet<&LabelPath> = tree.0.keys().filter(|path| !self.lines.contains_key(*path)).collect();
        let mut text = String::new();
        append_section(&mut text, "not expected", extra.iter().map(|path| path.join("\n      > ")));
        (!extra.is_empty()).then(|| text + &format_tree(tree))
    }

    /// Missing paths, without those below a path that is missing itself.
    fn missing_paths<'a>(&'a self, tree: &'a TraceTree) -> impl Iterator<Item = &'a LabelPath> {
        let absent = self.lines.iter().filter(|(path, line)| !line.may_be_missing && !tree.0.contains_key(*path));
        absent.map(|(path, _)| path).filter(|path| {
            let parent = path.split_last().map_or(&[][..], |(_, parent)| parent);
            parent.is_empty() || tree.0.contains_key(parent)
        })
    }

    fn wrong_counts<'a>(&'a self, tree: &'a TraceTree) -> impl Iterator<Item = String> {
        self.lines.iter().filter_map(|(path, line)| {
            let wanted = line.count?;
            let node = tree.0.get(path)?;
            (wanted != node.count).then(|| format!("{} occurs {} times, not {wanted}", path.join(" > "), node.count))
        })
    }
}

fn format_tree(tree: &TraceTree) -> String {
    let mut text = String::new();
    append_section(&mut text, "the trace is", tree.to_string().lines().map(str::to_owned));
    text
}

fn append_section(text: &mut String, title: &str, mut entries: impl Iterator<Item = String>) {
    let Some(first) = entries.next() else { return };
    // Writing to a String cannot fail.
    let _ = writeln!(text, "  {title}:\n    {first}");
    entries.for_each(|entry| _ = writeln!(text, "    {entry}"));
}

fn parse_line(words: &str) -> (String, ExpectedSpans) {
    let may_be_missing = words.starts_with("? ");
    let words = words.trim_start_matches("? ");
    let counted = words.rsplit_once(" x").and_then(|(label, count)| Some((label, count.parse().ok()?)));
    let (label, count) = counted.map_or((words, None), |(label, count)| (label, Some(count)));
    assert!(label.contains('['), "invalid line {words:?}: write `name [service] kind`");
    (label.split_whitespace().collect::<Vec<_>>().join(" "), ExpectedSpans { may_be_missing, count })
}
