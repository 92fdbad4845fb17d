//! Evaluates expressions on a record.
//!
//! A key of nil, or of what is no map, is an error, as are operands of the wrong type; a key that is missing is nil.
//! `contains` and its like are false for nil. *Guarantees*: the texts that an expression makes are bounded in size.

mod arithmetic;
mod functions;
mod operand;

#[cfg(test)]
mod tests;

use std::borrow::Cow;

use kubewake_config::file_log::{
    Expression,
    expression::{BinaryOperator, ExpressionNode, UnaryOperator, Variable},
};

pub(crate) use self::{functions::float_text, operand::Operand};
use crate::{
    entry::LogEntry,
    operators::RecordError,
    value::{LogMap, LogValue},
};

/// The longest text that an expression may make, in bytes.
const MAX_TEXT_BYTES: usize = 16 << 20;

type Evaluated<'a> = Result<Operand<'a>, RecordError>;

/// Whether a condition is true for a record.
///
/// # Errors
///
/// If it has no value, or one that is neither true nor false.
pub(crate) fn is_true(condition: &Expression, entry: &LogEntry) -> Result<bool, RecordError> {
    truth(evaluate(condition.root(), entry)?)
}

/// The value of an expression.
pub(crate) fn evaluate<'a>(node: &'a ExpressionNode, entry: &'a LogEntry) -> Evaluated<'a> {
    Ok(match node {
        ExpressionNode::Nil => Operand::Nil,
        ExpressionNode::Bool(value) => Operand::Bool(*value),
        ExpressionNode::Int(value) => Operand::Int(*value),
        ExpressionNode::Float(value) => Operand::Float(*value),
        ExpressionNode::Text(text) => Operand::Text(Cow::Borrowed(text.as_bytes())),
        ExpressionNode::Variable(variable) => match variable {
            Variable::Body => Operand::from_value(&entry.body),
            Variable::Attributes => Operand::Map(&entry.attributes),
            Variable::Resource => Operand::Map(&entry.resource),
            Variable::Timestamp => Operand::Time(entry.timestamp),
            Variable::Unknown => Operand::Nil,
        },
        ExpressionNode::List(items) => return list(items, entry),
        ExpressionNode::Index { value, index, optional } => return index_of(value, index, *optional, entry),
        ExpressionNode::Unary(operator, operand) => return unary(*operator, operand, entry),
        ExpressionNode::Binary(operator, left, right) => return binary(*operator, left, right, entry),
        ExpressionNode::Matches(operand, pattern) => match evaluate(operand, entry)? {
            Operand::Nil => Operand::Bool(false),
            Operand::Text(text) => Operand::Bool(pattern.is_match(&text)),
            other => return Err(wrong_type("`matches`", &other)),
        },
        ExpressionNode::Conditional(condition, then, otherwise) => {
            let branch = if truth(evaluate(condition, entry)?)? { then } else { otherwise };
            return evaluate(branch, entry);
        }
        ExpressionNode::Call(function, arguments) => return functions::call(*function, arguments, entry),
    })
}

fn truth(value: Operand<'_>) -> Result<bool, RecordError> {
    match value {
        Operand::Bool(value) => Ok(value),
        other => Err(wrong_type("a condition", &other)),
    }
}

fn wrong_type(user: &str, found: &Operand<'_>) -> RecordError {
    RecordError::new(format!("{user} cannot be applied to {}", found.type_name()))
}

fn list<'a>(items: &'a [ExpressionNode], entry: &'a LogEntry) -> Evaluated<'a> {
    let values: Vec<LogValue> =
        items.iter().map(|item| evaluate(item, entry)?.into_value()).collect::<Result<_, _>>()?;
    Ok(Operand::List(Cow::Owned(values)))
}

fn unary<'a>(operator: UnaryOperator, operand: &'a ExpressionNode, entry: &'a LogEntry) -> Evaluated<'a> {
    let value = evaluate(operand, entry)?;
    Ok(match (operator, value) {
        (UnaryOperator::Not, value) => Operand::Bool(!truth(value)?),
        (UnaryOperator::Minus, Operand::Int(value)) => Operand::Int(value.wrapping_neg()),
        (UnaryOperator::Minus, Operand::Float(value)) => Operand::Float(-value),
        (UnaryOperator::Plus, value @ (Operand::Int(_) | Operand::Float(_))) => value,
        (_, other) => return Err(wrong_type("a sign", &other)),
    })
}

