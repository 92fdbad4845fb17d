//! Literals that would fail in every evaluation: durations, times and patterns.

use kube_cel::cel::{
    common::ast::{Expr, LiteralValue},
    parser::Expression as Ast,
};

use super::source::CheckedSource;
use crate::cel::children;

/// Reports each literal that its function cannot parse.
pub(super) fn check(tree: &Ast, source: &mut CheckedSource<'_>) {
    if let Expr::Call(call) = &tree.expr
        && let Some(first) = call.args.first()
        && let Expr::Literal(LiteralValue::String(text)) = &first.expr
    {
        let is_valid = match call.func_name.as_str() {
            "duration" => is_duration(text.inner()),
            "timestamp" => text.inner().parse::<jiff::Timestamp>().is_ok(),
            "matches" => regex::Regex::new(text.inner()).is_ok(),
            _ => true,
        };
        if !is_valid {
            source.report(first.id, format!("invalid {} argument", call.func_name));
        }
    }
    let mut parts = Vec::new();
    children(tree, &mut |part| parts.push(part));
    for part in parts {
        check(part, source);
    }
}

/// Whether Go parses the text as a duration: `1h30m`, `-1.5s`.
fn is_duration(text: &str) -> bool {
    let mut rest = text.strip_prefix(['-', '+']).unwrap_or(text);
    if rest == "0" {
        return true;
    }
    if rest.is_empty() {
        return false;
    }
    while !rest.is_empty() {
        let after = rest.trim_start_matches(|char: char| char.is_ascii_digit() || char == '.');
        let number = rest.strip_suffix(after).unwrap_or_default();
        let has_digits = number.bytes().any(|byte| byte.is_ascii_digit()) && number.matches('.').count() <= 1;
        let unit = ["ns", "us", "µs", "μs", "ms", "s", "m", "h"].into_iter().find_map(|unit| after.strip_prefix(unit));
        match unit {
            Some(next) if has_digits => rest = next,
            _ => return false,
        }
    }
    true
}
