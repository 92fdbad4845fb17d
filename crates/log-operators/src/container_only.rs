//! Chains that do no more than read the lines of containers, for which no tree of a record is needed.

use kubewake_config::file_log::{
    FieldRoot, OperatorGraph, OperatorKind, RecordField,
    expression::{BinaryOperator, ExpressionNode, Variable},
    operator::{AddedValue, ContainerFormat, OperatorConfig, ParserFormat},
};
use kubewake_otlp::Value;

/// What a chain does whose only parser is `container`.
#[derive(Clone, Debug, PartialEq)]
pub struct ContainerOnly {
    pub format: ContainerFormat,
    /// Whether records keep `log.iostream`.
    pub keeps_stream: bool,
    /// Whether records keep `logtag`.
    pub keeps_tags: bool,
    /// Attributes that every record gets, in this order.
    pub attributes: Vec<(String, String)>,
    /// Attributes that every resource gets, in this order.
    pub resource: Vec<(String, String)>,
}

const STREAM: &str = "log.iostream";
const TAGS: &str = "logtag";

impl ContainerOnly {
    /// What the chain does, if it begins with a `container` operator that sends lines which it cannot read as they are,
    /// and if all that follows are `noop`, operators that remove `log.iostream` or `logtag`, and operators that add
    /// texts.
    ///
    /// A `container` with `format: crio` or `format: containerd` refuses some times, and is not one of these.
    pub fn from_graph(graph: &OperatorGraph) -> Option<Self> {
        let mut operators = graph.operators.iter().enumerate();
        let (_, first) = operators.next()?;
        let format = plain_container(first)?;
        let mut found = Self {
            format: format.clone(),
            keeps_stream: true,
            keeps_tags: true,
            attributes: Vec::new(),
            resource: Vec::new(),
        };
        let last = graph.operators.len().checked_sub(1)?;
        for (place, operator) in graph.operators.iter().enumerate() {
            let expected: &[usize] = if place == last { &[] } else { &[place + 1] };
            if operator.outputs != expected || place > 0 && !found.takes(operator) {
                return None;
            }
        }
        Some(found)
    }

    /// Adds what an operator does; false if that cannot be expressed.
    fn takes(&mut self, operator: &OperatorConfig) -> bool {
        match &operator.kind {
            OperatorKind::Noop => true,
            OperatorKind::Remove { field } => {
                let flag = match key(field, FieldRoot::Attributes) {
                    Some(STREAM) => &mut self.keeps_stream,
                    Some(TAGS) => &mut self.keeps_tags,
                    _ => return false,
                };
                // With an error for a line without the attribute the record goes on as it is, too.
                let is_plain = operator.condition.as_ref().is_none_or(|condition| is_not_nil(condition.root(), field));
                if is_plain && !operator.on_error.drops {
                    *flag = false;
                }
                is_plain && !operator.on_error.drops
            }
            OperatorKind::Add { field, value: AddedValue::Constant(Value::String(text)) } => {
                let reserved = |key: &str| key == STREAM || key == TAGS || key.starts_with("log.file.");
                let attribute = key(field, FieldRoot::Attributes).filter(|key| !reserved(key));
                let resource = key(field, FieldRoot::Resource).filter(|key| !key.starts_with("k8s."));
                let (list, key) = match (attribute, resource) {
                    (Some(key), _) => (&mut self.attributes, key),
                    (None, Some(key)) => (&mut self.resource, key),
                    _ => return false,
                };
                let is_new = list.iter().all(|(known, _)| known != key);
                if is_new && operator.condition.is_none() {
                    list.push((key.to_owned(), text.clone()));
                    return true;
                }
                false
            }
            _ => false,
        }
    }
}

/// The settings of a `container` that has nothing else to do.
fn plain_container(operator: &OperatorConfig) -> Option<&ContainerFormat> {
    let OperatorKind::Parser(parser) = &operator.kind else { return None };
    let ParserFormat::Container(format) = &parser.format else { return None };
    let is_plain = operator.condition.is_none()
        && !operator.on_error.drops
        && parser.from == RecordField::BODY
        && parser.to == RecordField::ATTRIBUTES
        && parser.body.is_none()
        && parser.timestamp.is_none()
        && parser.severity.is_none()
        && parser.trace.is_none()
        && parser.scope_name.is_none();
    Some(format).filter(|_| is_plain && format.runtime.is_none())
}

/// The key of a field that is a key of this root.
fn key(field: &RecordField, root: FieldRoot) -> Option<&str> {
    match field.keys.as_slice() {
        [key] if field.root == root => Some(key),
        _ => None,
    }
}

/// Whether a condition is `FIELD != nil`.
fn is_not_nil(condition: &ExpressionNode, field: &RecordField) -> bool {
    let ExpressionNode::Binary(BinaryOperator::NotEqual, left, right) = condition else { return false };
    let ExpressionNode::Index { value, index, .. } = &**left else { return false };
    **right == ExpressionNode::Nil
        && **value == ExpressionNode::Variable(Variable::Attributes)
        && matches!((&**index, field.keys.as_slice()), (ExpressionNode::Text(text), [key]) if text == key)
}
