//! The authentication and authorization of one server: [`crate::auth`] on top of the store.

use std::{path::Path, sync::Arc};

use jiff::Timestamp;
use serde_json::Value;

use crate::{
    api::ObjectKey,
    auth::{
        AnonymousAccess, Authorizer, ObjectGetter, RbacAuthorizer, ServiceAccountTokens, UnionAuthenticator,
        UnionAuthorizer,
        object_getter::ObjectIdentity,
        static_tokens::{self, StaticTokens},
        tokens::{TokenSettings, keys},
        webhook::{self, WebhookClient, authenticator::WebhookTokenAuthenticator, authorizer::WebhookAuthorizer},
    },
    store::ObjectStore,
};

/// Authentication and authorization of a server.
pub struct AccessControl {
    pub authentication: UnionAuthenticator,
    pub authorizers: UnionAuthorizer,
    /// Roles and bindings. A controller keeps them up to date.
    pub rbac: Arc<RbacAuthorizer>,
    pub tokens: Arc<ServiceAccountTokens>,
}

/// Why [`AccessControl`] cannot be set up.
#[derive(Debug, thiserror::Error)]
pub enum AccessError {
    #[error("failed to load static tokens")]
    Tokens(#[from] static_tokens::TokenFileError),
    #[error("failed to load the key that signs tokens")]
    Key(#[from] keys::KeyError),
    #[error("failed to configure the webhook")]
    Webhook(#[from] webhook::WebhookConfigError),
}

/// The files that [`AccessControl`] reads.
#[derive(Clone, Copy, Debug, Default)]
pub struct AuthFiles<'a> {
    pub tokens: Option<&'a Path>,
    pub token_webhook: Option<&'a Path>,
    pub access_webhook: Option<&'a Path>,
    /// The key that signs ServiceAccount tokens. A missing file is created; without a path the key is in memory
    /// only.
    pub signing_key: Option<&'a Path>,
}

impl AccessControl {
    pub fn new(store: &ObjectStore, files: AuthFiles<'_>, anonymous: bool) -> Result<Self, AccessError> {
        let key = match files.signing_key {
            Some(path) => keys::SigningKey::load_or_generate(path)?,
            None => keys::SigningKey::generate()?,
        };
        let objects = Arc::new(StoredObjects(store.clone()));
        let tokens =
            Arc::new(ServiceAccountTokens::new(TokenSettings::default(), key, objects, Arc::new(Timestamp::now)));
        let mut authentication = UnionAuthenticator::default();
        if anonymous {
            authentication.anonymous = AnonymousAccess::On;
        }
        if let Some(path) = files.tokens {
            let known = StaticTokens::load(path, Arc::clone(tokens.audiences()))?;
            authentication.tokens.push(Arc::new(known));
        }
        authentication.tokens.push(Arc::clone(&tokens) as Arc<_>);
        if let Some(path) = files.token_webhook {
            let webhook = WebhookTokenAuthenticator::new(WebhookClient::load(path)?, Arc::clone(tokens.audiences()));
            authentication.tokens.push(Arc::new(webhook));
        }
        let rbac = Arc::new(RbacAuthorizer::default());
        let mut authorizers: Vec<Arc<dyn Authorizer>> = vec![Arc::clone(&rbac) as Arc<_>];
        if let Some(path) = files.access_webhook {
            authorizers.push(Arc::new(WebhookAuthorizer::new(WebhookClient::load(path)?)));
        }
        let authorizers = UnionAuthorizer::new(authorizers);
        Ok(Self { authentication, authorizers, rbac, tokens })
    }
}

impl std::fmt::Debug for AccessControl {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Access").finish_non_exhaustive()
    }
}

struct StoredObjects(ObjectStore);

impl ObjectGetter for StoredObjects {
    fn get(&self, key: &ObjectKey) -> Option<Value> {
        self.0.get(key).map(|stored| stored.value())
    }

    fn identity(&self, key: &ObjectKey) -> Option<ObjectIdentity> {
        let stored = self.0.get(key)?;
        let deleted = if stored.deleting { deletion_timestamp(&stored.value()) } else { None };
        Some(ObjectIdentity { uid: stored.uid.to_string(), deleted })
    }
}

fn deletion_timestamp(object: &Value) -> Option<Timestamp> {
    object.pointer("/metadata/deletionTimestamp")?.as_str()?.parse().ok()
}
