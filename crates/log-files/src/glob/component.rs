//! A pattern for one name of a path, and the syntax that patterns share.

use super::GlobError;

/// A pattern for one name, without `/` and `{`.
#[derive(Debug, Clone)]
pub(crate) struct NamePattern {
    tokens: Vec<Token>,
    literal: Option<Vec<u8>>,
}

#[derive(Debug, Clone)]
enum Token {
    Literal(char),
    /// A byte of a name that is not UTF-8 stands for a character of its own, which no literal matches.
    AnyCharacter,
    AnyText,
    Class {
        negated: bool,
        ranges: Vec<(char, char)>,
    },
}

impl NamePattern {
    /// `text` has been validated.
    pub(super) fn parse(text: &str) -> Self {
        let mut tokens = Vec::new();
        let mut characters = text.chars();
        while let Some(character) = characters.next() {
            let token = match character {
                '*' => Token::AnyText,
                '?' => Token::AnyCharacter,
                '[' => parse_class(&mut characters),
                '\\' => Token::Literal(characters.next().unwrap_or('\\')),
                other => Token::Literal(other),
            };
            // Several stars mean no more than one.
            if !(matches!(token, Token::AnyText) && matches!(tokens.last(), Some(Token::AnyText))) {
                tokens.push(token);
            }
        }
        let literal: Option<String> = tokens
            .iter()
            .map(|token| match token {
                Token::Literal(character) => Some(*character),
                _ => None,
            })
            .collect();
        Self { tokens, literal: literal.map(String::into_bytes) }
    }

    /// The only name that matches, if the text contains no pattern.
    pub(crate) fn literal(&self) -> Option<&[u8]> {
        self.literal.as_deref()
    }

    pub(crate) fn matches(&self, name: &[u8]) -> bool {
        if let Some(literal) = &self.literal {
            return literal == name;
        }
        let name = decode(name);
        let mut token = 0;
        let mut at = 0;
        // Where to go on after the last star if the rest does not match.
        let mut retry: Option<(usize, usize)> = None;
        loop {
            let stepped = match (self.tokens.get(token), name.get(at)) {
                (None, None) => return true,
                (Some(Token::AnyText), _) => {
                    retry = Some((token + 1, at));
                    token += 1;
                    continue;
                }
                (Some(single), Some(character)) => single.matches(*character),
                _ => false,
            };
            if stepped {
                token += 1;
                at += 1;
                continue;
            }
            match &mut retry {
                Some((after_star, from)) if *from < name.len() => {
                    *from += 1;
                    (token, at) = (*after_star, *from);
                }
                _ => return false,
            }
        }
    }
}

impl Token {
    fn matches(&self, character: Option<char>) -> bool {
        match self {
            Self::Literal(literal) => character == Some(*literal),
            Self::AnyCharacter | Self::AnyText => true,
            Self::Class { negated, ranges } => {
                let within =
                    character.is_some_and(|found| ranges.iter().any(|(first, last)| (*first..=*last).contains(&found)));
                within != *negated
            }
        }
    }
}

fn parse_class(characters: &mut std::str::Chars<'_>) -> Token {
    let mut negated = false;
    if matches!(characters.as_str().chars().next(), Some('^' | '!')) {
        negated = true;
        characters.next();
    }
    let mut ranges: Vec<(char, char)> = Vec::new();
    while let Some(mut first) = characters.next() {
        if first == ']' {
            break;
        }
        if first == '\\' {
            first = characters.next().unwrap_or('\\');
        }
        let mut rest = characters.as_str().chars();
        let last = match (rest.next(), rest.next()) {
            (Some('-'), Some(end)) if end != ']' => {
                characters.next();
                characters.next();
                if end == '\\' { characters.next().unwrap_or('\\') } else { end }
            }
            _ => first,
        };
        ranges.push((first, last));
    }
    Token::Class { negated, ranges }
}

/// The characters of a name; `None` stands for a byte that is not UTF-8.
fn decode(name: &[u8]) -> Vec<Option<char>> {
    name.utf8_chunks()
        .flat_map(|chunk| chunk.valid().chars().map(Some).chain(chunk.invalid().iter().map(|_| None)))
        .collect()
}

/// The bytes of a pattern that are neither escaped nor part of a class, with their places.
pub(super) fn unquoted_bytes(text: &str) -> impl Iterator<Item = (usize, u8)> {
    let mut escaped = false;
    let mut in_class = false;
    text.bytes().enumerate().filter(move |(_, byte)| {
        if std::mem::take(&mut escaped) {
            return false;
        }
        match byte {
            b'\\' => escaped = true,
            b'[' if !in_class => in_class = true,
            b']' if in_class => in_class = false,
            _ => return !in_class,
        }
        false
    })
}

/// Reports the first place that is no pattern.
pub(super) fn validate(text: &str) -> Result<(), GlobError> {
    let error = |at, reason| Err(GlobError::Syntax { at, reason });
    let mut open_braces = Vec::new();
    let mut bytes = text.bytes().enumerate().peekable();
    while let Some((at, byte)) = bytes.next() {
        match byte {
            0 => return error(at, "a NUL"),
            b'\\' if bytes.next().is_none() => return error(at, "nothing follows `\\`"),
            b'{' => open_braces.push(at),
            b'}' if open_braces.pop().is_none() => return error(at, "`}` without `{`"),
            b'[' => {
                bytes.next_if(|(_, next)| matches!(next, b'^' | b'!'));
                let mut is_empty = true;
                loop {
                    match bytes.next() {
                        None => return error(at, "`[` without `]`"),
                        Some((_, b']')) if is_empty => return error(at, "`[]` matches nothing"),
                        Some((_, b']')) => break,
                        Some((_, b'/')) => return error(at, "`/` in a class"),
                        Some((escape, b'\\')) if bytes.next().is_none() => {
                            return error(escape, "nothing follows `\\`");
                        }
                        Some(_) => is_empty = false,
                    }
                }
            }
            _ => {}
        }
    }
    match open_braces.last() {
        Some(at) => error(*at, "`{` without `}`"),
        None => Ok(()),
    }
}
