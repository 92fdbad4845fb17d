//! Keeps certificates and registrations together: what is shown is always what the API servers know.
//!
//! A turn is made whenever a registration changes, a certificate is due, or something failed a while ago:
//! 1. certificates that are due are made anew, where they are kept;
//! 2. registrations that do not say what they should are written;
//! 3. a certificate is shown once its authority has been registered for long enough.
//!
//! *Guaranteed*: nothing that fails here ends the webhook; it is logged, counted and tried again, each time a little later. A person or a program that
//! changes a registration is answered at once, whoever else fights for it, and who does so again and again more and more slowly, up to half a minute, so that no
//! API server is kept busy. Another webhook of the same name, which is told apart from these by the name of the field manager, is left alone with it for half a minute
//! each time, in which a rollout with new arguments comes to its end; that they fight is said.
//! That a registration is not ours any more is noted when it is seen, and not when it is mended.
//!
//! *Assumed*: one clock for this machine and the API servers, give or take an hour.

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
use tokio::time::{Instant, sleep_until};

use super::{
    certificates::{Keep, KeepError, Ring, Serving, Terms},
    counters::{UpkeepCounters, Upkept},
    registration::Registration,
};
use crate::{Clock, in_words};

mod kept;

use kept::{Kept, Renewed};

/// Even if every watch is silent, all is looked at again.
const LOOK: Duration = Duration::from_secs(300);
/// How long after a failure, and after a repair, the next try is made: at first, and at most.
const PAUSE: (Duration, Duration) = (Duration::from_millis(500), Duration::from_secs(30));

/// What is kept up.
#[derive(Debug)]
pub struct Upkeep {
    keep: Keep,
    terms: Terms,
    names: BTreeSet<String>,
    registrations: Vec<Kept>,
    serving: Arc<Serving>,
    clock: Clock,
    counters: Arc<UpkeepCounters>,
    ring: Ring,
    /// Since when each authority is known to be registered.
    known: BTreeMap<String, Timestamp>,
    /// The authority whose certificate is shown.
    shown: String,
}

/// What certificates and registrations are made of.
#[derive(Debug)]
pub struct Plan {
    /// Where certificates are kept.
    pub keep: Keep,
    /// How long they live.
    pub terms: Terms,
    /// By what names and addresses the API server calls.
    pub names: BTreeSet<String>,
    /// What is registered.
    pub registrations: Vec<Registration>,
    /// What time it is.
    pub clock: Clock,
    /// What happened is counted here.
    pub counters: Arc<UpkeepCounters>,
}

/// Why a webhook cannot begin.
#[derive(Debug, thiserror::Error)]
pub enum BeginError {
    /// Without certificates.
    #[error("there are no certificates")]
    Certificates(#[from] KeepError),
    /// They are of no use.
    #[error("there is no certificate to show")]
    Nothing,
    /// Nobody would call.
    #[error("cannot register {kind} {name}")]
    Register {
        /// What.
        kind: &'static str,
        /// Its name.
        name: String,
        /// What the API server says.
        source: Box<kube::Error>,
    },
}

impl Upkeep {
    /// Takes or makes certificates, and shows one. Nothing is registered yet, so that a server can listen first.
    pub async fn begin(plan: Plan) -> Result<Self, BeginError> {
        let Plan { keep, terms, names, registrations, clock, counters } = plan;
        let now = clock.timestamp();
        let ring = keep.renewed(&Ring::default(), &names, now, terms).await?;
        let registrations = registrations.into_iter().map(Kept::new).collect();
        let (serving, known, shown) = (Arc::default(), BTreeMap::new(), String::new());
        let mut upkeep = Self { keep, terms, names, registrations, serving, clock, counters, ring, known, shown };
        match upkeep.show(now) {
            true => Ok(upkeep),
            false => Err(BeginError::Nothing),
        }
    }

    /// What to serve with.
    pub fn serving(&self) -> &Arc<Serving> {
        &self.serving
    }

