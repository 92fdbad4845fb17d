//! Macros that the parser does not know: `cel.bind`, `optMap` and `optFlatMap`.
//!
//! A name is bound by a loop over nothing, as cel-go does it: its accumulator has the name, and its result is the body.

use kube_cel::cel::{
    common::ast::{CallExpr, ComprehensionExpr, EntryExpr, Expr, ListExpr, LiteralValue, operators},
    parser::Expression as Ast,
};

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
        // The interpreter's own `a.?b` fails where there is no `b`.
        (operators::OPT_SELECT, None) => {
            operators::OPT_INDEX.clone_into(&mut call.func_name);
            Expr::Call(call)
        }
        _ => Expr::Call(call),
    }
}

/// `a.optMap(name, body)`: the first item, if any, of what a loop over `[?a]` makes. (A variable cannot be optional: the interpreter
/// takes the value out when it copies one.)
fn optional_map(mut call: CallExpr) -> Expr {
    const MADE: &str = "@made";
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
        accu_var: MADE.to_owned(),
        accu_init: list(vec![], false),
        loop_cond: node(Expr::Literal(LiteralValue::Boolean(true.into()))),
        loop_step: list(vec![body], is_flat),
        result: ident(MADE),
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

/// A list, whose items may be `optional`.
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
