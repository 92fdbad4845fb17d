//! Which objects are stamped, and the registration that says so.
//!
//! What is never stamped, whatever is selected ([`NEVER`]): heartbeats, since a trace for each would drown all others; and reviews, which an API server refuses
//! if they have annotations.

use std::{fmt, str::FromStr};

use k8s_openapi::{
    api::admissionregistration::v1::{MatchCondition, MutatingWebhook, RuleWithOperations, WebhookClientConfig},
    apimachinery::pkg::apis::meta::v1::{LabelSelector, LabelSelectorRequirement},
};

mod labels;
mod served;

pub use labels::parse as parse_selector;

/// Groups and resources that are never stamped; `*` is every resource of the group.
pub const NEVER: [(&str, &str); 9] = [
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

/// Small, since every write waits for it. An answer takes a millisecond.
const TIMEOUT_SECONDS: i32 = 2;

/// Resources by group, version and plural name, each perhaps `*`: `apps/v1/deployments`, `v1/pods`, `example.com/*/*`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resources {
    group: String,
    version: String,
    plural: String,
}

/// Why a text names no resources that can be stamped.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadResources {
    /// Another form.
    #[error(
        "{0:?} is not GROUP/VERSION/RESOURCE, as in apps/v1/deployments, or VERSION/RESOURCE, as in v1/pods; each may be *"
    )]
    Form(String),
    /// It would do harm.
    #[error("{0} are never stamped: they are heartbeats, or reviews that may have no annotations")]
    Never(String),
}

impl FromStr for Resources {
    type Err = BadResources;

    fn from_str(text: &str) -> Result<Self, BadResources> {
        let bad = || BadResources::Form(text.to_owned());
        let parts: Vec<&str> = text.split('/').collect();
        let (group, version, plural) = match parts.as_slice() {
            [version, plural] if is_version(version) => ("", *version, *plural),
            [group, version, plural] if is_name(group) && is_version(version) => (*group, *version, *plural),
            _ => return Err(bad()),
        };
        if !is_name(plural) {
            return Err(bad());
        }
        if is_never(group, plural) {
            return Err(BadResources::Never(text.to_owned()));
        }
        Ok(Self { group: group.to_owned(), version: version.to_owned(), plural: plural.to_owned() })
    }
}

impl fmt::Display for Resources {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.group.is_empty() {
            write!(f, "{}/", self.group)?;
        }
        write!(f, "{}/{}", self.version, self.plural)
    }
}

/// Whether objects of this resource are never stamped.
pub fn is_never(group: &str, plural: &str) -> bool {
    NEVER.iter().any(|(of, never)| *of == group && (*never == plural || *never == "*"))
}

fn is_version(text: &str) -> bool {
    let numbered = || text.strip_prefix('v').is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()));
    text == "*" || (numbered() && text.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit()))
}

fn is_name(text: &str) -> bool {
    let allowed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '-' | '.');
    text == "*" || (!text.is_empty() && text.len() <= 253 && text.chars().all(allowed))
}

/// Which objects are stamped.
#[derive(Clone, Debug)]
pub struct Select {
    /// Of which resources.
    pub resources: Vec<Resources>,
    /// In which namespaces. Objects without a namespace are stamped in any case.
    pub namespaces: LabelSelector,
    /// With which labels.
    pub objects: LabelSelector,
}

impl Select {
    /// All objects of these resources, but for those of the namespaces that keep a cluster alive: if this webhook is slow, they are not.
    pub fn new(resources: Vec<Resources>) -> Self {
        let alive = LabelSelectorRequirement {
            key: "kubernetes.io/metadata.name".into(),
            operator: "NotIn".into(),
            values: Some(vec!["kube-system".into(), "kube-node-lease".into()]),
        };
        let namespaces = LabelSelector { match_expressions: Some(vec![alive]), match_labels: None };
        Self { resources, namespaces, objects: LabelSelector::default() }
    }

    /// The webhook that an API server is told of. It never stands in the way: what fails is ignored, and soon.
    ///
    /// It is called again if another webhook changes the object after it, since that may be what makes an update ask for something else.
    pub fn webhook(&self, name: &str, client_config: WebhookClientConfig) -> MutatingWebhook {
        MutatingWebhook {
            name: name.to_owned(),
            client_config,
            rules: Some(self.resources.iter().map(rule).collect()),
            namespace_selector: Some(self.namespaces.clone()),
            object_selector: Some(self.objects.clone()),
            match_conditions: Some(vec![condition()]),
            match_policy: Some("Equivalent".into()),
            failure_policy: Some("Ignore".into()),
            reinvocation_policy: Some("IfNeeded".into()),
            side_effects: "None".into(),
            timeout_seconds: Some(TIMEOUT_SECONDS),
            admission_review_versions: vec!["v1".into()],
        }
    }
}

fn rule(resources: &Resources) -> RuleWithOperations {
    RuleWithOperations {
        api_groups: Some(vec![resources.group.clone()]),
        api_versions: Some(vec![resources.version.clone()]),
        resources: Some(vec![resources.plural.clone()]),
        operations: Some(vec!["CREATE".into(), "UPDATE".into()]),
        scope: Some("*".into()),
    }
}

/// What [`NEVER`] says, for the API server: then it does not even ask.
fn condition() -> MatchCondition {
    let never = NEVER.iter().map(|(group, plural)| match *plural {
        "*" => format!("request.resource.group == '{group}'"),
        plural => format!("(request.resource.group == '{group}' && request.resource.resource == '{plural}')"),
    });
    let expression = format!("!({})", never.collect::<Vec<_>>().join(" || "));
    MatchCondition { name: "neither-heartbeats-nor-reviews".into(), expression }
}

#[cfg(test)]
mod tests;
