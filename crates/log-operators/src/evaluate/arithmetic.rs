//! Comparisons and arithmetic.

use std::{borrow::Cow, cmp::Ordering};

use kubewake_config::file_log::expression::BinaryOperator;

use super::{Evaluated, MAX_TEXT_BYTES, Operand, wrong_type};
use crate::operators::RecordError;

/// Compares two numbers, or two texts by their bytes.
pub(super) fn compare(operator: BinaryOperator, left: &Operand<'_>, right: &Operand<'_>) -> Result<bool, RecordError> {
    let ordering = match (left, right) {
        (Operand::Int(left), Operand::Int(right)) => Some(left.cmp(right)),
        (Operand::Text(left), Operand::Text(right)) => Some(left.cmp(right)),
        (left, right) => match (float(left), float(right)) {
            // NaN is neither less nor greater.
            (Some(left), Some(right)) => left.partial_cmp(&right),
            (None, _) => return Err(wrong_type("a comparison", left)),
            (_, None) => return Err(wrong_type("a comparison", right)),
        },
    };
    Ok(match operator {
        BinaryOperator::Less => ordering == Some(Ordering::Less),
        BinaryOperator::LessOrEqual => matches!(ordering, Some(Ordering::Less | Ordering::Equal)),
        BinaryOperator::Greater => ordering == Some(Ordering::Greater),
        _ => matches!(ordering, Some(Ordering::Greater | Ordering::Equal)),
    })
}

fn float(value: &Operand<'_>) -> Option<f64> {
    match value {
        Operand::Int(value) => Some(*value as f64),
        Operand::Float(value) => Some(*value),
        _ => None,
    }
}

/// Arithmetic, and joining texts. Whole numbers wrap around as in Go; quotients and powers are floats.
pub(super) fn compute<'a>(operator: BinaryOperator, left: Operand<'a>, right: Operand<'a>) -> Evaluated<'a> {
    if let (BinaryOperator::Add, Operand::Text(left), Operand::Text(right)) = (operator, &left, &right) {
        if left.len() + right.len() > MAX_TEXT_BYTES {
            return Err(RecordError::new(format!("a text would be longer than {MAX_TEXT_BYTES} bytes")));
        }
        return Ok(Operand::Text(Cow::Owned([&**left, &**right].concat())));
    }
    if let (Operand::Int(left), Operand::Int(right)) = (&left, &right) {
        match operator {
            BinaryOperator::Add => return Ok(Operand::Int(left.wrapping_add(*right))),
            BinaryOperator::Subtract => return Ok(Operand::Int(left.wrapping_sub(*right))),
            BinaryOperator::Multiply => return Ok(Operand::Int(left.wrapping_mul(*right))),
            BinaryOperator::Modulo if *right == 0 => return Err(RecordError::new("a division by zero")),
            BinaryOperator::Modulo => return Ok(Operand::Int(left.wrapping_rem(*right))),
            _ => {}
        }
    }
    let (one, other) = match (float(&left), float(&right)) {
        (Some(one), Some(other)) => (one, other),
        (None, _) => return Err(wrong_type("arithmetic", &left)),
        (_, None) => return Err(wrong_type("arithmetic", &right)),
    };
    Ok(Operand::Float(match operator {
        BinaryOperator::Add => one + other,
        BinaryOperator::Subtract => one - other,
        BinaryOperator::Multiply => one * other,
        BinaryOperator::Divide => one / other,
        BinaryOperator::Power => one.powf(other),
        _ => return Err(RecordError::new("`%` takes whole numbers")),
    }))
}
