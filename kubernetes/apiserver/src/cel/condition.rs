//! `matchConditions`: boolean expressions over an admission request.

use serde_json::Value;

use super::{CelValue, EvaluationScope, Expression, MAX_EVALUATION_COST, plain};

#[derive(Debug)]
pub struct MatchCondition {
    expression: Expression,
}

/// The variables of a condition. There is no `authorizer`: a condition that uses it fails.
#[derive(Clone, Copy, Debug, Default)]
pub struct ConditionInputs<'a> {
    /// The new object; none for a deletion.
    pub object: Option<&'a Value>,
    /// The stored object; none for a creation.
    pub old_object: Option<&'a Value>,
    /// The `request` of the AdmissionReview, without its objects.
    pub request: Option<&'a Value>,
    /// The parameter object of a policy.
    pub params: Option<&'a Value>,
}

impl MatchCondition {
    /// Compiles a condition, or returns cel-go's message.
    pub fn compile(source: &str) -> Result<Self, String> {
        Ok(Self { expression: Expression::compile(source)? })
    }

    /// Whether the condition is true. The error is a message for users.
    pub fn evaluate(&self, inputs: ConditionInputs<'_>) -> Result<bool, String> {
        let variables = [
            ("object", inputs.object),
            ("oldObject", inputs.old_object),
            ("request", inputs.request),
            ("params", inputs.params),
        ];
        let used: Vec<_> = variables.into_iter().filter(|(name, _)| self.expression.uses(name)).collect();
        let given: Vec<_> = used.iter().filter_map(|(name, value)| Some((*name, (*value)?))).collect();
        if self.expression.cost(&given) > MAX_EVALUATION_COST {
            return Err("operation cancelled: actual cost limit exceeded".to_owned());
        }
        let scope = EvaluationScope::new(used.iter().map(|(name, value)| (*name, value.map_or(CelValue::Null, plain))));
        match self.expression.evaluate(&scope) {
            Ok(CelValue::Bool(holds)) => Ok(holds),
            Ok(_) => Err("cel expression must evaluate to a bool".to_owned()),
            Err(failure) => Err(failure.to_string()),
        }
    }
}