    /// Registers everything. After this the API server calls.
    pub async fn register(&mut self) -> Result<(), BeginError> {
        let bundle = self.ring.bundle();
        for kept in &mut self.registrations {
            let renewed = kept.renew(&bundle).await.map_err(|source| BeginError::Register {
                kind: kept.registration.kind(),
                name: kept.registration.name().to_owned(),
                source: Box::new(source),
            })?;
            if renewed != Renewed::AsItWas {
                self.counters.count(Upkept::Registered);
            }
        }
        self.note_known();
        Ok(())
    }

    /// Removes what was registered. A failure is logged: whoever ends cannot wait.
    pub async fn unregister(&mut self) {
        let bundle = self.ring.bundle();
        for kept in &self.registrations {
            let (kind, name) = (kept.registration.kind(), kept.registration.name());
            match kept.remove(&bundle).await {
                Ok(None) => {}
                Ok(Some(other)) => tracing::warn!(kind, name, other, "the registration stays: it is another webhook's"),
                Err(error) => {
                    tracing::warn!(
                        kind,
                        name,
                        error = in_words(&error),
                        "the registration stays: it cannot be removed"
                    );
                }
            }
        }
    }

    /// Keeps everything up, for as long as it is polled.
    pub async fn run(&mut self) -> Infallible {
        let mut changes = self.watch();
        let mut pause = PAUSE.0;
        loop {
            let turn = self.turn().await;
            let (now, mut not_before, rest) = (Instant::now(), Instant::now(), self.rest());
            if turn == Turn::Failed {
                not_before = now + pause;
                pause = (pause * 2).min(PAUSE.1);
            } else {
                pause = PAUSE.0;
            }
            let last = if turn == Turn::Failed { not_before } else { now + rest };
            loop {
                let next = self.due().map_or(last, |due| due.max(not_before).min(last));
                tokio::select! {
                    biased;
                    // What else has changed in the meantime is part of the same turn. Where it is another's, perhaps that one has made new certificates.
                    Some((at, seen)) = changes.next() => if self.see(at, seen) && turn != Turn::Failed {
                        break;
                    },
                    () = sleep_until(next) => break,
                }
            }
        }
    }

    /// When the next registration is to be mended.
    fn due(&self) -> Option<Instant> {
        let bundle = self.ring.bundle();
        self.registrations.iter().filter_map(|kept| kept.due(&bundle)).min()
    }

    /// Takes note of a registration. Says whether another webhook has just taken it.
    fn see(&mut self, at: usize, seen: Option<DynamicObject>) -> bool {
        let bundle = self.ring.bundle();
        let taken = self.registrations.get_mut(at).is_some_and(|kept| kept.see(seen, &bundle));
        self.counters.note_registered(self.is_registered());
        taken
    }

    /// What becomes of each registration, by its place.
    fn watch(&self) -> BoxStream<'static, (usize, Option<DynamicObject>)> {
        let watches = self.registrations.iter().enumerate().map(|(at, Kept { registration, .. })| {
            let events = watcher::watch_object(registration.api().clone(), registration.name()).default_backoff();
            events.filter_map(move |event| std::future::ready(seen(at, event))).boxed()
        });
        stream::select_all(watches).boxed()
    }

    async fn turn(&mut self) -> Turn {
        let before = self.clock.timestamp();
        if self.is_due(before)
            && let Err(error) = self.renew(before).await
        {
            self.counters.count(Upkept::CertificatesFailed);
            tracing::warn!(error = in_words(&error), "certificates cannot be renewed; the ones of now are used on");
            self.show(before);
            return Turn::Failed;
        }
        let turn = self.repair().await;
        self.note_known();
        self.show(self.clock.timestamp());
        turn
    }

    /// Certificates are looked at in their time, and whenever a registration says something else: perhaps another replica has renewed them.
    fn is_due(&self, now: Timestamp) -> bool {
        self.ring.due(&self.names, now) <= now || !self.is_registered()
    }

    async fn renew(&mut self, now: Timestamp) -> Result<(), KeepError> {
        let ring = self.keep.renewed(&self.ring, &self.names, now, self.terms).await?;
        if ring != self.ring {
            self.counters.count(Upkept::CertificatesRenewed);
            let ends = ring.generations().last().map(|one| one.expires().to_string());
            tracing::info!(ends, authorities = ring.generations().len(), "certificates were renewed");
            self.ring = ring;
            let bundle = self.ring.bundle();
            self.registrations.iter_mut().for_each(|kept| kept.note_lost(&bundle));
        }
        Ok(())
    }

