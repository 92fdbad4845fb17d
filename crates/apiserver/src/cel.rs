//! CEL: the expressions in `x-kubernetes-validations` and in `matchConditions`.
//!
//! Guaranteed: an expression of any text compiles or is refused in cel-go's words, and evaluation neither panics nor runs away: its
//! cost is bounded from above before it runs, with the sizes of the values at hand, and refused where the bound is too high. What
//! functions make is bounded once more while it runs (`meter.rs`), before it is allocated.
//! Types are checked where expressions are written (`check.rs`).
//! Not done: macros with two variables (`list.all(i, v, …)`) and `sortBy`, and cel-go's exact cost model.

pub(crate) mod check;
mod condition;
mod cost;
mod error;
mod functions;
mod macros;
mod meter;
mod shape;
mod stack;
mod value;

use std::panic::{AssertUnwindSafe, catch_unwind};

use kube_cel::cel::{
    Context,
    parser::{Expression as Ast, Parser},
};
use serde_json::Value;

pub use self::{
    condition::{Condition, Inputs},
    error::Failure,
    value::{measured, optional, plain},
};
pub(crate) use self::{cost::children, value::map};
pub use kube_cel::cel::Value as CelValue;

/// cel-go's own limit.
const MAX_CODE_POINTS: usize = 100_000;

/// How deep expressions may be nested, also cel-go's own limit.
const MAX_DEPTH: u32 = 250;

/// How deep they may be nested to run on the stack of the caller.
const SHALLOW: u32 = 32;

/// What one evaluation may cost at most, in steps of a few tens of nanoseconds.
pub const COST_PER_CALL: u64 = 10_000_000;

/// A compiled expression.
#[derive(Debug)]
pub struct Expression {
    tree: Ast,
    /// How large the tree is and how deep its loops are nested.
    extent: cost::Extent,
}

/// The variables of an evaluation.
pub struct Scope(Context<'static>);

impl std::fmt::Debug for Scope {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Scope")
    }
}

impl Scope {
    /// A scope with these variables.
    pub fn new<'a>(variables: impl IntoIterator<Item = (&'a str, CelValue)>) -> Self {
        let mut context = functions::FUNCTIONS.new_inner_scope();
        for (name, value) in variables {
            context.add_variable_from_value(name, value);
        }
        Self(context)
    }
}

impl Expression {
    /// Compiles, or says what is wrong as cel-go would. Types are not looked at: see [`check`](mod@check).
    pub fn compile(source: &str) -> Result<Self, String> {
        let size = source.chars().count();
        if size > MAX_CODE_POINTS {
            let problem = format!("expression code point size exceeds limit: size: {size}, limit {MAX_CODE_POINTS}");
            return Err(format!("ERROR: <input>:-1:0: {problem}"));
        }
        if stack::is_too_deep(source) {
            return Err(too_deep());
        }
        stack::large(|| Self::parse(source)).unwrap_or_else(|| Err(at(source, 0, "Syntax error")))
    }

    fn parse(source: &str) -> Result<Self, String> {
        let tree = Parser::new().enable_optional_syntax(true).parse(source);
        let tree = macros::expand(tree.map_err(|errors| error::of_parser(source, &errors))?);
        let extent = cost::extent(&tree);
        if extent.depth > MAX_DEPTH {
            return Err(too_deep());
        }
        match cost::message_type(&tree) {
            Some(name) => Err(at(source, 0, &format!("undeclared reference to '{name}' (in container '')"))),
            None => Ok(Self { tree, extent }),
        }
    }

    /// Whether it names this variable.
    pub fn uses(&self, variable: &str) -> bool {
        self.tree.references().has_variable(variable)
    }

    /// Its tree.
    pub(crate) fn tree(&self) -> &Ast {
        &self.tree
    }

    /// What an evaluation with these variables costs at most.
    pub fn cost(&self, variables: &[(&str, &Value)]) -> u64 {
        cost::bound(&self.tree, self.extent, variables)
    }

    /// Evaluates. The caller has checked the cost.
    pub fn evaluate(&self, scope: &Scope) -> Result<CelValue, Failure> {
        let run = || meter::metered(|| scope.0.resolve(&self.tree));
        // The interpreter is another's code and runs what a client wrote.
        let result =
            if self.extent.depth > SHALLOW { stack::large(run) } else { catch_unwind(AssertUnwindSafe(run)).ok() };
        let (result, exhausted) = result.ok_or_else(Failure::internal)?;
        if exhausted {
            return Err(Failure::exhausted());
        }
        result.map_err(Failure::from)
    }
}

fn too_deep() -> String {
    format!("ERROR: <input>:-1:0: expression recursion limit exceeded: {MAX_DEPTH}")
}

/// A problem at a byte of the source, as cel-go shows it.
pub(crate) fn at(source: &str, offset: usize, problem: &str) -> String {
    let before = source.get(..offset).unwrap_or_default();
    let line = before.matches('\n').count();
    let column = before.rsplit('\n').next().unwrap_or_default().chars().count();
    error::shown(source, line + 1, column + 1, problem)
}

#[cfg(test)]
mod tests;
