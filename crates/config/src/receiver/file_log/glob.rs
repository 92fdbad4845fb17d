//! The syntax of patterns of files: `*`, `**`, `?`, classes in brackets, alternatives in braces, and `\`.

use std::path::Path;

use crate::decode::{Cursor, DecodeReport, FieldReader, scalar};

/// The most patterns in one list, and bytes in one pattern: each is tried on every file.
const MAX_PATTERNS: usize = 1000;
const MAX_PATTERN_BYTES: usize = 4096;
/// The most alternatives in braces, one within the other.
const MAX_BRACE_DEPTH: usize = 10;

/// The valid patterns of a list.
pub(super) fn patterns(fields: &mut FieldReader<'_, '_>, name: &'static str) -> Vec<String> {
    let Some(at) = fields.find(name) else { return Vec::new() };
    let report = fields.report;
    match at.items() {
        Some(items) => {
            let patterns: Vec<String> =
                items.filter_map(|item| pattern(&item, report)).map(|it| locate(&it, report)).collect();
            if patterns.len() > MAX_PATTERNS {
                report.error(&at, format!("`{name}` must have at most {MAX_PATTERNS} patterns"), None);
            }
            patterns
        }
        None => {
            let texts = scalar::texts(&at, report).unwrap_or_default();
            texts.into_iter().filter(|text| check(&at, report, text)).map(|text| locate(&text, report)).collect()
        }
    }
}

fn pattern(at: &Cursor<'_>, report: &DecodeReport) -> Option<String> {
    scalar::text(at, report).filter(|text| check(at, report, text))
}

/// The pattern with its directory where this process has it. Only the part before the first special character is a
/// directory that can be located.
fn locate(pattern: &str, report: &DecodeReport) -> String {
    let special = pattern.find(is_special).unwrap_or(pattern.len());
    let Some((directory, _)) = pattern.get(..special).and_then(|plain| plain.rsplit_once('/')) else {
        return pattern.to_owned();
    };
    let located = report.locate(Path::new(directory));
    if directory.is_empty() || located == Path::new(directory) {
        return pattern.to_owned();
    }
    let mut out = String::new();
    for c in located.to_string_lossy().chars() {
        if is_special(c) {
            out.push('\\');
        }
        out.push(c);
    }
    out + pattern.get(directory.len()..).unwrap_or_default()
}

fn is_special(c: char) -> bool {
    matches!(c, '*' | '?' | '[' | ']' | '{' | '}' | '\\')
}

/// Reports what is wrong with a pattern.
fn check(at: &Cursor<'_>, report: &DecodeReport, text: &str) -> bool {
    let Err((column, problem)) = syntax(text) else { return true };
    let message = format!("{} is not a pattern of files: {problem} at column {column}", at.subject(text));
    report.error(at, message, Some("write `\\` before a bracket or brace that stands for itself".into()));
    false
}

/// What is wrong with a pattern, and at which column.
fn syntax(text: &str) -> Result<(), (usize, &'static str)> {
    if text.is_empty() {
        return Err((1, "it is empty"));
    }
    if text.len() > MAX_PATTERN_BYTES {
        return Err((MAX_PATTERN_BYTES, "it is too long"));
    }
    let mut braces: Vec<usize> = Vec::new();
    let mut chars = text.chars().enumerate().map(|(index, c)| (index + 1, c));
    while let Some((column, c)) = chars.next() {
        match c {
            '\\' if chars.next().is_none() => return Err((column, "nothing follows the `\\`")),
            '[' => class(column, &mut chars)?,
            '{' if braces.len() == MAX_BRACE_DEPTH => return Err((column, "there are too many braces")),
            '{' => braces.push(column),
            '}' if braces.pop().is_none() => return Err((column, "no brace is open")),
            _ => {}
        }
    }
    match braces.pop() {
        Some(column) => Err((column, "the brace is not closed")),
        None => Ok(()),
    }
}

/// Reads a class to its closing bracket.
fn class(opened: usize, chars: &mut impl Iterator<Item = (usize, char)>) -> Result<(), (usize, &'static str)> {
    const NOT_CLOSED: &str = "the bracket is not closed";
    let mut members = 0_usize;
    let mut negated = false;
    while let Some((_, c)) = chars.next() {
        match c {
            '^' | '!' if members == 0 && !negated => negated = true,
            ']' if members > 0 => return Ok(()),
            ']' => return Err((opened, "the class is empty")),
            '\\' => {
                chars.next().ok_or((opened, NOT_CLOSED))?;
                members += 1;
            }
            _ => members += 1,
        }
    }
    Err((opened, NOT_CLOSED))
}

#[cfg(test)]
mod tests {
    use super::syntax;

    #[test]
    fn patterns_of_the_collector_are_accepted() {
        for text in ["/var/log/*.log", "/a/**/b?.log", "/[a-c]/[^x]{a,b{c,d}}.log", r"/\[x\]", "/[a\\]]"] {
            assert_eq!(syntax(text), Ok(()), "{text}");
        }
    }

    #[test]
    fn error_has_the_column_of_what_is_open() {
        for (text, column) in [("", 1), ("/x/[.log", 4), ("/{a,b", 2), ("/a}", 3), ("/é\\", 3), ("/[]", 2)] {
            assert_eq!(syntax(text).unwrap_err().0, column, "{text}");
        }
    }
}
