//! Rules in CEL: whether they compile, and whether what they name is there.
//!
//! Of cel-go's type check this finds names that are not declared, fields that the schema does not have, and results that
//! plainly are of the wrong type.

use kube_cel::cel::{
    common::ast::{ComprehensionExpr, Expr, LiteralValue, operators},
    parser::Expression as Ast,
};
use serde_json::{Map, Value};

use super::shared::rule_shown;
use crate::{
    api::field::{Error, Errors, Kind},
    cel::{self, Expression, children},
    crd::{
        structural::{array, build, part, text},
        validate::escaped,
    },
    schema::{Node, Scalar, Schema, Shape},
};

/// Names that are not variables: namespaces of functions, and types.
const KNOWN: [&str; 22] = [
    "math",
    "sets",
    "lists",
    "strings",
    "base64",
    "optional",
    "format",
    "jsonpatch",
    "google",
    "cel",
    "semver",
    "int",
    "uint",
    "double",
    "bool",
    "string",
    "bytes",
    "list",
    "map",
    "null_type",
    "type",
    "dyn",
];

/// All errors of a node's rules.
pub(super) fn check(
    schema: &Map<String, Value>,
    path: &str,
    is_root: bool,
    uncorrelated: Option<&str>,
    errors: &mut Errors,
) {
    let rules = array(schema, "x-kubernetes-validations");
    if rules.is_empty() {
        return;
    }
    let from = Value::Object(schema.clone());
    let own = if is_root { build(&from, &Node::default()) } else { part(&from) };
    for (index, rule) in rules.iter().enumerate() {
        let Some(rule) = rule.as_object() else { continue };
        let path = format!("{path}.x-kubernetes-validations[{index}]");
        self::rule(rule, &own, &path, uncorrelated, errors);
    }
}

fn rule(rule: &Map<String, Value>, schema: &Schema, path: &str, uncorrelated: Option<&str>, errors: &mut Errors) {
    let invalid = |field: &str, detail: &str| {
        Error::of(format!("{path}.{field}"), Kind::Invalid, format!("Invalid value: {}: {detail}", rule_shown(rule)))
    };
    let optional = rule.get("optionalOldSelf").filter(|optional| !optional.is_null());
    let old = if optional == Some(&Value::Bool(true)) { None } else { Some(schema) };
    let uses_old = match compile(text(rule, "rule"), schema, old) {
        Err(why) => return errors.push(invalid("rule", &format!("compilation failed: {why}"))),
        Ok((_, Outcome::Other | Outcome::Text)) => {
            return errors.push(invalid("rule", "cel expression must evaluate to a bool"));
        }
        Ok((expression, _)) => expression.uses("oldSelf"),
    };
    let message = text(rule, "messageExpression");
    if !message.is_empty() {
        match compile(message, schema, old) {
            Err(why) => {
                errors.push(invalid("messageExpression", &format!("messageExpression compilation failed: {why}")))
            }
            Ok((_, Outcome::Other | Outcome::Bool)) => {
                errors.push(invalid("messageExpression", "messageExpression must evaluate to a string"));
            }
            Ok(_) => {}
        }
    }
    if let (true, Some(within)) = (uses_old, uncorrelated) {
        let detail = format!("oldSelf cannot be used on the uncorrelatable portion of the schema within {within}");
        errors.push(Error::invalid(format!("{path}.rule"), &text(rule, "rule").into(), &detail));
    }
    if let (false, Some(optional)) = (uses_old, optional) {
        let detail = "may not be set if oldSelf is not used in rule";
        errors.push(Error::invalid(format!("{path}.optionalOldSelf"), optional, detail));
    }
}

/// What an expression gives, as far as it is plain.
enum Outcome {
    Unknown,
    Bool,
    Text,
    Other,
}

fn compile(source: &str, schema: &Schema, old: Option<&Schema>) -> Result<(Expression, Outcome), String> {
    let expression = Expression::compile(source)?;
    let scope = vec![("self", Some(schema)), ("oldSelf", old)];
    let mut names = Names { source, scope, problems: Vec::new() };
    let found = names.walk(expression.tree());
    let outcome = outcome(expression.tree(), found);
    if names.problems.is_empty() { Ok((expression, outcome)) } else { Err(names.problems.join("\n")) }
}

