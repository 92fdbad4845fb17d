//! A registration, and what is known of it.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use kube::{ResourceExt as _, api::DynamicObject};
use tokio::time::Instant;

use super::PAUSE;
use crate::webhook::registration::Registration;

/// Those who change a registration; more are not told apart.
const MAX_WRITERS: usize = 16;

#[derive(Debug)]
pub(super) struct Kept {
    pub(super) registration: Registration,
    /// As it was last seen.
    pub(super) live: Option<DynamicObject>,
    /// The revision that this process wrote last, or found to be as it should be.
    written: Option<String>,
    /// Since when another webhook of this name holds it.
    pub(super) lost: Option<Instant>,
    /// The revision and the bundle of what an API server made of it that keeps something else than it is told: an old one may not know every field.
    /// That is as good as it gets, and writing it again would change nothing.
    settled: Option<(String, String)>,
    /// How soon each of those is answered who change it, but for other webhooks.
    paces: BTreeMap<String, Pace>,
}

/// How soon somebody is answered: the more often, the later.
#[derive(Clone, Copy, Debug)]
struct Pace {
    not_before: Instant,
    pause: Duration,
}

/// What had to be done.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Renewed {
    /// Nothing.
    AsItWas,
    /// It was missing, or somebody had changed it.
    Written,
    /// Another webhook of this name had written its own over ours.
    Contended {
        /// Where that one is called.
        other: String,
        /// What it says otherwise.
        differs: String,
    },
}

impl Kept {
    pub(super) fn new(registration: Registration) -> Self {
        Self { registration, live: None, written: None, lost: None, settled: None, paces: BTreeMap::new() }
    }

    /// Takes note of how it is now. Says whether another webhook has just taken it.
    pub(super) fn see(&mut self, seen: Option<DynamicObject>, bundle: &str) -> bool {
        self.live = seen;
        let had = self.lost.is_none();
        self.note_lost(bundle);
        had && self.lost.is_some()
    }

    /// Whether another webhook holds it, by what was seen last and this bundle.
    pub(super) fn note_lost(&mut self, bundle: &str) {
        let by_another = self.live.as_ref().is_some_and(|live| self.is_by_another_webhook(live));
        let is_lost = by_another && !self.is_in_force(bundle);
        self.lost = is_lost.then(|| self.lost.unwrap_or_else(Instant::now));
    }

    /// When it is to be made what it should be, if it is not. Another webhook is left alone with it for a while: in a rollout with new arguments that is the
    /// one to come, which is ready only while it holds it, and until then this one is not ended.
    pub(super) fn due(&self, bundle: &str) -> Option<Instant> {
        if self.is_in_force(bundle) {
            return None;
        }
        let pace = || self.paces.get(&self.changed_by()?).map(|pace| pace.not_before);
        let left = self.lost.map(|lost| lost + PAUSE.1);
        Some(pace().max(left).unwrap_or_else(Instant::now))
    }

    /// Whether that is now.
    pub(super) fn is_due(&self, bundle: &str) -> bool {
        self.due(bundle).is_some_and(|due| due <= Instant::now())
    }

    /// Who has changed it since this process wrote it; nobody has a name who deleted it.
    fn changed_by(&self) -> Option<String> {
        let Some(live) = &self.live else { return Some(String::new()) };
        if self.written.is_some() && live.resource_version() == self.written {
            return None;
        }
        let mut writers = last_writers(live);
        // What this process wrote in the same second is older.
        if writers.len() > 1 {
            writers.remove(self.registration.manager());
        }
        Some(writers.into_iter().collect::<Vec<_>>().join(", "))
    }

    /// What this one wrote is undone. The next time that takes longer, unless it is a while until then.
    fn answer(&mut self, writer: String) {
        let now = Instant::now();
        let last = self.paces.get(&writer).filter(|last| now <= last.not_before + PAUSE.1);
        let pause = last.map_or(PAUSE.0, |last| (last.pause * 2).min(PAUSE.1));
        if self.paces.len() >= MAX_WRITERS {
            let first = self.paces.iter().min_by_key(|(_, pace)| pace.not_before).map(|(name, _)| name.clone());
            first.and_then(|name| self.paces.remove(&name));
        }
        self.paces.insert(writer, Pace { not_before: now + pause, pause });
    }