fn index_of<'a>(
    value: &'a ExpressionNode,
    index: &'a ExpressionNode,
    optional: bool,
    entry: &'a LogEntry,
) -> Evaluated<'a> {
    let value = evaluate(value, entry)?;
    if optional && matches!(value, Operand::Nil) {
        return Ok(Operand::Nil);
    }
    let index = evaluate(index, entry)?;
    match (value, index) {
        (Operand::Map(map), Operand::Text(key)) => Ok(lookup(map, &key).map_or(Operand::Nil, Operand::from_value)),
        (Operand::Map(_), other) => Err(RecordError::new(format!("the key of a map cannot be {}", other.type_name()))),
        (Operand::List(items), Operand::Int(index)) => {
            let from_end = usize::try_from(index.unsigned_abs()).ok();
            let place = if index < 0 { from_end.and_then(|back| items.len().checked_sub(back)) } else { from_end };
            let item = match items {
                Cow::Borrowed(items) => place.and_then(|place| items.get(place)).map(Operand::from_value),
                Cow::Owned(items) => place.and_then(|place| items.into_iter().nth(place)).and_then(Operand::from_owned),
            };
            item.ok_or_else(|| RecordError::new(format!("a list has no item {index}")))
        }
        (Operand::Nil, Operand::Text(key)) => {
            Err(RecordError::new(format!("nil has no key {:?}", String::from_utf8_lossy(&key))))
        }
        (value, _) => Err(wrong_type("a key or an index", &value)),
    }
}

fn lookup<'a>(map: &'a LogMap, key: &[u8]) -> Option<&'a LogValue> {
    map.get(std::str::from_utf8(key).ok()?)
}

fn binary<'a>(
    operator: BinaryOperator,
    left: &'a ExpressionNode,
    right: &'a ExpressionNode,
    entry: &'a LogEntry,
) -> Evaluated<'a> {
    let left = evaluate(left, entry)?;
    match operator {
        // What is behind these is looked at only if it counts.
        BinaryOperator::Or if truth_of(&left)? => return Ok(Operand::Bool(true)),
        BinaryOperator::And if !truth_of(&left)? => return Ok(Operand::Bool(false)),
        BinaryOperator::Or | BinaryOperator::And => return Ok(Operand::Bool(truth(evaluate(right, entry)?)?)),
        BinaryOperator::Coalesce if !matches!(left, Operand::Nil) => return Ok(left),
        BinaryOperator::Coalesce => return evaluate(right, entry),
        _ => {}
    }
    let right = evaluate(right, entry)?;
    let found = match operator {
        BinaryOperator::Equal => left.equals(&right),
        BinaryOperator::NotEqual => !left.equals(&right),
        BinaryOperator::Less
        | BinaryOperator::LessOrEqual
        | BinaryOperator::Greater
        | BinaryOperator::GreaterOrEqual => arithmetic::compare(operator, &left, &right)?,
        BinaryOperator::In => contains_item(&left, &right)?,
        BinaryOperator::Contains => {
            texts("`contains`", &left, &right, |text, part| memchr::memmem::find(text, part).is_some())?
        }
        BinaryOperator::StartsWith => texts("`startsWith`", &left, &right, <[u8]>::starts_with)?,
        BinaryOperator::EndsWith => texts("`endsWith`", &left, &right, <[u8]>::ends_with)?,
        _ => return arithmetic::compute(operator, left, right),
    };
    Ok(Operand::Bool(found))
}

fn truth_of(value: &Operand<'_>) -> Result<bool, RecordError> {
    match value {
        Operand::Bool(value) => Ok(*value),
        other => Err(wrong_type("`and` or `or`", other)),
    }
}

/// Applies a rule to two texts. It is false for nil.
fn texts(
    name: &str,
    left: &Operand<'_>,
    right: &Operand<'_>,
    rule: impl Fn(&[u8], &[u8]) -> bool,
) -> Result<bool, RecordError> {
    match (left, right) {
        (Operand::Nil, _) | (_, Operand::Nil) => Ok(false),
        (Operand::Text(left), Operand::Text(right)) => Ok(rule(left, right)),
        (Operand::Text(_), other) | (other, _) => Err(wrong_type(name, other)),
    }
}

/// Whether a list has an item, or a map a key.
fn contains_item(item: &Operand<'_>, place: &Operand<'_>) -> Result<bool, RecordError> {
    match place {
        Operand::Nil => Ok(false),
        Operand::List(items) => Ok(items.iter().any(|other| Operand::from_value(other).equals(item))),
        Operand::Map(map) => match item {
            Operand::Text(key) => Ok(lookup(map, key).is_some()),
            Operand::Nil => Ok(false),
            other => Err(RecordError::new(format!("the key of a map cannot be {}", other.type_name()))),
        },
        other => Err(wrong_type("`in`", other)),
    }
}
