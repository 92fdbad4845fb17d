//! Macros that the parser does not support: `cel.bind`, `optMap`, `optFlatMap`, `sortBy`, and those with two
//! variables.
//!
//! A name is bound by a loop over an empty list, as in cel-go: its accumulator has the name, and its result is
//! the body.

use kube_cel::cel::{
    common::ast::{CallExpr, ComprehensionExpr, EntryExpr, Expr, ListExpr, LiteralValue, MapExpr, operators},
    parser::Expression as Ast,
};

/// The parser's name of the accumulator of loops.
const RESULT: &str = "@result";

/// Returns the range of a loop with two variables as pairs of key and value, since the interpreter supports
/// only one variable.
pub(super) const ENTRIES: &str = "@entries";

/// Inserts an entry, or all entries of a map, into a map without any of their keys.
pub(super) const INSERT: &str = "cel.@mapInsert";

/// Returns a value if it can have fields.
pub(super) const WITH_FIELDS: &str = "@withFields";

/// Sorts a list by the keys in another list.
pub(super) const SORT_BY_KEYS: &str = "@sortByAssociatedKeys";

/// The input of `sortBy`. No variable of an expression can have this name.
const SORTED: &str = "sortBy@input";

/// The loop of a macro with two variables, such as `range.all(k, v, body)`; none if the call is not such a
/// macro. All generated nodes have the position `id`. An error has the position of its cause.
pub(super) fn with_two_variables(call: &CallExpr, id: u64) -> Option<Result<ComprehensionExpr, (u64, String)>> {
    let node = |expr: Expr| Ast { id, expr };
    let (target, [first, second, rest @ ..]) = (call.target.as_deref()?, call.args.as_slice()) else { return None };
    let result = || node(Expr::Ident(RESULT.to_owned()));
    let literal = |literal: LiteralValue| node(Expr::Literal(literal));
    let called =
        |name: &str, args: Vec<Ast>| node(Expr::Call(CallExpr { func_name: name.to_owned(), target: None, args }));
    let listed = |items: Vec<Ast>| node(Expr::List(ListExpr::new(items)));
    let always = || literal(LiteralValue::Boolean(true.into()));
    let collected = |filter: Option<&Ast>, step: Ast| match filter {
        Some(filter) => called(operators::CONDITIONAL, vec![filter.clone(), step, result()]),
        None => step,
    };
    let (init, test, step, last) = match (call.func_name.as_str(), rest) {
        ("all", [body]) => {
            let test = called(operators::NOT_STRICTLY_FALSE, vec![result()]);
            (always(), test, called(operators::LOGICAL_AND, vec![result(), body.clone()]), result())
        }
        ("exists", [body]) => {
            let not = called(operators::LOGICAL_NOT, vec![result()]);
            let test = called(operators::NOT_STRICTLY_FALSE, vec![not]);
            let init = literal(LiteralValue::Boolean(false.into()));
            (init, test, called(operators::LOGICAL_OR, vec![result(), body.clone()]), result())
        }
        ("existsOne" | "exists_one", [body]) => {
            let number = |number: i64| literal(LiteralValue::Int(number.into()));
            let more = called(operators::ADD, vec![result(), number(1)]);
            let last = called(operators::EQUALS, vec![result(), number(1)]);
            (number(0), always(), collected(Some(body), more), last)
        }
        ("transformList", [filter @ .., made]) if filter.len() < 2 => {
            let step = called(operators::ADD, vec![result(), listed(vec![made.clone()])]);
            (listed(Vec::new()), always(), collected(filter.first(), step), result())
        }
        (name @ ("transformMap" | "transformMapEntry"), [filter @ .., made]) if filter.len() < 2 => {
            let key = (name == "transformMap").then(|| first.clone());
            let args = [result()].into_iter().chain(key).chain([made.clone()]).collect();
            let empty = node(Expr::Map(MapExpr { entries: Vec::new() }));
            (empty, always(), collected(filter.first(), called(INSERT, args)), result())
        }
        _ => return None,
    };
    let name = |of: &Ast| match &of.expr {
        Expr::Ident(name) => Ok(name.clone()),
        _ => Err((of.id, "argument must be a simple name".to_owned())),
    };
    let variables = name(first).and_then(|first| Ok((first, name(second)?)));
    Some(variables.and_then(|(iter_var, other)| {
        if iter_var == other {
            return Err((second.id, format!("duplicate variable name: {other}")));
        }
        Ok(ComprehensionExpr {
            iter_range: target.clone(),
            iter_var,
            iter_var2: Some(other),
            accu_var: RESULT.to_owned(),
            accu_init: init,
            loop_cond: test,
            loop_step: step,
            result: last,
        })
    }))
}

