//! An upper bound of the cost of an evaluation.
//!
//! The interpreter copies what it selects and has no limit of its own, so the bound is computed before it runs:
//! every step costs one and the size of what it copies, and the body of a loop counts once for every possible
//! item. Sizes are those of the values at hand, as far as an expression can be followed into them: through
//! fields, into lists, and into their items while these are few. Beyond that the largest size of any part is
//! assumed.

use kube_cel::cel::{
    common::ast::{ComprehensionExpr, EntryExpr, Expr, LiteralValue, operators},
    parser::Expression as Ast,
};
use serde_json::Value;

use super::call_bound;

/// The size of an expression.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ExpressionExtent {
    steps: u64,
    loops: u32,
    pub(super) depth: u32,
    /// Whether it calls a function whose result or work exceeds the sum of its arguments.
    multiplies: bool,
}

pub(super) fn extent(tree: &Ast) -> ExpressionExtent {
    let multiplies = matches!(&tree.expr, Expr::Call(call) if call_bound::exceeds_arguments(call));
    let mut whole = ExpressionExtent { steps: 1, loops: 0, depth: 0, multiplies };
    children(tree, &mut |child| {
        let part = extent(child);
        whole.steps = whole.steps.saturating_add(part.steps);
        whole.loops = whole.loops.max(part.loops);
        whole.depth = whole.depth.max(part.depth);
        whole.multiplies |= part.multiplies;
    });
    whole.depth += 1;
    whole.loops += u32::from(matches!(tree.expr, Expr::Comprehension(_)));
    whole
}

/// The type of a message literal such as `a.B{c: 1}`, which no rule can have.
pub(super) fn message_type(tree: &Ast) -> Option<String> {
    if let Expr::Struct(message) = &tree.expr {
        return Some(message.type_name.clone());
    }
    let mut found = None;
    children(tree, &mut |child| found = found.take().or_else(|| message_type(child)));
    found
}

/// Calls `each` for every direct sub-expression.
pub(crate) fn children<'a>(tree: &'a Ast, each: &mut dyn FnMut(&'a Ast)) {
    match &tree.expr {
        Expr::Unspecified | Expr::Ident(_) | Expr::Literal(_) => {}
        Expr::Call(call) => call.target.as_deref().into_iter().chain(&call.args).for_each(each),
        Expr::List(list) => list.elements.iter().for_each(each),
        Expr::Select(select) => each(&select.operand),
        Expr::Map(map) => map.entries.iter().for_each(|entry| entry_parts(&entry.expr, each)),
        Expr::Struct(message) => message.entries.iter().for_each(|entry| entry_parts(&entry.expr, each)),
        Expr::Comprehension(of) => {
            [&of.iter_range, &of.accu_init, &of.loop_cond, &of.loop_step, &of.result].into_iter().for_each(each);
        }
    }
}

fn entry_parts<'a>(entry: &'a EntryExpr, each: &mut dyn FnMut(&'a Ast)) {
    match entry {
        EntryExpr::StructField(field) => each(&field.value),
        EntryExpr::MapEntry(entry) => {
            each(&entry.key);
            each(&entry.value);
        }
    }
}

pub(super) fn cost_bound(tree: &Ast, extent: ExpressionExtent, variables: &[(&str, &Value)]) -> u64 {
    let whole = variables.iter().map(|(_, value)| size_units(value)).fold(1, u64::saturating_add);
    let looped = whole.saturating_mul(BYTES_PER_UNIT).saturating_pow(extent.loops);
    let rough = extent.steps.saturating_mul(whole).saturating_mul(looped);
    if rough <= SMALL_COST && !extent.multiplies {
        return rough;
    }
    let scope = variables.iter().map(|(name, value)| (*name, ValueSize::from_value(value))).collect();
    CostWalk { scope, fuel: MAX_FOLLOWED_STEPS }.cost(tree).0
}

/// The cost below which a rough bound is sufficient.
const SMALL_COST: u64 = 1_000;

pub(super) const BYTES_PER_UNIT: u64 = 32;

/// The limit of steps, and of units that they read, for which the items of lists are followed individually. It
/// takes about a millisecond.
const MAX_FOLLOWED_STEPS: u64 = 100_000;

