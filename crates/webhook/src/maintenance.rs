//! Keeps the certificates and registrations of a webhook in step: the served certificate is always one that the
//! API servers trust.
//!
//! A pass runs whenever a registration changes, a certificate is due, or the delay after a failure is over:
//! 1. certificates that are due are renewed in their store;
//! 2. registrations that differ from their desired state are written;
//! 3. a certificate is served once its authority has been registered for long enough.
//!
//! *Guaranteed*: no failure here ends the webhook; it is logged, counted and retried with backoff. The first
//! change of a registration by another writer is undone at once. Repeated changes by the same writer are undone
//! with a backoff of up to half a minute, so that no API server is kept busy. Another webhook of the same name
//! is recognized by the common field manager and keeps the registration for half a minute each time, which lets
//! a rollout with new arguments complete; the contention is logged. The loss of a registration is recorded when
//! it is seen, not when it is repaired.
//!
//! *Assumed*: the clocks of this machine and of the API servers differ by at most an hour.

use std::{
    collections::{BTreeMap, BTreeSet},
    convert::Infallible,
    sync::Arc,
    time::Duration,
};

use futures_util::{
    StreamExt as _,
    stream::{self, BoxStream},
};
use jiff::Timestamp;
use kube::{
    api::DynamicObject,
    runtime::{WatchStreamExt as _, watcher},
};
use kubewake_trail::{TrailClock, error_chain};
use tokio::time::{Instant, sleep_until};

use crate::{
    certificates::{CertificateResolver, CertificateRing, CertificateStore, CertificateStoreError, CertificateTerms},
    counters::{MaintenanceCounters, MaintenanceEvent},
    registration::WebhookRegistration,
};

mod registration_state;

use registration_state::{RegistrationState, RenewalOutcome};

/// A pass runs at least this often, even if no watch reports anything.
const RESYNC_INTERVAL: Duration = Duration::from_secs(300);
/// The first and the longest retry delay, after a failure and after a repair.
const RETRY_DELAY_RANGE: (Duration, Duration) = (Duration::from_millis(500), Duration::from_secs(30));

/// The certificates and registrations that are maintained.
#[derive(Debug)]
pub struct WebhookMaintenance {
    store: CertificateStore,
    terms: CertificateTerms,
    names: BTreeSet<String>,
    registrations: Vec<RegistrationState>,
    resolver: Arc<CertificateResolver>,
    clock: TrailClock,
    counters: Arc<MaintenanceCounters>,
    ring: CertificateRing,
    /// The time since when each authority is known to be registered.
    announced_since: BTreeMap<String, Timestamp>,
    /// The authority whose certificate is served.
    shown_authority: String,
}

/// The options of [`WebhookMaintenance`].
#[derive(Debug)]
pub struct MaintenanceOptions {
    /// The store of the certificates.
    pub store: CertificateStore,
    /// The lifetime of the certificates.
    pub terms: CertificateTerms,
    /// The names and addresses under which the API server calls the webhook.
    pub names: BTreeSet<String>,
    /// The registrations to maintain.
    pub registrations: Vec<WebhookRegistration>,
    /// The source of the current time.
    pub clock: TrailClock,
    /// The counters of this maintenance.
    pub counters: Arc<MaintenanceCounters>,
}

/// The reason why a webhook cannot start.
#[derive(Debug, thiserror::Error)]
pub enum WebhookStartError {
    /// No certificates could be loaded or issued.
    #[error("failed to load or issue certificates")]
    Certificates(#[from] CertificateStoreError),
    /// None of the certificates can be served.
    #[error("none of the certificates can be served")]
    NoUsableCertificate,
    /// A registration could not be written.
    #[error("failed to write {kind} {name}")]
    Register {
        /// The kind of the registration.
        kind: &'static str,
        /// The name of the registration.
        name: String,
        /// The error of the API server.
        source: Box<kube::Error>,
    },
}

impl WebhookMaintenance {
    /// Loads or issues certificates, and serves one. Nothing is registered yet, so that a server can listen
    /// first.
    pub async fn start(options: MaintenanceOptions) -> Result<Self, WebhookStartError> {
        let MaintenanceOptions { store, terms, names, registrations, clock, counters } = options;
        let now = clock.timestamp();
        let ring = store.load_or_renew(&CertificateRing::default(), &names, now, terms).await?;
        let mut maintenance = Self {
            store,
            terms,
            names,
            registrations: registrations.into_iter().map(RegistrationState::new).collect(),
            resolver: Arc::default(),
            clock,
            counters,
            ring,
            announced_since: BTreeMap::new(),
            shown_authority: String::new(),
        };
        if !maintenance.update_shown_certificate(now) {
            return Err(WebhookStartError::NoUsableCertificate);
        }
        Ok(maintenance)
    }

