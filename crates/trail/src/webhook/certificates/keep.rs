//! Where certificates are kept.
//!
//! A Secret is changed only at the revision that was read: of replicas that renew at the same moment one wins, and the others take what it wrote. Of the
//! Secret only one entry is ours; whatever else is in it stays.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use k8s_openapi::{ByteString, api::core::v1::Secret};
use kube::{Api, api::PostParams};
use serde::{Deserialize, Serialize};

use super::{Generation, MOST_GENERATIONS, MakeError, Ring, Terms};

/// The entry of the Secret.
const ENTRY: &str = "webhook-certificates.json";
/// Of what is written there. Another version is not read, and replaced.
const VERSION: u32 = 1;
/// Each try loses only against somebody who has changed the Secret in this moment.
const TRIES: u32 = 8;
/// A name for each way to reach a webhook.
const MOST_NAMES: usize = 64;

/// Where certificates are kept.
#[derive(Clone, Debug)]
pub enum Keep {
    /// In this process alone, and gone with it.
    Memory,
    /// In a Secret, for all replicas.
    Secret {
        /// Of its namespace.
        api: Box<Api<Secret>>,
        /// Its name.
        name: String,
    },
}

/// Why certificates could not be kept. Says nothing of what is in the Secret.
#[derive(Debug, thiserror::Error)]
pub enum KeepError {
    /// There are none.
    #[error(transparent)]
    Make(#[from] MakeError),
    /// It cannot be read.
    #[error("cannot read Secret {name}")]
    Read {
        /// Of the Secret.
        name: String,
        /// What the API server says.
        source: Box<kube::Error>,
    },
    /// It cannot be written.
    #[error("cannot write Secret {name}")]
    Write {
        /// Of the Secret.
        name: String,
        /// What the API server says.
        source: Box<kube::Error>,
    },
    /// Others are always faster.
    #[error("Secret {name} was changed by somebody else {TRIES} times in a row")]
    Busy {
        /// Of the Secret.
        name: String,
    },
}

impl Keep {
    /// The ring of now: what is kept, with what is due made anew. `held` is what this process has, which is written down where nothing is kept.
    pub async fn renewed(
        &self,
        held: &Ring,
        names: &BTreeSet<String>,
        now: Timestamp,
        terms: Terms,
    ) -> Result<Ring, KeepError> {
        let Self::Secret { api, name } = self else {
            return Ok(held.renewed(names, now, terms)?.unwrap_or_else(|| held.clone()));
        };
        for _ in 0..TRIES {
            let source = |source| KeepError::Read { name: name.clone(), source: Box::new(source) };
            let secret = api.get_opt(name).await.map_err(source)?;
            let kept = secret.as_ref().and_then(read);
            let renewed = kept.as_ref().unwrap_or(held).renewed(names, now, terms)?;
            let ring = match (kept, renewed) {
                (Some(kept), None) => return Ok(kept),
                (_, Some(ring)) => ring,
                (None, None) => held.clone(),
            };
            if write(api, name, secret, &ring).await? {
                return Ok(ring);
            }
        }
        Err(KeepError::Busy { name: name.clone() })
    }
}

/// Writes the ring. False if somebody else was faster.
async fn write(api: &Api<Secret>, name: &str, secret: Option<Secret>, ring: &Ring) -> Result<bool, KeepError> {
    let (exists, mut secret) = (secret.is_some(), secret.unwrap_or_default());
    secret.metadata.name = Some(name.to_owned());
    secret.data.get_or_insert_default().insert(ENTRY.to_owned(), ByteString(Stored::of(ring).bytes()));
    let params = PostParams::default();
    let written = match exists {
        true => api.replace(name, &params, &secret).await,
        false => api.create(&params, &secret).await,
    };
    match written {
        Ok(_) => Ok(true),
        // 404: it was there a moment ago.
        Err(kube::Error::Api(status)) if matches!(status.code, 404 | 409) && (exists || status.code == 409) => {
            Ok(false)
        }
        Err(source) => Err(KeepError::Write { name: name.to_owned(), source: Box::new(source) }),
    }
}

/// What is written in the Secret.
#[derive(Deserialize, Serialize)]
struct Stored {
    version: u32,
    generations: Vec<StoredGeneration>,
}

#[derive(Deserialize, Serialize)]
struct StoredGeneration {
    authority: String,
    certificate: String,
    key: String,
    names: BTreeSet<String>,
    /// Seconds since 1970.
    made: i64,
    expires: i64,
}

impl Stored {
    fn of(ring: &Ring) -> Self {
        let generations = ring.generations().iter().map(|one| StoredGeneration {
            authority: one.authority.clone(),
            certificate: one.certificate.clone(),
            key: one.key.clone(),
            names: one.names.clone(),
            made: one.made.as_second(),
            expires: one.expires.as_second(),
        });
        Self { version: VERSION, generations: generations.collect() }
    }

    fn bytes(&self) -> Vec<u8> {
        // Strings and numbers can always be written.
        serde_json::to_vec(self).unwrap_or_default()
    }
}

/// What the Secret holds, if it makes sense. What does not is made anew: a webhook that waits for a person to mend it is of no use.
fn read(secret: &Secret) -> Option<Ring> {
    let entry = secret.data.as_ref().and_then(|data: &BTreeMap<_, _>| data.get(ENTRY))?;
    let stored: Option<Stored> = serde_json::from_slice(&entry.0).ok();
    let ring = stored.filter(|stored| stored.version == VERSION).and_then(|stored| {
        let generations = stored.generations.into_iter().map(generation).collect::<Option<Vec<_>>>()?;
        (generations.len() <= MOST_GENERATIONS).then_some(Ring(generations))
    });
    if ring.is_none() {
        let (namespace, name) = (secret.metadata.namespace.as_deref(), secret.metadata.name.as_deref());
        tracing::warn!(kind = "Secret", namespace, name, "the certificates in it make no sense and are made anew");
    }
    ring
}

fn generation(stored: StoredGeneration) -> Option<Generation> {
    let StoredGeneration { authority, certificate, key, names, made, expires } = stored;
    let (made, expires) = (Timestamp::from_second(made).ok()?, Timestamp::from_second(expires).ok()?);
    let one = Generation { authority, certificate, key, names, made, expires };
    (one.names.len() <= MOST_NAMES && made < expires && one.is_usable()).then_some(one)
}

#[cfg(test)]
mod tests;