fn size_units(value: &Value) -> u64 {
    match value {
        Value::String(text) => 1 + text.len() as u64 / BYTES_PER_UNIT,
        Value::Array(items) => 1 + items.iter().map(size_units).sum::<u64>(),
        Value::Object(fields) => 1 + fields.values().map(|value| 1 + size_units(value)).sum::<u64>(),
        _ => 1,
    }
}

/// What is known about a value.
#[derive(Clone, Copy)]
pub(super) struct ValueSize<'v> {
    pub(super) exact: Option<&'v Value>,
    pub(super) size: u64,
    pub(super) child: u64,
    /// The number of items; bytes, for a text.
    pub(super) len: u64,
}

impl<'v> ValueSize<'v> {
    pub(super) const ONE: Self = Self { exact: None, size: 1, child: 1, len: 1 };

    fn from_value(value: &'v Value) -> Self {
        let (child, len) = match value {
            Value::String(text) => (1, text.len()),
            Value::Array(items) => (items.iter().map(size_units).max().unwrap_or(1), items.len()),
            Value::Object(fields) => (fields.values().map(size_units).max().unwrap_or(1), fields.len()),
            _ => (1, 1),
        };
        Self { exact: Some(value), size: size_units(value), child, len: len as u64 }
    }

    /// An absent value: any use of it ends the evaluation.
    fn absent() -> Self {
        static NOTHING: Value = Value::Null;
        Self::from_value(&NOTHING)
    }

    pub(super) fn from_units(size: u64) -> Self {
        Self { exact: None, size, child: size, len: size.saturating_mul(BYTES_PER_UNIT) }
    }

    fn field(self, name: &str) -> Self {
        match self.exact.map(|value| value.get(name)) {
            Some(Some(field)) => Self::from_value(field),
            // A name with underscores may be an escaped form of the value's name.
            Some(None) if !name.contains("__") => Self::absent(),
            _ => Self::from_units(self.child),
        }
    }

    fn items(self) -> Option<&'v [Value]> {
        self.exact?.as_array().map(Vec::as_slice)
    }

    fn combine(self, other: Self) -> Self {
        Self {
            exact: None,
            size: self.size.saturating_add(other.size),
            child: self.child.max(other.child).max(other.size),
            len: self.len.saturating_add(other.len),
        }
    }
}

struct CostWalk<'a, 'v> {
    scope: Vec<(&'a str, ValueSize<'v>)>,
    /// The remaining steps of following items individually.
    fuel: u64,
}

impl<'a, 'v> CostWalk<'a, 'v> {
    fn cost(&mut self, tree: &'a Ast) -> (u64, ValueSize<'v>) {
        self.use_steps(1);
        match &tree.expr {
            Expr::Literal(LiteralValue::String(text)) => {
                let len = text.inner().len() as u64;
                (1, ValueSize { len, ..ValueSize::from_units(1 + len / BYTES_PER_UNIT) })
            }
            Expr::Ident(name) => (1, self.find(name)),
            Expr::Select(select) => {
                let (cost, operand) = self.cost(&select.operand);
                let field = if select.test { ValueSize::ONE } else { operand.field(&select.field) };
                self.use_steps(field.size);
                (cost.saturating_add(field.size).saturating_add(1), field)
            }
            Expr::Comprehension(of) => self.comprehension(of),
            Expr::Call(call) => {
                if let (operators::INDEX, [list, at]) = (call.func_name.as_str(), call.args.as_slice())
                    && let Expr::Literal(LiteralValue::Int(at)) = &at.expr
                {
                    return self.item(list, *at.inner());
                }
                let mut args = Vec::new();
                let (cost, all) = self.parts(tree, Some(&mut args));
                let result = match call.func_name.as_str() {
                    operators::INDEX | operators::OPT_INDEX => ValueSize::from_units(all.child),
                    _ => all,
                };
                let shape = call_bound::bound_call(call, &args, result);
                (cost.saturating_add(all.size).saturating_add(shape.work), shape.result)
            }
            _ => self.parts(tree, None),
        }
    }

    fn use_steps(&mut self, fuel: u64) {
        self.fuel = self.fuel.saturating_sub(fuel);
    }

