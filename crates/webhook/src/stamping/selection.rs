//! Selects the objects that are stamped, and builds the registration for them.
//!
//! Some resources are never stamped, whatever is selected ([`NEVER_STAMPED`]): heartbeats, since a trace for
//! each would drown all others; and reviews, which an API server refuses if they have annotations.

use std::{fmt, str::FromStr, time::Duration};

use k8s_openapi::{
    api::admissionregistration::v1::{MatchCondition, MutatingWebhook, RuleWithOperations, WebhookClientConfig},
    apimachinery::pkg::apis::meta::v1::{LabelSelector, LabelSelectorRequirement},
};

mod labels;
mod served;

pub use labels::parse as parse_selector;

/// Groups and resources that are never stamped; `*` means every resource of the group.
pub const NEVER_STAMPED: [(&str, &str); 9] = [
    ("", "events"),
    ("", "endpoints"),
    ("", "bindings"),
    ("", "componentstatuses"),
    ("events.k8s.io", "*"),
    ("coordination.k8s.io", "*"),
    ("discovery.k8s.io", "*"),
    ("authentication.k8s.io", "*"),
    ("authorization.k8s.io", "*"),
];

/// Short, since every write waits for it. A call takes a millisecond.
const TIMEOUT_SECONDS: i32 = 2;
/// The time for which API servers wait for a call of this webhook.
pub const CALL_TIMEOUT: Duration = Duration::from_secs(TIMEOUT_SECONDS as u64);

/// Resources by group, version and plural name, each possibly `*`: `apps/v1/deployments`, `v1/pods`,
/// `example.com/*/*`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResourcePattern {
    group: String,
    version: String,
    plural: String,
}

/// The reason why a text is not a valid pattern.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidResourcePattern {
    /// The format is wrong.
    #[error(
        "{0:?} is not GROUP/VERSION/RESOURCE, as in apps/v1/deployments, or VERSION/RESOURCE, as in v1/pods; each may be *"
    )]
    Malformed(String),
    /// The resources must never be stamped.
    #[error("{0} cannot be selected: heartbeats, and reviews that may have no annotations, are never stamped")]
    NeverStamped(String),
}

impl FromStr for ResourcePattern {
    type Err = InvalidResourcePattern;

    fn from_str(text: &str) -> Result<Self, InvalidResourcePattern> {
        let bad = || InvalidResourcePattern::Malformed(text.to_owned());
        let parts: Vec<&str> = text.split('/').collect();
        let (group, version, plural) = match parts.as_slice() {
            [version, plural] if is_version(version) => ("", *version, *plural),
            [group, version, plural] if is_name(group) && is_version(version) => (*group, *version, *plural),
            _ => return Err(bad()),
        };
        if !is_name(plural) {
            return Err(bad());
        }
        if is_never_stamped(group, plural) {
            return Err(InvalidResourcePattern::NeverStamped(text.to_owned()));
        }
        Ok(Self { group: group.to_owned(), version: version.to_owned(), plural: plural.to_owned() })
    }
}

impl fmt::Display for ResourcePattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.group.is_empty() {
            write!(f, "{}/", self.group)?;
        }
        write!(f, "{}/{}", self.version, self.plural)
    }
}

/// Whether objects of this resource are never stamped.
pub fn is_never_stamped(group: &str, plural: &str) -> bool {
    NEVER_STAMPED.iter().any(|(of, never)| *of == group && (*never == plural || *never == "*"))
}

fn is_version(text: &str) -> bool {
    let numbered = || text.strip_prefix('v').is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()));
    text == "*" || (numbered() && text.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit()))
}

fn is_name(text: &str) -> bool {
    let allowed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '-' | '.');
    text == "*" || (!text.is_empty() && text.len() <= 253 && text.chars().all(allowed))
}

/// The selection of the objects that are stamped.
#[derive(Clone, Debug)]
pub struct ObjectSelection {
    /// The selected resources.
    pub resources: Vec<ResourcePattern>,
    /// The selected namespaces. Cluster-scoped objects are always selected.
    pub namespaces: LabelSelector,
    /// The selected labels.
    pub objects: LabelSelector,
}

impl ObjectSelection {
    /// Selects all objects of these resources, except in the namespaces that keep a cluster alive: a slow
    /// webhook must not slow these down.
    pub fn new(resources: Vec<ResourcePattern>) -> Self {
        let alive = LabelSelectorRequirement {
            key: "kubernetes.io/metadata.name".into(),
            operator: "NotIn".into(),
            values: Some(vec!["kube-system".into(), "kube-node-lease".into()]),
        };
        let namespaces = LabelSelector { match_expressions: Some(vec![alive]), match_labels: None };
        Self { resources, namespaces, objects: LabelSelector::default() }
    }

    /// The webhook entry of the registration. It never blocks a write: failures are ignored, with a short
    /// timeout.
    ///
    /// It is invoked again if another webhook changes the object after it, since that change may be the one
    /// that changes the desired state.
    pub fn webhook(&self, name: &str, client_config: WebhookClientConfig) -> MutatingWebhook {
        MutatingWebhook {
            name: name.to_owned(),
            client_config,
            rules: Some(self.resources.iter().map(resource_rule).collect()),
            namespace_selector: Some(self.namespaces.clone()),
            object_selector: Some(self.objects.clone()),
            match_conditions: Some(vec![match_condition()]),
            match_policy: Some("Equivalent".into()),
            failure_policy: Some("Ignore".into()),
            reinvocation_policy: Some("IfNeeded".into()),
            side_effects: "None".into(),
            timeout_seconds: Some(TIMEOUT_SECONDS),
            admission_review_versions: vec!["v1".into()],
        }
    }
}

fn resource_rule(resources: &ResourcePattern) -> RuleWithOperations {
    RuleWithOperations {
        api_groups: Some(vec![resources.group.clone()]),
        api_versions: Some(vec![resources.version.clone()]),
        resources: Some(vec![resources.plural.clone()]),
        operations: Some(vec!["CREATE".into(), "UPDATE".into()]),
        scope: Some("*".into()),
    }
}

/// [`NEVER_STAMPED`] as a match condition, so that the API server skips the call.
fn match_condition() -> MatchCondition {
    let never = NEVER_STAMPED.iter().map(|(group, plural)| match *plural {
        "*" => format!("request.resource.group == '{group}'"),
        plural => format!("(request.resource.group == '{group}' && request.resource.resource == '{plural}')"),
    });
    let expression = format!("!({})", never.collect::<Vec<_>>().join(" || "));
    MatchCondition { name: "neither-heartbeats-nor-reviews".into(), expression }
}

#[cfg(test)]
mod tests;
