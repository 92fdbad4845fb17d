//! The store of a webhook's certificates.
//!
//! A Secret is changed only at the revision that was read: of replicas that renew at the same time one wins,
//! and the others use its ring. Only one entry of the Secret is ours; all others stay.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use k8s_openapi::{ByteString, api::core::v1::Secret};
use kube::{Api, api::PostParams};
use serde::{Deserialize, Serialize};

use super::{CertificateGeneration, CertificateIssueError, CertificateRing, CertificateTerms, MAX_GENERATIONS};

/// The entry of the Secret.
const SECRET_KEY: &str = "webhook-certificates.json";
/// The version of the stored format. Other versions are not read, but replaced.
const FORMAT_VERSION: u32 = 1;
/// An attempt fails only if another writer changed the Secret at that moment.
const MAX_WRITE_ATTEMPTS: u32 = 8;
/// One name for each way to reach a webhook.
const MAX_NAMES: usize = 64;

/// The place where certificates are stored.
#[derive(Clone, Debug)]
pub enum CertificateStore {
    /// In this process only, and lost with it.
    Memory,
    /// In a Secret that all replicas share.
    Secret {
        /// The API of the Secret's namespace.
        api: Box<Api<Secret>>,
        /// The name of the Secret.
        name: String,
    },
}

/// The reason why certificates could not be stored. The error contains nothing of the Secret's data.
#[derive(Debug, thiserror::Error)]
pub enum CertificateStoreError {
    /// No certificate could be issued.
    #[error(transparent)]
    Issue(#[from] CertificateIssueError),
    /// The Secret cannot be read.
    #[error("failed to read Secret {name}")]
    Read {
        /// The name of the Secret.
        name: String,
        /// The error of the API server.
        source: Box<kube::Error>,
    },
    /// The Secret cannot be written.
    #[error("failed to write Secret {name}")]
    Write {
        /// The name of the Secret.
        name: String,
        /// The error of the API server.
        source: Box<kube::Error>,
    },
    /// Other writers changed the Secret before every attempt.
    #[error("too many write conflicts on Secret {name}, giving up after {MAX_WRITE_ATTEMPTS} attempts")]
    Busy {
        /// The name of the Secret.
        name: String,
    },
}

impl CertificateStore {
    /// Loads the stored ring and renews what is due. `held` is the ring of this process; it is written where
    /// nothing is stored.
    pub async fn load_or_renew(
        &self,
        held: &CertificateRing,
        names: &BTreeSet<String>,
        now: Timestamp,
        terms: CertificateTerms,
    ) -> Result<CertificateRing, CertificateStoreError> {
        let Self::Secret { api, name } = self else {
            return Ok(held.renew_if_due(names, now, terms)?.unwrap_or_else(|| held.clone()));
        };
        for _ in 0..MAX_WRITE_ATTEMPTS {
            let source = |source| CertificateStoreError::Read { name: name.clone(), source: Box::new(source) };
            let secret = api.get_opt(name).await.map_err(source)?;
            let kept = secret.as_ref().and_then(read_ring);
            let renewed = kept.as_ref().unwrap_or(held).renew_if_due(names, now, terms)?;
            let ring = match (kept, renewed) {
                (Some(kept), None) => return Ok(kept),
                (_, Some(ring)) => ring,
                (None, None) => held.clone(),
            };
            if write_ring(api, name, secret, &ring).await? {
                return Ok(ring);
            }
        }
        Err(CertificateStoreError::Busy { name: name.clone() })
    }
}

/// Writes the ring. Returns false if another writer was faster.
async fn write_ring(
    api: &Api<Secret>,
    name: &str,
    secret: Option<Secret>,
    ring: &CertificateRing,
) -> Result<bool, CertificateStoreError> {
    let exists = secret.is_some();
    let mut secret = secret.unwrap_or_default();
    secret.metadata.name = Some(name.to_owned());
    secret
        .data
        .get_or_insert_default()
        .insert(SECRET_KEY.to_owned(), ByteString(StoredRing::from_ring(ring).to_json_bytes()));
    let params = PostParams::default();
    let written = if exists { api.replace(name, &params, &secret).await } else { api.create(&params, &secret).await };
    match written {
        Ok(_) => Ok(true),
        // 404: the Secret was deleted since it was read.
        Err(kube::Error::Api(status)) if matches!(status.code, 404 | 409) && (exists || status.code == 409) => {
            Ok(false)
        }
        Err(source) => Err(CertificateStoreError::Write { name: name.to_owned(), source: Box::new(source) }),
    }
}

/// The format of the Secret's entry.
#[derive(Deserialize, Serialize)]
struct StoredRing {
    version: u32,
    generations: Vec<StoredGeneration>,
}

#[derive(Deserialize, Serialize)]
struct StoredGeneration {
    authority: String,
    certificate: String,
    key: String,
    names: BTreeSet<String>,
    /// Unix time in seconds.
    made: i64,
    expires: i64,
}

impl StoredRing {
    fn from_ring(ring: &CertificateRing) -> Self {
        let generations = ring.generations().iter().map(|one| StoredGeneration {
            authority: one.authority.clone(),
            certificate: one.certificate.clone(),
            key: one.key.clone(),
            names: one.names.clone(),
            made: one.issued_at.as_second(),
            expires: one.expires_at.as_second(),
        });
        Self { version: FORMAT_VERSION, generations: generations.collect() }
    }

    fn to_json_bytes(&self) -> Vec<u8> {
        // Strings and numbers always serialize.
        serde_json::to_vec(self).unwrap_or_default()
    }
}

/// Reads the ring from the Secret. An invalid one is issued anew: a webhook must not wait for a manual repair.
fn read_ring(secret: &Secret) -> Option<CertificateRing> {
    let entry = secret.data.as_ref().and_then(|data: &BTreeMap<_, _>| data.get(SECRET_KEY))?;
    let stored: Option<StoredRing> = serde_json::from_slice(&entry.0).ok();
    let ring = stored.filter(|stored| stored.version == FORMAT_VERSION).and_then(|stored| {
        let generations = stored.generations.into_iter().map(into_generation).collect::<Option<Vec<_>>>()?;
        (generations.len() <= MAX_GENERATIONS).then_some(CertificateRing(generations))
    });
    if ring.is_none() {
        let namespace = secret.metadata.namespace.as_deref();
        let name = secret.metadata.name.as_deref();
        tracing::warn!(kind = "Secret", namespace, name, "the stored certificates are invalid, issuing new ones");
    }
    ring
}

fn into_generation(stored: StoredGeneration) -> Option<CertificateGeneration> {
    let StoredGeneration { authority, certificate, key, names, made, expires } = stored;
    let made = Timestamp::from_second(made).ok()?;
    let expires = Timestamp::from_second(expires).ok()?;
    let one = CertificateGeneration { authority, certificate, key, names, issued_at: made, expires_at: expires };
    (one.names.len() <= MAX_NAMES && made < expires && one.is_usable()).then_some(one)
}

#[cfg(test)]
mod tests;
