//! The tokens of expressions.

use super::ExpressionError;

/// A token and the column at which it begins.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Token {
    pub(super) kind: TokenKind,
    pub(super) column: usize,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum TokenKind {
    /// A name or a word such as `and`.
    Name(String),
    Text(String),
    Int(i64),
    Float(f64),
    /// An operator or a bracket.
    Symbol(&'static str),
    End,
}

/// The symbols. Of two that begin alike the longer one is first.
const SYMBOLS: [&str; 33] = [
    "?.", "??", "**", "..", "==", "!=", "<=", ">=", "&&", "||", "(", ")", "[", "]", "{", "}", "+", "-", "*", "/", "%",
    "^", "<", ">", "!", "?", ":", ",", ".", "|", "#", ";", "=",
];

impl TokenKind {
    /// The token as a message shows it.
    pub(super) fn describe(&self) -> String {
        match self {
            Self::Name(name) => format!("`{}`", crate::problem::crop(name)),
            Self::Text(_) => "a text".to_owned(),
            Self::Int(_) | Self::Float(_) => "a number".to_owned(),
            Self::Symbol(symbol) => format!("`{symbol}`"),
            Self::End => "the end".to_owned(),
        }
    }
}

/// The tokens of a text, with an end.
pub(super) fn tokens(text: &str) -> Result<Vec<Token>, ExpressionError> {
    let mut lexer = Lexer { rest: text, column: 1 };
    let mut tokens = Vec::new();
    loop {
        lexer.skip_space()?;
        let column = lexer.column;
        let kind = lexer.next()?;
        let is_end = kind == TokenKind::End;
        tokens.push(Token { kind, column });
        if is_end {
            return Ok(tokens);
        }
    }
}

struct Lexer<'t> {
    rest: &'t str,
    column: usize,
}

impl<'t> Lexer<'t> {
    fn peek(&self) -> Option<char> {
        self.rest.chars().next()
    }

    fn advance(&mut self) -> Option<char> {
        let mut chars = self.rest.chars();
        let c = chars.next()?;
        self.rest = chars.as_str();
        self.column += 1;
        Some(c)
    }