    async fn repair(&mut self) -> Turn {
        let bundle = self.ring.bundle();
        let mut turn = Turn::Quiet;
        for kept in self.registrations.iter_mut().filter(|kept| kept.is_due(&bundle)) {
            let renewed = kept.renew(&bundle).await;
            let (kind, name) = (kept.registration.kind(), kept.registration.name());
            match renewed {
                Ok(Renewed::AsItWas) => {}
                Ok(renewed) => {
                    self.counters.count(Upkept::Registered);
                    tell(&self.counters, kind, name, renewed);
                    turn = Turn::Repaired;
                }
                Err(error) => {
                    self.counters.count(Upkept::RegistrationFailed);
                    tracing::warn!(kind, name, error = in_words(&error), "the registration cannot be written");
                    return Turn::Failed;
                }
            }
        }
        turn
    }

    fn is_registered(&self) -> bool {
        let bundle = self.ring.bundle();
        self.registrations.iter().all(|kept| kept.is_in_force(&bundle))
    }

    /// Remembers since when the authorities of now are registered.
    fn note_known(&mut self) {
        let registered = self.is_registered();
        self.counters.note_registered(registered);
        if !registered {
            return;
        }
        let (now, before) = (self.clock.timestamp(), std::mem::take(&mut self.known));
        self.known = self
            .ring
            .generations()
            .iter()
            .map(|one| {
                let since = before.get(one.authority()).copied().unwrap_or(now);
                (one.authority().to_owned(), since)
            })
            .collect();
    }

    /// Shows the certificate that is right now. False if there is none.
    fn show(&mut self, now: Timestamp) -> bool {
        let lead = self.terms.lead();
        let known = |authority: &str| self.known.get(authority).is_some_and(|since| now.duration_since(*since) >= lead);
        let Some(one) = self.ring.shown(&self.names, now, |one| known(one.authority())) else { return false };
        if one.authority() == self.shown {
            return true;
        }
        if let Err(error) = self.serving.show(one) {
            tracing::warn!(error = in_words(&error), "a certificate cannot be shown; the one before is shown on");
            return false;
        }
        self.shown = one.authority().to_owned();
        true
    }

    /// How long nothing has to be done.
    fn rest(&self) -> Duration {
        let (now, lead) = (self.clock.timestamp(), self.terms.lead());
        let soon = self.known.values().filter_map(|since| since.checked_add(lead).ok()).filter(|at| *at > now).min();
        let due = self.ring.due(&self.names, now);
        let next = soon.map_or(due, |soon| soon.min(due));
        Duration::try_from(next.duration_since(now)).unwrap_or_default().clamp(PAUSE.0, LOOK)
    }
}

/// What a turn did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Turn {
    Quiet,
    Repaired,
    Failed,
}

/// Says that a registration was written; and why, where another webhook fights for it: ever more seldom, as that goes on for as long as both run.
fn tell(counters: &UpkeepCounters, kind: &'static str, name: &str, renewed: Renewed) {
    let Renewed::Contended { other, differs } = renewed else {
        tracing::info!(kind, name, "the registration was written");
        return;
    };
    let times = counters.count(Upkept::Contended);
    if times.is_power_of_two() {
        tracing::warn!(
            kind,
            name,
            other,
            differs,
            times,
            "another webhook writes this registration, too, and each undoes what the other wrote: give each a name of its own, or, if they are replicas, the same \
             arguments and one Secret for their certificates"
        );
    }
}

/// What an event says of an object; nothing if it says nothing.
fn seen(at: usize, event: watcher::Result<Option<DynamicObject>>) -> Option<(usize, Option<DynamicObject>)> {
    event
        .map(|object| (at, object))
        .inspect_err(|error| tracing::warn!(error = in_words(error), "a registration cannot be watched"))
        .ok()
}

#[cfg(test)]
mod tests;