/// The expansion of `list.sortBy(item, key)`: a list, bound to a name, is sorted by the key of each item.
/// Positions are as above.
pub(super) fn sort_by(call: &CallExpr, id: u64) -> Option<ComprehensionExpr> {
    let node = |expr: Expr| Ast { id, expr };
    let (target, [Ast { expr: Expr::Ident(item), .. }, key]) = (call.target.as_deref()?, call.args.as_slice()) else {
        return None;
    };
    if call.func_name != "sortBy" {
        return None;
    }
    let ident = |name: &str| node(Expr::Ident(name.to_owned()));
    let listed = |items: Vec<Ast>| node(Expr::List(ListExpr::new(items)));
    let called =
        |name: &str, args: Vec<Ast>| node(Expr::Call(CallExpr { func_name: name.to_owned(), target: None, args }));
    let keys = ComprehensionExpr {
        iter_range: ident(SORTED),
        iter_var: item.clone(),
        iter_var2: None,
        accu_var: RESULT.to_owned(),
        accu_init: listed(Vec::new()),
        loop_cond: node(Expr::Literal(LiteralValue::Boolean(true.into()))),
        loop_step: called(operators::ADD, vec![ident(RESULT), listed(vec![key.clone()])]),
        result: ident(RESULT),
    };
    Some(ComprehensionExpr {
        iter_range: listed(Vec::new()),
        iter_var: "@unused".to_owned(),
        iter_var2: None,
        accu_var: SORTED.to_owned(),
        accu_init: target.clone(),
        loop_cond: node(Expr::Literal(LiteralValue::Boolean(false.into()))),
        loop_step: ident(SORTED),
        result: node(Expr::Call(CallExpr {
            func_name: SORT_BY_KEYS.to_owned(),
            target: Some(Box::new(ident(SORTED))),
            args: vec![node(Expr::Comprehension(Box::new(keys)))],
        })),
    })
}

/// The semantics of field selection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Selection {
    /// Selecting from a value without fields is a type error.
    Fast,
    /// A value without fields does not have the selected one either, as in cel-go. It copies everything that it
    /// selects from.
    Exact,
}

/// The tree for the interpreter: loops with two variables become loops over pairs, and fields are looked up as
/// keys, since the interpreter's own selection returns `false` for values without fields.
pub(super) fn lowered(tree: &Ast, selection: Selection) -> Ast {
    let mut tree = tree.clone();
    lower(&mut tree, selection);
    tree
}

fn lower(tree: &mut Ast, selection: Selection) {
    parts_mut(tree).into_iter().for_each(|part| lower(part, selection));
    if let Expr::Select(select) = &mut tree.expr {
        if !select.test {
            let field = || node(Expr::Literal(LiteralValue::String(select.field.as_str().into())));
            let fields = field();
            let operand = match selection {
                Selection::Fast => std::mem::take(&mut *select.operand),
                Selection::Exact => {
                    let args = vec![std::mem::take(&mut *select.operand), field()];
                    node(Expr::Call(CallExpr { func_name: WITH_FIELDS.to_owned(), target: None, args }))
                }
            };
            let args = vec![operand, fields];
            tree.expr = Expr::Call(CallExpr { func_name: operators::INDEX.to_owned(), target: None, args });
        }
        return;
    }
    let Expr::Comprehension(of) = &mut tree.expr else { return };
    let Some(second) = of.iter_var2.take() else { return };
    const ENTRY: &str = "@entry";
    let part = |place: i64| {
        let args = vec![ident(ENTRY), node(Expr::Literal(LiteralValue::Int(place.into())))];
        node(Expr::Call(CallExpr { func_name: operators::INDEX.to_owned(), target: None, args }))
    };
    let first = std::mem::replace(&mut of.iter_var, ENTRY.to_owned());
    let range = std::mem::take(&mut of.iter_range);
    let step = std::mem::take(&mut of.loop_step);
    of.iter_range = node(Expr::Call(CallExpr { func_name: ENTRIES.to_owned(), target: None, args: vec![range] }));
    of.loop_step = node(bind(&first, part(0), node(bind(&second, part(1), step))));
}

/// Expands all macros in an expression.
pub(super) fn expand(mut tree: Ast) -> Ast {
    for part in parts_mut(&mut tree) {
        *part = expand(std::mem::take(part));
    }
    let Expr::Call(call) = tree.expr else { return tree };
    let id = tree.id;
    Ast { id, expr: expand_call(call) }
}

