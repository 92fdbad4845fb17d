//! Certificates that a webhook issues for itself and renews before they expire.
//!
//! An API server calls a webhook only over TLS, and trusts only certificates signed by the `caBundle` of the
//! registration. A [`CertificateGeneration`] is a certificate authority together with the one certificate that
//! it ever signs: the key of the authority is discarded at once, so that nobody can steal it. A
//! [`CertificateRing`] holds the current generations, and its rules are pure:
//!
//! - The next generation is issued when a third of the lifetime of the last one is left.
//! - All authorities of the ring are in the `caBundle`. A new certificate is served only after its authority
//!   has been there for [`CertificateTerms::lead`], since each API server learns of it in its own time. Until
//!   then the previous certificate is served, which is valid for long enough.
//! - An authority is removed when it expires. By then its certificate is no longer served.
//!
//! So every served certificate can be verified by the API servers at any time, and no restart is needed.
//!
//! A [`CertificateStore`] keeps the ring in memory or in a Secret, so that replicas serve the same certificate
//! and a new process continues with the ring of the last one.
//!
//! *Not done*: certificates issued by others; revocation. A leaked key is replaced by deleting the Secret and
//! restarting.

use std::{collections::BTreeSet, fmt, time::Duration};

use jiff::{SignedDuration, Timestamp};

mod issue;
mod resolver;
mod store;

pub use issue::CertificateIssueError;
pub use resolver::CertificateResolver;
pub use store::{CertificateStore, CertificateStoreError};

/// Three months, as public authorities issue them.
const DEFAULT_LIFETIME: Duration = Duration::from_secs(90 * 24 * 3600);
/// A shorter lifetime would end before every API server knows of the certificate.
const MIN_LIFETIME: Duration = Duration::from_secs(10);
/// The lifetime of kubeadm's certificate authorities.
const MAX_LIFETIME: Duration = Duration::from_secs(10 * 365 * 24 * 3600);
/// API servers see a new registration within seconds, a busy one within minutes.
const MAX_LEAD: Duration = Duration::from_secs(10 * 60);
/// Two are usual; three exist when names change. More are a sign of abuse.
const MAX_GENERATIONS: usize = 4;

/// The lifetime of certificates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CertificateTerms {
    lifetime: Duration,
}

/// A lifetime out of range.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the lifetime of certificates must be at least {MIN_LIFETIME:?} and at most ten years, not {0:?}")]
pub struct InvalidLifetime(Duration);

impl Default for CertificateTerms {
    fn default() -> Self {
        Self { lifetime: DEFAULT_LIFETIME }
    }
}

impl CertificateTerms {
    /// Creates terms with this lifetime.
    pub fn new(lifetime: Duration) -> Result<Self, InvalidLifetime> {
        if !(MIN_LIFETIME..=MAX_LIFETIME).contains(&lifetime) {
            return Err(InvalidLifetime(lifetime));
        }
        Ok(Self { lifetime })
    }

    /// The time for which an authority is announced before the certificate that it signed is served.
    pub fn lead(&self) -> SignedDuration {
        to_signed_duration((self.lifetime / 12).min(MAX_LEAD))
    }

    fn expiry(&self, made: Timestamp) -> Timestamp {
        // Jiff's range ends in the year 9999.
        made.saturating_add(to_signed_duration(self.lifetime)).unwrap_or(Timestamp::MAX)
    }
}

fn to_signed_duration(duration: Duration) -> SignedDuration {
    SignedDuration::try_from(duration).unwrap_or(SignedDuration::MAX)
}

/// An authority and the certificate that it signed. `Debug` does not show the key.
#[derive(Clone, PartialEq, Eq)]
pub struct CertificateGeneration {
    authority: String,
    certificate: String,
    key: String,
    names: BTreeSet<String>,
    issued_at: Timestamp,
    expires_at: Timestamp,
}

impl CertificateGeneration {
    /// Issues a generation for these names and addresses.
    pub fn issue(
        names: &BTreeSet<String>,
        now: Timestamp,
        terms: CertificateTerms,
    ) -> Result<Self, CertificateIssueError> {
        // Certificates and the stored ring have whole seconds.
        let made = Timestamp::from_second(now.as_second()).unwrap_or(now);
        issue::issue_generation(names, &format!("webhook-ca-{}", now.as_microsecond()), made, terms.expiry(made))
    }

    /// The certificate of the authority, as PEM.
    pub fn authority(&self) -> &str {
        &self.authority
    }

    /// The expiry time.
    pub fn expires(&self) -> Timestamp {
        self.expires_at
    }

    fn covers(&self, names: &BTreeSet<String>) -> bool {
        names.is_subset(&self.names)
    }

    /// The renewal time: when a third of the lifetime is left.
    fn renewal(&self) -> Timestamp {
        let life = self.expires_at.duration_since(self.issued_at);
        self.expires_at.saturating_sub(life / 3).unwrap_or(self.expires_at)
    }
}

impl fmt::Debug for CertificateGeneration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("CertificateGeneration");
        shown.field("names", &self.names).field("made", &self.issued_at).field("expires", &self.expires_at);
        shown.field("key", &"***").finish_non_exhaustive()
    }
}

/// The current generations, oldest first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CertificateRing(Vec<CertificateGeneration>);

impl CertificateRing {
    /// The renewed ring, if a change is due.
    pub fn renew_if_due(
        &self,
        names: &BTreeSet<String>,
        now: Timestamp,
        terms: CertificateTerms,
    ) -> Result<Option<Self>, CertificateIssueError> {
        let mut generations: Vec<_> = self.0.iter().filter(|one| one.expires_at > now).cloned().collect();
        let fresh = generations.iter().any(|one| one.covers(names) && one.renewal() > now);
        if !fresh {
            generations.push(CertificateGeneration::issue(names, now, terms)?);
        }
        let surplus = generations.len().saturating_sub(MAX_GENERATIONS);
        generations.drain(..surplus);
        Ok((generations != self.0).then_some(Self(generations)))
    }

    /// The certificates of all authorities, as PEM: the `caBundle`.
    pub fn bundle(&self) -> String {
        self.0.iter().map(CertificateGeneration::authority).collect()
    }

    /// The generation to serve: the newest whose authority is `known` to the API servers, else the oldest.
    pub fn serving_generation(
        &self,
        names: &BTreeSet<String>,
        now: Timestamp,
        known: impl Fn(&CertificateGeneration) -> bool,
    ) -> Option<&CertificateGeneration> {
        let good = || self.0.iter().filter(|one| one.covers(names) && one.expires_at > now);
        good().rev().find(|one| known(one)).or_else(|| good().next())
    }

    /// The next time when a renewal or an expiry is due.
    pub fn next_due(&self, names: &BTreeSet<String>, now: Timestamp) -> Timestamp {
        let renewal = self.0.iter().filter(|one| one.covers(names)).map(CertificateGeneration::renewal).max();
        let end = self.0.iter().map(CertificateGeneration::expires).min();
        renewal.into_iter().chain(end).min().unwrap_or(now)
    }

    /// All generations, oldest first.
    pub fn generations(&self) -> &[CertificateGeneration] {
        &self.0
    }
}

#[cfg(test)]
mod tests;
