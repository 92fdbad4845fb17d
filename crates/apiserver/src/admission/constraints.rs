//! What a webhook or a policy wants to see: rules and selectors.

use serde_json::{Map, Value};

use super::rule::Rule;
use crate::codec::selector::LabelSelector;

/// What a webhook or a policy wants to see.
#[derive(Debug)]
pub struct Constraints {
    /// One of these must want the request; none of a policy want every request.
    pub rules: Vec<Rule>,
    /// None of these may (policies only).
    pub excluded: Vec<Rule>,
    /// Whether no rules want everything.
    pub open: bool,
    /// Whether it also wants to see it in other versions (`matchPolicy: Equivalent`).
    pub equivalent: bool,
    /// Namespaces that it wants to see.
    pub namespaces: Result<LabelSelector, String>,
    /// Objects that it wants to see.
    pub objects: Result<LabelSelector, String>,
}

impl Constraints {
    /// Those of a webhook.
    pub fn of_webhook(hook: &Value) -> Self {
        Self { rules: rules(hook, "rules"), open: false, ..Self::of_policy(hook) }
    }

    /// `matchConstraints` of a policy, or `matchResources` of a binding.
    pub fn of_policy(constraints: &Value) -> Self {
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

fn rules(from: &Value, field: &str) -> Vec<Rule> {
    from.get(field).and_then(Value::as_array).into_iter().flatten().map(Rule::read).collect()
}

/// A selector; one that is absent selects everything, as its default would.
fn selector(from: &Value, field: &str) -> Result<LabelSelector, String> {
    let everything = Value::Object(Map::new());
    let given = from.get(field).filter(|selector| !selector.is_null());
    LabelSelector::from_value(Some(given.unwrap_or(&everything)))
}
