//! Regular expressions in Go's syntax.
//!
//! Documents for the Collector are written for Go's syntax, which is nearly that of the `regex` crate. Where
//! the two read the same text differently it is translated: `\d`, `\s`, `\w` and `\b` match ASCII only; a brace
//! that is no repetition is a literal (`/users/{id}`); a bracket within brackets is a literal; `\Q…\E` quotes.
//!
//! *Guaranteed*: matching takes time in proportion to the text, whatever the expression, and a compiled
//! expression is bounded in size. *Not done*: syntax that only Go has, which is octal escapes.

use std::fmt;

use regex::bytes::Regex;

/// A compiled regular expression. Two are equal if their texts are.
#[derive(Clone)]
pub struct RegexPattern {
    text: String,
    regex: Regex,
}

/// Why a text is not a regular expression: one line, without the text itself.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct PatternError(String);

impl RegexPattern {
    /// Compiles an expression in Go's syntax.
    ///
    /// # Errors
    ///
    /// If the text is not an expression, or too large.
    pub fn new(text: &str) -> Result<Self, PatternError> {
        let regex = Regex::new(&translate(text)).map_err(|error| PatternError(reason(&error)))?;
        Ok(Self { text: text.to_owned(), regex })
    }

    /// The original text.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Whether it matches anywhere in the text.
    pub fn is_match(&self, text: &[u8]) -> bool {
        self.regex.is_match(text)
    }

    pub fn regex(&self) -> &Regex {
        &self.regex
    }

    /// The names of its groups from the first one on, `None` for one without a name.
    pub fn groups(&self) -> impl Iterator<Item = Option<&str>> {
        self.regex.capture_names().skip(1)
    }
}

impl PartialEq for RegexPattern {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl Eq for RegexPattern {}

impl fmt::Debug for RegexPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "/{}/", self.text)
    }
}

/// The last line of the crate's message; those before it show the expression.
fn reason(error: &regex::Error) -> String {
    match error {
        regex::Error::CompiledTooBig(limit) => format!("the compiled expression takes more than {limit} bytes"),
        error => {
            let text = error.to_string();
            let last = text.lines().last().unwrap_or_default();
            last.strip_prefix("error: ").unwrap_or(last).to_owned()
        }
    }
}

/// Translates Go's syntax to the crate's.
fn translate(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 16);
    let mut rest = text;
    let mut class = BracketPosition::Outside;
    while let Some(c) = rest.chars().next() {
        let tail = rest.get(c.len_utf8()..).unwrap_or_default();
        rest = match c {
            '\\' => {
                class = if class == BracketPosition::Start { BracketPosition::Inside } else { class };
                escape(&mut out, tail, class)
            }
            _ if class != BracketPosition::Outside => in_class(&mut out, c, tail, &mut class),
            '[' => {
                let negated = tail.strip_prefix('^');
                out.push_str(if negated.is_some() { "[^" } else { "[" });
                class = BracketPosition::Start;
                negated.unwrap_or(tail)
            }
            '{' if !is_repetition(tail) => push(&mut out, "\\{", tail),
            c => {
                out.push(c);
                tail
            }
        };
    }
    out
}

/// The position relative to a class. At its start a closing bracket is a literal.
#[derive(Clone, Copy, PartialEq, Eq)]
enum BracketPosition {
    Outside,
    Start,
    Inside,
}

fn push<'a>(out: &mut String, text: &str, rest: &'a str) -> &'a str {
    out.push_str(text);
    rest
}

/// Translates an escape after its backslash.
fn escape<'a>(out: &mut String, tail: &'a str, class: BracketPosition) -> &'a str {
    let Some(c) = tail.chars().next() else { return push(out, "\\", tail) };
    let rest = tail.get(c.len_utf8()..).unwrap_or_default();
    match c {
        'd' => push(out, "[0-9]", rest),
        'D' => push(out, "[^0-9]", rest),
        's' => push(out, r"[\t\n\x0C\r ]", rest),
        'S' => push(out, r"[^\t\n\x0C\r ]", rest),
        'w' => push(out, "[0-9A-Za-z_]", rest),
        'W' => push(out, "[^0-9A-Za-z_]", rest),
        'b' | 'B' if class == BracketPosition::Outside => {
            push(out, if c == 'b' { r"(?-u:\b)" } else { r"(?-u:\B)" }, rest)
        }
        'Q' => {
            let (quoted, rest) = rest.split_once("\\E").unwrap_or((rest, ""));
            push(out, &regex::escape(quoted), rest)
        }
        // The braces here contain the name of a property or a character.
        'p' | 'P' | 'x' if rest.starts_with('{') => match rest.split_once('}') {
            Some((name, rest)) => push(out, &format!("\\{c}{name}}}"), rest),
            None => push(out, &format!("\\{c}"), rest),
        },
        c => {
            out.push('\\');
            out.push(c);
            rest
        }
    }
}

/// Translates a character within a class, the closing bracket included.
fn in_class<'a>(out: &mut String, c: char, tail: &'a str, class: &mut BracketPosition) -> &'a str {
    let at_start = std::mem::replace(class, BracketPosition::Inside) == BracketPosition::Start;
    match c {
        ']' if at_start => push(out, "\\]", tail),
        ']' => {
            *class = BracketPosition::Outside;
            push(out, "]", tail)
        }
        '[' if tail.starts_with(':') => match tail.split_once(":]") {
            Some((name, rest)) => push(out, &format!("[{name}:]"), rest),
            None => push(out, "\\[", tail),
        },
        '[' => push(out, "\\[", tail),
        // Sequences that are set operations only in the crate's syntax.
        '&' | '~' => push(out, &format!("\\{c}"), tail),
        '-' if tail.starts_with('-') => push(out, "\\-", tail),
        c => {
            out.push(c);
            tail
        }
    }
}

/// Whether the text after a brace is a repetition: `2}`, `2,}` or `2,5}`.
fn is_repetition(tail: &str) -> bool {
    let Some((inner, _)) = tail.split_once('}') else { return false };
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    match inner.split_once(',') {
        Some((least, most)) => is_number(least) && (most.is_empty() || is_number(most)),
        None => is_number(inner),
    }
}

#[cfg(test)]
mod tests;
