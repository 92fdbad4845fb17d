//! A registration, and what is known of it.

use kube::{ResourceExt as _, api::DynamicObject};

use crate::webhook::registration::Registration;

#[derive(Debug)]
pub(super) struct Kept {
    pub(super) registration: Registration,
    /// As it was last seen.
    pub(super) live: Option<DynamicObject>,
    /// The revision and the bundle of what an API server made of it that keeps something else than it is told: an old one may not know every field.
    /// That is as good as it gets, and writing it again would change nothing.
    settled: Option<(String, String)>,
}

impl Kept {
    pub(super) fn new(registration: Registration) -> Self {
        Self { registration, live: None, settled: None }
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

    /// Makes it what it should be, and says whether it had to be written.
    pub(super) async fn renew(&mut self, bundle: &str) -> Result<bool, kube::Error> {
        let written = self.registration.renew(&mut self.live, bundle).await?;
        if written && !self.is_in_force(bundle) {
            let (kind, name) = (self.registration.kind(), self.registration.name());
            tracing::warn!(kind, name, "the API server keeps something else than it was told; it is left at that");
            let revision = self.live.as_ref().and_then(DynamicObject::resource_version);
            self.settled = revision.map(|revision| (revision, bundle.to_owned()));
        }
        Ok(written)
    }
}