    fn take_while(&mut self, wanted: impl Fn(char) -> bool) -> &'t str {
        let length = self.rest.find(|c| !wanted(c)).unwrap_or(self.rest.len());
        let (taken, rest) = self.rest.split_at_checked(length).unwrap_or((self.rest, ""));
        self.rest = rest;
        self.column += taken.chars().count();
        taken
    }

    fn skip_space(&mut self) -> Result<(), ExpressionError> {
        loop {
            self.take_while(char::is_whitespace);
            if self.rest.starts_with("//") {
                self.take_while(|c| c != '\n');
            } else if self.rest.starts_with("/*") {
                let column = self.column;
                let Some(end) = self.rest.find("*/") else {
                    return Err(error(column, "the comment is not closed"));
                };
                let (comment, rest) = self.rest.split_at_checked(end + 2).unwrap_or((self.rest, ""));
                self.column += comment.chars().count();
                self.rest = rest;
            } else {
                return Ok(());
            }
        }
    }

    fn next(&mut self) -> Result<TokenKind, ExpressionError> {
        let column = self.column;
        let Some(c) = self.peek() else { return Ok(TokenKind::End) };
        let starts_fraction = c == '.' && self.rest.as_bytes().get(1).is_some_and(u8::is_ascii_digit);
        match c {
            '"' | '\'' => self.quoted(c),
            '`' => self.raw(),
            c if c.is_ascii_digit() || starts_fraction => self.number(),
            c if c.is_alphabetic() || matches!(c, '_' | '$') => {
                let name = self.take_while(|c| c.is_alphanumeric() || matches!(c, '_' | '$'));
                Ok(TokenKind::Name(name.to_owned()))
            }
            c => match SYMBOLS.iter().find(|symbol| self.rest.starts_with(**symbol)) {
                Some(symbol) => {
                    symbol.chars().for_each(|_| {
                        self.advance();
                    });
                    Ok(TokenKind::Symbol(symbol))
                }
                None => Err(error(column, format!("unexpected character {c:?}"))),
            },
        }
    }

    /// A text in single or double quotes.
    fn quoted(&mut self, quote: char) -> Result<TokenKind, ExpressionError> {
        let opened = self.column;
        self.advance();
        let mut text = String::new();
        loop {
            let column = self.column;
            match self.advance() {
                Some(c) if c == quote => return Ok(TokenKind::Text(text)),
                Some('\\') => text.push(self.escape(column)?),
                Some('\n') | None => return Err(error(opened, "the text is not closed")),
                Some(c) => text.push(c),
            }
        }
    }

    /// The character that an escape stands for, after its backslash.
    fn escape(&mut self, column: usize) -> Result<char, ExpressionError> {
        let unknown = || error(column, "unknown escape: write `\\\\` for a backslash");
        let digits = match self.advance().ok_or_else(unknown)? {
            'a' => return Ok('\u{7}'),
            'b' => return Ok('\u{8}'),
            'f' => return Ok('\u{c}'),
            'n' => return Ok('\n'),
            'r' => return Ok('\r'),
            't' => return Ok('\t'),
            'v' => return Ok('\u{b}'),
            c @ ('\\' | '"' | '\'') => return Ok(c),
            'x' => 2,
            'u' => 4,
            'U' => 8,
            _ => return Err(unknown()),
        };
        let mut code = 0_u32;
        for _ in 0..digits {
            let digit = self.advance().and_then(|c| c.to_digit(16)).ok_or_else(unknown)?;
            code = code.checked_mul(16).and_then(|code| code.checked_add(digit)).ok_or_else(unknown)?;
        }
        char::from_u32(code).ok_or_else(unknown)
    }

    /// A text in back quotes, in which nothing is escaped.
    fn raw(&mut self) -> Result<TokenKind, ExpressionError> {
        let opened = self.column;
        self.advance();
        let text = self.take_while(|c| c != '`');
        self.advance().ok_or_else(|| error(opened, "the text is not closed"))?;
        Ok(TokenKind::Text(text.to_owned()))
    }

    fn number(&mut self) -> Result<TokenKind, ExpressionError> {
        let column = self.column;
        let wrong = || error(column, "this is not a number, or does not fit 64 bits");
        for (prefix, radix) in [("0x", 16), ("0b", 2), ("0o", 8)] {
            if self.rest.starts_with(prefix) {
                self.advance();
                self.advance();
                let digits = self.take_while(|c| c.is_ascii_alphanumeric() || c == '_').replace('_', "");
                return i64::from_str_radix(&digits, radix).map(TokenKind::Int).map_err(|_| wrong());
            }
        }
        let mut text = self.take_while(|c| c.is_ascii_digit() || c == '_').to_owned();
        let mut is_float = false;
        // `1..3` is a range.
        if self.rest.starts_with('.') && !self.rest.starts_with("..") {
            is_float = true;
            self.advance();
            text.push('.');
            text.push_str(self.take_while(|c| c.is_ascii_digit() || c == '_'));
        }
        if self.rest.starts_with(['e', 'E']) {
            is_float = true;
            self.advance();
            text.push('e');
            if self.rest.starts_with(['+', '-']) {
                text.extend(self.advance());
            }
            text.push_str(self.take_while(|c| c.is_ascii_digit()));
        }
        if self.peek().is_some_and(char::is_alphabetic) {
            return Err(wrong());
        }
        let text = text.replace('_', "");
        if is_float {
            return text.parse().map(TokenKind::Float).map_err(|_| wrong());
        }
        text.parse().map(TokenKind::Int).map_err(|_| wrong())
    }
}

fn error(column: usize, problem: impl Into<String>) -> ExpressionError {
    ExpressionError { column, problem: problem.into() }
}
