//! Rules of roles, and label selectors of aggregated ones: what matches what.

use serde_json::{Map, Value};

use crate::api::meta::Meta;

use super::Attributes;

/// The group of Role, ClusterRole and their bindings.
pub const GROUP: &str = "rbac.authorization.k8s.io";

/// One rule of a Role or ClusterRole.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rule {
    /// `*` for all.
    pub verbs: Vec<Box<str>>,
    /// `*` for all.
    pub groups: Vec<Box<str>>,
    /// `pods`, `pods/log`, `*/scale`, `*`.
    pub resources: Vec<Box<str>>,
    /// Empty for all names.
    pub names: Vec<Box<str>>,
    /// `/metrics`, `/openapi/*`, `*`.
    pub urls: Vec<Box<str>>,
}

impl Rule {
    /// Reads a rule as it stands in a role.
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

    /// As it stands in a role.
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

    /// Whether it allows a request.
    pub fn allows(&self, attributes: &Attributes<'_>) -> bool {
        if !has(&self.verbs, attributes.verb) {
            return false;
        }
        if let Some(path) = attributes.path {
            return self.urls.iter().any(|url| url_covers(url, path));
        }
        has(&self.groups, attributes.group)
            && self.resources.iter().any(|resource| resource_matches(resource, attributes))
            && (self.names.is_empty() || self.names.iter().any(|name| &**name == attributes.name))
    }
}

/// Whether the rules of an aggregated ClusterRole come from a role with these labels.
pub(super) fn selects(aggregation: &Value, role: &Value) -> bool {
    let selectors = aggregation.get("clusterRoleSelectors").and_then(Value::as_array);
    selectors.into_iter().flatten().any(|selector| selector_matches(selector, role))
}

/// A LabelSelector. An empty one matches everything, as everywhere in Kubernetes.
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

/// Whether a URL of a rule, perhaps with a star at its end, stands for another.
pub(super) fn url_covers(rule: &str, path: &str) -> bool {
    rule == path || rule.ends_with('*') && path.starts_with(rule.trim_end_matches('*'))
}

/// Whether a text, or the star, is in a list.
pub(super) fn has(texts: &[Box<str>], text: &str) -> bool {
    texts.iter().any(|one| &**one == "*" || &**one == text)
}

fn resource_matches(rule: &str, attributes: &Attributes<'_>) -> bool {
    let Attributes { resource, subresource, .. } = attributes;
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
