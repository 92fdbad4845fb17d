//! Values while an expression is evaluated, borrowed from the record where they can be.

use std::borrow::Cow;

use crate::{
    operators::RecordError,
    value::{LogMap, LogValue},
};

/// A value within an expression.
#[derive(Clone, Debug)]
pub(crate) enum Operand<'a> {
    Nil,
    Bool(bool),
    Int(i64),
    Float(f64),
    Text(Cow<'a, [u8]>),
    Bytes(&'a [u8]),
    List(Cow<'a, [LogValue]>),
    Map(&'a LogMap),
    /// The time of the record, which equals nothing else and never is nil.
    Time(u64),
}

impl<'a> Operand<'a> {
    pub(crate) fn from_value(value: &'a LogValue) -> Self {
        match value {
            LogValue::Null => Self::Nil,
            LogValue::Bool(value) => Self::Bool(*value),
            LogValue::Int(value) => Self::Int(*value),
            LogValue::Double(value) => Self::Float(*value),
            LogValue::Text(text) => Self::Text(Cow::Borrowed(text)),
            LogValue::Bytes(bytes) => Self::Bytes(bytes),
            LogValue::List(items) => Self::List(Cow::Borrowed(items)),
            LogValue::Map(map) => Self::Map(map),
        }
    }

    /// A value that nobody else has. Maps and bytes cannot be made by an expression, and are none.
    pub(super) fn from_owned(value: LogValue) -> Option<Self> {
        Some(match value {
            LogValue::Null => Self::Nil,
            LogValue::Bool(value) => Self::Bool(value),
            LogValue::Int(value) => Self::Int(value),
            LogValue::Double(value) => Self::Float(value),
            LogValue::Text(text) => Self::Text(Cow::Owned(text)),
            LogValue::List(items) => Self::List(Cow::Owned(items)),
            LogValue::Bytes(_) | LogValue::Map(_) => return None,
        })
    }

    /// The value as a part of a record.
    pub(crate) fn into_value(self) -> Result<LogValue, RecordError> {
        Ok(match self {
            Self::Nil => LogValue::Null,
            Self::Bool(value) => LogValue::Bool(value),
            Self::Int(value) => LogValue::Int(value),
            Self::Float(value) => LogValue::Double(value),
            Self::Text(text) => LogValue::Text(text.into_owned()),
            Self::Bytes(bytes) => LogValue::Bytes(bytes.to_vec()),
            Self::List(items) => LogValue::List(items.into_owned()),
            Self::Map(map) => LogValue::Map(map.clone()),
            Self::Time(_) => return Err(RecordError::new("the time of a record cannot be a value")),
        })
    }

    pub(crate) fn type_name(&self) -> &'static str {
        match self {
            Self::Nil => "nil",
            Self::Bool(_) => "a boolean",
            Self::Int(_) | Self::Float(_) => "a number",
            Self::Text(_) => "a text",
            Self::Bytes(_) => "bytes",
            Self::List(_) => "a list",
            Self::Map(_) => "a map",
            Self::Time(_) => "a time",
        }
    }

    /// Whether two values are the same. Numbers are compared by their value, and values of different types differ.
    pub(super) fn equals(&self, other: &Operand<'_>) -> bool {
        match (self, other) {
            (Self::Nil, Operand::Nil) => true,
            (Self::Bool(one), Operand::Bool(other)) => one == other,
            (Self::Int(one), Operand::Int(other)) => one == other,
            (Self::Int(one), Operand::Float(other)) => *one as f64 == *other,
            (Self::Float(one), Operand::Int(other)) => *one == *other as f64,
            (Self::Float(one), Operand::Float(other)) => one == other,
            (Self::Text(one), Operand::Text(other)) => one == other,
            (Self::Bytes(one), Operand::Bytes(other)) => one == other,
            (Self::Time(one), Operand::Time(other)) => one == other,
            (Self::Map(one), Operand::Map(other)) => one == other,
            (Self::List(one), Operand::List(other)) => {
                let mut pairs = one.iter().zip(other.iter());
                one.len() == other.len()
                    && pairs.all(|(one, other)| Operand::from_value(one).equals(&Operand::from_value(other)))
            }
            _ => false,
        }
    }
}
