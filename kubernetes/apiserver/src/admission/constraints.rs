//! The rules and selectors of a webhook or a policy.

use serde_json::{Map, Value};

use super::rule::RuleWithOperations;
use crate::codec::selector::LabelSelector;

/// Which requests a webhook or a policy applies to.
#[derive(Debug)]
pub struct MatchConstraints {
    /// One of these rules must match; a policy without rules matches every request.
    pub rules: Vec<RuleWithOperations>,
    /// None of these rules may match (policies only).
    pub excluded: Vec<RuleWithOperations>,
    /// Whether the absence of rules matches everything.
    pub open: bool,
    /// Whether the rules also match through other versions (`matchPolicy: Equivalent`).
    pub equivalent: bool,
    /// The `namespaceSelector`.
    pub namespaces: Result<LabelSelector, String>,
    /// The `objectSelector`.
    pub objects: Result<LabelSelector, String>,
}

impl MatchConstraints {
    pub fn from_webhook(hook: &Value) -> Self {
        Self { rules: rules(hook, "rules"), open: false, ..Self::from_match_resources(hook) }
    }

    /// `matchConstraints` of a policy, or `matchResources` of a binding.
    pub fn from_match_resources(constraints: &Value) -> Self {
        Self {
            rules: rules(constraints, "resourceRules"),
            excluded: rules(constraints, "excludeResourceRules"),
            open: true,
            equivalent: constraints.get("matchPolicy").and_then(Value::as_str) != Some("Exact"),
            namespaces: selector(constraints, "namespaceSelector"),
            objects: selector(constraints, "objectSelector"),
        }
    }
}

fn rules(from: &Value, field: &str) -> Vec<RuleWithOperations> {
    from.get(field).and_then(Value::as_array).into_iter().flatten().map(RuleWithOperations::from_value).collect()
}

/// A label selector; an absent one selects everything, which is its default.
fn selector(from: &Value, field: &str) -> Result<LabelSelector, String> {
    let everything = Value::Object(Map::new());
    let given = from.get(field).filter(|selector| !selector.is_null());
    LabelSelector::from_value(Some(given.unwrap_or(&everything)))
}
