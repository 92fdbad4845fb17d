//! ServiceAccount tokens of pods: requested with TokenRequest, bound to the pod, and renewed in time.
//!
//! *Guaranteed*: a returned token is valid for at least a fifth of its lifetime, unless the API server issues
//! no new one. Tokens are kept as long as their pod, and no `Debug` output shows them.

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
    error::{ClusterError, Result},
    key::NamespacedKey,
};

/// The part of its lifetime after which a token is renewed.
const RENEW_AFTER_FRACTION: f64 = 0.8;
/// The longest use of a token, whatever its lifetime: the kubelet's rule.
const MAX_TOKEN_AGE: Duration = Duration::from_secs(24 * 60 * 60);
/// The retry delay after a failed request.
const REQUEST_RETRY_DELAY: Duration = Duration::from_secs(5);

/// The audience and lifetime of a token.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct TokenSpec {
    /// The audience; none means the API server.
    pub audience: Option<String>,
    pub seconds: i64,
}

struct ServiceAccountToken {
    text: String,
    renew: Instant,
    expires: Instant,
}

/// The tokens of one pod.
pub struct TokenManager {
    api: Api<ServiceAccount>,
    account: NamespacedKey,
    pod: BoundObjectReference,
    held: BTreeMap<TokenSpec, ServiceAccountToken>,
}

impl fmt::Debug for TokenManager {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tokens").field("account", &self.account).field("for", &self.held.keys()).finish_non_exhaustive()
    }
}

impl TokenManager {
    /// Creates a manager without tokens for this pod and its ServiceAccount.
    pub fn new(client: Client, pod: &Pod) -> Self {
        let account = NamespacedKey::new(pod.namespace().unwrap_or_default(), downward::service_account(pod));
        let pod = BoundObjectReference {
            api_version: Some("v1".into()),
            kind: Some("Pod".into()),
            name: Some(pod.name_any()),
            uid: pod.uid(),
        };
        Self { api: Api::namespaced(client, &account.namespace), account, pod, held: BTreeMap::new() }
    }

    pub fn account(&self) -> &NamespacedKey {
        &self.account
    }

    /// A valid token: the current one or, if it is old, a new one.
    ///
    /// # Errors
    /// If there is no token and the API server issues none, most likely because the ServiceAccount does not
    /// exist.
    pub async fn get_token(&mut self, wanted: &TokenSpec) -> Result<String> {
        let now = Instant::now();
        if let Some(token) = self.held.get(wanted).filter(|token| token.renew > now) {
            return Ok(token.text.clone());
        }
        match self.request_token(wanted).await {
            Ok(token) => {
                let text = token.text.clone();
                self.held.insert(wanted.clone(), token);
                Ok(text)
            }
            Err(error) => match self.held.get_mut(wanted).filter(|token| token.expires > now) {
                Some(token) => {
                    tracing::warn!(account = %self.account, %error, "failed to renew a token, retrying");
                    token.renew = now + REQUEST_RETRY_DELAY;
                    Ok(token.text.clone())
                }
                None => Err(error),
            },
        }
    }

    /// The time of the next renewal.
    pub fn next_renewal(&self) -> Option<Instant> {
        self.held.values().map(|token| token.renew).min()
    }

    async fn request_token(&self, wanted: &TokenSpec) -> Result<ServiceAccountToken> {
        let spec = TokenRequestSpec {
            audiences: wanted.audience.iter().cloned().collect(),
            bound_object_ref: Some(self.pod.clone()),
            expiration_seconds: Some(wanted.seconds),
        };
        let request = TokenRequest { spec, ..TokenRequest::default() };
        let now = Instant::now();
        let answer = self.api.create_token_request(&self.account.name, &PostParams::default(), &request).await?;
        let status = answer
            .status
            .ok_or_else(|| ClusterError::Object("the response of the API server contains no token".into()))?;
        let left = status.expiration_timestamp.0.duration_since(Timestamp::now());
        let life = Duration::try_from(left).unwrap_or_default();
        Ok(ServiceAccountToken {
            text: status.token,
            renew: now + life.mul_f64(RENEW_AFTER_FRACTION).min(MAX_TOKEN_AGE),
            expires: now + life,
        })
    }
}
