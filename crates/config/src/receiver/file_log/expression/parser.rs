//! Tokens to a tree, by the precedence of operators.

use super::{
    BinaryOperator, ExpressionError, ExpressionNode, Function, MAX_DEPTH, MAX_EXPRESSION_BYTES, MAX_NODES,
    UnaryOperator, Variable,
    lexer::{self, Token, TokenKind},
};
use crate::RegexPattern;

/// The tree of a text, and the names in it that mean nothing.
pub(super) fn parse(text: &str) -> Result<(ExpressionNode, Vec<String>), ExpressionError> {
    if text.len() > MAX_EXPRESSION_BYTES {
        return Err(error(1, format!("the text is longer than {MAX_EXPRESSION_BYTES} bytes")));
    }
    let mut parser =
        Parser { tokens: lexer::tokens(text)?.into_iter(), token: None, nodes: 0, depth: 0, unknown: Vec::new() };
    parser.token = parser.tokens.next();
    let root = parser.expression(0)?;
    match parser.kind() {
        TokenKind::End => Ok((root, parser.unknown)),
        TokenKind::Symbol(symbol @ ("|" | ";" | "#" | "..")) => Err(parser.unsupported(&format!("`{symbol}`"))),
        _ => Err(parser.unexpected("an operator or the end")),
    }
}

/// What the operators of two operands are called, how closely they bind, and what they are.
const BINARY_OPERATORS: [(&str, u8, BinaryName); 25] = [
    ("or", 10, BinaryName::Operator(BinaryOperator::Or)),
    ("||", 10, BinaryName::Operator(BinaryOperator::Or)),
    ("and", 15, BinaryName::Operator(BinaryOperator::And)),
    ("&&", 15, BinaryName::Operator(BinaryOperator::And)),
    ("==", 20, BinaryName::Operator(BinaryOperator::Equal)),
    ("!=", 20, BinaryName::Operator(BinaryOperator::NotEqual)),
    ("<", 20, BinaryName::Operator(BinaryOperator::Less)),
    ("<=", 20, BinaryName::Operator(BinaryOperator::LessOrEqual)),
    (">", 20, BinaryName::Operator(BinaryOperator::Greater)),
    (">=", 20, BinaryName::Operator(BinaryOperator::GreaterOrEqual)),
    ("in", 20, BinaryName::Operator(BinaryOperator::In)),
    ("matches", 20, BinaryName::Matches),
    ("contains", 20, BinaryName::Operator(BinaryOperator::Contains)),
    ("startsWith", 20, BinaryName::Operator(BinaryOperator::StartsWith)),
    ("endsWith", 20, BinaryName::Operator(BinaryOperator::EndsWith)),
    ("..", 25, BinaryName::Unsupported),
    ("+", 30, BinaryName::Operator(BinaryOperator::Add)),
    ("-", 30, BinaryName::Operator(BinaryOperator::Subtract)),
    ("*", 60, BinaryName::Operator(BinaryOperator::Multiply)),
    ("/", 60, BinaryName::Operator(BinaryOperator::Divide)),
    ("%", 60, BinaryName::Operator(BinaryOperator::Modulo)),
    ("**", RIGHT_PRECEDENCE, BinaryName::Operator(BinaryOperator::Power)),
    ("^", RIGHT_PRECEDENCE, BinaryName::Operator(BinaryOperator::Power)),
    ("??", 200, BinaryName::Operator(BinaryOperator::Coalesce)),
    ("|", 0, BinaryName::Unsupported),
];

/// The only operators that are read from right to left are those of powers.
const RIGHT_PRECEDENCE: u8 = 100;
const NOT_PRECEDENCE: u8 = 50;
const SIGN_PRECEDENCE: u8 = 90;

#[derive(Clone, Copy)]
enum BinaryName {
    Operator(BinaryOperator),
    Matches,
    Unsupported,
}

