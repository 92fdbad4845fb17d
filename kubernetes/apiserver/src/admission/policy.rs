//! ValidatingAdmissionPolicy and its bindings, compiled.

use serde_json::Value;

use super::{
    condition::AdmissionMatchConditions,
    constraints::MatchConstraints,
    params::{ParamKind, ParamRef},
};
use crate::{
    api::meta::MetaAccessor,
    cel::{CelValue, EvaluationScope, Expression, MAX_EVALUATION_COST},
};

#[derive(Debug)]
pub struct AdmissionPolicy {
    pub name: String,
    pub constraints: MatchConstraints,
    /// The conditions under which it applies to a request.
    pub conditions: AdmissionMatchConditions,
    /// The variables of its expressions, in their order.
    pub variables: Vec<(String, CompiledExpression)>,
    pub validations: Vec<PolicyValidation>,
    /// Whether a failed evaluation lets the request pass.
    pub ignores_failure: bool,
    pub param_kind: Option<ParamKind>,
}

/// A condition that a request must meet.
#[derive(Debug)]
pub struct PolicyValidation {
    pub rule: CompiledExpression,
    /// The message if the condition is false.
    pub message: String,
    /// An expression for the message.
    pub message_rule: Option<CompiledExpression>,
    /// The reason of the refusal, as in a `Status`.
    pub reason: &'static str,
}

/// A compiled expression and its source.
#[derive(Debug)]
pub struct CompiledExpression {
    pub source: String,
    expression: Result<Expression, String>,
}

/// A binding, which puts a policy into effect.
#[derive(Debug)]
pub struct AdmissionPolicyBinding {
    pub name: String,
    pub policy: String,
    /// The requests that it covers; all if none.
    pub constraints: Option<MatchConstraints>,
    /// The reference to the parameters, if the policy has any.
    pub param_ref: Option<ParamRef>,
    pub denies: bool,
    /// Whether a violation is a warning to the caller.
    pub warns: bool,
}

/// A variable: its name, its value in expressions, and the same as JSON, from which costs are computed.
pub type ExpressionVariable<'a> = (&'a str, CelValue, &'a Value);

impl AdmissionPolicy {
    pub fn compile(object: &Value) -> Self {
        let spec = object.get("spec").unwrap_or(&Value::Null);
        let list = |field: &str| spec.get(field).and_then(Value::as_array).into_iter().flatten();
        let variable = |variable: &Value| {
            let name = text(variable, "name").unwrap_or_default().to_owned();
            (name, CompiledExpression::new(text(variable, "expression").unwrap_or_default()))
        };
        let ignores_failure = text(spec, "failurePolicy") == Some("Ignore");
        Self {
            name: object.name().to_owned(),
            constraints: MatchConstraints::from_match_resources(spec.get("matchConstraints").unwrap_or(&Value::Null)),
            conditions: AdmissionMatchConditions::compile(list("matchConditions"), ignores_failure),
            variables: list("variables").map(variable).collect(),
            validations: list("validations").map(PolicyValidation::compile).collect(),
            ignores_failure,
            param_kind: spec.get("paramKind").filter(|kind| kind.is_object()).map(ParamKind::from_value),
        }
    }
}

impl PolicyValidation {
    fn compile(validation: &Value) -> Self {
        let message_rule = text(validation, "messageExpression").filter(|source| !source.is_empty());
        Self {
            rule: CompiledExpression::new(text(validation, "expression").unwrap_or_default()),
            message: text(validation, "message").unwrap_or_default().trim().to_owned(),
            message_rule: message_rule.map(CompiledExpression::new),
            reason: match text(validation, "reason") {
                Some("Forbidden") => "Forbidden",
                Some("Unauthorized") => "Unauthorized",
                Some("RequestEntityTooLarge") => "RequestEntityTooLarge",
                _ => "Invalid",
            },
        }
    }
}

impl AdmissionPolicyBinding {
    pub fn compile(object: &Value) -> Self {
        let spec = object.get("spec").unwrap_or(&Value::Null);
        let actions = spec.get("validationActions").and_then(Value::as_array);
        let has = |wanted: &str| actions.into_iter().flatten().any(|action| action.as_str() == Some(wanted));
        Self {
            name: object.name().to_owned(),
            policy: text(spec, "policyName").unwrap_or_default().to_owned(),
            constraints: spec
                .get("matchResources")
                .filter(|given| given.is_object())
                .map(MatchConstraints::from_match_resources),
            param_ref: spec.get("paramRef").filter(|given| given.is_object()).map(ParamRef::from_value),
            denies: has("Deny"),
            warns: has("Warn"),
        }
    }
}

impl CompiledExpression {
    fn new(source: &str) -> Self {
        Self { source: source.to_owned(), expression: Expression::compile(source) }
    }

    /// Evaluates the expression. The error is a message for users.
    pub fn evaluate(&self, variables: &[ExpressionVariable<'_>]) -> Result<CelValue, String> {
        let failed = |why: &str| format!("expression '{}' resulted in error: {why}", self.source);
        let expression = self.expression.as_ref().map_err(|why| failed(&format!("compilation error: {why}")))?;
        let used = || variables.iter().filter(|(name, ..)| expression.uses(name));
        let sizes: Vec<(&str, &Value)> = used().map(|(name, _, value)| (*name, *value)).collect();
        if expression.cost(&sizes) > MAX_EVALUATION_COST {
            return Err(failed("operation cancelled: actual cost limit exceeded"));
        }
        let scope = EvaluationScope::new(used().map(|(name, value, _)| (*name, value.clone())));
        expression.evaluate(&scope).map_err(|failure| failed(&failure.to_string()))
    }
}

fn text<'a>(value: &'a Value, field: &str) -> Option<&'a str> {
    value.get(field).and_then(Value::as_str)
}
