//! Checks whether the selected resources exist. An API server accepts a rule for resources that it does not
//! serve; then nothing is ever stamped, and there is no error.
//!
//! A missing resource is only a warning, because its definition may be created later. The check is repeated.

use std::{convert::Infallible, time::Duration};

use kube::{Client, Discovery, api::ApiResource};
use kubewake_trail::error_chain;

use super::{super::counters::StampCounters, ObjectSelection, ResourcePattern};

/// The check intervals: while a resource is missing, and otherwise, as definitions come and go.
const CHECK_INTERVALS: (Duration, Duration) = (Duration::from_secs(30), Duration::from_secs(600));
/// A mistyped name resembles few others.
const MAX_SUGGESTIONS: usize = 3;

impl ObjectSelection {
    /// One sentence for each selected resource that is not served.
    pub async fn unserved(&self, client: &Client) -> Result<Vec<String>, kube::Error> {
        let all = list_api_resources(client).await?;
        let missing = self.resources.iter().filter(|one| !all.iter().any(|served| one.matches(served)));
        Ok(missing.map(|one| unserved_message(one, &all)).collect())
    }

    /// Checks repeatedly, records missing resources, and logs new ones.
    pub async fn watch_served(&self, client: &Client, counters: &StampCounters) -> Infallible {
        loop {
            match self.unserved(client).await {
                Ok(unserved) => {
                    let known = counters.unserved();
                    for sentence in unserved.iter().filter(|sentence| !known.contains(sentence)) {
                        tracing::warn!("{sentence}");
                    }
                    counters.note_unserved(unserved);
                }
                Err(error) => {
                    tracing::debug!(error = error_chain(&error), "failed to list the resources of the API server")
                }
            }
            tokio::time::sleep(if counters.unserved().is_empty() { CHECK_INTERVALS.1 } else { CHECK_INTERVALS.0 })
                .await;
        }
    }
}

/// All resources of the API server.
async fn list_api_resources(client: &Client) -> Result<Vec<ApiResource>, kube::Error> {
    let discovery = match Discovery::new(client.clone()).run_aggregated().await {
        Ok(discovery) => discovery,
        // An API server older than 1.26 has no aggregated discovery and is queried for each group.
        Err(_) => Discovery::new(client.clone()).run().await?,
    };
    let of_group = |group: &kube::discovery::ApiGroup| {
        let versions: Vec<_> = group.versions().flat_map(|version| group.versioned_resources(version)).collect();
        versions.into_iter().map(|(resource, _)| resource)
    };
    Ok(discovery.groups_alphabetical().into_iter().flat_map(of_group).collect())
}

impl ResourcePattern {
    fn matches(&self, served: &ApiResource) -> bool {
        let is = |wanted: &str, there: &str| wanted == "*" || wanted == there;
        is(&self.group, &served.group) && is(&self.version, &served.version) && is(&self.plural, &served.plural)
    }
}

/// A warning about a missing resource, with suggestions.
fn unserved_message(one: &ResourcePattern, all: &[ApiResource]) -> String {
    let stem = |name: &str| name.trim_end_matches('s').to_ascii_lowercase();
    let alike = |served: &&ApiResource| {
        let wanted = stem(&one.plural);
        let plural = stem(&served.plural);
        let kind = stem(&served.kind);
        // `deployment` resembles `deployments`, and `policy` resembles the kind of `policies`.
        wanted == plural || wanted == kind
    };
    let name = |served: &ApiResource| match served.group.as_str() {
        "" => format!("{}/{}", served.version, served.plural),
        group => format!("{group}/{}/{}", served.version, served.plural),
    };
    let mut meant: Vec<_> = all.iter().filter(alike).take(MAX_SUGGESTIONS).map(name).collect();
    if meant.is_empty() {
        let mistyped = |served: &&ApiResource| is_mistyped(&one.plural, &served.plural);
        meant = all.iter().filter(mistyped).take(MAX_SUGGESTIONS).map(name).collect();
    }
    let hint = match meant.as_slice() {
        [] => String::new(),
        meant => format!("; did you mean {}?", meant.join(" or ")),
    };
    format!("selected resource {one} is not served by the API server, so none of its objects are stamped{hint}")
}

/// Whether the edit distance is small: at most one letter in four, and never more than two.
fn is_mistyped(typed: &str, meant: &str) -> bool {
    let most = (meant.len().min(typed.len()) / 4).min(2);
    typed.len().abs_diff(meant.len()) <= most && edit_distance(typed, meant) <= most
}

/// The Levenshtein distance.
fn edit_distance(one: &str, other: &str) -> usize {
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (at, here) in one.bytes().enumerate() {
        let mut diagonal = at;
        let mut left = at + 1;
        let mut next = vec![left];
        for (there, above) in other.bytes().zip(row.iter().skip(1)) {
            left = (diagonal + usize::from(here != there)).min(left + 1).min(above + 1);
            diagonal = *above;
            next.push(left);
        }
        row = next;
    }
    row.last().copied().unwrap_or_default()
}
