//! Label selectors.

use serde_json::Value;

use super::parser;
use crate::api::{Status, field, go, text};

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
        let requirements = parser::parse(text).map_err(Status::bad_request)?;
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
    pub(super) fn new(key: String, operator: Operator, values: Vec<String>) -> Result<Self, String> {
        let mut wrong = Vec::new();
        let bad_key = text::qualified(&key);
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
    let bad = text::label_value(value);
    if !bad.is_empty() {
        wrong.push(field::Error::invalid(format!("values[{index}][{key}]"), &shown, &bad.join("; ")));
    }
    wrong
}
