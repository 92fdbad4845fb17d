//! How much an evaluation costs at most.
//!
//! The interpreter copies what it selects and has no limit of its own, so the bound is computed before it runs: every step costs
//! one and the size of what it copies, and the body of a loop counts once for every item that the loop can have. Sizes are those of
//! the values at hand, as far as an expression can be followed into them: through fields, into lists, and into their items while these
//! are few. Beyond that they are the largest that a part can have.

use kube_cel::cel::{
    common::ast::{ComprehensionExpr, EntryExpr, Expr, LiteralValue, operators},
    parser::Expression as Ast,
};
use serde_json::Value;

use super::shape;

/// How large an expression is.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Extent {
    steps: u64,
    /// How deep its loops are nested.
    loops: u32,
    /// How deep it is nested at all.
    pub(super) depth: u32,
    /// Whether it calls a function whose result or work is more than the sum of its arguments.
    multiplies: bool,
}

pub(super) fn extent(tree: &Ast) -> Extent {
    let multiplies = matches!(&tree.expr, Expr::Call(call) if shape::multiplies(call));
    let mut whole = Extent { steps: 1, loops: 0, depth: 0, multiplies };
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

/// Calls for each direct part of an expression.
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

/// An upper bound of the cost.
pub(super) fn bound(tree: &Ast, extent: Extent, variables: &[(&str, &Value)]) -> u64 {
    let whole = variables.iter().map(|(_, value)| units(value)).fold(1, u64::saturating_add);
    let looped = whole.saturating_mul(BYTES_PER_UNIT).saturating_pow(extent.loops);
    let rough = extent.steps.saturating_mul(whole).saturating_mul(looped);
    if rough <= SMALL && !extent.multiplies {
        return rough;
    }
    let scope = variables.iter().map(|(name, value)| (*name, Part::of(value))).collect();
    Walk { scope, fuel: FUEL }.cost(tree).0
}

/// Below this a rough bound is good enough.
const SMALL: u64 = 1_000;

pub(super) const BYTES_PER_UNIT: u64 = 32;

/// So many steps of an expression, and units of what they look at, are followed into the items of lists, each by itself. It takes
/// about a millisecond.
const FUEL: u64 = 100_000;

/// How large a value is.
fn units(value: &Value) -> u64 {
    match value {
        Value::String(text) => 1 + text.len() as u64 / BYTES_PER_UNIT,
        Value::Array(items) => 1 + items.iter().map(units).sum::<u64>(),
        Value::Object(fields) => 1 + fields.values().map(|value| 1 + units(value)).sum::<u64>(),
        _ => 1,
    }
}

/// What is known of a value.
#[derive(Clone, Copy)]
pub(super) struct Part<'v> {
    pub(super) exact: Option<&'v Value>,
    pub(super) size: u64,
    /// The size of its largest part.
    pub(super) child: u64,
    /// How many items it has; bytes, for a text.
    pub(super) len: u64,
}

impl<'v> Part<'v> {
    pub(super) const ONE: Self = Self { exact: None, size: 1, child: 1, len: 1 };

    fn of(value: &'v Value) -> Self {
        let (child, len) = match value {
            Value::String(text) => (1, text.len()),
            Value::Array(items) => (items.iter().map(units).max().unwrap_or(1), items.len()),
            Value::Object(fields) => (fields.values().map(units).max().unwrap_or(1), fields.len()),
            _ => (1, 1),
        };
        Self { exact: Some(value), size: units(value), child, len: len as u64 }
    }

    /// What is not there: to do anything with it ends the evaluation.
    fn absent() -> Self {
        static NOTHING: Value = Value::Null;
        Self::of(&NOTHING)
    }

    pub(super) fn inside(size: u64) -> Self {
        Self { exact: None, size, child: size, len: size.saturating_mul(BYTES_PER_UNIT) }
    }

    fn field(self, name: &str) -> Self {
        match self.exact.map(|value| value.get(name)) {
            Some(Some(field)) => Self::of(field),
            // With underscores a name may be written otherwise than in the value.
            Some(None) if !name.contains("__") => Self::absent(),
            _ => Self::inside(self.child),
        }
    }

    /// The items of a list, if they are known.
    fn items(self) -> Option<&'v [Value]> {
        self.exact?.as_array().map(Vec::as_slice)
    }

    fn and(self, other: Self) -> Self {
        Self {
            exact: None,
            size: self.size.saturating_add(other.size),
            child: self.child.max(other.child).max(other.size),
            len: self.len.saturating_add(other.len),
        }
    }
}

struct Walk<'a, 'v> {
    scope: Vec<(&'a str, Part<'v>)>,
    /// Steps that may still be followed item by item.
    fuel: u64,
}

