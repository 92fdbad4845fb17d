//! ValidatingAdmissionPolicy and its bindings, compiled.

use serde_json::Value;

use super::{condition::Conditions, constraints::Constraints};
use crate::{
    api::meta::Meta,
    cel::{COST_PER_CALL, CelValue, Expression, Scope},
};

/// A policy.
#[derive(Debug)]
pub struct Policy {
    /// Its name.
    pub name: String,
    /// What it is about.
    pub constraints: Constraints,
    /// What else must hold for it to be about a request.
    pub conditions: Conditions,
    /// Names that expressions can use, in their order.
    pub variables: Vec<(String, Compiled)>,
    /// What must hold.
    pub validations: Vec<Validation>,
    /// Whether a failure to evaluate it is none of the request.
    pub ignores_failure: bool,
    /// Whether it has parameters.
    pub has_parameters: bool,
}

/// One thing that must hold.
#[derive(Debug)]
pub struct Validation {
    /// What must be true.
    pub rule: Compiled,
    /// What to say if it is not.
    pub message: String,
    /// The same, made from the request.
    pub message_rule: Option<Compiled>,
    /// Why the request is refused, in one word.
    pub reason: &'static str,
}

/// An expression and its text.
#[derive(Debug)]
pub struct Compiled {
    /// The text.
    pub source: String,
    expression: Result<Expression, String>,
}

/// What puts a policy in force.
#[derive(Debug)]
pub struct Binding {
    /// Its name.
    pub name: String,
    /// The policy.
    pub policy: String,
    /// Where it is in force; none is everywhere.
    pub constraints: Option<Constraints>,
    /// Whether requests are refused.
    pub denies: bool,
    /// Whether the caller is told.
    pub warns: bool,
}

/// A variable of expressions: as they see it, and as JSON, by which costs are counted.
pub type Variable<'a> = (&'a str, CelValue, &'a Value);

impl Policy {
    /// Compiles a `ValidatingAdmissionPolicy`.
    pub fn compile(object: &Value) -> Self {
        let spec = object.get("spec").unwrap_or(&Value::Null);
        let list = |field: &str| spec.get(field).and_then(Value::as_array).into_iter().flatten();
        let variable = |variable: &Value| {
            let name = text(variable, "name").unwrap_or_default().to_owned();
            (name, Compiled::new(text(variable, "expression").unwrap_or_default()))
        };
        let ignores_failure = text(spec, "failurePolicy") == Some("Ignore");
        Self {
            name: object.name().to_owned(),
            constraints: Constraints::of_policy(spec.get("matchConstraints").unwrap_or(&Value::Null)),
            conditions: Conditions::compile(list("matchConditions"), ignores_failure),
            variables: list("variables").map(variable).collect(),
            validations: list("validations").map(Validation::compile).collect(),
            ignores_failure,
            has_parameters: spec.get("paramKind").is_some_and(|kind| !kind.is_null()),
        }
    }
}

impl Validation {
    fn compile(validation: &Value) -> Self {
        let message_rule = text(validation, "messageExpression").filter(|source| !source.is_empty());
        Self {
            rule: Compiled::new(text(validation, "expression").unwrap_or_default()),
            message: text(validation, "message").unwrap_or_default().trim().to_owned(),
            message_rule: message_rule.map(Compiled::new),
            reason: match text(validation, "reason") {
                Some("Forbidden") => "Forbidden",
                Some("Unauthorized") => "Unauthorized",
                Some("RequestEntityTooLarge") => "RequestEntityTooLarge",
                _ => "Invalid",
            },
        }
    }
}

impl Binding {
    /// Compiles a `ValidatingAdmissionPolicyBinding`.
    pub fn compile(object: &Value) -> Self {
        let spec = object.get("spec").unwrap_or(&Value::Null);
        let actions = spec.get("validationActions").and_then(Value::as_array);
        let has = |wanted: &str| actions.into_iter().flatten().any(|action| action.as_str() == Some(wanted));
        Self {
            name: object.name().to_owned(),
            policy: text(spec, "policyName").unwrap_or_default().to_owned(),
            constraints: spec.get("matchResources").filter(|given| given.is_object()).map(Constraints::of_policy),
            denies: has("Deny"),
            warns: has("Warn"),
        }
    }
}

impl Compiled {
    fn new(source: &str) -> Self {
        Self { source: source.to_owned(), expression: Expression::compile(source) }
    }

    /// Its value. The error is for people.
    pub fn evaluate(&self, variables: &[Variable<'_>]) -> Result<CelValue, String> {
        let failed = |why: &str| format!("expression '{}' resulted in error: {why}", self.source);
        let expression = self.expression.as_ref().map_err(|why| failed(&format!("compilation error: {why}")))?;
        let used = || variables.iter().filter(|(name, ..)| expression.uses(name));
        let sizes: Vec<(&str, &Value)> = used().map(|(name, _, value)| (*name, *value)).collect();
        if expression.cost(&sizes) > COST_PER_CALL {
            return Err(failed("operation cancelled: actual cost limit exceeded"));
        }
        let scope = Scope::new(used().map(|(name, value, _)| (*name, value.clone())));
        expression.evaluate(&scope).map_err(|failure| failed(&failure.to_string()))
    }
}

fn text<'a>(value: &'a Value, field: &str) -> Option<&'a str> {
    value.get(field).and_then(Value::as_str)
}
