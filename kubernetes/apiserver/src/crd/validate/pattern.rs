//! Regular expressions in Go's syntax.

use regex::Regex;

/// A `pattern` of a schema.
#[derive(Debug)]
pub(crate) struct SchemaPattern {
    text: String,
    compiled: Result<Regex, String>,
}

impl SchemaPattern {
    pub(crate) fn new(text: &str) -> Self {
        let compiled = Regex::new(&translate_go_pattern(text)).map_err(|error| error.to_string());
        Self { text: text.to_owned(), compiled }
    }

    /// Why it is not a regular expression.
    pub(crate) fn problem(&self) -> Option<&str> {
        self.compiled.as_ref().err().map(String::as_str)
    }

    pub(super) fn text(&self) -> &str {
        &self.text
    }

    pub(super) fn matches(&self, text: &str) -> bool {
        self.compiled.as_ref().is_ok_and(|compiled| compiled.is_match(text))
    }
}

/// The two syntaxes differ in that Go's classes `\d`, `\w`, `\s` and `\b` are ASCII only, and that within
/// brackets `[`, `&`, `~` are plain characters.
pub(crate) fn translate_go_pattern(pattern: &str) -> String {
    let mut out = String::with_capacity(pattern.len() + 16);
    let mut chars = pattern.chars().peekable();
    let mut in_class = false;
    let mut class_start = false;
    while let Some(char) = chars.next() {
        let at_start = std::mem::take(&mut class_start);
        match char {
            '\\' => match chars.next() {
                Some(escaped) => push_escape(&mut out, escaped, in_class),
                None => out.push('\\'),
            },
            '[' if !in_class => {
                in_class = true;
                class_start = true;
                out.push('[');
                if chars.next_if_eq(&'^').is_some() {
                    out.push('^');
                }
            }
            '[' if chars.peek() != Some(&':') => out.push_str("\\["),
            ']' if at_start => out.push_str("\\]"),
            ']' => {
                // The end of `[:alpha:]` is not the end of the surrounding class.
                in_class =
                    in_class && out.ends_with(':') && out.rfind("[:").is_some_and(|from| !out[from..].contains(']'));
                out.push(']');
            }
            '&' | '~' if in_class => {
                out.push('\\');
                out.push(char);
            }
            other => out.push(other),
        }
    }
    out
}

fn push_escape(out: &mut String, escaped: char, in_class: bool) {
    match escaped {
        'd' => out.push_str("[0-9]"),
        'D' => out.push_str("[^0-9]"),
        'w' => out.push_str("[0-9A-Za-z_]"),
        'W' => out.push_str("[^0-9A-Za-z_]"),
        's' => out.push_str("[\\t\\n\\f\\r ]"),
        'S' => out.push_str("[^\\t\\n\\f\\r ]"),
        'b' | 'B' if !in_class => out.push_str(if escaped == 'b' { "(?-u:\\b)" } else { "(?-u:\\B)" }),
        other => {
            out.push('\\');
            out.push(other);
        }
    }
}
