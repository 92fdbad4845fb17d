//! The static type check of expressions, as cel-go's checker does it, with its messages.
//!
//! Guaranteed: what passes names only variables, fields and functions that are declared, and calls them with types that they take.
//! Not done: macros with two variables and `sortBy`, which the interpreter does not have either; they are refused as functions
//! that are not declared.

mod admission;
mod library;
mod literals;
mod source;
mod types;

use std::{
    collections::HashMap,
    sync::{Arc, LazyLock},
};

use kube_cel::cel::{
    common::ast::{
        CallExpr, ComprehensionExpr, EntryExpr, Expr, ListExpr, LiteralValue, MapExpr, SelectExpr, operators,
    },
    parser::Expression as Ast,
};

pub(crate) use self::{
    admission::{Declarations, admission},
    types::Type,
};
use self::{
    library::Overload,
    source::Source,
    types::{Mapping, most_general},
};
use super::stack;

static FUNCTIONS: LazyLock<HashMap<&'static str, Vec<Overload>>> = LazyLock::new(library::functions);

/// What an expression can see.
#[derive(Clone, Debug, Default)]
pub(crate) struct Environment {
    /// Variables, by names that may have dots.
    pub(crate) variables: Vec<(String, Type)>,
    /// The fields of objects, by the names of their types.
    pub(crate) structs: HashMap<Arc<str>, Vec<(String, Type)>>,
}

/// The type of what an expression gives, or all that is wrong with it as cel-go shows it.
pub(crate) fn check(source: &str, environment: &Environment) -> Result<Type, String> {
    // What is too deep or too long for the parser is refused by it with words of its own.
    super::Expression::compile(source)?;
    let checked = stack::large(|| {
        let (tree, positions) = Source::parse(source)?;
        let mut checker = Checker { environment, scope: Vec::new(), mapping: Mapping::default(), source: positions };
        let found = checker.node(&tree);
        let found = checker.mapping.substitute(&found, true);
        if !checker.source.has_problems() {
            literals::check(&tree, &mut checker.source);
        }
        checker.source.result(found)
    });
    checked.unwrap_or_else(|| Err(super::at(source, 0, "Syntax error")))
}

struct Checker<'e> {
    environment: &'e Environment,
    /// Variables of loops.
    scope: Vec<(String, Type)>,
    mapping: Mapping,
    source: Source<'e>,
}

