//! `matchConditions`: expressions over an admission request that are true or false.

use serde_json::Value;

use super::{COST_PER_CALL, CelValue, Expression, Scope, plain};

/// A compiled condition.
#[derive(Debug)]
pub struct Condition {
    expression: Expression,
}

/// What a condition can see. There is no `authorizer`: a condition that names it fails.
#[derive(Clone, Copy, Debug, Default)]
pub struct Inputs<'a> {
    /// The object as it would be written; none on deletion.
    pub object: Option<&'a Value>,
    /// The object as it is; none on creation.
    pub old_object: Option<&'a Value>,
    /// The `request` of the AdmissionReview, without its objects.
    pub request: Option<&'a Value>,
}

impl Condition {
    /// Compiles, or says what is wrong as cel-go would.
    pub fn compile(source: &str) -> Result<Self, String> {
        Ok(Self { expression: Expression::compile(source)? })
    }

    /// Whether it holds. The error is for people.
    pub fn evaluate(&self, inputs: Inputs<'_>) -> Result<bool, String> {
        let variables = [("object", inputs.object), ("oldObject", inputs.old_object), ("request", inputs.request)];
        let used: Vec<_> = variables.into_iter().filter(|(name, _)| self.expression.uses(name)).collect();
        let given: Vec<_> = used.iter().filter_map(|(name, value)| Some((*name, (*value)?))).collect();
        if self.expression.cost(&given) > COST_PER_CALL {
            return Err("operation cancelled: actual cost limit exceeded".to_owned());
        }
        let scope = Scope::new(used.iter().map(|(name, value)| (*name, value.map_or(CelValue::Null, plain))));
        match self.expression.evaluate(&scope) {
            Ok(CelValue::Bool(holds)) => Ok(holds),
            Ok(_) => Err("cel expression must evaluate to a bool".to_owned()),
            Err(failure) => Err(failure.to_string()),
        }
    }
}
