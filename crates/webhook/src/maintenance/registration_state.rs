//! A registration and its observed state.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use kube::{ResourceExt as _, api::DynamicObject};
use tokio::time::Instant;

use super::RETRY_DELAY_RANGE;
use crate::registration::WebhookRegistration;

/// The number of writers whose backoff is tracked.
const MAX_WRITERS: usize = 16;

#[derive(Debug)]
pub(super) struct RegistrationState {
    pub(super) registration: WebhookRegistration,
    /// The live object, as it was last seen.
    pub(super) live: Option<DynamicObject>,
    /// The revision that this process wrote last, or found to be right.
    own_revision: Option<String>,
    /// The time since when another webhook of the same name holds the registration.
    pub(super) lost_since: Option<Instant>,
    /// The revision and the bundle of a write whose result differs from the desired state: an old API server
    /// may not know every field. The result is accepted, since another write would change nothing.
    accepted_deviation: Option<(String, String)>,
    /// The backoff of each writer, except other webhooks.
    backoffs: BTreeMap<String, WriterBackoff>,
}

/// The backoff against one writer; it grows with each repair.
#[derive(Clone, Copy, Debug)]
struct WriterBackoff {
    not_before: Instant,
    pause: Duration,
}

/// The outcome of a renewal.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum RenewalOutcome {
    Unchanged,
    /// The registration was missing, or another writer had changed it.
    Written,
    /// Another webhook of the same name had overwritten it.
    Contended {
        /// The URL or Service of the other webhook.
        other: String,
        /// The paths that differ.
        differs: String,
    },
}

impl RegistrationState {
    pub(super) fn new(registration: WebhookRegistration) -> Self {
        Self {
            registration,
            live: None,
            own_revision: None,
            lost_since: None,
            accepted_deviation: None,
            backoffs: BTreeMap::new(),
        }
    }

    /// Records the live object. Returns whether another webhook has just taken the registration.
    pub(super) fn observe(&mut self, seen: Option<DynamicObject>, bundle: &str) -> bool {
        self.live = seen;
        let had = self.lost_since.is_none();
        self.update_lost_since(bundle);
        had && self.lost_since.is_some()
    }

    /// Updates `lost_since` from the live object and this bundle.
    pub(super) fn update_lost_since(&mut self, bundle: &str) {
        let by_another = self.live.as_ref().is_some_and(|live| self.is_from_another_webhook(live));
        let is_lost = by_another && !self.is_registered(bundle);
        self.lost_since = is_lost.then(|| self.lost_since.unwrap_or_else(Instant::now));
    }

    /// The time at which the registration is to be repaired, if it differs. Another webhook keeps it for a
    /// while: in a rollout with new arguments that is the new process, which becomes ready only while it holds
    /// the registration, and this process is not stopped before that.
    pub(super) fn due(&self, bundle: &str) -> Option<Instant> {
        if self.is_registered(bundle) {
            return None;
        }
        let pace = || self.backoffs.get(&self.changed_by()?).map(|pace| pace.not_before);
        let left = self.lost_since.map(|lost| lost + RETRY_DELAY_RANGE.1);
        Some(pace().max(left).unwrap_or_else(Instant::now))
    }

    /// Whether a repair is due now.
    pub(super) fn is_due(&self, bundle: &str) -> bool {
        self.due(bundle).is_some_and(|due| due <= Instant::now())
    }

    /// The writer that changed the object since this process wrote it; empty if the object was deleted.
    fn changed_by(&self) -> Option<String> {
        let Some(live) = &self.live else { return Some(String::new()) };
        if self.own_revision.is_some() && live.resource_version() == self.own_revision {
            return None;
        }
        let mut writers = last_writers(live);
        // Of writes within the same second, the one of this process came first.
        if writers.len() > 1 {
            writers.remove(self.registration.manager());
        }
        Some(writers.into_iter().collect::<Vec<_>>().join(", "))
    }

