//! Writes strings: plain, in quotes, or as a block, with long lines broken.

use std::fmt::Write as _;

/// Lines are broken at the first blank after this column.
const MAX_LINE_WIDTH: usize = 80;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum EmitStyle {
    Plain,
    Single,
    Double,
    Literal,
}

#[derive(Default)]
pub(super) struct YamlWriter {
    out: String,
    column: usize,
}

impl YamlWriter {
    pub(super) fn push(&mut self, text: &str) {
        self.out.push_str(text);
        self.column += text.chars().count();
    }

    pub(super) fn line(&mut self, indent: usize) {
        // A block that keeps its last line breaks has ended its line.
        if !self.out.ends_with('\n') {
            self.out.push('\n');
        }
        self.out.extend(std::iter::repeat_n(' ', indent));
        self.column = indent;
    }

    pub(super) fn finish(mut self) -> String {
        if !self.out.ends_with('\n') {
            self.out.push('\n');
        }
        self.out
    }

    /// A text in this style, or in the next one that supports it. A key stays on one line.
    pub(super) fn scalar(&mut self, text: &str, wanted: EmitStyle, indent: usize, key: bool) {
        match choose_style(text, wanted, key) {
            EmitStyle::Plain => self.write_folded(text, indent, !key),
            EmitStyle::Single => {
                self.push("'");
                self.write_folded(&text.replace('\'', "''"), indent, !key);
                self.push("'");
            }
            EmitStyle::Double => self.double(text, indent, !key),
            EmitStyle::Literal => self.literal(text, indent),
        }
    }

    /// A text without line breaks of its own.
    fn write_folded(&mut self, text: &str, indent: usize, may_break: bool) {
        let mut after_space = false;
        let last = text.len().saturating_sub(1);
        for (at, c) in text.char_indices() {
            if c != ' ' {
                self.put(c);
                after_space = false;
                continue;
            }
            let next_is_space = text.as_bytes().get(at + 1) == Some(&b' ');
            let breaks =
                may_break && !after_space && self.column > MAX_LINE_WIDTH && at > 0 && at < last && !next_is_space;
            if breaks {
                self.line(indent);
            } else {
                self.put(' ');
            }
            after_space = true;
        }
    }

    fn double(&mut self, text: &str, indent: usize, may_break: bool) {
        self.push("\"");
        let mut after_space = false;
        let last = text.len().saturating_sub(1);
        for (at, c) in text.char_indices() {
            if !is_printable(c) || is_break(c) || matches!(c, '"' | '\\') {
                self.escape(c);
                after_space = false;
            } else if c == ' ' {
                if may_break && !after_space && self.column > MAX_LINE_WIDTH && at > 0 && at < last {
                    self.line(indent);
                    if text.as_bytes().get(at + 1) == Some(&b' ') {
                        self.put('\\');
                    }
                } else {
                    self.put(' ');
                }
                after_space = true;
            } else {
                self.put(c);
                after_space = false;
            }
        }
        self.push("\"");
    }

    fn escape(&mut self, c: char) {
        let before = self.out.len();
        match c {
            '\0' => self.out.push_str("\\0"),
            '\u{7}' => self.out.push_str("\\a"),
            '\u{8}' => self.out.push_str("\\b"),
            '\t' => self.out.push_str("\\t"),
            '\n' => self.out.push_str("\\n"),
            '\u{b}' => self.out.push_str("\\v"),
            '\u{c}' => self.out.push_str("\\f"),
            '\r' => self.out.push_str("\\r"),
            '\u{1b}' => self.out.push_str("\\e"),
            '"' => self.out.push_str("\\\""),
            '\\' => self.out.push_str("\\\\"),
            '\u{85}' => self.out.push_str("\\N"),
            '\u{2028}' => self.out.push_str("\\L"),
            '\u{2029}' => self.out.push_str("\\P"),
            c => {
                _ = match u32::from(c) {
                    code @ 0..=0xff => write!(self.out, "\\x{code:02X}"),
                    code @ 0x100..=0xffff => write!(self.out, "\\u{code:04X}"),
                    code => write!(self.out, "\\U{code:08X}"),
                };
            }
        }
        self.column += self.out.len() - before;
    }