fn expand_call(mut call: CallExpr) -> Expr {
    let made = match with_two_variables(&call, 0) {
        None => sort_by(&call, 0),
        // The checker reports the error; running it fails, as there is no function of this name.
        Some(made) => made.ok(),
    };
    if let Some(made) = made {
        return Expr::Comprehension(Box::new(made));
    }
    let arity = call.args.len();
    match (call.func_name.as_str(), call.target.as_deref()) {
        ("bind", Some(target)) if arity == 3 && target.expr == Expr::Ident("cel".to_owned()) => {
            match <[Ast; 3]>::try_from(call.args) {
                Ok([Ast { expr: Expr::Ident(name), .. }, value, body]) => bind(&name, value, body),
                Ok(args) => Expr::Call(CallExpr { args: args.into(), ..call }),
                Err(args) => Expr::Call(CallExpr { args, ..call }),
            }
        }
        ("optMap" | "optFlatMap", Some(_)) if arity == 2 => optional_map(call),
        // The interpreter's own `a.?b` fails if there is no `b`.
        (operators::OPT_SELECT, None) => {
            operators::OPT_INDEX.clone_into(&mut call.func_name);
            Expr::Call(call)
        }
        _ => Expr::Call(call),
    }
}

/// `a.optMap(name, body)`: the first item, if any, of a loop over `[?a]`. (A variable cannot be optional: the
/// interpreter unwraps the value when it copies one.)
fn optional_map(mut call: CallExpr) -> Expr {
    const OPTIONAL_RESULT: &str = "@made";
    let is_flat = call.func_name == "optFlatMap";
    let (Some(Ast { expr: Expr::Ident(name), .. }), Some(body), Some(target)) =
        (call.args.first().cloned(), call.args.pop(), call.target.take())
    else {
        return Expr::Call(call);
    };
    let made = ComprehensionExpr {
        iter_range: list(vec![*target], true),
        iter_var: name,
        iter_var2: None,
        accu_var: OPTIONAL_RESULT.to_owned(),
        accu_init: list(vec![], false),
        loop_cond: node(Expr::Literal(LiteralValue::Boolean(true.into()))),
        loop_step: list(vec![body], is_flat),
        result: ident(OPTIONAL_RESULT),
    };
    let made = node(Expr::Comprehension(Box::new(made)));
    let first = node(Expr::Literal(LiteralValue::Int(0.into())));
    Expr::Call(CallExpr { func_name: operators::OPT_INDEX.to_owned(), target: None, args: vec![made, first] })
}

fn bind(name: &str, value: Ast, body: Ast) -> Expr {
    Expr::Comprehension(Box::new(ComprehensionExpr {
        iter_range: list(vec![], false),
        iter_var: "@unused".to_owned(),
        iter_var2: None,
        accu_var: name.to_owned(),
        accu_init: value,
        loop_cond: node(Expr::Literal(LiteralValue::Boolean(false.into()))),
        loop_step: ident(name),
        result: body,
    }))
}

fn node(expr: Expr) -> Ast {
    Ast { id: 0, expr }
}

fn ident(name: &str) -> Ast {
    node(Expr::Ident(name.to_owned()))
}

/// A list, possibly with `optional` items.
fn list(items: Vec<Ast>, optional: bool) -> Ast {
    let places = (0..items.len()).filter(|_| optional).collect();
    node(Expr::List(ListExpr::new_with_optionals(items, places)))
}

fn parts_mut(tree: &mut Ast) -> Vec<&mut Ast> {
    match &mut tree.expr {
        Expr::Unspecified | Expr::Ident(_) | Expr::Literal(_) => Vec::new(),
        Expr::Call(call) => call.target.as_deref_mut().into_iter().chain(&mut call.args).collect(),
        Expr::List(list) => list.elements.iter_mut().collect(),
        Expr::Select(select) => vec![&mut select.operand],
        Expr::Map(map) => map.entries.iter_mut().flat_map(|entry| entry_parts_mut(&mut entry.expr)).collect(),
        Expr::Struct(message) => {
            message.entries.iter_mut().flat_map(|entry| entry_parts_mut(&mut entry.expr)).collect()
        }
        Expr::Comprehension(of) => {
            let of = &mut **of;
            vec![&mut of.iter_range, &mut of.accu_init, &mut of.loop_cond, &mut of.loop_step, &mut of.result]
        }
    }
}

fn entry_parts_mut(entry: &mut EntryExpr) -> Vec<&mut Ast> {
    match entry {
        EntryExpr::StructField(field) => vec![&mut field.value],
        EntryExpr::MapEntry(entry) => vec![&mut entry.key, &mut entry.value],
    }
}