impl Checker<'_> {
    fn node(&mut self, tree: &Ast) -> Type {
        match &tree.expr {
            Expr::Literal(literal) => literal_type(literal),
            Expr::Ident(name) => self.identifier(name).unwrap_or_else(|| self.undeclared(tree.id, name)),
            Expr::Select(select) => self.select(tree, select),
            Expr::Call(call) => self.call(tree, call),
            Expr::List(list) => self.list(list),
            Expr::Map(map) => self.map(map),
            Expr::Struct(message) => self.undeclared(tree.id, &message.type_name),
            Expr::Comprehension(of) => self.comprehension(of),
            Expr::Unspecified => Type::Error,
        }
    }

    fn identifier(&self, name: &str) -> Option<Type> {
        let all = self.scope.iter().rev().chain(&self.environment.variables);
        let found = all.into_iter().find(|(known, _)| known == name).map(|(_, of)| of.clone());
        found.or_else(|| library::named(name))
    }

    fn undeclared(&mut self, id: u64, name: &str) -> Type {
        self.source.report(id, format!("undeclared reference to '{name}' (in container '')"));
        Type::Error
    }

    fn mismatch(&mut self, id: u64, wanted: &Type, found: &Type) {
        self.source.report(id, format!("expected type '{wanted}' but found '{found}'"));
    }

    fn select(&mut self, tree: &Ast, select: &SelectExpr) -> Type {
        if !select.test
            && let Some(found) = qualified(tree).and_then(|name| self.identifier(&name))
        {
            return found;
        }
        let found = self.field(tree.id, &select.operand, &select.field, false);
        if select.test { Type::Bool } else { self.mapping.substitute(&found, false) }
    }

    fn field(&mut self, id: u64, operand: &Ast, field: &str, is_optional: bool) -> Type {
        let found = self.node(operand);
        let operand = self.mapping.substitute(&found, false);
        let (target, was_optional) = match &operand {
            Type::Optional(of) => (&**of, true),
            other => (other, false),
        };
        let found = match target {
            Type::Map(_, value) => (**value).clone(),
            Type::Struct(name) => match self.environment.structs.get(name) {
                Some(fields) => match fields.iter().find(|(known, _)| known == field) {
                    Some((_, of)) => of.clone(),
                    None => self.problem(id, format!("undefined field '{field}'")),
                },
                None => self.problem(id, format!("undefined field '{field}'")),
            },
            Type::Param(_) => {
                self.mapping.assign(&Type::Dyn, target);
                Type::Dyn
            }
            Type::Dyn | Type::Error => Type::Dyn,
            other => {
                self.problem(id, format!("type '{other}' does not support field selection"));
                Type::Dyn
            }
        };
        if was_optional || is_optional { Type::optional(found) } else { found }
    }

    fn problem(&mut self, id: u64, problem: String) -> Type {
        self.source.report(id, problem);
        Type::Error
    }

    fn call(&mut self, tree: &Ast, call: &CallExpr) -> Type {
        let name = call.func_name.as_str();
        if name == operators::OPT_SELECT
            && let (None, [operand, field]) = (&call.target, call.args.as_slice())
            && let Expr::Literal(LiteralValue::String(field)) = &field.expr
        {
            let found = self.field(tree.id, operand, field.inner(), true);
            return self.mapping.substitute(&found, false);
        }
        if let (Some(target), [Ast { expr: Expr::Ident(variable), .. }, body]) = (&call.target, call.args.as_slice())
            && matches!(name, "optMap" | "optFlatMap")
        {
            return self.optional_map(tree.id, target, variable, body, name == "optFlatMap");
        }
        let args: Vec<Type> = call.args.iter().map(|arg| self.node(arg)).collect();
        let Some(target) = call.target.as_deref() else {
            return self.resolve(tree.id, name, None, &args, &call.args);
        };
        if let Some(full) = qualified(target).map(|prefix| format!("{prefix}.{name}"))
            && FUNCTIONS.contains_key(full.as_str())
        {
            return self.resolve(tree.id, &full, None, &args, &call.args);
        }
        let target = self.node(target);
        self.resolve(tree.id, name, Some(target), &args, &call.args)
    }

    /// The type of what a function gives for these arguments.
    fn resolve(&mut self, id: u64, name: &str, target: Option<Type>, args: &[Type], nodes: &[Ast]) -> Type {
        let Some(overloads) = FUNCTIONS.get(name) else { return self.undeclared(id, name) };
        if matches!(name, operators::LOGICAL_AND | operators::LOGICAL_OR) && target.is_none() {
            return self.logical(args, nodes);
        }
        let is_member = target.is_some();
        let given: Vec<Type> = target.into_iter().chain(args.iter().cloned()).collect();
        let mut result: Option<Type> = None;
        for overload in overloads.iter().filter(|overload| overload.is_member == is_member) {
            if overload.args.len() != given.len() {
                continue;
            }
            let (wanted, made) = self.instance(overload);
            if self.mapping.assign_all(given.iter().zip(&wanted)) {
                let made = self.mapping.substitute(&made, false);
                result = Some(match result {
                    None => made,
                    Some(before) if before == made || before == Type::Dyn => before,
                    Some(_) => Type::Dyn,
                });
            }
        }
        if let Some(result) = result {
            return result;
        }
        let mut shown = given.iter().map(|of| self.mapping.substitute(of, true).to_string());
        let target = if is_member { shown.next().map(|target| format!("{target}.")) } else { None };
        let args = shown.collect::<Vec<_>>().join(", ");
        let target = target.unwrap_or_default();
        self.problem(id, format!("found no matching overload for '{name}' applied to '{target}({args})'"))
    }

    /// An overload with parameters of its own.
    fn instance(&mut self, overload: &Overload) -> (Vec<Type>, Type) {
        if !overload.is_generic {
            return (overload.args.clone(), overload.result.clone());
        }
        let fresh: Vec<Type> = (0..library::PARAMS).map(|_| self.mapping.fresh()).collect();
        let args = overload.args.iter().map(|arg| replaced(arg, &fresh)).collect();
        (args, replaced(&overload.result, &fresh))
    }

    fn logical(&mut self, args: &[Type], nodes: &[Ast]) -> Type {
        let mut result = Type::Bool;
        for (of, node) in args.iter().zip(nodes) {
            if !self.mapping.assign(of, &Type::Bool) {
                self.mismatch(node.id, &Type::Bool, of);
                result = Type::Error;
            }
        }
        result
    }

    /// `target.hasValue() ? optional.of(body with target.value()) : optional.none()`
    fn optional_map(&mut self, id: u64, target: &Ast, variable: &str, body: &Ast, is_flat: bool) -> Type {
        let target = self.node(target);
        self.resolve(id, "hasValue", Some(target.clone()), &[], &[]);
        let value = self.resolve(id, "value", Some(target), &[], &[]);
        self.scope.push((variable.to_owned(), value));
        let body = self.node(body);
        self.scope.pop();
        let made = if is_flat { body } else { Type::optional(body) };
        let none = Type::optional(self.mapping.fresh());
        self.resolve(id, operators::CONDITIONAL, None, &[Type::Bool, made, none], &[])
    }

    fn list(&mut self, list: &ListExpr) -> Type {
        let mut items: Option<Type> = None;
        for (place, item) in list.elements.iter().enumerate() {
            let found = self.node(item);
            let found = self.unwrapped(item.id, found, list.optional_indices.contains(&place));
            items = Some(self.joined(item.id, items, found));
        }
        let items = items.unwrap_or_else(|| self.mapping.fresh());
        Type::list(items)
    }

    fn map(&mut self, map: &MapExpr) -> Type {
        let (mut keys, mut values) = (None, None);
        for entry in &map.entries {
            let EntryExpr::MapEntry(entry) = &entry.expr else { continue };
            let key = self.node(&entry.key);
            keys = Some(self.joined(entry.key.id, keys, key));
            let value = self.node(&entry.value);
            let value = self.unwrapped(entry.value.id, value, entry.optional);
            values = Some(self.joined(entry.value.id, values, value));
        }
        let keys = keys.unwrap_or_else(|| self.mapping.fresh());
        let values = values.unwrap_or_else(|| self.mapping.fresh());
        Type::map(keys, values)
    }

    /// What is in an optional value of a literal.
    fn unwrapped(&mut self, id: u64, of: Type, is_optional: bool) -> Type {
        match of {
            Type::Optional(inner) if is_optional => (*inner).clone(),
            of if is_optional && of != Type::Dyn => {
                self.mismatch(id, &Type::optional(of.clone()), &of);
                of
            }
            of => of,
        }
    }

    /// The type of all items of a literal. In Kubernetes they must go together.
    fn joined(&mut self, id: u64, before: Option<Type>, now: Type) -> Type {
        let Some(before) = before else { return now };
        if self.mapping.assign(&before, &now) {
            return most_general(&before, &now).clone();
        }
        self.mismatch(id, &before, &now);
        Type::Error
    }

    fn comprehension(&mut self, of: &ComprehensionExpr) -> Type {
        let range = self.node(&of.iter_range);
        let start = self.node(&of.accu_init);
        let range = self.mapping.substitute(&range, false);
        let item = match &range {
            Type::List(items) => (**items).clone(),
            Type::Map(keys, _) => (**keys).clone(),
            Type::Dyn | Type::Error | Type::Param(_) => {
                self.mapping.assign(&Type::Dyn, &range);
                Type::Dyn
            }
            other => {
                let allowed = "(must be list, map, or dynamic)";
                let problem = format!("expression of type '{other}' cannot be range of a comprehension {allowed}");
                self.problem(of.iter_range.id, problem)
            }
        };
        self.scope.push((of.accu_var.clone(), start.clone()));
        self.scope.push((of.iter_var.clone(), item));
        for (part, wanted) in [(&of.loop_cond, &Type::Bool), (&of.loop_step, &start)] {
            let found = self.node(part);
            if !self.mapping.assign(wanted, &found) {
                self.mismatch(part.id, wanted, &found);
            }
        }
        self.scope.pop();
        let result = self.node(&of.result);
        self.scope.pop();
        self.mapping.substitute(&result, false)
    }
}

