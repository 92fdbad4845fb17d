//! Rules: the requests that a webhook or a policy matches, by group, version, resource, operation and scope.

use serde_json::Value;

use super::AdmissionOperation;
use crate::api::GroupVersion;

/// One of the `rules` of a webhook, or of the `resourceRules` of a policy.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RuleWithOperations {
    groups: Vec<String>,
    versions: Vec<String>,
    /// Resource and subresource; the latter is empty for the main path.
    resources: Vec<(String, String)>,
    operations: Vec<String>,
    /// Policies only; empty matches all names.
    names: Vec<String>,
    scope: ScopeType,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum ScopeType {
    #[default]
    All,
    Cluster,
    Namespaced,
}

/// What a rule is matched against, beside group and version.
#[derive(Clone, Copy, Debug)]
pub struct RuleTarget<'a> {
    pub operation: AdmissionOperation,
    pub resource: &'a str,
    /// Empty for the main path.
    pub subresource: &'a str,
    /// The name of the object, if it is known.
    pub name: &'a str,
    /// Whether the resource is namespaced.
    pub namespaced: bool,
}

impl RuleWithOperations {
    /// Reads a rule. Entries that are not strings are ignored.
    pub fn from_value(rule: &Value) -> Self {
        let texts = |field: &str| {
            let texts = rule.get(field).and_then(Value::as_array).into_iter().flatten();
            texts.filter_map(|text| text.as_str().map(str::to_owned)).collect::<Vec<_>>()
        };
        let split = |resource: String| match resource.split_once('/') {
            Some((resource, subresource)) => (resource.to_owned(), subresource.to_owned()),
            None => (resource, String::new()),
        };
        Self {
            groups: texts("apiGroups"),
            versions: texts("apiVersions"),
            resources: texts("resources").into_iter().map(split).collect(),
            operations: texts("operations"),
            names: texts("resourceNames"),
            scope: match rule.get("scope").and_then(Value::as_str) {
                Some("Cluster") => ScopeType::Cluster,
                Some("Namespaced") => ScopeType::Namespaced,
                _ => ScopeType::All,
            },
        }
    }

    /// Whether the rule matches, in some group and version.
    pub fn matches_target(&self, place: &RuleTarget<'_>) -> bool {
        let scope = match self.scope {
            ScopeType::All => true,
            ScopeType::Cluster => !place.namespaced,
            ScopeType::Namespaced => place.namespaced,
        };
        let fits = |wanted: &str, found: &str| wanted == "*" || wanted == found;
        scope
            && (self.names.is_empty() || self.names.iter().any(|name| name == place.name))
            && self.operations.iter().any(|operation| fits(operation, place.operation.name()))
            && self
                .resources
                .iter()
                .any(|(resource, subresource)| fits(resource, place.resource) && fits(subresource, place.subresource))
    }

    /// Whether the rule matches this group and version.
    pub fn matches_version(&self, gv: &GroupVersion) -> bool {
        let among = |all: &[String], found: &str| all.iter().any(|wanted| wanted == "*" || wanted == found);
        among(&self.groups, &gv.group) && among(&self.versions, &gv.version)
    }
}

#[cfg(test)]
mod tests;
