//! Simple JSON paths, as `.spec.size` or `.spec['a.b']`, followed through a schema.

use crate::schema::{Schema, SchemaShape};

/// The field of a path, in the notation of field errors, or why there is none.
pub(crate) fn resolve_field<'s>(
    path: &str,
    schema: &'s Schema,
    brackets: bool,
) -> Result<(String, &'s Schema), String> {
    let mut here = schema;
    let mut written = String::new();
    let mut tokens = PathTokens(path);
    while let Some(token) = tokens.next() {
        let name = match token {
            "." => tokens.next().ok_or("unexpected end of JSON path")?.to_owned(),
            "[" if !brackets => return Err("array notation is not allowed".to_owned()),
            "[" => {
                let name = quoted(tokens.next().ok_or("unexpected end of JSON path")?)?;
                match tokens.next() {
                    Some("]") => name,
                    Some(other) => return Err(format!("expected ] but got {other}")),
                    None => return Err("unexpected end of JSON path".to_owned()),
                }
            }
            other => return Err(format!("expected [ or . but got: {other}")),
        };
        let lost = || "does not refer to a valid field".to_owned();
        match &here.shape {
            SchemaShape::Object { fields, .. } => {
                here = fields.get(name.as_str()).ok_or_else(lost)?;
                if !written.is_empty() {
                    written.push('.');
                }
                written.push_str(&name);
            }
            SchemaShape::Map { values, .. } => {
                here = values;
                written.push_str(&format!("[{name}]"));
            }
            _ => return Err(lost()),
        }
    }
    Ok((written, here))
}

/// Splits a path into delimiters, quoted texts, and the text between them.
struct PathTokens<'a>(&'a str);

impl<'a> PathTokens<'a> {
    fn next(&mut self) -> Option<&'a str> {
        let end = match self.0.bytes().next()? {
            b'.' | b'[' | b']' => 1,
            b'\'' => closing_quote(self.0),
            _ => self.0.find(['.', '[', ']']).unwrap_or(self.0.len()),
        };
        let (token, rest) = self.0.split_at_checked(end)?;
        self.0 = rest;
        Some(token)
    }
}

fn closing_quote(text: &str) -> usize {
    let mut escaped = false;
    for (at, char) in text.char_indices().skip(1) {
        match char {
            '\'' if !escaped => return at + 1,
            '\\' => escaped = !escaped,
            _ => escaped = false,
        }
    }
    text.len()
}

fn quoted(token: &str) -> Result<String, String> {
    let inner = token.strip_prefix('\'').and_then(|rest| rest.strip_suffix('\''));
    let inner = inner.ok_or_else(|| format!("expected single quoted string but got {token}"))?;
    let mut text = String::new();
    let mut chars = inner.chars();
    while let Some(char) = chars.next() {
        text.push(match char {
            '\\' => match chars.next() {
                Some('n') => '\n',
                Some('r') => '\r',
                Some('t') => '\t',
                Some(same @ ('\'' | '\\')) => same,
                other => {
                    return Err(format!("invalid string literal: invalid escape char \\{}", other.unwrap_or_default()));
                }
            },
            other => other,
        });
    }
    Ok(text)
}