/// A type of the table with the parameters of one call.
fn replaced(of: &Type, with: &[Type]) -> Type {
    let inner = |of: &Type| Arc::new(replaced(of, with));
    match of {
        Type::Param(place) => usize::try_from(*place).ok().and_then(|place| with.get(place)).unwrap_or(of).clone(),
        Type::List(of) => Type::List(inner(of)),
        Type::Optional(of) => Type::Optional(inner(of)),
        Type::Meta(of) => Type::Meta(inner(of)),
        Type::Map(key, value) => Type::Map(inner(key), inner(value)),
        _ => of.clone(),
    }
}

/// `a.b.c`, if an expression is that.
fn qualified(tree: &Ast) -> Option<String> {
    match &tree.expr {
        Expr::Ident(name) => Some(name.clone()),
        Expr::Select(select) if !select.test => Some(format!("{}.{}", qualified(&select.operand)?, select.field)),
        _ => None,
    }
}

fn literal_type(literal: &LiteralValue) -> Type {
    match literal {
        LiteralValue::String(_) => Type::String,
        LiteralValue::Bytes(_) => Type::Bytes,
        LiteralValue::Boolean(_) => Type::Bool,
        LiteralValue::Int(_) => Type::Int,
        LiteralValue::UInt(_) => Type::Uint,
        LiteralValue::Double(_) => Type::Double,
        LiteralValue::Null => Type::Null,
    }
}

#[cfg(test)]
mod tests;
