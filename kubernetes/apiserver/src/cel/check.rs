//! The static type check of expressions, equivalent to cel-go's checker, with its messages.
//!
//! Guaranteed: a valid expression uses only declared variables, fields and functions, and calls functions with
//! types that they accept.

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
    admission::{VariableDeclarations, admission_environment},
    types::CelType,
};
use self::{
    library::Overload,
    source::CheckedSource,
    types::{TypeMapping, most_general},
};
use super::{macros, stack};

static FUNCTION_OVERLOADS: LazyLock<HashMap<&'static str, Vec<Overload>>> = LazyLock::new(library::parse_declarations);

/// The declarations that an expression can use.
#[derive(Clone, Debug, Default)]
pub(crate) struct TypeEnvironment {
    /// Variables, by names that may contain dots.
    pub(crate) variables: Vec<(String, CelType)>,
    /// The fields of objects, by type name.
    pub(crate) structs: HashMap<Arc<str>, Vec<(String, CelType)>>,
}

/// The type of an expression, or all its errors in cel-go's format.
pub(crate) fn check(source: &str, environment: &TypeEnvironment) -> Result<CelType, String> {
    // An expression that is too deep or too long has an error of the parser.
    super::Expression::compile(source)?;
    let checked = stack::run_on_large_stack(|| {
        let (tree, positions) = CheckedSource::parse(source)?;
        let mut checker =
            TypeChecker { environment, scope: Vec::new(), mapping: TypeMapping::default(), source: positions };
        let found = checker.node(&tree);
        let found = checker.mapping.substitute(&found, true);
        if !checker.source.has_problems() {
            literals::check(&tree, &mut checker.source);
        }
        checker.source.result(found)
    });
    checked.unwrap_or_else(|| Err(super::error_at_offset(source, 0, "Syntax error")))
}

struct TypeChecker<'e> {
    environment: &'e TypeEnvironment,
    scope: Vec<(String, CelType)>,
    mapping: TypeMapping,
    source: CheckedSource<'e>,
}

