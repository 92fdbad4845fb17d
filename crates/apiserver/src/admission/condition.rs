//! `matchConditions`: expressions that must hold for a webhook to be called.

use serde_json::Value;

use super::review::Shown;
use crate::cel::{Condition, Inputs};

/// All conditions of a webhook.
#[derive(Debug)]
pub struct Conditions {
    all: Vec<(String, Result<Condition, String>)>,
    ignores_failure: bool,
}

impl Conditions {
    /// Compiles conditions. One that cannot be compiled fails when it is asked.
    pub fn compile<'a>(conditions: impl Iterator<Item = &'a Value>, ignores_failure: bool) -> Self {
        let expression = |condition: &'a Value| condition.get("expression").and_then(Value::as_str);
        let all = conditions.filter_map(expression).map(|source| (source.to_owned(), Condition::compile(source)));
        Self { all: all.collect(), ignores_failure }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Whether the webhook is to be called. A condition that is false decides, whatever fails beside it; otherwise a failure follows
    /// the webhook's `failurePolicy`.
    pub fn hold(&self, shown: &Shown<'_>) -> Result<bool, String> {
        let request = shown.request();
        let inputs =
            Inputs { object: shown.object.as_deref(), old_object: shown.old.as_deref(), request: Some(&request) };
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