    /// The resolver for the TLS server.
    pub fn certificate_resolver(&self) -> &Arc<CertificateResolver> {
        &self.resolver
    }

    /// Writes all registrations. From then on the API server calls the webhook.
    pub async fn register(&mut self) -> Result<(), WebhookStartError> {
        let bundle = self.ring.bundle();
        for state in &mut self.registrations {
            let renewed = state.renew(&bundle).await.map_err(|source| WebhookStartError::Register {
                kind: state.registration.kind(),
                name: state.registration.name().to_owned(),
                source: Box::new(source),
            })?;
            if renewed != RenewalOutcome::Unchanged {
                self.counters.count(MaintenanceEvent::Registered);
            }
        }
        self.record_announced();
        Ok(())
    }

    /// Removes all registrations. A failure is only logged, because the process is about to exit.
    pub async fn unregister(&mut self) {
        let bundle = self.ring.bundle();
        for state in &self.registrations {
            let kind = state.registration.kind();
            let name = state.registration.name();
            match state.remove(&bundle).await {
                Ok(None) => {}
                Ok(Some(other)) => {
                    tracing::warn!(kind, name, other, "the registration was not removed: it belongs to another webhook")
                }
                Err(error) => {
                    tracing::warn!(kind, name, error = error_chain(&error), "failed to remove the registration");
                }
            }
        }
    }

    /// Maintains everything for as long as it is polled.
    pub async fn run(&mut self) -> Infallible {
        let mut changes = self.watch_registrations();
        let mut retry_delay = RETRY_DELAY_RANGE.0;
        loop {
            let outcome = self.run_pass().await;
            let now = Instant::now();
            // After a failure nothing is tried before the delay is over.
            let (not_before, last) = match outcome {
                PassOutcome::Failed => {
                    let retry = now + retry_delay;
                    retry_delay = (retry_delay * 2).min(RETRY_DELAY_RANGE.1);
                    (retry, retry)
                }
                PassOutcome::Unchanged | PassOutcome::Repaired => {
                    retry_delay = RETRY_DELAY_RANGE.0;
                    (now, now + self.time_until_due())
                }
            };
            loop {
                let next = self.next_repair().map_or(last, |due| due.max(not_before).min(last));
                tokio::select! {
                    biased;
                    // Further changes are handled in the same pass. After another webhook took a registration,
                    // a pass runs at once: the other one may have renewed the certificates.
                    Some((index, seen)) = changes.next() => {
                        if self.observe_registration(index, seen) && outcome != PassOutcome::Failed {
                            break;
                        }
                    }
                    () = sleep_until(next) => break,
                }
            }
        }
    }

    /// The time of the next repair of a registration.
    fn next_repair(&self) -> Option<Instant> {
        let bundle = self.ring.bundle();
        self.registrations.iter().filter_map(|state| state.due(&bundle)).min()
    }

    /// Records the state of a registration. Returns whether another webhook has just taken it.
    fn observe_registration(&mut self, at: usize, seen: Option<DynamicObject>) -> bool {
        let bundle = self.ring.bundle();
        let taken = self.registrations.get_mut(at).is_some_and(|state| state.observe(seen, &bundle));
        self.counters.note_registered(self.is_registered());
        taken
    }

    /// The changes of each registration, with its index.
    fn watch_registrations(&self) -> BoxStream<'static, (usize, Option<DynamicObject>)> {
        let watches = self.registrations.iter().enumerate().map(|(at, RegistrationState { registration, .. })| {
            let events = watcher::watch_object(registration.api().clone(), registration.name()).default_backoff();
            events.filter_map(move |event| std::future::ready(observed_object(at, event))).boxed()
        });
        stream::select_all(watches).boxed()
    }

    async fn run_pass(&mut self) -> PassOutcome {
        let before = self.clock.timestamp();
        if self.is_due(before)
            && let Err(error) = self.renew_certificates(before).await
        {
            self.counters.count(MaintenanceEvent::CertificatesFailed);
            tracing::warn!(
                error = error_chain(&error),
                "failed to renew certificates, continuing with the current ones"
            );
            self.update_shown_certificate(before);
            return PassOutcome::Failed;
        }
        let outcome = self.repair_registrations().await;
        self.record_announced();
        self.update_shown_certificate(self.clock.timestamp());
        outcome
    }

    /// Whether the certificates have to be loaded: when they are due, and whenever a registration differs,
    /// because another replica may have renewed them.
    fn is_due(&self, now: Timestamp) -> bool {
        self.ring.next_due(&self.names, now) <= now || !self.is_registered()
    }