    /// Doubles the backoff of a writer that undid a write, unless its last change was a while ago.
    fn back_off(&mut self, writer: String) {
        let now = Instant::now();
        let last = self.backoffs.get(&writer).filter(|last| now <= last.not_before + RETRY_DELAY_RANGE.1);
        let pause = last.map_or(RETRY_DELAY_RANGE.0, |last| (last.pause * 2).min(RETRY_DELAY_RANGE.1));
        if self.backoffs.len() >= MAX_WRITERS {
            let first = self.backoffs.iter().min_by_key(|(_, pace)| pace.not_before).map(|(name, _)| name.clone());
            first.and_then(|name| self.backoffs.remove(&name));
        }
        self.backoffs.insert(writer, WriterBackoff { not_before: now + pause, pause });
    }

    /// Removes the registration, unless another webhook holds it; then that one's URL is returned.
    pub(super) async fn remove(&self, bundle: &str) -> Result<Option<String>, kube::Error> {
        let Some(live) = self.registration.get().await? else { return Ok(None) };
        let is_ours = self.registration.matches(&live, bundle).map_err(kube::Error::SerdeError)?;
        if !is_ours && self.is_from_another_webhook(&live) {
            return Ok(Some(client_url(&live)));
        }
        self.registration.remove(&live).await.map(|()| None)
    }

    /// Whether the live object has the desired state with this bundle.
    pub(super) fn is_registered(&self, bundle: &str) -> bool {
        let Some(live) = &self.live else { return false };
        let is_settled = || {
            let (revision, of) = self.accepted_deviation.as_ref()?;
            Some(live.resource_version().as_ref() == Some(revision) && of == bundle)
        };
        self.registration.matches(live, bundle).unwrap_or(false) || is_settled() == Some(true)
    }

    /// Brings the live object to its desired state.
    pub(super) async fn renew(&mut self, bundle: &str) -> Result<RenewalOutcome, kube::Error> {
        self.live = self.registration.get().await?;
        let differs = match &self.live {
            Some(live) => self.registration.differences(live, bundle).map_err(kube::Error::SerdeError)?,
            None => vec!["everything".to_owned()],
        };
        if differs.is_empty() {
            self.own_revision = self.live.as_ref().and_then(|live| live.resource_version());
            self.lost_since = None;
            return Ok(RenewalOutcome::Unchanged);
        }
        let contended = self.live.as_ref().filter(|live| self.is_from_another_webhook(live));
        let renewed = contended.map_or(RenewalOutcome::Written, |live| RenewalOutcome::Contended {
            other: client_url(live),
            differs: differs.join(", "),
        });
        let writer = self.changed_by();
        let live = self.live.insert(self.registration.write(bundle).await?);
        self.own_revision = live.resource_version();
        self.lost_since = None;
        if let (RenewalOutcome::Written, Some(writer)) = (&renewed, writer) {
            self.back_off(writer);
        }
        if !self.is_registered(bundle) {
            let kind = self.registration.kind();
            let name = self.registration.name();
            tracing::warn!(kind, name, "the API server changed the registration on write; the difference is accepted");
            self.accepted_deviation = self.own_revision.clone().map(|revision| (revision, bundle.to_owned()));
        }
        Ok(renewed)
    }

    /// Whether another process with our field manager wrote last. People and tools have field managers of their
    /// own.
    fn is_from_another_webhook(&self, live: &DynamicObject) -> bool {
        let is_newer = self.own_revision.is_some() && live.resource_version() != self.own_revision;
        is_newer && last_writers(live) == BTreeSet::from([self.registration.manager()])
    }
}

/// The managers of the last write; several if they wrote within the same second.
fn last_writers(object: &DynamicObject) -> BTreeSet<&str> {
    let entries = || object.managed_fields().iter();
    let newest = entries().filter_map(|entry| entry.time.as_ref()).max();
    entries().filter(|entry| entry.time.as_ref() == newest).filter_map(|entry| entry.manager.as_deref()).collect()
}

/// The URL or Service of the webhooks in a registration.
fn client_url(object: &DynamicObject) -> String {
    let hooks = object.data.get("webhooks").and_then(|hooks| hooks.as_array()).into_iter().flatten();
    let places = hooks.filter_map(|hook| {
        let config = hook.get("clientConfig")?;
        let url = config.get("url").and_then(|url| url.as_str()).map(str::to_owned);
        let text = |key: &str| config.get("service")?.get(key)?.as_str();
        url.or_else(|| Some(format!("Service {}/{}", text("namespace")?, text("name")?)))
    });
    places.collect::<BTreeSet<_>>().into_iter().collect::<Vec<_>>().join(", ")
}
