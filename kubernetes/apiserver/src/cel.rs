//! CEL: the expressions in `x-kubernetes-validations` and in `matchConditions`.
//!
//! Guaranteed: any text compiles or is refused with cel-go's message. Evaluation neither panics nor runs
//! without bound: an upper bound of its cost is computed beforehand from the sizes of the values at hand, and a
//! bound that is too high is refused. The results of functions are bounded once more while they run, before
//! memory is allocated (`meter.rs`). Types are checked when an expression is written (`check.rs`). Not done:
//! cel-go's exact cost model.

mod call_bound;
pub(crate) mod check;
mod condition;
mod cost;
mod error;
mod functions;
mod macros;
mod meter;
mod stack;
mod value;

use std::panic::{AssertUnwindSafe, catch_unwind};

use kube_cel::cel::{
    Context,
    parser::{Expression as Ast, Parser},
};
use serde_json::Value;

use self::macros::Selection;
pub use self::{
    condition::{ConditionInputs, MatchCondition},
    error::EvaluationError,
    value::{measured, optional, plain},
};
pub(crate) use self::{cost::children, value::map};
pub use kube_cel::cel::Value as CelValue;

const MAX_SOURCE_CODE_POINTS: usize = 100_000;

/// The deepest nesting of an expression, which is cel-go's own limit.
const MAX_NESTING_DEPTH: u32 = 250;

/// The deepest nesting that is evaluated on the caller's stack.
const MAX_DEPTH_ON_CALLER_STACK: u32 = 32;

/// The highest cost of one evaluation, in steps of a few tens of nanoseconds.
pub const MAX_EVALUATION_COST: u64 = 10_000_000;

#[derive(Debug)]
pub struct Expression {
    tree: Ast,
    /// The same expression with its macros lowered, as the interpreter runs it.
    lowered: Ast,
    /// The size of the tree and the nesting of its loops.
    extent: cost::ExpressionExtent,
}

/// The variables of an evaluation.
pub struct EvaluationScope(Context<'static>);

impl std::fmt::Debug for EvaluationScope {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Scope")
    }
}

impl EvaluationScope {
    pub fn new<'a>(variables: impl IntoIterator<Item = (&'a str, CelValue)>) -> Self {
        let mut context = functions::FUNCTION_CONTEXT.new_inner_scope();
        for (name, value) in variables {
            context.add_variable_from_value(name, value);
        }
        Self(context)
    }
}

impl Expression {
    /// Compiles an expression, or returns cel-go's message. Types are not checked: see [`check`](mod@check).
    pub fn compile(source: &str) -> Result<Self, String> {
        let size = source.chars().count();
        if size > MAX_SOURCE_CODE_POINTS {
            let problem =
                format!("expression code point size exceeds limit: size: {size}, limit {MAX_SOURCE_CODE_POINTS}");
            return Err(format!("ERROR: <input>:-1:0: {problem}"));
        }
        if stack::is_too_deep(source) {
            return Err(recursion_limit_error());
        }
        stack::run_on_large_stack(|| Self::parse(source))
            .unwrap_or_else(|| Err(error_at_offset(source, 0, "Syntax error")))
    }

    fn parse(source: &str) -> Result<Self, String> {
        let tree = Parser::new().enable_optional_syntax(true).parse(source);
        let tree = macros::expand(tree.map_err(|errors| error::parse_error(source, &errors))?);
        let extent = cost::extent(&tree);
        if extent.depth > MAX_NESTING_DEPTH {
            return Err(recursion_limit_error());
        }
        match cost::message_type(&tree) {
            Some(name) => {
                Err(error_at_offset(source, 0, &format!("undeclared reference to '{name}' (in container '')")))
            }
            None => Ok(Self { lowered: macros::lowered(&tree, Selection::Fast), tree, extent }),
        }
    }

    /// Whether the expression refers to a variable.
    pub fn uses(&self, variable: &str) -> bool {
        self.tree.references().has_variable(variable)
    }

    pub(crate) fn tree(&self) -> &Ast {
        &self.tree
    }

    /// An upper bound of the cost of an evaluation with these variables.
    pub fn cost(&self, variables: &[(&str, &Value)]) -> u64 {
        cost::cost_bound(&self.tree, self.extent, variables)
    }

    /// Evaluates the expression. The caller has checked the cost.
    pub fn evaluate(&self, scope: &EvaluationScope) -> Result<CelValue, EvaluationError> {
        match self.run(&self.lowered, scope) {
            // Runs again in the exact mode, which costs more: it tells a selection on a value without fields
            // from other errors.
            Err(failure) if failure.is_overload() => self.run(&macros::lowered(&self.tree, Selection::Exact), scope),
            result => result,
        }
    }

    fn run(&self, tree: &Ast, scope: &EvaluationScope) -> Result<CelValue, EvaluationError> {
        let run = || meter::run_metered(|| scope.0.resolve(tree));
        // The interpreter is third-party code and runs an expression that a client wrote.
        let result = if self.extent.depth > MAX_DEPTH_ON_CALLER_STACK {
            stack::run_on_large_stack(run)
        } else {
            catch_unwind(AssertUnwindSafe(run)).ok()
        };
        let (result, exhausted) = result.ok_or_else(EvaluationError::internal)?;
        if exhausted {
            return Err(EvaluationError::exhausted());
        }
        result.map_err(EvaluationError::from)
    }
}

fn recursion_limit_error() -> String {
    format!("ERROR: <input>:-1:0: expression recursion limit exceeded: {MAX_NESTING_DEPTH}")
}

/// A problem at a byte offset of the source, in cel-go's format.
pub(crate) fn error_at_offset(source: &str, offset: usize, problem: &str) -> String {
    let before = source.get(..offset).unwrap_or_default();
    let line = before.matches('\n').count();
    let column = before.rsplit('\n').next().unwrap_or_default().chars().count();
    error::format_error(source, line + 1, column + 1, problem)
}

#[cfg(test)]
mod tests;