impl<'a, 'v> Walk<'a, 'v> {
    fn cost(&mut self, tree: &'a Ast) -> (u64, Part<'v>) {
        self.spend(1);
        match &tree.expr {
            Expr::Literal(LiteralValue::String(text)) => {
                let len = text.inner().len() as u64;
                (1, Part { len, ..Part::inside(1 + len / BYTES_PER_UNIT) })
            }
            Expr::Ident(name) => (1, self.find(name)),
            Expr::Select(select) => {
                let (cost, operand) = self.cost(&select.operand);
                let field = if select.test { Part::ONE } else { operand.field(&select.field) };
                self.spend(field.size);
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
                    operators::INDEX | operators::OPT_INDEX => Part::inside(all.child),
                    _ => all,
                };
                let shape = shape::of_call(call, &args, result);
                (cost.saturating_add(all.size).saturating_add(shape.work), shape.result)
            }
            _ => self.parts(tree, None),
        }
    }

    fn spend(&mut self, fuel: u64) {
        self.fuel = self.fuel.saturating_sub(fuel);
    }

    /// One item of a list. What is no list, or is not known, may have anything there.
    fn item(&mut self, list: &'a Ast, at: i64) -> (u64, Part<'v>) {
        let (cost, list) = self.cost(list);
        let item = match (list.items(), usize::try_from(at)) {
            (Some(items), Ok(at)) => items.get(at).map_or_else(Part::absent, Part::of),
            _ => Part::inside(list.child),
        };
        (cost.saturating_add(list.size).saturating_add(2), item)
    }

    /// All parts of an expression, one after the other, and on request each of them.
    fn parts(&mut self, tree: &'a Ast, mut each: Option<&mut Vec<Part<'v>>>) -> (u64, Part<'v>) {
        let mut parts = Vec::new();
        children(tree, &mut |child| parts.push(child));
        let mut whole = (1_u64, Part { len: 0, ..Part::ONE });
        for part in parts {
            let (cost, part) = self.cost(part);
            if let Some(each) = &mut each {
                each.push(part);
            }
            whole = (whole.0.saturating_add(cost), whole.1.and(part));
        }
        if let Expr::List(list) = &tree.expr {
            whole.1.len = list.elements.len() as u64;
        }
        whole
    }

    fn comprehension(&mut self, of: &'a ComprehensionExpr) -> (u64, Part<'v>) {
        let (range_cost, range) = self.cost(&of.iter_range);
        let (init_cost, init) = self.cost(&of.accu_init);
        let collects = matches!(of.accu_init.expr, Expr::List(_) | Expr::Map(_));
        let accumulator = if collects { Part { exact: None, ..range } } else { init };
        let depth = self.scope.len();
        self.scope.push((&of.accu_var, accumulator));
        let (body, made) = self.body(of, range);
        let (last, result) = self.cost(&of.result);
        self.scope.truncate(depth);
        let cost = [range_cost, init_cost, body, last].into_iter().fold(1, u64::saturating_add);
        if !collects {
            return (cost, result);
        }
        let each = made.size.saturating_sub(accumulator.size).max(1);
        let size = each.saturating_mul(range.len.max(1));
        (cost, Part { exact: None, size, child: each, len: range.len })
    }

    /// All rounds of a loop, and what the largest of them makes.
    fn body(&mut self, of: &'a ComprehensionExpr, range: Part<'v>) -> (u64, Part<'v>) {
        if range.exact.is_some_and(|range| !range.is_array() && !range.is_object()) {
            return (0, Part::ONE);
        }
        let Some(items) = range.items().filter(|_| of.iter_var2.is_none()) else {
            let (cost, made) = self.round(of, Part::inside(range.child));
            return (cost.saturating_mul(range.len.max(1)), made);
        };
        let mut whole = (0_u64, Part::ONE);
        for (done, item) in (0..).zip(items) {
            if self.fuel == 0 {
                let (cost, made) = self.round(of, Part::inside(range.child));
                let left = range.len.saturating_sub(done);
                return (whole.0.saturating_add(cost.saturating_mul(left)), larger(whole.1, made));
            }
            let item = Part::of(item);
            self.spend(item.size);
            let (cost, made) = self.round(of, item);
            whole = (whole.0.saturating_add(cost), larger(whole.1, made));
        }
        whole
    }

    fn round(&mut self, of: &'a ComprehensionExpr, item: Part<'v>) -> (u64, Part<'v>) {
        let depth = self.scope.len();
        self.scope.push((&of.iter_var, item));
        self.scope.extend(of.iter_var2.as_deref().map(|name| (name, item)));
        let (test, _) = self.cost(&of.loop_cond);
        let (step, made) = self.cost(&of.loop_step);
        self.scope.truncate(depth);
        (test.saturating_add(step), made)
    }

    fn find(&self, name: &str) -> Part<'v> {
        self.scope.iter().rev().find(|(of, _)| *of == name).map_or(Part::ONE, |(_, part)| *part)
    }
}

fn larger<'v>(one: Part<'v>, other: Part<'v>) -> Part<'v> {
    if one.size >= other.size { one } else { other }
}
