//! Tokens of ServiceAccounts for pods: asked for by TokenRequest, bound to the pod, and renewed in time.
//!
//! *Guarantees.* A token that is handed out is good for at least a fifth of its life, unless the API server does not give a new one.
//! Tokens are kept for as long as their pod, and shown by no `Debug`.

use std::{collections::BTreeMap, fmt, time::Duration};

use jiff::Timestamp;
use k8s_openapi::api::{
    authentication::v1::{BoundObjectReference, TokenRequest, TokenRequestSpec},
    core::v1::{Pod, ServiceAccount},
};
use kube::{Api, Client, ResourceExt, api::PostParams};
use tokio::time::Instant;

use super::downward;
use crate::{
    error::{Error, Result},
    key::Key,
};

/// The part of its life for which a token is used.
const USED: f64 = 0.8;
/// However long a token is good for, it is not used for longer: the kubelet's own rule.
const LONGEST: Duration = Duration::from_secs(24 * 60 * 60);
/// When to ask again for a token that was not given.
const PAUSE: Duration = Duration::from_secs(5);

/// What a pod wants a token for.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Wanted {
    /// Who is to accept it; the API server if nothing is said.
    pub audience: Option<String>,
    /// For how long.
    pub seconds: i64,
}

struct Token {
    text: String,
    renew: Instant,
    expires: Instant,
}

/// The tokens of one pod.
pub struct Tokens {
    api: Api<ServiceAccount>,
    account: Key,
    pod: BoundObjectReference,
    held: BTreeMap<Wanted, Token>,
}

impl fmt::Debug for Tokens {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tokens").field("account", &self.account).field("for", &self.held.keys()).finish_non_exhaustive()
    }
}

impl Tokens {
    /// None yet, for this pod and its ServiceAccount.
    pub fn new(client: Client, pod: &Pod) -> Self {
        let account = Key::new(pod.namespace().unwrap_or_default(), downward::service_account(pod));
        let pod = BoundObjectReference {
            api_version: Some("v1".into()),
            kind: Some("Pod".into()),
            name: Some(pod.name_any()),
            uid: pod.uid(),
        };
        Self { api: Api::namespaced(client, &account.namespace), account, pod, held: BTreeMap::new() }
    }

    /// Whose tokens they are.
    pub fn account(&self) -> &Key {
        &self.account
    }

    /// A token that is good for a while: the one that is there or, if it is old, a new one.
    ///
    /// # Errors
    /// If there is none and the API server gives none, most likely because the ServiceAccount is not there.
    pub async fn get(&mut self, wanted: &Wanted) -> Result<String> {
        let now = Instant::now();
        if let Some(token) = self.held.get(wanted).filter(|token| token.renew > now) {
            return Ok(token.text.clone());
        }
        match self.request(wanted).await {
            Ok(token) => {
                let text = token.text.clone();
                self.held.insert(wanted.clone(), token);
                Ok(text)
            }
            Err(error) => match self.held.get_mut(wanted).filter(|token| token.expires > now) {
                Some(token) => {
                    tracing::warn!(account = %self.account, %error, "a token is not renewed yet; it is tried again");
                    token.renew = now + PAUSE;
                    Ok(token.text.clone())
                }
                None => Err(error),
            },
        }
    }

    /// When the first of them is to be renewed.
    pub fn renewal(&self) -> Option<Instant> {
        self.held.values().map(|token| token.renew).min()
    }

    async fn request(&self, wanted: &Wanted) -> Result<Token> {
        let spec = TokenRequestSpec {
            audiences: wanted.audience.iter().cloned().collect(),
            bound_object_ref: Some(self.pod.clone()),
            expiration_seconds: Some(wanted.seconds),
        };
        let request = TokenRequest { spec, ..TokenRequest::default() };
        let now = Instant::now();
        let answer = self.api.create_token_request(&self.account.name, &PostParams::default(), &request).await?;
        let status = answer.status.ok_or_else(|| Error::Object("the API server answered without a token".into()))?;
        let left = status.expiration_timestamp.0.duration_since(Timestamp::now());
        let life = Duration::try_from(left).unwrap_or_default();
        Ok(Token { text: status.token, renew: now + life.mul_f64(USED).min(LONGEST), expires: now + life })
    }
}
