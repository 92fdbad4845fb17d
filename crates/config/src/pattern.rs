//! Regular expressions as Go writes them.
//!
//! A document that worked for the Collector was written for Go's syntax, which is nearly that of the `regex` crate. Where the two read
//! the same text differently it is translated: `\d`, `\s`, `\w` and `\b` know ASCII alone; a brace that counts nothing
//! is a brace (`/users/{id}`); a bracket within brackets is a bracket; `\Q…\E` quotes.
//!
//! *Guarantees.* Matching takes time in proportion to the text, whatever the expression, and a compiled expression is bounded in size.
//! *Does not* know what Go alone has: octal escapes.

use std::fmt;

use regex::bytes::Regex;

/// A regular expression that compiles. Two are equal if they are written alike.
#[derive(Clone)]
pub struct Pattern {
    text: String,
    regex: Regex,
}

/// Why a text is no regular expression. One line, without the text itself.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct PatternError(String);

impl Pattern {
    /// Compiles an expression in Go's syntax.
    ///
    /// # Errors
    ///
    /// If it is none, or too large.
    pub fn new(text: &str) -> Result<Self, PatternError> {
        let regex = Regex::new(&translate(text)).map_err(|error| PatternError(reason(&error)))?;
        Ok(Self { text: text.to_owned(), regex })
    }

    /// The expression as it was written.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Whether it is found anywhere in the text.
    pub fn is_match(&self, text: &[u8]) -> bool {
        self.regex.is_match(text)
    }

    /// The expression itself.
    pub fn regex(&self) -> &Regex {
        &self.regex
    }

    /// The names of its groups from the first one on, `None` for one without a name.
    pub fn groups(&self) -> impl Iterator<Item = Option<&str>> {
        self.regex.capture_names().skip(1)
    }
}

impl PartialEq for Pattern {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl Eq for Pattern {}

impl fmt::Debug for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "/{}/", self.text)
    }
}

/// The last line of what the crate says; those before it show the expression.
fn reason(error: &regex::Error) -> String {
    match error {
        regex::Error::CompiledTooBig(limit) => format!("it takes more than {limit} bytes when compiled"),
        error => {
            let text = error.to_string();
            let last = text.lines().last().unwrap_or_default();
            last.strip_prefix("error: ").unwrap_or(last).to_owned()
        }
    }
}

/// From Go's syntax to the crate's.
fn translate(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 16);
    let mut rest = text;
    let mut class = Class::Outside;
    while let Some(c) = rest.chars().next() {
        let tail = rest.get(c.len_utf8()..).unwrap_or_default();
        rest = match c {
            '\\' => {
                class = if class == Class::Start { Class::Inside } else { class };
                escape(&mut out, tail, class)
            }
            _ if class != Class::Outside => in_class(&mut out, c, tail, &mut class),
            '[' => {
                let negated = tail.strip_prefix('^');
                out.push_str(if negated.is_some() { "[^" } else { "[" });
                class = Class::Start;
                negated.unwrap_or(tail)
            }
            '{' if !counts(tail) => push(&mut out, "\\{", tail),
            c => {
                out.push(c);
                tail
            }
        };
    }
    out
}

/// Where in a class one is. At its start a closing bracket is a bracket.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Class {
    Outside,
    Start,
    Inside,
}

fn push<'a>(out: &mut String, text: &str, rest: &'a str) -> &'a str {
    out.push_str(text);
    rest
}

/// What stands behind a backslash.
fn escape<'a>(out: &mut String, tail: &'a str, class: Class) -> &'a str {
    let Some(c) = tail.chars().next() else { return push(out, "\\", tail) };
    let rest = tail.get(c.len_utf8()..).unwrap_or_default();
    match c {
        'd' => push(out, "[0-9]", rest),
        'D' => push(out, "[^0-9]", rest),
        's' => push(out, r"[\t\n\x0C\r ]", rest),
        'S' => push(out, r"[^\t\n\x0C\r ]", rest),
        'w' => push(out, "[0-9A-Za-z_]", rest),
        'W' => push(out, "[^0-9A-Za-z_]", rest),
        'b' | 'B' if class == Class::Outside => push(out, if c == 'b' { r"(?-u:\b)" } else { r"(?-u:\B)" }, rest),
        'Q' => {
            let (quoted, rest) = rest.split_once("\\E").unwrap_or((rest, ""));
            push(out, &regex::escape(quoted), rest)
        }
        // What is in braces here names a property or a character.
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

/// A character of a class, the closing bracket included.
fn in_class<'a>(out: &mut String, c: char, tail: &'a str, class: &mut Class) -> &'a str {
    let at_start = std::mem::replace(class, Class::Inside) == Class::Start;
    match c {
        ']' if at_start => push(out, "\\]", tail),
        ']' => {
            *class = Class::Outside;
            push(out, "]", tail)
        }
        '[' if tail.starts_with(':') => match tail.split_once(":]") {
            Some((name, rest)) => push(out, &format!("[{name}:]"), rest),
            None => push(out, "\\[", tail),
        },
        '[' => push(out, "\\[", tail),
        // The crate has operations on classes here.
        '&' | '~' => push(out, &format!("\\{c}"), tail),
        '-' if tail.starts_with('-') => push(out, "\\-", tail),
        c => {
            out.push(c);
            tail
        }
    }
}

/// Whether what stands behind a brace counts a repetition: `2}`, `2,}` or `2,5}`.
fn counts(tail: &str) -> bool {
    let Some((inner, _)) = tail.split_once('}') else { return false };
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    match inner.split_once(',') {
        Some((least, most)) => is_number(least) && (most.is_empty() || is_number(most)),
        None => is_number(inner),
    }
}

#[cfg(test)]
mod tests;
