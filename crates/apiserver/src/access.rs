//! Who is who and who may what on this server: [`crate::auth`] put together over the store.

use std::{path::Path, sync::Arc};

use jiff::Timestamp;
use serde_json::Value;

use crate::{
    api::ObjectKey,
    auth::{
        Anonymous, Authentication, Authorizer, Authorizers, Objects, Rbac, ServiceAccountTokens,
        objects::ObjectIdentity,
        static_tokens::{self, StaticTokens},
        tokens::{Settings, keys},
        webhook::{self, Webhook, access::AccessWebhook, tokens::TokenWebhook},
    },
    store::Store,
};

/// Authentication and authorization of a server.
pub struct Access {
    /// Who is asking.
    pub authentication: Authentication,
    /// What they may do.
    pub authorizers: Authorizers,
    /// Roles and bindings, kept up to date by a controller.
    pub rbac: Arc<Rbac>,
    /// Tokens of ServiceAccounts.
    pub tokens: Arc<ServiceAccountTokens>,
}

/// Why it cannot be put together.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say it")]
pub enum Error {
    #[error("the tokens cannot be read")]
    Tokens(#[from] static_tokens::Error),
    #[error("there is no key to sign tokens with")]
    Key(#[from] keys::Error),
    #[error("the webhook cannot be used")]
    Webhook(#[from] webhook::Error),
}

/// Where things are that it reads.
#[derive(Clone, Copy, Debug, Default)]
pub struct Files<'a> {
    /// `--token-auth-file`
    pub tokens: Option<&'a Path>,
    /// `--authentication-token-webhook-config-file`
    pub token_webhook: Option<&'a Path>,
    /// `--authorization-webhook-config-file`
    pub access_webhook: Option<&'a Path>,
    /// The key that signs tokens of ServiceAccounts; made if it is not there, in memory if there is no path.
    pub signing_key: Option<&'a Path>,
}

impl Access {
    /// Puts it together.
    pub fn new(store: &Store, files: Files<'_>, anonymous: bool) -> Result<Self, Error> {
        let key = match files.signing_key {
            Some(path) => keys::SigningKey::in_file(path)?,
            None => keys::SigningKey::generate()?,
        };
        let objects = Arc::new(StoredObjects(store.clone()));
        let tokens = Arc::new(ServiceAccountTokens::new(Settings::default(), key, objects, Arc::new(Timestamp::now)));
        let mut authentication = Authentication::default();
        if anonymous {
            authentication.anonymous = Anonymous::On;
        }
        if let Some(path) = files.tokens {
            let known = StaticTokens::load(path, Arc::clone(tokens.audiences()))?;
            authentication.tokens.push(Arc::new(known));
        }
        authentication.tokens.push(Arc::clone(&tokens) as Arc<_>);
        if let Some(path) = files.token_webhook {
            let webhook = TokenWebhook::new(Webhook::load(path)?, Arc::clone(tokens.audiences()));
            authentication.tokens.push(Arc::new(webhook));
        }
        let rbac = Arc::new(Rbac::default());
        let mut authorizers: Vec<Arc<dyn Authorizer>> = vec![Arc::clone(&rbac) as Arc<_>];
        if let Some(path) = files.access_webhook {
            authorizers.push(Arc::new(AccessWebhook::new(Webhook::load(path)?)));
        }
        let authorizers = Authorizers::new(authorizers);
        Ok(Self { authentication, authorizers, rbac, tokens })
    }
}

impl std::fmt::Debug for Access {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Access").finish_non_exhaustive()
    }
}

struct StoredObjects(Store);

impl Objects for StoredObjects {
    fn get(&self, key: &ObjectKey) -> Option<Value> {
        self.0.get(key).map(|stored| stored.value())
    }

    fn identity(&self, key: &ObjectKey) -> Option<ObjectIdentity> {
        let stored = self.0.get(key)?;
        let deleted = if stored.deleting { deletion(&stored.value()) } else { None };
        Some(ObjectIdentity { uid: stored.uid.to_string(), deleted })
    }
}

fn deletion(object: &Value) -> Option<Timestamp> {
    object.pointer("/metadata/deletionTimestamp")?.as_str()?.parse().ok()
}