    /// One item of a list. The item of an unknown value can be anything in it.
    fn item(&mut self, list: &'a Ast, at: i64) -> (u64, ValueSize<'v>) {
        let (cost, list) = self.cost(list);
        let item = match (list.items(), usize::try_from(at)) {
            (Some(items), Ok(at)) => items.get(at).map_or_else(ValueSize::absent, ValueSize::from_value),
            _ => ValueSize::from_units(list.child),
        };
        (cost.saturating_add(list.size).saturating_add(2), item)
    }

    /// The sum of all sub-expressions, and on request each of them.
    fn parts(&mut self, tree: &'a Ast, mut each: Option<&mut Vec<ValueSize<'v>>>) -> (u64, ValueSize<'v>) {
        let mut parts = Vec::new();
        children(tree, &mut |child| parts.push(child));
        let mut whole = (1_u64, ValueSize { len: 0, ..ValueSize::ONE });
        for part in parts {
            let (cost, part) = self.cost(part);
            if let Some(each) = &mut each {
                each.push(part);
            }
            whole = (whole.0.saturating_add(cost), whole.1.combine(part));
        }
        if let Expr::List(list) = &tree.expr {
            whole.1.len = list.elements.len() as u64;
        }
        whole
    }

    fn comprehension(&mut self, of: &'a ComprehensionExpr) -> (u64, ValueSize<'v>) {
        let (range_cost, range) = self.cost(&of.iter_range);
        let (init_cost, init) = self.cost(&of.accu_init);
        let collects = matches!(of.accu_init.expr, Expr::List(_) | Expr::Map(_));
        let accumulator = if collects { ValueSize { exact: None, ..range } } else { init };
        let depth = self.scope.len();
        self.scope.push((&of.accu_var, accumulator));
        let (body, made) = self.loop_cost(of, range);
        let (last, result) = self.cost(&of.result);
        self.scope.truncate(depth);
        let cost = [range_cost, init_cost, body, last].into_iter().fold(1, u64::saturating_add);
        if !collects {
            return (cost, result);
        }
        let each = made.size.saturating_sub(accumulator.size).max(1);
        let size = each.saturating_mul(range.len.max(1));
        (cost, ValueSize { exact: None, size, child: each, len: range.len })
    }

    /// The cost of all rounds of a loop, and the largest result of one.
    fn loop_cost(&mut self, of: &'a ComprehensionExpr, range: ValueSize<'v>) -> (u64, ValueSize<'v>) {
        if range.exact.is_some_and(|range| !range.is_array() && !range.is_object()) {
            return (0, ValueSize::ONE);
        }
        let Some(items) = range.items().filter(|_| of.iter_var2.is_none()) else {
            let (cost, made) = self.iteration_cost(of, ValueSize::from_units(range.child));
            return (cost.saturating_mul(range.len.max(1)), made);
        };
        let mut whole = (0_u64, ValueSize::ONE);
        for (done, item) in (0..).zip(items) {
            if self.fuel == 0 {
                let (cost, made) = self.iteration_cost(of, ValueSize::from_units(range.child));
                let left = range.len.saturating_sub(done);
                return (whole.0.saturating_add(cost.saturating_mul(left)), max_size(whole.1, made));
            }
            let item = ValueSize::from_value(item);
            self.use_steps(item.size);
            let (cost, made) = self.iteration_cost(of, item);
            whole = (whole.0.saturating_add(cost), max_size(whole.1, made));
        }
        whole
    }

    fn iteration_cost(&mut self, of: &'a ComprehensionExpr, item: ValueSize<'v>) -> (u64, ValueSize<'v>) {
        let depth = self.scope.len();
        self.scope.push((&of.iter_var, item));
        self.scope.extend(of.iter_var2.as_deref().map(|name| (name, item)));
        let (test, _) = self.cost(&of.loop_cond);
        let (step, made) = self.cost(&of.loop_step);
        self.scope.truncate(depth);
        (test.saturating_add(step), made)
    }

    fn find(&self, name: &str) -> ValueSize<'v> {
        self.scope.iter().rev().find(|(of, _)| *of == name).map_or(ValueSize::ONE, |(_, part)| *part)
    }
}

fn max_size<'v>(one: ValueSize<'v>, other: ValueSize<'v>) -> ValueSize<'v> {
    if one.size >= other.size { one } else { other }
}