const FUNCTIONS: [(&str, Function, std::ops::RangeInclusive<usize>); 15] = [
    ("len", Function::Len, 1..=1),
    ("lower", Function::Lower, 1..=1),
    ("upper", Function::Upper, 1..=1),
    ("trim", Function::Trim, 1..=2),
    ("trimPrefix", Function::TrimPrefix, 2..=2),
    ("trimSuffix", Function::TrimSuffix, 2..=2),
    ("hasPrefix", Function::HasPrefix, 2..=2),
    ("hasSuffix", Function::HasSuffix, 2..=2),
    ("split", Function::Split, 2..=2),
    ("replace", Function::Replace, 3..=3),
    ("indexOf", Function::IndexOf, 2..=2),
    ("int", Function::Int, 1..=1),
    ("float", Function::Float, 1..=1),
    ("string", Function::String, 1..=1),
    ("type", Function::Type, 1..=1),
];

struct Parser {
    tokens: std::vec::IntoIter<Token>,
    token: Option<Token>,
    nodes: usize,
    depth: usize,
    unknown: Vec<String>,
}

type ParsedNode = Result<ExpressionNode, ExpressionError>;

impl Parser {
    fn kind(&self) -> &TokenKind {
        self.token.as_ref().map_or(&TokenKind::End, |token| &token.kind)
    }

    fn column(&self) -> usize {
        self.token.as_ref().map_or(1, |token| token.column)
    }

    fn advance(&mut self) -> TokenKind {
        // The end stays, so that there always is a token.
        let next = self.tokens.next();
        match next {
            Some(next) => self.token.replace(next).map_or(TokenKind::End, |token| token.kind),
            None => TokenKind::End,
        }
    }

    fn has_text(&self, text: &str) -> bool {
        match self.kind() {
            TokenKind::Symbol(symbol) => *symbol == text,
            TokenKind::Name(name) => name == text,
            _ => false,
        }
    }

    fn take(&mut self, text: &str) -> bool {
        let found = self.has_text(text);
        if found {
            self.advance();
        }
        found
    }

    fn expect(&mut self, symbol: &str) -> Result<(), ExpressionError> {
        if self.take(symbol) { Ok(()) } else { Err(self.unexpected(&format!("`{symbol}`"))) }
    }

    fn unexpected(&self, expected: &str) -> ExpressionError {
        error(self.column(), format!("expected {expected} and found {}", self.kind().describe()))
    }

    fn unsupported(&self, what: &str) -> ExpressionError {
        error(self.column(), format!("{what} is not supported in expressions"))
    }

    /// Counts a node of the tree.
    fn count(&mut self) -> Result<(), ExpressionError> {
        self.nodes += 1;
        if self.nodes > MAX_NODES {
            return Err(error(self.column(), format!("the expression has more than {MAX_NODES} parts")));
        }
        Ok(())
    }

    fn node(&mut self, node: ExpressionNode) -> ParsedNode {
        self.count()?;
        Ok(node)
    }

