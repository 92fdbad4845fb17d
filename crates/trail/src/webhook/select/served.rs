//! Whether what is selected exists. A rule for resources that no API server has is no error to it: nothing is ever stamped, and nobody is told.
//!
//! As a definition may come later, this is a warning and never an end: it is looked at again until everything is there.

use std::{convert::Infallible, time::Duration};

use kube::{Client, Discovery, api::ApiResource};

use super::{Resources, Select};
use crate::{in_words, webhook::counters::Counters};

/// How long until it is looked at again: while something is missing, and else, as definitions come and go.
const LOOK: (Duration, Duration) = (Duration::from_secs(30), Duration::from_secs(600));
/// Who mistypes one name means few others.
const MOST_MEANT: usize = 3;

impl Select {
    /// What is selected and not served, a sentence for each.
    pub async fn unserved(&self, client: &Client) -> Result<Vec<String>, kube::Error> {
        let all = everything(client).await?;
        let missing = self.resources.iter().filter(|one| !all.iter().any(|served| one.matches(served)));
        Ok(missing.map(|one| sentence(one, &all)).collect())
    }

    /// Looks again and again, notes what is missing, and warns of what is new.
    pub async fn watch_served(&self, client: &Client, counters: &Counters) -> Infallible {
        loop {
            match self.unserved(client).await {
                Ok(unserved) => {
                    let known = counters.unserved();
                    for sentence in unserved.iter().filter(|sentence| !known.contains(sentence)) {
                        tracing::warn!("{sentence}");
                    }
                    counters.note_unserved(unserved);
                }
                Err(error) => tracing::debug!(error = in_words(&error), "what the API server has is not known"),
            }
            tokio::time::sleep(if counters.unserved().is_empty() { LOOK.1 } else { LOOK.0 }).await;
        }
    }
}

/// All that an API server has.
async fn everything(client: &Client) -> Result<Vec<ApiResource>, kube::Error> {
    let discovery = match Discovery::new(client.clone()).run_aggregated().await {
        Ok(discovery) => discovery,
        // One from before 1.26 has to be asked for each group.
        Err(_) => Discovery::new(client.clone()).run().await?,
    };
    let of_group = |group: &kube::discovery::ApiGroup| {
        let versions: Vec<_> = group.versions().flat_map(|version| group.versioned_resources(version)).collect();
        versions.into_iter().map(|(resource, _)| resource)
    };
    Ok(discovery.groups_alphabetical().into_iter().flat_map(of_group).collect())
}

impl Resources {
    fn matches(&self, served: &ApiResource) -> bool {
        let is = |wanted: &str, there: &str| wanted == "*" || wanted == there;
        is(&self.group, &served.group) && is(&self.version, &served.version) && is(&self.plural, &served.plural)
    }
}

/// What is missing, and what may have been meant.
fn sentence(one: &Resources, all: &[ApiResource]) -> String {
    let stem = |name: &str| name.trim_end_matches('s').to_ascii_lowercase();
    let alike = |served: &&ApiResource| {
        let (wanted, plural, kind) = (stem(&one.plural), stem(&served.plural), stem(&served.kind));
        // `deployment` is as near to `deployments` as `policy` is to the kind of `policies`.
        wanted == plural || wanted == kind
    };
    let name = |served: &ApiResource| match served.group.as_str() {
        "" => format!("{}/{}", served.version, served.plural),
        group => format!("{group}/{}/{}", served.version, served.plural),
    };
    let mut meant: Vec<_> = all.iter().filter(alike).take(MOST_MEANT).map(name).collect();
    if meant.is_empty() {
        let mistyped = |served: &&ApiResource| is_mistyped(&one.plural, &served.plural);
        meant = all.iter().filter(mistyped).take(MOST_MEANT).map(name).collect();
    }
    let hint = match meant.as_slice() {
        [] => String::new(),
        meant => format!("; did you mean {}?", meant.join(" or ")),
    };
    format!("{one} is selected, but the API server has no such resource, so that nothing of it is stamped{hint}")
}

/// Whether few letters are wrong, missing or too many: one of four at most, and never more than two.
fn is_mistyped(typed: &str, meant: &str) -> bool {
    let most = (meant.len().min(typed.len()) / 4).min(2);
    typed.len().abs_diff(meant.len()) <= most && distance(typed, meant) <= most
}

/// How many letters have to be changed, added or removed.
fn distance(one: &str, other: &str) -> usize {
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
