//! Where a record ends in a file that no container runtime wrote.

use regex::bytes::{Regex, RegexBuilder};

use crate::encoding::TextEncoding;

/// Bytes behind the largest record in which the rest of a pattern is looked for, so that it makes no difference where a
/// chunk ends.
pub(super) const PATTERN_MARGIN: usize = 4096;

/// A pattern over the bytes of a file. `^` and `$` match at the ends of lines.
#[derive(Clone, Debug)]
pub struct LinePattern {
    regex: Regex,
    /// Whether what it matches is left out of the record.
    is_omitted: bool,
}

impl LinePattern {
    /// Compiles a regular expression.
    pub fn new(pattern: &str, is_omitted: bool) -> Result<Self, regex::Error> {
        Ok(Self { regex: RegexBuilder::new(pattern).multi_line(true).build()?, is_omitted })
    }

    /// A pattern that was compiled elsewhere, where `^` and `$` should match at the ends of lines: with `(?m)`.
    pub fn from_regex(regex: Regex, is_omitted: bool) -> Self {
        Self { regex, is_omitted }
    }
}

/// What separates records.
#[derive(Clone, Debug, Default)]
pub enum LineFraming {
    /// A line feed, or a carriage return and a line feed.
    #[default]
    LineFeed,
    /// A record begins where the pattern matches. The one in front of it ends there.
    Start(LinePattern),
    /// A record ends behind a match of the pattern.
    End(LinePattern),
}

/// A record in the bytes of a file: `text` is its content, and `length` what it occupies.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Frame<'a> {
    pub(super) text: &'a [u8],
    pub(super) length: usize,
}

impl LineFraming {
    /// Finds the first record of `rest`, where a record begins. `None` if its end is not there yet; with `is_end` there
    /// is nothing to wait for, and it is found unless `rest` is empty.
    pub(super) fn find<'a>(&self, rest: &'a [u8], encoding: TextEncoding, is_end: bool) -> Option<Frame<'a>> {
        let frame = match self {
            Self::LineFeed => find_line(rest, encoding),
            Self::Start(pattern) => find_start(rest, pattern, is_end),
            Self::End(pattern) => find_end(rest, pattern, is_end),
        };
        frame.or_else(|| (is_end && !rest.is_empty()).then_some(Frame { text: rest, length: rest.len() }))
    }

    /// Finds the end of a record whose beginning has been cut off: how many bytes are in front of the next record.
    pub(super) fn find_end_of_rest(&self, rest: &[u8], encoding: TextEncoding, is_end: bool) -> Option<usize> {
        match self {
            Self::LineFeed => find_line(rest, encoding).map(|frame| frame.length),
            Self::Start(pattern) => find_stable(rest, pattern, 0, is_end).map(|(start, _)| start),
            Self::End(pattern) => find_stable(rest, pattern, 0, is_end).map(|(_, end)| end),
        }
    }

    /// Bytes behind the largest record that have to be seen before it is cut.
    pub(super) fn margin(&self, encoding: TextEncoding) -> usize {
        match self {
            // A carriage return and a line feed.
            Self::LineFeed => 2 * encoding.unit_bytes(),
            Self::Start(_) | Self::End(_) => PATTERN_MARGIN,
        }
    }
}

/// A line, without its line feed and a carriage return in front of it.
fn find_line(rest: &[u8], encoding: TextEncoding) -> Option<Frame<'_>> {
    let end = encoding.find_line_feed(rest)?;
    let text = rest.get(..end)?;
    let text = match encoding {
        TextEncoding::Utf16Le => text.strip_suffix(b"\r\0").unwrap_or(text),
        TextEncoding::Utf16Be => text.strip_suffix(b"\0\r").unwrap_or(text),
        _ => text.strip_suffix(b"\r").unwrap_or(text),
    };
    Some(Frame { text, length: end + encoding.unit_bytes() })
}

/// A match from `at` on that more bytes behind `rest` would not extend: it ends in front of them, or a line ends there.
fn find_stable(rest: &[u8], pattern: &LinePattern, at: usize, is_end: bool) -> Option<(usize, usize)> {
    if at > rest.len() {
        return None;
    }
    let found = pattern.regex.find_at(rest, at)?;
    let is_stable = is_end || found.end() < rest.len() || rest.last() == Some(&b'\n');
    is_stable.then_some((found.start(), found.end()))
}

fn find_start<'a>(rest: &'a [u8], pattern: &LinePattern, is_end: bool) -> Option<Frame<'a>> {
    let (start, end) = find_stable(rest, pattern, 0, is_end)?;
    if start > 0 {
        // What is in front of the first match is a record, too.
        return Some(Frame { text: rest.get(..start)?, length: start });
    }
    let (next, _) = find_stable(rest, pattern, end + 1, is_end)?;
    let text = rest.get(if pattern.is_omitted { end } else { 0 }..next)?;
    Some(Frame { text, length: next })
}

fn find_end<'a>(rest: &'a [u8], pattern: &LinePattern, is_end: bool) -> Option<Frame<'a>> {
    let (mut start, mut end) = find_stable(rest, pattern, 0, is_end)?;
    if end == 0 {
        // An empty match at the beginning ends nothing.
        (start, end) = find_stable(rest, pattern, 1, is_end)?;
    }
    Some(Frame { text: rest.get(..if pattern.is_omitted { start } else { end })?, length: end })
}
