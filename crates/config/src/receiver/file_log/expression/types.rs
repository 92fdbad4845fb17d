//! The types of values that are known before there is a record.
//!
//! A record may hold anything, so most types are unknown. What can never work is an error when the document is loaded.

use std::fmt;

use super::{BinaryOperator, ExpressionNode, Function, UnaryOperator, Variable};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ValueType {
    Nil,
    Bool,
    Number,
    Text,
    List,
    Map,
}

impl fmt::Display for ValueType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Nil => "nil",
            Self::Bool => "true or false",
            Self::Number => "a number",
            Self::Text => "a text",
            Self::List => "a list",
            Self::Map => "a map",
        })
    }
}

/// The type of a value, if it is the same for all records.
pub(super) fn known_type(node: &ExpressionNode) -> Option<ValueType> {
    Some(match node {
        ExpressionNode::Nil => ValueType::Nil,
        ExpressionNode::Bool(_) | ExpressionNode::Matches(..) => ValueType::Bool,
        ExpressionNode::Int(_) | ExpressionNode::Float(_) => ValueType::Number,
        ExpressionNode::Text(_) => ValueType::Text,
        ExpressionNode::List(_) => ValueType::List,
        ExpressionNode::Variable(Variable::Attributes | Variable::Resource) => ValueType::Map,
        ExpressionNode::Variable(_) | ExpressionNode::Index { .. } => return None,
        ExpressionNode::Unary(UnaryOperator::Not, _) => ValueType::Bool,
        ExpressionNode::Unary(..) => ValueType::Number,
        ExpressionNode::Binary(operator, left, right) => match operator {
            BinaryOperator::Add => return known_type(left).or_else(|| known_type(right)),
            BinaryOperator::Subtract
            | BinaryOperator::Multiply
            | BinaryOperator::Divide
            | BinaryOperator::Modulo
            | BinaryOperator::Power => ValueType::Number,
            BinaryOperator::Coalesce => return None,
            _ => ValueType::Bool,
        },
        ExpressionNode::Conditional(_, then, otherwise) => {
            return known_type(then).filter(|known| known_type(otherwise) == Some(*known));
        }
        ExpressionNode::Call(function, _) => match function {
            Function::Len | Function::IndexOf | Function::Int | Function::Float => ValueType::Number,
            Function::HasPrefix | Function::HasSuffix => ValueType::Bool,
            Function::Split => ValueType::List,
            _ => ValueType::Text,
        },
    })
}

/// Reports operands that can never fit their operators.
pub(super) fn check(node: &ExpressionNode) -> Result<(), String> {
    match node {
        ExpressionNode::List(items) | ExpressionNode::Call(_, items) => items.iter().try_for_each(check),
        ExpressionNode::Index { value, index, .. } => {
            check(value)?;
            check(index)?;
            only(value, "a key or an index", &[ValueType::Map, ValueType::List])
        }
        ExpressionNode::Unary(operator, operand) => {
            check(operand)?;
            match operator {
                UnaryOperator::Not => only(operand, "`not`", &[ValueType::Bool]),
                _ => only(operand, "a sign", &[ValueType::Number]),
            }
        }
        ExpressionNode::Matches(operand, _) => {
            check(operand)?;
            only(operand, "`matches`", &[ValueType::Text, ValueType::Nil])
        }
        ExpressionNode::Binary(operator, left, right) => {
            check(left)?;
            check(right)?;
            check_operands(*operator, left, right)
        }
        ExpressionNode::Conditional(condition, then, otherwise) => {
            check(condition)?;
            check(then)?;
            check(otherwise)?;
            only(condition, "`?`", &[ValueType::Bool])
        }
        _ => Ok(()),
    }
}

fn check_operands(operator: BinaryOperator, left: &ExpressionNode, right: &ExpressionNode) -> Result<(), String> {
    let both = |name: &str, wanted: &[ValueType]| only(left, name, wanted).and_then(|()| only(right, name, wanted));
    match operator {
        BinaryOperator::Or => both("`or`", &[ValueType::Bool]),
        BinaryOperator::And => both("`and`", &[ValueType::Bool]),
        BinaryOperator::Less
        | BinaryOperator::LessOrEqual
        | BinaryOperator::Greater
        | BinaryOperator::GreaterOrEqual => {
            both("a comparison", &[ValueType::Number, ValueType::Text])?;
            same(left, right, "a comparison")
        }
        BinaryOperator::Contains => both("`contains`", &[ValueType::Text, ValueType::Nil]),
        BinaryOperator::StartsWith => both("`startsWith`", &[ValueType::Text, ValueType::Nil]),
        BinaryOperator::EndsWith => both("`endsWith`", &[ValueType::Text, ValueType::Nil]),
        BinaryOperator::In => only(right, "`in`", &[ValueType::List, ValueType::Map, ValueType::Nil]),
        BinaryOperator::Add => {
            both("`+`", &[ValueType::Number, ValueType::Text])?;
            same(left, right, "`+`")
        }
        BinaryOperator::Subtract
        | BinaryOperator::Multiply
        | BinaryOperator::Divide
        | BinaryOperator::Modulo
        | BinaryOperator::Power => both("arithmetic", &[ValueType::Number]),
        BinaryOperator::Equal | BinaryOperator::NotEqual | BinaryOperator::Coalesce => Ok(()),
    }
}

fn only(node: &ExpressionNode, user: &str, wanted: &[ValueType]) -> Result<(), String> {
    match known_type(node) {
        Some(known) if !wanted.contains(&known) => Err(format!("{user} cannot be applied to {known}")),
        _ => Ok(()),
    }
}

fn same(left: &ExpressionNode, right: &ExpressionNode, user: &str) -> Result<(), String> {
    match (known_type(left), known_type(right)) {
        (Some(one), Some(other)) if one != other => Err(format!("{user} cannot be applied to {one} and {other}")),
        _ => Ok(()),
    }
}