    /// Removes it, unless it is another webhook's by now. Says whose it is then.
    pub(super) async fn remove(&self, bundle: &str) -> Result<Option<String>, kube::Error> {
        let Some(live) = self.registration.look().await? else { return Ok(None) };
        let is_ours = self.registration.is_in(&live, bundle).map_err(kube::Error::SerdeError)?;
        if !is_ours && self.is_by_another_webhook(&live) {
            return Ok(Some(called_at(&live)));
        }
        self.registration.remove(&live).await.map(|()| None)
    }

    /// Whether API servers know it, with this bundle.
    pub(super) fn is_in_force(&self, bundle: &str) -> bool {
        let Some(live) = &self.live else { return false };
        let is_settled = || {
            let (revision, of) = self.settled.as_ref()?;
            Some(live.resource_version().as_ref() == Some(revision) && of == bundle)
        };
        self.registration.is_in(live, bundle).unwrap_or(false) || is_settled() == Some(true)
    }

    /// Makes it what it should be.
    pub(super) async fn renew(&mut self, bundle: &str) -> Result<Renewed, kube::Error> {
        self.live = self.registration.look().await?;
        let differs = match &self.live {
            Some(live) => self.registration.differences(live, bundle).map_err(kube::Error::SerdeError)?,
            None => vec!["everything".to_owned()],
        };
        if differs.is_empty() {
            self.written = self.live.as_ref().and_then(|live| live.resource_version());
            self.lost = None;
            return Ok(Renewed::AsItWas);
        }
        let contended = self.live.as_ref().filter(|live| self.is_by_another_webhook(live));
        let renewed = contended.map_or(Renewed::Written, |live| Renewed::Contended {
            other: called_at(live),
            differs: differs.join(", "),
        });
        let writer = self.changed_by();
        let live = self.live.insert(self.registration.write(bundle).await?);
        self.written = live.resource_version();
        self.lost = None;
        if let (Renewed::Written, Some(writer)) = (&renewed, writer) {
            self.answer(writer);
        }
        if !self.is_in_force(bundle) {
            let (kind, name) = (self.registration.kind(), self.registration.name());
            tracing::warn!(kind, name, "the API server keeps something else than it was told; it is left at that");
            self.settled = self.written.clone().map(|revision| (revision, bundle.to_owned()));
        }
        Ok(renewed)
    }

    /// Whether a program under our own name has written since we did: people and their tools have names of their own.
    fn is_by_another_webhook(&self, live: &DynamicObject) -> bool {
        let is_newer = self.written.is_some() && live.resource_version() != self.written;
        is_newer && last_writers(live) == BTreeSet::from([self.registration.manager()])
    }
}

/// Who wrote last. As times have seconds there may be more than one.
fn last_writers(object: &DynamicObject) -> BTreeSet<&str> {
    let entries = || object.managed_fields().iter();
    let newest = entries().filter_map(|entry| entry.time.as_ref()).max();
    entries().filter(|entry| entry.time.as_ref() == newest).filter_map(|entry| entry.manager.as_deref()).collect()
}

/// Where API servers call, as a registration says.
fn called_at(object: &DynamicObject) -> String {
    let hooks = object.data.get("webhooks").and_then(|hooks| hooks.as_array()).into_iter().flatten();
    let places = hooks.filter_map(|hook| {
        let config = hook.get("clientConfig")?;
        let url = config.get("url").and_then(|url| url.as_str()).map(str::to_owned);
        let text = |key: &str| config.get("service")?.get(key)?.as_str();
        url.or_else(|| Some(format!("Service {}/{}", text("namespace")?, text("name")?)))
    });
    places.collect::<BTreeSet<_>>().into_iter().collect::<Vec<_>>().join(", ")
}
