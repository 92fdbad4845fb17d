//! The matching of RBAC rules, and of the label selectors of aggregated roles.

use serde_json::{Map, Value};

use crate::api::meta::MetaAccessor;

use super::AuthorizationAttributes;

/// The group of Role, ClusterRole and their bindings.
pub const RBAC_GROUP: &str = "rbac.authorization.k8s.io";

/// One rule of a Role or ClusterRole.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PolicyRule {
    pub verbs: Vec<Box<str>>,
    pub groups: Vec<Box<str>>,
    pub resources: Vec<Box<str>>,
    pub names: Vec<Box<str>>,
    pub urls: Vec<Box<str>>,
}

impl PolicyRule {
    /// Reads a rule of a role.
    pub fn parse(rule: &Value) -> Self {
        let texts = |field| texts(rule.get(field));
        Self {
            verbs: texts("verbs"),
            groups: texts("apiGroups"),
            resources: texts("resources"),
            names: texts("resourceNames"),
            urls: texts("nonResourceURLs"),
        }
    }

    /// The rules of a role.
    pub fn parse_all(role: &Value) -> Vec<Self> {
        role.get("rules")
            .and_then(Value::as_array)
            .map_or_else(Vec::new, |rules| rules.iter().map(Self::parse).collect())
    }

    /// The rule as in a role.
    pub fn to_value(&self) -> Value {
        let fields = [
            ("verbs", &self.verbs),
            ("apiGroups", &self.groups),
            ("resources", &self.resources),
            ("resourceNames", &self.names),
            ("nonResourceURLs", &self.urls),
        ];
        let filled = fields.into_iter().filter(|(name, texts)| *name == "verbs" || !texts.is_empty());
        let rule: Map<_, _> = filled.map(|(name, texts)| (name.to_owned(), to_array(texts))).collect();
        rule.into()
    }

    pub fn allows(&self, attributes: &AuthorizationAttributes<'_>) -> bool {
        if !contains_or_wildcard(&self.verbs, attributes.verb) {
            return false;
        }
        if let Some(path) = attributes.path {
            return self.urls.iter().any(|url| url_matches(url, path));
        }
        contains_or_wildcard(&self.groups, attributes.group)
            && self.resources.iter().any(|resource| resource_matches(resource, attributes))
            && (self.names.is_empty() || self.names.iter().any(|name| &**name == attributes.name))
    }
}

/// Whether an aggregated ClusterRole includes the rules of a role with these labels.
pub(super) fn aggregation_selects(aggregation: &Value, role: &Value) -> bool {
    let selectors = aggregation.get("clusterRoleSelectors").and_then(Value::as_array);
    selectors.into_iter().flatten().any(|selector| selector_matches(selector, role))
}

/// Whether a LabelSelector matches. An empty one matches everything, as everywhere in Kubernetes.
fn selector_matches(selector: &Value, object: &Value) -> bool {
    let label = |key: &str| object.labels().find(|(one, _)| *one == key).map(|(_, value)| value);
    let mut labels = selector.get("matchLabels").and_then(Value::as_object).into_iter().flatten();
    let mut expressions = selector.get("matchExpressions").and_then(Value::as_array).into_iter().flatten();
    labels.all(|(key, value)| label(key).is_some_and(|have| value == have))
        && expressions.all(|expression| {
            let have = label(expression.get("key").and_then(Value::as_str).unwrap_or_default());
            let values = expression.get("values").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
            let among = have.is_some_and(|have| values.iter().any(|value| value == have));
            match expression.get("operator").and_then(Value::as_str) {
                Some("In") => among,
                Some("NotIn") => !among,
                Some("Exists") => have.is_some(),
                Some("DoesNotExist") => have.is_none(),
                _ => false,
            }
        })
}

/// Whether a URL of a rule, perhaps with a trailing `*`, matches a path.
pub(super) fn url_matches(rule: &str, path: &str) -> bool {
    rule == path || rule.ends_with('*') && path.starts_with(rule.trim_end_matches('*'))
}

/// Whether a list contains a text or `*`.
pub(super) fn contains_or_wildcard(texts: &[Box<str>], text: &str) -> bool {
    texts.iter().any(|one| &**one == "*" || &**one == text)
}

fn resource_matches(rule: &str, attributes: &AuthorizationAttributes<'_>) -> bool {
    let AuthorizationAttributes { resource, subresource, .. } = attributes;
    if rule == "*" {
        return true;
    }
    if subresource.is_empty() {
        return rule == *resource;
    }
    rule.strip_suffix(subresource)
        .and_then(|head| head.strip_suffix('/'))
        .is_some_and(|head| head == "*" || head == *resource)
}

fn texts(list: Option<&Value>) -> Vec<Box<str>> {
    list.and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).map(Box::from).collect()
}

fn to_array(texts: &[Box<str>]) -> Value {
    texts.iter().map(|text| Value::from(&**text)).collect()
}