fn outcome(tree: &Ast, found: Option<&Schema>) -> Outcome {
    match (&tree.expr, found.map(|schema| &schema.shape)) {
        (Expr::Select(select), _) if select.test => Outcome::Bool,
        (_, Some(Shape::Scalar(Scalar::Boolean))) | (Expr::Literal(LiteralValue::Boolean(_)), _) => Outcome::Bool,
        (_, Some(Shape::Scalar(Scalar::String))) if found.is_some_and(|schema| schema.rules.is_none()) => Outcome::Text,
        (Expr::Literal(LiteralValue::String(_)), _) => Outcome::Text,
        (Expr::Literal(_) | Expr::List(_) | Expr::Map(_), _) => Outcome::Other,
        (_, Some(Shape::Object { .. } | Shape::List { .. } | Shape::Map { .. })) => Outcome::Other,
        (_, Some(Shape::Scalar(Scalar::Integer | Scalar::Int32 | Scalar::Int64 | Scalar::Double))) => Outcome::Other,
        (Expr::Call(call), _) => match call.func_name.as_str() {
            operators::LOGICAL_AND
            | operators::LOGICAL_OR
            | operators::LOGICAL_NOT
            | operators::EQUALS
            | operators::NOT_EQUALS => Outcome::Bool,
            operators::SUBSTRACT | operators::MULTIPLY | operators::DIVIDE | operators::MODULO | operators::NEGATE => {
                Outcome::Other
            }
            _ => Outcome::Unknown,
        },
        _ => Outcome::Unknown,
    }
}

/// Follows names through the schema.
struct Names<'s, 'a> {
    source: &'a str,
    /// Variables, with their schema where it is known.
    scope: Vec<(&'a str, Option<&'s Schema>)>,
    problems: Vec<String>,
}

impl<'s> Names<'s, '_> {
    /// The schema of what an expression gives, where it is known.
    fn walk<'t>(&mut self, tree: &'t Ast) -> Option<&'s Schema> {
        match &tree.expr {
            Expr::Ident(name) => self.variable(name),
            Expr::Select(select) => {
                let operand = self.walk(&select.operand)?;
                self.field(operand, &select.field)
            }
            Expr::Comprehension(of) => {
                self.comprehension(of);
                None
            }
            Expr::Call(call) if call.func_name == operators::INDEX => {
                let mut found = call.args.iter().map(|arg| self.walk(arg)).collect::<Vec<_>>().into_iter();
                match &found.next()??.shape {
                    Shape::List { items, .. } => Some(items),
                    Shape::Map { values, .. } => Some(values),
                    _ => None,
                }
            }
            _ => {
                let mut parts: Vec<&'t Ast> = Vec::new();
                children(tree, &mut |part| parts.push(part));
                for part in parts {
                    self.walk(part);
                }
                None
            }
        }
    }

    fn variable(&mut self, name: &str) -> Option<&'s Schema> {
        if let Some((_, schema)) = self.scope.iter().rev().find(|(known, _)| *known == name) {
            return *schema;
        }
        if !KNOWN.contains(&name) && !name.starts_with('@') {
            let offset = word(self.source, name).unwrap_or_default();
            self.problems.push(cel::at(
                self.source,
                offset,
                &format!("undeclared reference to '{name}' (in container '')"),
            ));
        }
        None
    }

    fn field(&mut self, of: &'s Schema, name: &str) -> Option<&'s Schema> {
        match &of.shape {
            Shape::Map { values, .. } => Some(values),
            Shape::Object { fields, .. } if !of.rules.as_ref().is_some_and(|rules| rules.untyped) => {
                let found = fields.iter().find(|(field, _)| escaped(field) == name);
                if found.is_none() {
                    let offset = word(self.source, &format!(".{name}")).unwrap_or_default();
                    self.problems.push(cel::at(self.source, offset, &format!("undefined field '{name}'")));
                }
                found.map(|(_, node)| &**node)
            }
            _ => None,
        }
    }

    fn comprehension(&mut self, of: &ComprehensionExpr) {
        let range = self.walk(&of.iter_range);
        let (first, second) = match range.map(|range| &range.shape) {
            Some(Shape::List { items, .. }) if of.iter_var2.is_none() => (Some(&**items), None),
            Some(Shape::List { items, .. }) => (None, Some(&**items)),
            Some(Shape::Map { values, .. }) => (None, Some(&**values)),
            _ => (None, None),
        };
        self.walk(&of.accu_init);
        let names = [(Some(&of.iter_var), first), (of.iter_var2.as_ref(), second), (Some(&of.accu_var), None)];
        let inner = names.iter().filter_map(|(name, schema)| Some((name.as_ref()?.as_str(), *schema)));
        let mut scope: Vec<(&str, Option<&'s Schema>)> = self.scope.clone();
        scope.extend(inner);
        let mut inside = Names { source: self.source, scope, problems: std::mem::take(&mut self.problems) };
        for part in [&of.loop_cond, &of.loop_step, &of.result] {
            inside.walk(part);
        }
        self.problems = inside.problems;
    }
}

/// Where a name stands in the source, as a word of its own.
fn word(source: &str, name: &str) -> Option<usize> {
    let is_word = |char: char| char.is_alphanumeric() || char == '_';
    source.match_indices(name).map(|(at, _)| at).find(|at| {
        let before = source.get(..*at).and_then(|before| before.chars().next_back());
        let after = source.get(at + name.len()..).and_then(|after| after.chars().next());
        (name.starts_with('.') || !before.is_some_and(|char| is_word(char) || char == '.'))
            && !after.is_some_and(is_word)
    })
}