    /// A block, line by line.
    fn literal(&mut self, text: &str, indent: usize) {
        self.push("|");
        if text.starts_with([' ', '\n']) {
            self.push("2");
        }
        match text.strip_suffix('\n') {
            None => self.push("-"),
            Some(rest) if rest.is_empty() || rest.ends_with('\n') => self.push("+"),
            Some(_) => {}
        }
        for line in text.strip_suffix('\n').unwrap_or(text).split('\n') {
            self.out.push('\n');
            if !line.is_empty() {
                self.out.extend(std::iter::repeat_n(' ', indent));
                self.out.push_str(line);
            }
        }
        if text.ends_with('\n') {
            self.out.push('\n');
        }
        self.column = 0;
    }

    fn put(&mut self, c: char) {
        self.out.push(c);
        self.column += 1;
    }
}

/// The styles that a text's characters allow.
#[derive(Default)]
struct ScalarTraits {
    /// Whether it would be resolved as something else without quotes.
    indicators: bool,
    /// Whether it has characters that only double quotes can contain.
    special: bool,
    outer_space: bool,
    trailing_space: bool,
    space_before_break: bool,
    space_after_break: bool,
    breaks: bool,
}

fn choose_style(text: &str, wanted: EmitStyle, key: bool) -> EmitStyle {
    let traits = scalar_traits(text);
    let plain = !traits.indicators && !traits.special && !traits.outer_space && !traits.breaks;
    let single = !traits.special && !traits.breaks;
    let block = !traits.special && !traits.trailing_space && !traits.space_before_break;
    match wanted {
        EmitStyle::Plain if plain => EmitStyle::Plain,
        EmitStyle::Plain | EmitStyle::Single if single && !traits.space_after_break => EmitStyle::Single,
        EmitStyle::Literal if block && !key => EmitStyle::Literal,
        _ => EmitStyle::Double,
    }
}

fn scalar_traits(text: &str) -> ScalarTraits {
    let mut traits =
        ScalarTraits { indicators: text.starts_with("---") || text.starts_with("..."), ..ScalarTraits::default() };
    let mut previous = None;
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        let next = chars.peek().copied();
        let blank_follows = next.is_none_or(|c| is_blank(c) || is_break(c));
        traits.indicators |= match (previous, c) {
            (None, '#' | ',' | '[' | ']' | '{' | '}' | '&' | '*' | '!' | '|' | '>' | '\'' | '"' | '%' | '@' | '`') => {
                true
            }
            (None, '?' | ':' | '-') | (Some(_), ':') => blank_follows,
            (Some(before), '#') => is_blank(before) || is_break(before),
            _ => false,
        };
        // Other line breaks than go-yaml's own would be read differently by others.
        traits.special |= !is_printable(c) || (is_break(c) && c != '\n');
        traits.outer_space |= c == ' ' && (previous.is_none() || next.is_none());
        traits.trailing_space |= c == ' ' && next.is_none();
        traits.breaks |= is_break(c);
        traits.space_before_break |= previous == Some(' ') && is_break(c);
        traits.space_after_break |= previous.is_some_and(is_break) && c == ' ';
        previous = Some(c);
    }
    traits
}

fn is_blank(c: char) -> bool {
    matches!(c, ' ' | '\t')
}

fn is_break(c: char) -> bool {
    matches!(c, '\n' | '\r' | '\u{85}' | '\u{2028}' | '\u{2029}')
}

fn is_printable(c: char) -> bool {
    match u32::from(c) {
        0xa | 0x20..=0x7e => true,
        0xfeff | 0xfffe | 0xffff => false,
        // go-yaml escapes everything beyond the basic plane.
        code => (0xa0..0x1_0000).contains(&code),
    }
}

/// Whether YAML 1.1 reads the text as a number with base 60: `12:30:45`.
pub(super) fn is_base_60(text: &str) -> bool {
    let mut parts = text.strip_prefix(['+', '-']).unwrap_or(text).split(':');
    let digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit() || byte == b'_');
    let first = parts.next().unwrap_or_default();
    if !first.starts_with(|c: char| c.is_ascii_digit()) || !digits(first) {
        return false;
    }
    let mut parts = parts.peekable();
    let mut any = false;
    while let Some(part) = parts.next() {
        any = true;
        let (whole, fraction) = part.split_once('.').unwrap_or((part, ""));
        let sixty = match whole.as_bytes() {
            [digit] => digit.is_ascii_digit(),
            [ten, one] => matches!(ten, b'0'..=b'5') && one.is_ascii_digit(),
            _ => false,
        };
        let last = parts.peek().is_none();
        if !sixty || !digits(fraction) || (part.contains('.') && !last) {
            return false;
        }
    }
    any
}