    /// An expression whose operators bind at least this closely.
    fn expression(&mut self, precedence: u8) -> ParsedNode {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(error(self.column(), format!("the expression is nested deeper than {MAX_DEPTH}")));
        }
        let parsed = self.binary(precedence);
        self.depth -= 1;
        parsed
    }

    fn binary(&mut self, precedence: u8) -> ParsedNode {
        let mut left = self.unary()?;
        loop {
            let negated = self.has_text("not") && self.is_negated_operator();
            let Some((name, found, kind)) = self.binary_operator(negated).filter(|(_, found, _)| *found >= precedence)
            else {
                break;
            };
            if matches!(kind, BinaryName::Unsupported) {
                return Err(self.unsupported(&format!("`{name}`")));
            }
            if negated {
                self.advance();
            }
            self.advance();
            let next = if found == RIGHT_PRECEDENCE { found } else { found + 1 };
            let column = self.column();
            let right = self.expression(next)?;
            left = match kind {
                BinaryName::Operator(operator) => ExpressionNode::Binary(operator, left.into(), right.into()),
                _ => matches(left, right, column)?,
            };
            self.count()?;
            if negated {
                left = self.node(ExpressionNode::Unary(UnaryOperator::Not, left.into()))?;
            }
        }
        if precedence == 0 && self.take("?") {
            return self.conditional(left);
        }
        Ok(left)
    }

    /// Whether the `not` here belongs to an operator behind it: `a not in b`.
    fn is_negated_operator(&self) -> bool {
        let next = self.tokens.as_slice().first().map(|token| &token.kind);
        let names = ["in", "matches", "contains", "startsWith", "endsWith"];
        matches!(next, Some(TokenKind::Name(name)) if names.contains(&name.as_str()))
    }

    fn binary_operator(&self, negated: bool) -> Option<(&'static str, u8, BinaryName)> {
        let kind = if negated { &self.tokens.as_slice().first()?.kind } else { self.kind() };
        let text = match kind {
            TokenKind::Symbol(symbol) => symbol,
            TokenKind::Name(name) => name.as_str(),
            _ => return None,
        };
        BINARY_OPERATORS.iter().find(|(name, ..)| *name == text).copied()
    }

    fn conditional(&mut self, condition: ExpressionNode) -> ParsedNode {
        let then = self.expression(0)?;
        self.expect(":")?;
        let otherwise = self.expression(0)?;
        self.node(ExpressionNode::Conditional(condition.into(), then.into(), otherwise.into()))
    }

    fn unary(&mut self) -> ParsedNode {
        let (operator, precedence) = match self.kind() {
            TokenKind::Symbol("!") => (UnaryOperator::Not, NOT_PRECEDENCE),
            TokenKind::Name(name) if name == "not" => (UnaryOperator::Not, NOT_PRECEDENCE),
            TokenKind::Symbol("-") => (UnaryOperator::Minus, SIGN_PRECEDENCE),
            TokenKind::Symbol("+") => (UnaryOperator::Plus, SIGN_PRECEDENCE),
            _ => return self.postfix(),
        };
        self.advance();
        let operand = self.expression(precedence)?;
        self.node(ExpressionNode::Unary(operator, operand.into()))
    }

    /// A value with the keys and indexes behind it.
    fn postfix(&mut self) -> ParsedNode {
        let mut value = self.primary()?;
        loop {
            let (index, optional) = if self.take(".") {
                (self.key()?, false)
            } else if self.take("?.") {
                let index = if self.take("[") { self.index()? } else { self.key()? };
                (index, true)
            } else if self.take("[") {
                (self.index()?, false)
            } else {
                return Ok(value);
            };
            value = self.node(ExpressionNode::Index { value: value.into(), index: index.into(), optional })?;
        }
    }

    fn key(&mut self) -> ParsedNode {
        let column = self.column();
        match self.advance() {
            TokenKind::Name(name) if self.has_text("(") => {
                Err(error(column, format!("the method `{name}` is not supported in expressions")))
            }
            TokenKind::Name(name) => self.node(ExpressionNode::Text(name)),
            other => Err(error(column, format!("expected a key and found {}", other.describe()))),
        }
    }

    /// What is in brackets, after the opening one.
    fn index(&mut self) -> ParsedNode {
        if self.has_text(":") {
            return Err(self.unsupported("a range of indexes"));
        }
        let index = self.expression(0)?;
        if self.has_text(":") {
            return Err(self.unsupported("a range of indexes"));
        }
        self.expect("]")?;
        Ok(index)
    }

    fn primary(&mut self) -> ParsedNode {
        let column = self.column();
        match self.kind().clone() {
            TokenKind::Int(value) => self.literal(ExpressionNode::Int(value)),
            TokenKind::Float(value) => self.literal(ExpressionNode::Float(value)),
            TokenKind::Text(text) => self.literal(ExpressionNode::Text(text)),
            TokenKind::Name(name) => {
                self.advance();
                self.name(name, column)
            }
            TokenKind::Symbol("(") => {
                self.advance();
                let inner = self.expression(0)?;
                self.expect(")")?;
                Ok(inner)
            }
            TokenKind::Symbol("[") => {
                self.advance();
                let items = self.arguments("]")?;
                self.node(ExpressionNode::List(items))
            }
            TokenKind::Symbol("{") => Err(self.unsupported("a map in braces")),
            TokenKind::Symbol("#") => Err(self.unsupported("`#`")),
            _ => Err(self.unexpected("a value")),
        }
    }

    fn literal(&mut self, node: ExpressionNode) -> ParsedNode {
        self.advance();
        self.node(node)
    }

    fn name(&mut self, name: String, column: usize) -> ParsedNode {
        if self.has_text("(") {
            return self.call(&name, column);
        }
        let node = match name.as_str() {
            "true" => ExpressionNode::Bool(true),
            "false" => ExpressionNode::Bool(false),
            "nil" => ExpressionNode::Nil,
            "body" | "$" => ExpressionNode::Variable(Variable::Body),
            "attributes" => ExpressionNode::Variable(Variable::Attributes),
            "resource" => ExpressionNode::Variable(Variable::Resource),
            "timestamp" => ExpressionNode::Variable(Variable::Timestamp),
            "let" | "if" | "else" | "$env" => {
                return Err(error(column, format!("`{name}` is not supported in expressions")));
            }
            other if BINARY_OPERATORS.iter().any(|(operator, ..)| *operator == other) => {
                return Err(error(column, format!("expected a value and found `{other}`")));
            }
            _ => {
                if !self.unknown.contains(&name) {
                    self.unknown.push(name);
                }
                ExpressionNode::Variable(Variable::Unknown)
            }
        };
        self.node(node)
    }

    fn call(&mut self, name: &str, column: usize) -> ParsedNode {
        let Some((_, function, arity)) = FUNCTIONS.iter().find(|(known, ..)| *known == name) else {
            let known: Vec<&str> = FUNCTIONS.iter().map(|(known, ..)| *known).collect();
            let name = crate::problem::crop(name);
            let problem = format!("the function `{name}` is not supported; known functions: {}", known.join(", "));
            return Err(error(column, problem));
        };
        self.expect("(")?;
        let arguments = self.arguments(")")?;
        if !arity.contains(&arguments.len()) {
            let problem = format!("`{name}` takes {} arguments and has {}", describe(arity), arguments.len());
            return Err(error(column, problem));
        }
        self.node(ExpressionNode::Call(*function, arguments))
    }

    /// Expressions between commas, up to and with a closing bracket.
    fn arguments(&mut self, close: &str) -> Result<Vec<ExpressionNode>, ExpressionError> {
        let mut arguments = Vec::new();
        while !self.take(close) {
            if !arguments.is_empty() {
                if !self.take(",") {
                    return Err(self.unexpected(&format!("`,` or `{close}`")));
                }
                if self.take(close) {
                    break;
                }
            }
            arguments.push(self.expression(0)?);
        }
        Ok(arguments)
    }
}

/// `matches`, whose pattern has to be known when the document is loaded.
fn matches(left: ExpressionNode, right: ExpressionNode, column: usize) -> ParsedNode {
    let ExpressionNode::Text(pattern) = right else {
        return Err(error(column, "`matches` needs a pattern that is a text in quotes"));
    };
    match RegexPattern::new(&pattern) {
        Ok(pattern) => Ok(ExpressionNode::Matches(left.into(), pattern)),
        Err(problem) => Err(error(column, format!("the pattern is not a valid regular expression: {problem}"))),
    }
}

fn describe(arity: &std::ops::RangeInclusive<usize>) -> String {
    match (arity.start(), arity.end()) {
        (least, most) if least == most => least.to_string(),
        (least, most) => format!("{least} or {most}"),
    }
}

fn error(column: usize, problem: impl Into<String>) -> ExpressionError {
    ExpressionError { column, problem: problem.into() }
}
