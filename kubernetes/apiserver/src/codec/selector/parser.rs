//! Parses the text form of label selectors, with the steps of kube-apiserver's own parser, since its messages
//! follow from them.

use std::collections::BTreeSet;

use serde_json::Value;

use super::{
    label::{LabelRequirement, SelectorOperator},
    lexer::{SelectorToken, tokens},
};
use crate::api::{field, text};

/// The requirements of a text, sorted by key.
pub(super) fn parse(text: &str) -> Result<Vec<LabelRequirement>, String> {
    SelectorParser { tokens: tokens(text), at: 0 }.parse()
}

struct SelectorParser {
    tokens: Vec<(SelectorToken, String)>,
    at: usize,
}

impl SelectorParser {
    fn parse(&mut self) -> Result<Vec<LabelRequirement>, String> {
        let mut requirements = Vec::new();
        loop {
            match self.peek() {
                (SelectorToken::Identifier | SelectorToken::Not, _) => {}
                (SelectorToken::End, _) => break,
                (_, found) => return Err(format!("found '{found}', expected: !, identifier, or 'end of string'")),
            }
            let requirement = self.requirement().map_err(|why| format!("unable to parse requirement: {why}"))?;
            requirements.push(requirement);
            match self.next() {
                (SelectorToken::End, _) => break,
                (SelectorToken::Comma, _) => match self.peek() {
                    (SelectorToken::Identifier | SelectorToken::Not, _) => {}
                    (_, found) => return Err(format!("found '{found}', expected: identifier after ','")),
                },
                (_, found) => return Err(format!("found '{found}', expected: ',' or 'end of string'")),
            }
        }
        requirements.sort_by(|a, b| a.key.cmp(&b.key));
        Ok(requirements)
    }

    fn requirement(&mut self) -> Result<LabelRequirement, String> {
        let (mut token, mut key) = self.next();
        let not = token == SelectorToken::Not;
        if not {
            (token, key) = self.next();
        }
        if token != SelectorToken::Identifier {
            return Err(format!("found '{key}', expected: identifier"));
        }
        let bad = text::qualified(&key);
        if !bad.is_empty() {
            let shown = Value::from(key.as_str());
            return Err(field::FieldError::invalid("<nil>", &shown, &bad.join("; ")).to_string());
        }
        if not {
            return LabelRequirement::new(key, SelectorOperator::DoesNotExist, Vec::new());
        }
        if let (SelectorToken::End | SelectorToken::Comma, _) = self.peek() {
            return LabelRequirement::new(key, SelectorOperator::Exists, Vec::new());
        }
        let operator = self.operator()?;
        let values = match operator {
            (_, true) => self.values()?,
            (_, false) => BTreeSet::from([self.exact_value()?]),
        };
        LabelRequirement::new(key, operator.0, values.into_iter().collect())
    }

    /// The operator, and whether a list follows.
    fn operator(&mut self) -> Result<(SelectorOperator, bool), String> {
        // Here `in` and `notin` are operators; elsewhere they are names.
        let (token, found) = self.token(self.at);
        self.at += 1;
        match token {
            SelectorToken::In => Ok((SelectorOperator::In, true)),
            SelectorToken::NotIn => Ok((SelectorOperator::NotIn, true)),
            SelectorToken::Equals | SelectorToken::DoubleEquals => Ok((SelectorOperator::In, false)),
            SelectorToken::NotEquals => Ok((SelectorOperator::NotIn, false)),
            SelectorToken::Greater => Ok((SelectorOperator::Gt, false)),
            SelectorToken::Less => Ok((SelectorOperator::Lt, false)),
            _ => Err(format!("found '{found}', expected: in, notin, =, ==, !=, gt, lt")),
        }
    }

    fn values(&mut self) -> Result<BTreeSet<String>, String> {
        let (token, found) = self.next();
        if token != SelectorToken::Open {
            return Err(format!("found '{found}' expected: '('"));
        }
        match self.peek() {
            (SelectorToken::Identifier | SelectorToken::Comma, first) => {
                let values = self.list()?;
                match self.next() {
                    (SelectorToken::Close, _) => Ok(values),
                    _ => Err(format!("found '{first}', expected: ')'")),
                }
            }
            (SelectorToken::Close, _) => {
                self.next();
                Ok(BTreeSet::from([String::new()]))
            }
            (_, found) => Err(format!("found '{found}', expected: ',', ')' or identifier")),
        }
    }

    /// The values up to the closing parenthesis. An empty position is the empty value.
    fn list(&mut self) -> Result<BTreeSet<String>, String> {
        let mut values = BTreeSet::new();
        loop {
            match self.next() {
                (SelectorToken::Identifier, value) => {
                    values.insert(value);
                    match self.peek() {
                        (SelectorToken::Comma, _) => {}
                        (SelectorToken::Close, _) => return Ok(values),
                        (_, found) => return Err(format!("found '{found}', expected: ',' or ')'")),
                    }
                }
                (SelectorToken::Comma, _) => {
                    if values.is_empty() {
                        values.insert(String::new());
                    }
                    match self.peek().0 {
                        SelectorToken::Close => {
                            values.insert(String::new());
                            return Ok(values);
                        }
                        SelectorToken::Comma => {
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
        if let (SelectorToken::End | SelectorToken::Comma, _) = self.peek() {
            return Ok(String::new());
        }
        match self.next() {
            (SelectorToken::Identifier, value) => Ok(value),
            (_, found) => Err(format!("found '{found}', expected: identifier")),
        }
    }

    fn next(&mut self) -> (SelectorToken, String) {
        let next = self.peek();
        self.at += 1;
        next
    }

    fn peek(&self) -> (SelectorToken, String) {
        match self.token(self.at) {
            (SelectorToken::In | SelectorToken::NotIn, literal) => (SelectorToken::Identifier, literal),
            other => other,
        }
    }

    fn token(&self, at: usize) -> (SelectorToken, String) {
        self.tokens.get(at).cloned().unwrap_or((SelectorToken::End, String::new()))
    }
}
