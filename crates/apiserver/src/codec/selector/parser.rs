//! The text form of label selectors. It is read as kube-apiserver's own parser reads it, step by step, since its messages follow from that.

use std::collections::BTreeSet;

use serde_json::Value;

use super::{
    label::{Operator, Requirement},
    lexer::{Token, tokens},
};
use crate::api::{field, text};

/// The requirements of a text, in the order of their keys.
pub(super) fn parse(text: &str) -> Result<Vec<Requirement>, String> {
    Parser { tokens: tokens(text), at: 0 }.parse()
}

struct Parser {
    tokens: Vec<(Token, String)>,
    at: usize,
}

impl Parser {
    fn parse(&mut self) -> Result<Vec<Requirement>, String> {
        let mut requirements = Vec::new();
        loop {
            match self.peek() {
                (Token::Identifier | Token::Not, _) => {}
                (Token::End, _) => break,
                (_, found) => return Err(format!("found '{found}', expected: !, identifier, or 'end of string'")),
            }
            let requirement = self.requirement().map_err(|why| format!("unable to parse requirement: {why}"))?;
            requirements.push(requirement);
            match self.next() {
                (Token::End, _) => break,
                (Token::Comma, _) => match self.peek() {
                    (Token::Identifier | Token::Not, _) => {}
                    (_, found) => return Err(format!("found '{found}', expected: identifier after ','")),
                },
                (_, found) => return Err(format!("found '{found}', expected: ',' or 'end of string'")),
            }
        }
        requirements.sort_by(|a, b| a.key.cmp(&b.key));
        Ok(requirements)
    }

    fn requirement(&mut self) -> Result<Requirement, String> {
        let (mut token, mut key) = self.next();
        let not = token == Token::Not;
        if not {
            (token, key) = self.next();
        }
        if token != Token::Identifier {
            return Err(format!("found '{key}', expected: identifier"));
        }
        let bad = text::qualified(&key);
        if !bad.is_empty() {
            let shown = Value::from(key.as_str());
            return Err(field::Error::invalid("<nil>", &shown, &bad.join("; ")).to_string());
        }
        if not {
            return Requirement::new(key, Operator::DoesNotExist, Vec::new());
        }
        if let (Token::End | Token::Comma, _) = self.peek() {
            return Requirement::new(key, Operator::Exists, Vec::new());
        }
        let operator = self.operator()?;
        let values = match operator {
            (_, true) => self.values()?,
            (_, false) => BTreeSet::from([self.exact_value()?]),
        };
        Requirement::new(key, operator.0, values.into_iter().collect())
    }

    /// The operator, and whether a list follows.
    fn operator(&mut self) -> Result<(Operator, bool), String> {
        // Here `in` and `notin` are operators; everywhere else they are names.
        let (token, found) = self.token(self.at);
        self.at += 1;
        match token {
            Token::In => Ok((Operator::In, true)),
            Token::NotIn => Ok((Operator::NotIn, true)),
            Token::Equals | Token::DoubleEquals => Ok((Operator::In, false)),
            Token::NotEquals => Ok((Operator::NotIn, false)),
            Token::Greater => Ok((Operator::Gt, false)),
            Token::Less => Ok((Operator::Lt, false)),
            _ => Err(format!("found '{found}', expected: in, notin, =, ==, !=, gt, lt")),
        }
    }

    fn values(&mut self) -> Result<BTreeSet<String>, String> {
        let (token, found) = self.next();
        if token != Token::Open {
            return Err(format!("found '{found}' expected: '('"));
        }
        match self.peek() {
            (Token::Identifier | Token::Comma, first) => {
                let values = self.list()?;
                match self.next() {
                    (Token::Close, _) => Ok(values),
                    _ => Err(format!("found '{first}', expected: ')'")),
                }
            }
            (Token::Close, _) => {
                self.next();
                Ok(BTreeSet::from([String::new()]))
            }
            (_, found) => Err(format!("found '{found}', expected: ',', ')' or identifier")),
        }
    }

    /// Up to the closing parenthesis. An empty place is the empty value.
    fn list(&mut self) -> Result<BTreeSet<String>, String> {
        let mut values = BTreeSet::new();
        loop {
            match self.next() {
                (Token::Identifier, value) => {
                    values.insert(value);
                    match self.peek() {
                        (Token::Comma, _) => {}
                        (Token::Close, _) => return Ok(values),
                        (_, found) => return Err(format!("found '{found}', expected: ',' or ')'")),
                    }
                }
                (Token::Comma, _) => {
                    if values.is_empty() {
                        values.insert(String::new());
                    }
                    match self.peek().0 {
                        Token::Close => {
                            values.insert(String::new());
                            return Ok(values);
                        }
                        Token::Comma => {
                            self.next();
                            values.insert(String::new());
                        }
                        _ => {}
                    }
                }
                (_, found) => return Err(format!("found '{found}', expected: ',', or identifier")),
            }
        }
    }

    fn exact_value(&mut self) -> Result<String, String> {
        if let (Token::End | Token::Comma, _) = self.peek() {
            return Ok(String::new());
        }
        match self.next() {
            (Token::Identifier, value) => Ok(value),
            (_, found) => Err(format!("found '{found}', expected: identifier")),
        }
    }

    fn next(&mut self) -> (Token, String) {
        let next = self.peek();
        self.at += 1;
        next
    }

    fn peek(&self) -> (Token, String) {
        match self.token(self.at) {
            (Token::In | Token::NotIn, literal) => (Token::Identifier, literal),
            other => other,
        }
    }

    fn token(&self, at: usize) -> (Token, String) {
        self.tokens.get(at).cloned().unwrap_or((Token::End, String::new()))
    }
}
