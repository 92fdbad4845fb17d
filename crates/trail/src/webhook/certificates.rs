//! Certificates that a webhook makes for itself, and replaces before they expire.
//!
//! An API server calls a webhook only over TLS, and believes only what the `caBundle` of its registration signed. A [`Generation`] is a
//! certificate authority together with the one certificate that it ever signs: its key is forgotten at once, so that nobody can steal it. A
//! [`Ring`] holds the generations that are good now, and its rules are pure:
//!
//! - The next generation is made when a third of the life of the last one is left.
//! - All authorities of the ring are in the `caBundle`. A new certificate is shown only after its authority has been there for
//!   [`Terms::lead`], since every API server learns of it in its own time. Until then the one before is shown, which is good for long.
//! - An authority leaves with the end of its life. By then nobody shows its certificate any more.
//!
//! So at no moment is a certificate shown that an API server cannot check, and nothing restarts.
//!
//! *Kept* ([`Keep`]) in memory, or in a Secret, so that replicas show the same certificate and a new process goes on with what the last one had.
//!
//! *Not done*: certificates that somebody else makes. Revocation: a key that got known is replaced by deleting the Secret and restarting.

use std::{collections::BTreeSet, fmt, time::Duration};

use jiff::{SignedDuration, Timestamp};

mod keep;
mod make;
mod serving;

pub use keep::{Keep, KeepError};
pub use make::MakeError;
pub use serving::Serving;

/// Three months, as public authorities give them.
const DEFAULT_LIFETIME: Duration = Duration::from_secs(90 * 24 * 3600);
/// A shorter life would be over before every API server knows of it.
const SHORTEST: Duration = Duration::from_secs(10);
/// As long as a certificate authority of kubeadm.
const LONGEST: Duration = Duration::from_secs(10 * 365 * 24 * 3600);
/// API servers see a new registration within seconds; a busy one within minutes.
const LONGEST_LEAD: Duration = Duration::from_secs(10 * 60);
/// Two are usual, three are there when names change. More means that somebody plays.
const MOST_GENERATIONS: usize = 4;

/// How long certificates live.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Terms {
    lifetime: Duration,
}

/// A lifetime that is too short or too long.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("certificates live at least {SHORTEST:?} and at most ten years, not {0:?}")]
pub struct BadLifetime(Duration);

impl Default for Terms {
    fn default() -> Self {
        Self { lifetime: DEFAULT_LIFETIME }
    }
}

impl Terms {
    /// Certificates that live this long.
    pub fn new(lifetime: Duration) -> Result<Self, BadLifetime> {
        match (SHORTEST..=LONGEST).contains(&lifetime) {
            true => Ok(Self { lifetime }),
            false => Err(BadLifetime(lifetime)),
        }
    }

    /// How long an authority is announced before anything that it signed is shown.
    pub fn lead(&self) -> SignedDuration {
        signed((self.lifetime / 12).min(LONGEST_LEAD))
    }

    fn expiry(&self, made: Timestamp) -> Timestamp {
        // Jiff's range ends in the year 9999.
        made.saturating_add(signed(self.lifetime)).unwrap_or(Timestamp::MAX)
    }
}

fn signed(duration: Duration) -> SignedDuration {
    SignedDuration::try_from(duration).unwrap_or(SignedDuration::MAX)
}

/// An authority, and the certificate that it signed. `Debug` does not show the key.
#[derive(Clone, PartialEq, Eq)]
pub struct Generation {
    authority: String,
    certificate: String,
    key: String,
    names: BTreeSet<String>,
    made: Timestamp,
    expires: Timestamp,
}

impl Generation {
    /// A new one for these names and addresses.
    pub fn make(names: &BTreeSet<String>, now: Timestamp, terms: Terms) -> Result<Self, MakeError> {
        // Certificates count in seconds, and so does what is written down.
        let made = Timestamp::from_second(now.as_second()).unwrap_or(now);
        make::generation(names, &format!("webhook-ca-{}", now.as_microsecond()), made, terms.expiry(made))
    }

    /// The authority's certificate, in PEM.
    pub fn authority(&self) -> &str {
        &self.authority
    }

    /// When it ends.
    pub fn expires(&self) -> Timestamp {
        self.expires
    }

    fn covers(&self, names: &BTreeSet<String>) -> bool {
        names.is_subset(&self.names)
    }

    /// When the next one is made: with a third of its life left.
    fn renewal(&self) -> Timestamp {
        let life = self.expires.duration_since(self.made);
        self.expires.saturating_sub(life / 3).unwrap_or(self.expires)
    }
}

impl fmt::Debug for Generation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("Generation");
        shown.field("names", &self.names).field("made", &self.made).field("expires", &self.expires);
        shown.field("key", &"***").finish_non_exhaustive()
    }
}

/// The generations that are good now, the oldest first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ring(Vec<Generation>);

impl Ring {
    /// What the ring should be now, if it should be another one.
    pub fn renewed(&self, names: &BTreeSet<String>, now: Timestamp, terms: Terms) -> Result<Option<Self>, MakeError> {
        let mut generations: Vec<_> = self.0.iter().filter(|one| one.expires > now).cloned().collect();
        let fresh = generations.iter().any(|one| one.covers(names) && one.renewal() > now);
        if !fresh {
            generations.push(Generation::make(names, now, terms)?);
        }
        let surplus = generations.len().saturating_sub(MOST_GENERATIONS);
        generations.drain(..surplus);
        Ok((generations != self.0).then_some(Self(generations)))
    }

    /// Every authority that may be believed, in PEM: the `caBundle`.
    pub fn bundle(&self) -> String {
        self.0.iter().map(Generation::authority).collect()
    }

    /// Which certificate to show: the newest whose authority is `known` to the API servers, else the oldest.
    pub fn shown(
        &self,
        names: &BTreeSet<String>,
        now: Timestamp,
        known: impl Fn(&Generation) -> bool,
    ) -> Option<&Generation> {
        let good = || self.0.iter().filter(|one| one.covers(names) && one.expires > now);
        good().rev().find(|one| known(one)).or_else(|| good().next())
    }

    /// When there is something to do next: a generation to be made, or one that has ended.
    pub fn due(&self, names: &BTreeSet<String>, now: Timestamp) -> Timestamp {
        let renewal = self.0.iter().filter(|one| one.covers(names)).map(Generation::renewal).max();
        let end = self.0.iter().map(Generation::expires).min();
        renewal.into_iter().chain(end).min().unwrap_or(now)
    }

    /// All of them, the oldest first.
    pub fn generations(&self) -> &[Generation] {
        &self.0
    }
}

#[cfg(test)]
mod tests;
