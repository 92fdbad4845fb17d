//! `matchConditions`: expressions that must be true for a webhook or a policy to apply.

use serde_json::Value;

use super::review::VersionedAttributes;
use crate::cel::{ConditionInputs, MatchCondition};

#[derive(Debug)]
pub struct AdmissionMatchConditions {
    all: Vec<(String, Result<MatchCondition, String>)>,
    ignores_failure: bool,
}

impl AdmissionMatchConditions {
    /// Compiles conditions. One that does not compile fails when it is evaluated.
    pub fn compile<'a>(conditions: impl Iterator<Item = &'a Value>, ignores_failure: bool) -> Self {
        let expression = |condition: &'a Value| condition.get("expression").and_then(Value::as_str);
        let all = conditions.filter_map(expression).map(|source| (source.to_owned(), MatchCondition::compile(source)));
        Self { all: all.collect(), ignores_failure }
    }

    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Whether the webhook or policy applies to a request, with these parameters. A condition that is false
    /// decides, whatever fails beside it; otherwise a failure follows the `failurePolicy`.
    pub fn match_request(&self, shown: &VersionedAttributes<'_>, params: Option<&Value>) -> Result<bool, String> {
        let request = shown.request();
        let inputs = ConditionInputs {
            object: shown.object.as_deref(),
            old_object: shown.old.as_deref(),
            request: Some(&request),
            params,
        };
        let mut failures = Vec::new();
        for (source, condition) in &self.all {
            let held = match condition {
                Ok(condition) => condition.evaluate(inputs),
                Err(why) => Err(format!("compilation error: {why}")),
            };
            match held {
                Ok(false) => return Ok(false),
                Ok(true) => {}
                Err(why) => failures.push(format!("expression '{source}' resulted in error: {why}")),
            }
        }
        match failures.as_slice() {
            [] => Ok(true),
            _ if self.ignores_failure => Ok(false),
            [one] => Err(one.clone()),
            many => Err(format!("[{}]", many.join(", "))),
        }
    }
}
