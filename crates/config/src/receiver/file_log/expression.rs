//! Expressions over a record: `body matches "^{" and attributes.level != nil`.
//!
//! They are a part of the language *Expr*, which the Collector uses: literals, `body`, `attributes`, `resource` and
//! `timestamp` with keys and indexes, comparisons, logic, arithmetic, `matches`, `in`, `contains`, `startsWith`,
//! `endsWith`, `??`, conditions, and the [functions](Function). Anything else is refused with its name and column.
//!
//! *Guarantees*: parsing takes time in proportion to the text, and a tree is bounded in size and depth. *Does not*:
//! evaluate.

mod lexer;
mod parser;
mod types;

#[cfg(test)]
mod tests;

use crate::{
    RegexPattern,
    decode::{Cursor, DecodeReport, scalar},
};

/// An expression that was parsed.
#[derive(Clone, Debug)]
pub struct Expression {
    text: String,
    root: ExpressionNode,
    unknown_variables: Vec<String>,
}

/// Why a text is no expression. Columns count from 1, in characters.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{problem} at column {column}")]
pub struct ExpressionError {
    pub column: usize,
    pub problem: String,
}

/// A node of the tree of an expression.
#[derive(Clone, Debug, PartialEq)]
pub enum ExpressionNode {
    Nil,
    Bool(bool),
    Int(i64),
    Float(f64),
    Text(String),
    List(Vec<ExpressionNode>),
    /// A part of the record.
    Variable(Variable),
    /// The value of a key, or the item at an index.
    Index {
        value: Box<ExpressionNode>,
        index: Box<ExpressionNode>,
        /// Written `?.`: nil if the value is nil.
        optional: bool,
    },
    Unary(UnaryOperator, Box<ExpressionNode>),
    Binary(BinaryOperator, Box<ExpressionNode>, Box<ExpressionNode>),
    /// `matches` with a pattern that is known.
    Matches(Box<ExpressionNode>, RegexPattern),
    /// `condition ? one : other`
    Conditional(Box<ExpressionNode>, Box<ExpressionNode>, Box<ExpressionNode>),
    Call(Function, Vec<ExpressionNode>),
}

/// A part of the record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Variable {
    /// `body`, and `$`.
    Body,
    Attributes,
    Resource,
    /// The time of the record, which can be compared with nil only.
    Timestamp,
    /// A name that means nothing, which is always nil.
    Unknown,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnaryOperator {
    /// `not` and `!`
    Not,
    /// `-`
    Minus,
    /// `+`
    Plus,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BinaryOperator {
    Or,
    And,
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    In,
    Contains,
    StartsWith,
    EndsWith,
    Add,
    Subtract,
    Multiply,
    Divide,
    Modulo,
    Power,
    /// `??`
    Coalesce,
}

/// The functions of expressions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Function {
    /// `len(value)`: characters of a text, items of a list, keys of a map.
    Len,
    /// `lower(text)`
    Lower,
    /// `upper(text)`
    Upper,
    /// `trim(text)`, or `trim(text, characters)`.
    Trim,
    /// `trimPrefix(text, prefix)`
    TrimPrefix,
    /// `trimSuffix(text, suffix)`
    TrimSuffix,
    /// `hasPrefix(text, prefix)`
    HasPrefix,
    /// `hasSuffix(text, suffix)`
    HasSuffix,
    /// `split(text, separator)`
    Split,
    /// `replace(text, old, new)`
    Replace,
    /// `indexOf(text, part)`: -1 if there is none.
    IndexOf,
    /// `int(value)`
    Int,
    /// `float(value)`
    Float,
    /// `string(value)`
    String,
    /// `type(value)`: the name of its type.
    Type,
}

/// The longest expression in bytes.
const MAX_EXPRESSION_BYTES: usize = 16 << 10;
/// The most nodes of a tree, which is also the depth of a chain such as `a or b or c`.
const MAX_NODES: usize = 1000;
/// The deepest nesting of brackets.
const MAX_DEPTH: usize = 64;

impl Expression {
    /// Parses an expression of any type.
    ///
    /// # Errors
    ///
    /// If the text is not an expression, or uses something that is not supported.
    pub fn parse(text: &str) -> Result<Self, ExpressionError> {
        let (root, unknown_variables) = parser::parse(text)?;
        types::check(&root).map_err(|problem| ExpressionError { column: 1, problem })?;
        Ok(Self { text: text.to_owned(), root, unknown_variables })
    }

    /// Parses an expression that is true or false.
    ///
    /// # Errors
    ///
    /// As [`Self::parse`], and if the type is known to be another one.
    pub fn parse_condition(text: &str) -> Result<Self, ExpressionError> {
        let expression = Self::parse(text)?;
        match types::known_type(&expression.root) {
            None | Some(types::ValueType::Bool) => Ok(expression),
            Some(other) => {
                let problem = format!("expected a condition, which is true or false, and found {other}");
                Err(ExpressionError { column: 1, problem })
            }
        }
    }

    /// The original text.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    pub fn root(&self) -> &ExpressionNode {
        &self.root
    }

    /// The names in it that mean nothing, and so are always nil.
    pub fn unknown_variables(&self) -> &[String] {
        &self.unknown_variables
    }
}

impl PartialEq for Expression {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

/// Reads a condition.
pub(super) fn condition(at: &Cursor<'_>, report: &DecodeReport) -> Option<Expression> {
    let text = scalar::text(at, report)?;
    reported(at, report, &text, Expression::parse_condition(&text))
}

/// Reports why a text within a value is no expression, and which names in it are unknown.
pub(super) fn reported(
    at: &Cursor<'_>,
    report: &DecodeReport,
    text: &str,
    parsed: Result<Expression, ExpressionError>,
) -> Option<Expression> {
    match parsed {
        Ok(expression) => {
            for name in expression.unknown_variables() {
                let message = format!("`{}`: the variable `{name}` does not exist and is always nil", at.name());
                let help = "known variables: body, attributes, resource, timestamp";
                report.warning(at, message, Some(help.into()));
            }
            Some(expression)
        }
        Err(error) => {
            let message = format!("`{}`: {} is not an expression: {error}", at.name(), at.subject(text));
            report.error(at, message, None);
            None
        }
    }
}
