//! Label selectors.

use std::collections::BTreeSet;

use serde_json::Value;

use super::{
    lexer::{Token, tokens},
    names,
};
use crate::{
    api::{Status, field},
    codec::go,
};

/// All requirements must hold. Without any, it selects everything.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LabelSelector {
    requirements: Vec<Requirement>,
    /// An object's selector that is not there selects nothing.
    nothing: bool,
}

/// What one label must be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Requirement {
    /// The label.
    pub key: String,
    /// How its value relates to `values`.
    pub operator: Operator,
    /// One value, or several for [`Operator::In`] and [`Operator::NotIn`], or none.
    pub values: Vec<String>,
}

/// How a label relates to values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names are Kubernetes' own")]
pub enum Operator {
    In,
    NotIn,
    Exists,
    DoesNotExist,
    Gt,
    Lt,
}

impl LabelSelector {
    /// Reads the text form: `app=web,tier in (a,b),!old`.
    ///
    /// # Errors
    /// A 400 with kube-apiserver's words.
    pub fn parse(text: &str) -> Result<Self, Status> {
        let mut parser = Parser { tokens: tokens(text), at: 0 };
        let requirements = parser.parse().map_err(Status::bad_request)?;
        Ok(Self { requirements, nothing: false })
    }

    /// Reads the object form: `matchLabels` and `matchExpressions`. No selector selects nothing, an empty one everything.
    ///
    /// # Errors
    /// With kube-apiserver's words, if an operator or a key is none. Selectors of validated objects have no errors.
    pub fn from_value(selector: Option<&Value>) -> Result<Self, String> {
        let Some(selector) = selector.filter(|selector| !selector.is_null()) else {
            return Ok(Self { requirements: Vec::new(), nothing: true });
        };
        let mut requirements = Vec::new();
        for (key, value) in selector.get("matchLabels").and_then(Value::as_object).into_iter().flatten() {
            let value = value.as_str().unwrap_or_default().to_owned();
            requirements.push(Requirement::new(key.clone(), Operator::In, vec![value])?);
        }
        for expression in selector.get("matchExpressions").and_then(Value::as_array).into_iter().flatten() {
            requirements.push(Requirement::from_value(expression)?);
        }
        Ok(Self { requirements, nothing: false })
    }

    /// The requirements, in the order of their keys.
    pub fn requirements(&self) -> &[Requirement] {
        &self.requirements
    }

    /// Whether every object matches.
    pub fn is_everything(&self) -> bool {
        !self.nothing && self.requirements.is_empty()
    }

    /// Whether labels match; `get` finds the value of one.
    pub fn matches<'l>(&self, get: impl Fn(&str) -> Option<&'l str>) -> bool {
        !self.nothing && self.requirements.iter().all(|requirement| requirement.matches(get(&requirement.key)))
    }

    /// Whether the labels in an object's metadata match.
    pub fn matches_object(&self, object: &Value) -> bool {
        if self.is_everything() {
            return true;
        }
        let labels = object.get("metadata").and_then(|metadata| metadata.get("labels"));
        self.matches(|key| labels?.get(key)?.as_str())
    }
}

impl Requirement {
    /// A requirement whose parts fit together.
    fn new(key: String, operator: Operator, values: Vec<String>) -> Result<Self, String> {
        let mut wrong = Vec::new();
        let bad_key = names::qualified_name(&key);
        if !bad_key.is_empty() {
            wrong.push(field::Error::invalid("key", &Value::from(key.as_str()), &bad_key.join("; ")));
        }
        let count = match operator {
            Operator::In | Operator::NotIn if values.is_empty() => {
                "for 'in', 'notin' operators, values set can't be empty"
            }
            Operator::Exists | Operator::DoesNotExist if !values.is_empty() => {
                "values set must be empty for exists and does not exist"
            }
            _ => "",
        };
        if !count.is_empty() {
            wrong.push(field::Error::invalid("values", &Value::from(values.clone()), count));
        }
        for (index, value) in values.iter().enumerate() {
            wrong.extend(check_value(operator, &key, index, value));
        }
        match wrong.as_slice() {
            [] => Ok(Self { key, operator, values }),
            [one] => Err(one.to_string()),
            many => Err(format!("[{}]", many.iter().map(ToString::to_string).collect::<Vec<_>>().join(", "))),
        }
    }

    fn from_value(expression: &Value) -> Result<Self, String> {
        let text = |name| expression.get(name).and_then(Value::as_str).unwrap_or_default();
        let operator = match text("operator") {
            "In" => Operator::In,
            "NotIn" => Operator::NotIn,
            "Exists" => Operator::Exists,
            "DoesNotExist" => Operator::DoesNotExist,
            other => return Err(format!("{} is not a valid label selector operator", go::quote(other))),
        };
        let values = expression.get("values").and_then(Value::as_array).into_iter().flatten();
        let values = values.filter_map(|value| value.as_str().map(str::to_owned)).collect();
        Self::new(text("key").to_owned(), operator, values)
    }

    /// Whether a label of this value, or its absence, is what is required.
    pub fn matches(&self, label: Option<&str>) -> bool {
        let among = |label: &str| self.values.iter().any(|value| value == label);
        match self.operator {
            Operator::In => label.is_some_and(among),
            Operator::NotIn => !label.is_some_and(among),
            Operator::Exists => label.is_some(),
            Operator::DoesNotExist => label.is_none(),
            Operator::Gt => self.compare(label).is_some_and(|(label, value)| label > value),
            Operator::Lt => self.compare(label).is_some_and(|(label, value)| label < value),
        }
    }

    fn compare(&self, label: Option<&str>) -> Option<(i64, i64)> {
        Some((go::parse_int(label?).ok()?, go::parse_int(self.values.first()?).ok()?))
    }
}

fn check_value(operator: Operator, key: &str, index: usize, value: &str) -> Vec<field::Error> {
    let mut wrong = Vec::new();
    let shown = Value::from(value);
    if matches!(operator, Operator::Gt | Operator::Lt) && go::parse_int(value).is_err() {
        let why = "for 'Gt', 'Lt' operators, the value must be an integer";
        wrong.push(field::Error::invalid(format!("values[{index}]"), &shown, why));
    }
    let bad = names::label_value(value);
    if !bad.is_empty() {
        wrong.push(field::Error::invalid(format!("values[{index}][{key}]"), &shown, &bad.join("; ")));
    }
    wrong
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
        let bad = names::qualified_name(&key);
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
