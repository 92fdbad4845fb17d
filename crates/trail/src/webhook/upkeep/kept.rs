//! A registration, and what is known of it.

use std::collections::BTreeSet;

use kube::{ResourceExt as _, api::DynamicObject};

use crate::webhook::registration::Registration;

#[derive(Debug)]
pub(super) struct Kept {
    pub(super) registration: Registration,
    /// As it was last seen.
    pub(super) live: Option<DynamicObject>,
    /// The revision that this process wrote last.
    written: Option<String>,
    /// The revision and the bundle of what an API server made of it that keeps something else than it is told: an old one may not know every field.
    /// That is as good as it gets, and writing it again would change nothing.
    settled: Option<(String, String)>,
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
        Self { registration, live: None, written: None, settled: None }
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
            return Ok(Renewed::AsItWas);
        }
        let contended = self.live.as_ref().filter(|live| self.is_by_another_webhook(live));
        let renewed = contended.map_or(Renewed::Written, |live| Renewed::Contended {
            other: called_at(live),
            differs: differs.join(", "),
        });
        let live = self.live.insert(self.registration.write(bundle).await?);
        self.written = live.resource_version();
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