    async fn renew_certificates(&mut self, now: Timestamp) -> Result<(), CertificateStoreError> {
        let ring = self.store.load_or_renew(&self.ring, &self.names, now, self.terms).await?;
        if ring != self.ring {
            self.counters.count(MaintenanceEvent::CertificatesRenewed);
            let ends = ring.generations().last().map(|one| one.expires().to_string());
            tracing::info!(ends, authorities = ring.generations().len(), "certificates were renewed");
            self.ring = ring;
            let bundle = self.ring.bundle();
            self.registrations.iter_mut().for_each(|state| state.update_lost_since(&bundle));
        }
        Ok(())
    }

    async fn repair_registrations(&mut self) -> PassOutcome {
        let bundle = self.ring.bundle();
        let mut outcome = PassOutcome::Unchanged;
        for state in self.registrations.iter_mut().filter(|state| state.is_due(&bundle)) {
            let renewed = state.renew(&bundle).await;
            let kind = state.registration.kind();
            let name = state.registration.name();
            match renewed {
                Ok(RenewalOutcome::Unchanged) => {}
                Ok(renewed) => {
                    self.counters.count(MaintenanceEvent::Registered);
                    log_renewal(&self.counters, kind, name, renewed);
                    outcome = PassOutcome::Repaired;
                }
                Err(error) => {
                    self.counters.count(MaintenanceEvent::RegistrationFailed);
                    tracing::warn!(kind, name, error = error_chain(&error), "failed to write the registration");
                    return PassOutcome::Failed;
                }
            }
        }
        outcome
    }

    fn is_registered(&self) -> bool {
        let bundle = self.ring.bundle();
        self.registrations.iter().all(|state| state.is_registered(&bundle))
    }

    /// Records since when the current authorities are registered.
    fn record_announced(&mut self) {
        let registered = self.is_registered();
        self.counters.note_registered(registered);
        if !registered {
            return;
        }
        let now = self.clock.timestamp();
        let before = std::mem::take(&mut self.announced_since);
        self.announced_since = self
            .ring
            .generations()
            .iter()
            .map(|one| {
                let since = before.get(one.authority()).copied().unwrap_or(now);
                (one.authority().to_owned(), since)
            })
            .collect();
    }

    /// Serves the right certificate. Returns false if there is none.
    fn update_shown_certificate(&mut self, now: Timestamp) -> bool {
        let lead = self.terms.lead();
        let known = |authority: &str| {
            self.announced_since.get(authority).is_some_and(|since| now.duration_since(*since) >= lead)
        };
        let Some(one) = self.ring.serving_generation(&self.names, now, |one| known(one.authority())) else {
            return false;
        };
        if one.authority() == self.shown_authority {
            return true;
        }
        if let Err(error) = self.resolver.set_certificate(one) {
            tracing::warn!(
                error = error_chain(&error),
                "failed to load the new certificate, continuing to serve the previous one"
            );
            return false;
        }
        self.shown_authority = one.authority().to_owned();
        true
    }

    /// The time until the next pass is due.
    fn time_until_due(&self) -> Duration {
        let now = self.clock.timestamp();
        let lead = self.terms.lead();
        let soon =
            self.announced_since.values().filter_map(|since| since.checked_add(lead).ok()).filter(|at| *at > now).min();
        let due = self.ring.next_due(&self.names, now);
        let next = soon.map_or(due, |soon| soon.min(due));
        Duration::try_from(next.duration_since(now)).unwrap_or_default().clamp(RETRY_DELAY_RANGE.0, RESYNC_INTERVAL)
    }
}

/// The outcome of a pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PassOutcome {
    Unchanged,
    Repaired,
    Failed,
}

/// Logs that a registration was written. Contention with another webhook is logged with its details, but less
/// and less often, as it lasts for as long as both run.
fn log_renewal(counters: &MaintenanceCounters, kind: &'static str, name: &str, renewed: RenewalOutcome) {
    let RenewalOutcome::Contended { other, differs } = renewed else {
        tracing::info!(kind, name, "the registration was written");
        return;
    };
    let times = counters.count(MaintenanceEvent::Contended);
    if times.is_power_of_two() {
        tracing::warn!(
            kind,
            name,
            other,
            differs,
            times,
            "another webhook also writes this registration, and each overwrites the other: give each webhook its own name, or, if they are replicas, the same \
             arguments and one Secret for their certificates"
        );
    }
}

/// The object that a watch event shows; none for an error.
fn observed_object(at: usize, event: watcher::Result<Option<DynamicObject>>) -> Option<(usize, Option<DynamicObject>)> {
    event
        .map(|object| (at, object))
        .inspect_err(|error| tracing::warn!(error = error_chain(error), "failed to watch a registration"))
        .ok()
}

#[cfg(test)]
mod tests;
