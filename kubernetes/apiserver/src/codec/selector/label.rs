//! Label selectors.

use serde_json::Value;

use super::parser;
use crate::api::{StatusError, field, go_format, text};

/// A conjunction of requirements. Without any, it selects everything.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LabelSelector {
    requirements: Vec<LabelRequirement>,
    /// Whether it selects nothing, as an absent selector of an object does.
    nothing: bool,
}

/// A requirement on one label.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LabelRequirement {
    pub key: String,
    /// The relation of the label's value to `values`.
    pub operator: SelectorOperator,
    /// One value, or several for [`SelectorOperator::In`] and [`SelectorOperator::NotIn`], or none.
    pub values: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SelectorOperator {
    In,
    NotIn,
    Exists,
    DoesNotExist,
    Gt,
    Lt,
}

impl LabelSelector {
    /// Parses the text form: `app=web,tier in (a,b),!old`.
    ///
    /// # Errors
    /// A 400 with kube-apiserver's message.
    pub fn parse(text: &str) -> Result<Self, StatusError> {
        let requirements = parser::parse(text).map_err(StatusError::bad_request)?;
        Ok(Self { requirements, nothing: false })
    }

    /// Reads the object form: `matchLabels` and `matchExpressions`. An absent selector selects nothing, an
    /// empty one everything.
    ///
    /// # Errors
    /// With kube-apiserver's message, if an operator or a key is invalid. Selectors of validated objects have
    /// no errors.
    pub fn from_value(selector: Option<&Value>) -> Result<Self, String> {
        let Some(selector) = selector.filter(|selector| !selector.is_null()) else {
            return Ok(Self { requirements: Vec::new(), nothing: true });
        };
        let mut requirements = Vec::new();
        for (key, value) in selector.get("matchLabels").and_then(Value::as_object).into_iter().flatten() {
            let value = value.as_str().unwrap_or_default().to_owned();
            requirements.push(LabelRequirement::new(key.clone(), SelectorOperator::In, vec![value])?);
        }
        for expression in selector.get("matchExpressions").and_then(Value::as_array).into_iter().flatten() {
            requirements.push(LabelRequirement::from_value(expression)?);
        }
        Ok(Self { requirements, nothing: false })
    }

    /// The requirements, sorted by key.
    pub fn requirements(&self) -> &[LabelRequirement] {
        &self.requirements
    }

    pub fn is_everything(&self) -> bool {
        !self.nothing && self.requirements.is_empty()
    }

    /// Whether labels match; `get` looks up a label.
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

impl LabelRequirement {
    /// A consistent requirement.
    pub(super) fn new(key: String, operator: SelectorOperator, values: Vec<String>) -> Result<Self, String> {
        let mut wrong = Vec::new();
        let bad_key = text::qualified(&key);
        if !bad_key.is_empty() {
            wrong.push(field::FieldError::invalid("key", &Value::from(key.as_str()), &bad_key.join("; ")));
        }
        let count = match operator {
            SelectorOperator::In | SelectorOperator::NotIn if values.is_empty() => {
                "for 'in', 'notin' operators, values set can't be empty"
            }
            SelectorOperator::Exists | SelectorOperator::DoesNotExist if !values.is_empty() => {
                "values set must be empty for exists and does not exist"
            }
            _ => "",
        };
        if !count.is_empty() {
            wrong.push(field::FieldError::invalid("values", &Value::from(values.clone()), count));
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
            "In" => SelectorOperator::In,
            "NotIn" => SelectorOperator::NotIn,
            "Exists" => SelectorOperator::Exists,
            "DoesNotExist" => SelectorOperator::DoesNotExist,
            other => return Err(format!("{} is not a valid label selector operator", go_format::quote(other))),
        };
        let values = expression.get("values").and_then(Value::as_array).into_iter().flatten();
        let values = values.filter_map(|value| value.as_str().map(str::to_owned)).collect();
        Self::new(text("key").to_owned(), operator, values)
    }

    /// Whether a label with this value, or its absence, meets the requirement.
    pub fn matches(&self, label: Option<&str>) -> bool {
        let among = |label: &str| self.values.iter().any(|value| value == label);
        match self.operator {
            SelectorOperator::In => label.is_some_and(among),
            SelectorOperator::NotIn => !label.is_some_and(among),
            SelectorOperator::Exists => label.is_some(),
            SelectorOperator::DoesNotExist => label.is_none(),
            SelectorOperator::Gt => self.compare(label).is_some_and(|(label, value)| label > value),
            SelectorOperator::Lt => self.compare(label).is_some_and(|(label, value)| label < value),
        }
    }

    fn compare(&self, label: Option<&str>) -> Option<(i64, i64)> {
        Some((go_format::parse_int(label?).ok()?, go_format::parse_int(self.values.first()?).ok()?))
    }
}

fn check_value(operator: SelectorOperator, key: &str, index: usize, value: &str) -> Vec<field::FieldError> {
    let mut wrong = Vec::new();
    let shown = Value::from(value);
    if matches!(operator, SelectorOperator::Gt | SelectorOperator::Lt) && go_format::parse_int(value).is_err() {
        let why = "for 'Gt', 'Lt' operators, the value must be an integer";
        wrong.push(field::FieldError::invalid(format!("values[{index}]"), &shown, why));
    }
    let bad = text::label_value(value);
    if !bad.is_empty() {
        wrong.push(field::FieldError::invalid(format!("values[{index}][{key}]"), &shown, &bad.join("; ")));
    }
    wrong
}