impl TypeChecker<'_> {
    fn node(&mut self, tree: &Ast) -> CelType {
        match &tree.expr {
            Expr::Literal(literal) => literal_type(literal),
            Expr::Ident(name) => self.identifier(name).unwrap_or_else(|| self.undeclared(tree.id, name)),
            Expr::Select(select) => self.select(tree, select),
            Expr::Call(call) => self.call(tree, call),
            Expr::List(list) => self.list(list),
            Expr::Map(map) => self.map(map),
            Expr::Struct(message) => self.undeclared(tree.id, &message.type_name),
            Expr::Comprehension(of) => self.comprehension(of),
            Expr::Unspecified => CelType::Error,
        }
    }

    fn identifier(&self, name: &str) -> Option<CelType> {
        let all = self.scope.iter().rev().chain(&self.environment.variables);
        let found = all.into_iter().find(|(known, _)| known == name).map(|(_, of)| of.clone());
        found.or_else(|| library::type_by_name(name))
    }

    fn undeclared(&mut self, id: u64, name: &str) -> CelType {
        self.source.report(id, format!("undeclared reference to '{name}' (in container '')"));
        CelType::Error
    }

    fn mismatch(&mut self, id: u64, wanted: &CelType, found: &CelType) {
        self.source.report(id, format!("expected type '{wanted}' but found '{found}'"));
    }

    fn select(&mut self, tree: &Ast, select: &SelectExpr) -> CelType {
        if !select.test
            && let Some(found) = qualified(tree).and_then(|name| self.identifier(&name))
        {
            return found;
        }
        let found = self.field(tree.id, &select.operand, &select.field, false);
        if select.test { CelType::Bool } else { self.mapping.substitute(&found, false) }
    }

    fn field(&mut self, id: u64, operand: &Ast, field: &str, is_optional: bool) -> CelType {
        let found = self.node(operand);
        let operand = self.mapping.substitute(&found, false);
        let (target, was_optional) = match &operand {
            CelType::Optional(of) => (&**of, true),
            other => (other, false),
        };
        let found = match target {
            CelType::Map(_, value) => (**value).clone(),
            CelType::Struct(name) => match self.environment.structs.get(name) {
                Some(fields) => match fields.iter().find(|(known, _)| known == field) {
                    Some((_, of)) => of.clone(),
                    None => self.problem(id, format!("undefined field '{field}'")),
                },
                None => self.problem(id, format!("undefined field '{field}'")),
            },
            CelType::Param(_) => {
                self.mapping.assign(&CelType::Dyn, target);
                CelType::Dyn
            }
            CelType::Dyn | CelType::Error => CelType::Dyn,
            other => {
                self.problem(id, format!("type '{other}' does not support field selection"));
                CelType::Dyn
            }
        };
        if was_optional || is_optional { CelType::optional(found) } else { found }
    }

    fn problem(&mut self, id: u64, problem: String) -> CelType {
        self.source.report(id, problem);
        CelType::Error
    }

    fn call(&mut self, tree: &Ast, call: &CallExpr) -> CelType {
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
        match macros::with_two_variables(call, tree.id) {
            Some(Ok(of)) => return self.comprehension(&of),
            Some(Err((id, problem))) => return self.problem(id, problem),
            None => {}
        }
        if let Some(of) = macros::sort_by(call, tree.id) {
            return self.comprehension(&of);
        }
        let args: Vec<CelType> = call.args.iter().map(|arg| self.node(arg)).collect();
        let Some(target) = call.target.as_deref() else {
            return self.resolve(tree.id, name, None, &args, &call.args);
        };
        if let Some(full) = qualified(target).map(|prefix| format!("{prefix}.{name}"))
            && FUNCTION_OVERLOADS.contains_key(full.as_str())
        {
            return self.resolve(tree.id, &full, None, &args, &call.args);
        }
        let target = self.node(target);
        self.resolve(tree.id, name, Some(target), &args, &call.args)
    }

    /// The result type of a function for these arguments.
    fn resolve(&mut self, id: u64, name: &str, target: Option<CelType>, args: &[CelType], nodes: &[Ast]) -> CelType {
        let Some(overloads) = FUNCTION_OVERLOADS.get(name) else { return self.undeclared(id, name) };
        if matches!(name, operators::LOGICAL_AND | operators::LOGICAL_OR) && target.is_none() {
            return self.logical(args, nodes);
        }
        let is_member = target.is_some();
        let given: Vec<CelType> = target.into_iter().chain(args.iter().cloned()).collect();
        let mut result: Option<CelType> = None;
        for overload in overloads.iter().filter(|overload| overload.is_member == is_member) {
            if overload.args.len() != given.len() {
                continue;
            }
            let (wanted, made) = self.instantiate_overload(overload);
            if self.mapping.assign_all(given.iter().zip(&wanted)) {
                let made = self.mapping.substitute(&made, false);
                result = Some(match result {
                    None => made,
                    Some(before) if before == made || before == CelType::Dyn => before,
                    Some(_) => CelType::Dyn,
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

    /// An overload with fresh type parameters.
    fn instantiate_overload(&mut self, overload: &Overload) -> (Vec<CelType>, CelType) {
        if !overload.is_generic {
            return (overload.args.clone(), overload.result.clone());
        }
        let fresh: Vec<CelType> = (0..library::MAX_TYPE_PARAMS).map(|_| self.mapping.fresh_type_param()).collect();
        let args = overload.args.iter().map(|arg| substitute_params(arg, &fresh)).collect();
        (args, substitute_params(&overload.result, &fresh))
    }

    fn logical(&mut self, args: &[CelType], nodes: &[Ast]) -> CelType {
        let mut result = CelType::Bool;
        for (of, node) in args.iter().zip(nodes) {
            if !self.mapping.assign(of, &CelType::Bool) {
                self.mismatch(node.id, &CelType::Bool, of);
                result = CelType::Error;
            }
        }
        result
    }

    /// `target.hasValue() ? optional.of(body with target.value()) : optional.none()`
    fn optional_map(&mut self, id: u64, target: &Ast, variable: &str, body: &Ast, is_flat: bool) -> CelType {
        let target = self.node(target);
        self.resolve(id, "hasValue", Some(target.clone()), &[], &[]);
        let value = self.resolve(id, "value", Some(target), &[], &[]);
        self.scope.push((variable.to_owned(), value));
        let body = self.node(body);
        self.scope.pop();
        let made = if is_flat { body } else { CelType::optional(body) };
        let none = CelType::optional(self.mapping.fresh_type_param());
        self.resolve(id, operators::CONDITIONAL, None, &[CelType::Bool, made, none], &[])
    }

    fn list(&mut self, list: &ListExpr) -> CelType {
        let mut items: Option<CelType> = None;
        for (place, item) in list.elements.iter().enumerate() {
            let found = self.node(item);
            let found = self.unwrap_optional(item.id, found, list.optional_indices.contains(&place));
            items = Some(self.join_types(item.id, items, found));
        }
        let items = items.unwrap_or_else(|| self.mapping.fresh_type_param());
        CelType::list(items)
    }

    fn map(&mut self, map: &MapExpr) -> CelType {
        let mut keys = None;
        let mut values = None;
        for entry in &map.entries {
            let EntryExpr::MapEntry(entry) = &entry.expr else { continue };
            let key = self.node(&entry.key);
            keys = Some(self.join_types(entry.key.id, keys, key));
            let value = self.node(&entry.value);
            let value = self.unwrap_optional(entry.value.id, value, entry.optional);
            values = Some(self.join_types(entry.value.id, values, value));
        }
        let keys = keys.unwrap_or_else(|| self.mapping.fresh_type_param());
        let values = values.unwrap_or_else(|| self.mapping.fresh_type_param());
        CelType::map(keys, values)
    }

    /// The value type of an optional entry in a literal.
    fn unwrap_optional(&mut self, id: u64, of: CelType, is_optional: bool) -> CelType {
        match of {
            CelType::Optional(inner) if is_optional => (*inner).clone(),
            of if is_optional && of != CelType::Dyn => {
                self.mismatch(id, &CelType::optional(of.clone()), &of);
                of
            }
            of => of,
        }
    }

    /// The common type of the items of a literal. In Kubernetes they must be compatible.
    fn join_types(&mut self, id: u64, before: Option<CelType>, now: CelType) -> CelType {
        let Some(before) = before else { return now };
        if self.mapping.assign(&before, &now) {
            return most_general(&before, &now).clone();
        }
        self.mismatch(id, &before, &now);
        CelType::Error
    }

    fn comprehension(&mut self, of: &ComprehensionExpr) -> CelType {
        let range = self.node(&of.iter_range);
        let start = self.node(&of.accu_init);
        let range = self.mapping.substitute(&range, false);
        // Of two variables the first is the index or the key, and the second the item or the value.
        let (item, second) = match &range {
            CelType::List(items) if of.iter_var2.is_some() => (CelType::Int, (**items).clone()),
            CelType::List(items) => ((**items).clone(), CelType::Dyn),
            CelType::Map(keys, values) => ((**keys).clone(), (**values).clone()),
            CelType::Dyn | CelType::Error | CelType::Param(_) => {
                self.mapping.assign(&CelType::Dyn, &range);
                (CelType::Dyn, CelType::Dyn)
            }
            other => {
                let allowed = "(must be list, map, or dynamic)";
                let problem = format!("expression of type '{other}' cannot be range of a comprehension {allowed}");
                (self.problem(of.iter_range.id, problem), CelType::Error)
            }
        };
        let depth = self.scope.len();
        self.scope.push((of.accu_var.clone(), start.clone()));
        self.scope.push((of.iter_var.clone(), item));
        self.scope.extend(of.iter_var2.clone().map(|name| (name, second)));
        for (part, wanted) in [(&of.loop_cond, &CelType::Bool), (&of.loop_step, &start)] {
            let found = self.node(part);
            if !self.mapping.assign(wanted, &found) {
                self.mismatch(part.id, wanted, &found);
            }
        }
        self.scope.truncate(depth + 1);
        let result = self.node(&of.result);
        self.scope.truncate(depth);
        self.mapping.substitute(&result, false)
    }
}

/// A type of the table with the type parameters of one call.
fn substitute_params(of: &CelType, with: &[CelType]) -> CelType {
    let inner = |of: &CelType| Arc::new(substitute_params(of, with));
    match of {
        CelType::Param(place) => usize::try_from(*place).ok().and_then(|place| with.get(place)).unwrap_or(of).clone(),
        CelType::List(of) => CelType::List(inner(of)),
        CelType::Optional(of) => CelType::Optional(inner(of)),
        CelType::Meta(of) => CelType::Meta(inner(of)),
        CelType::Map(key, value) => CelType::Map(inner(key), inner(value)),
        _ => of.clone(),
    }
}

/// `a.b.c`, if the expression has that form.
fn qualified(tree: &Ast) -> Option<String> {
    match &tree.expr {
        Expr::Ident(name) => Some(name.clone()),
        Expr::Select(select) if !select.test => Some(format!("{}.{}", qualified(&select.operand)?, select.field)),
        _ => None,
    }
}

fn literal_type(literal: &LiteralValue) -> CelType {
    match literal {
        LiteralValue::String(_) => CelType::String,
        LiteralValue::Bytes(_) => CelType::Bytes,
        LiteralValue::Boolean(_) => CelType::Bool,
        LiteralValue::Int(_) => CelType::Int,
        LiteralValue::UInt(_) => CelType::Uint,
        LiteralValue::Double(_) => CelType::Double,
        LiteralValue::Null => CelType::Null,
    }
}

#[cfg(test)]
mod tests;
