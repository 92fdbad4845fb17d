//! Which requests a webhook or a policy wants, by group, version, resource, operation and scope.

use serde_json::Value;

use super::Operation;
use crate::api::GroupVersion;

/// One of the `rules` of a webhook, or of the `resourceRules` of a policy.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rule {
    groups: Vec<String>,
    versions: Vec<String>,
    /// Resource and subresource; no subresource is the empty one.
    resources: Vec<(String, String)>,
    operations: Vec<String>,
    /// Of policies only; none are all.
    names: Vec<String>,
    scope: Scope,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Scope {
    #[default]
    All,
    Cluster,
    Namespaced,
}

/// What a rule looks at, beside group and version.
#[derive(Clone, Copy, Debug)]
pub struct Place<'a> {
    /// What happens.
    pub operation: Operation,
    /// The plural.
    pub resource: &'a str,
    /// Empty on the main path.
    pub subresource: &'a str,
    /// The object, if its name is known.
    pub name: &'a str,
    /// Whether the objects live in namespaces.
    pub namespaced: bool,
}

impl Rule {
    /// Reads a rule. What is no text is left out.
    pub fn read(rule: &Value) -> Self {
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
                Some("Cluster") => Scope::Cluster,
                Some("Namespaced") => Scope::Namespaced,
                _ => Scope::All,
            },
        }
    }

    /// Whether it wants this, in some group and version.
    pub fn wants(&self, place: &Place<'_>) -> bool {
        let scope = match self.scope {
            Scope::All => true,
            Scope::Cluster => !place.namespaced,
            Scope::Namespaced => place.namespaced,
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

    /// Whether it wants this group and version.
    pub fn wants_version(&self, gv: &GroupVersion) -> bool {
        let among = |all: &[String], found: &str| all.iter().any(|wanted| wanted == "*" || wanted == found);
        among(&self.groups, &gv.group) && among(&self.versions, &gv.version)
    }
}

#[cfg(test)]
mod tests;
