//! `oauth2client`: access tokens by the OAuth 2.0 client credentials grant.
//!
//! *Guaranteed*: one token request at a time, for all callers. A token is used until `expiry_buffer` before its
//! expiry, and beyond that while no newer one is available. A request goes on when its caller has given up, so
//! that an endpoint that is slower than an exporter's timeout still serves the next attempt. Errors contain
//! neither the secret nor a token.

mod token_fetcher;

#[cfg(test)]
mod tests;

#[cfg(feature = "fuzzing")]
pub(crate) use token_fetcher::read_token;

use std::{sync::Arc, time::Duration};

use arc_swap::ArcSwapOption;
use http::{HeaderValue, header::AUTHORIZATION};
use kubewake_config::model::OAuth2Client;
use tokio::{sync::Mutex, time::Instant};

use super::{AuthError, ClientAuth, Extension, HeadersFuture};
use crate::components::{AuthProviders, BuildError, ExtensionContext};
use token_fetcher::TokenFetcher;

/// After a failure the endpoint is not asked for this long; all waiting callers get the same error.
const FETCH_RETRY_INTERVAL: Duration = Duration::from_secs(1);
/// A destination that rejects a token of this age rejects the next one too: a token request for every batch
/// would only burden the token endpoint.
const MIN_REJECTED_TOKEN_AGE: Duration = Duration::from_secs(10);

pub(crate) fn prepare(settings: &OAuth2Client, _: &ExtensionContext<'_>) -> Result<Box<dyn Extension>, BuildError> {
    Ok(Box::new(settings.clone()))
}

impl Extension for OAuth2Client {
    fn build_auth(&self) -> Result<AuthProviders, BuildError> {
        build(self)
    }
}

/// Builds a client that gets tokens from the configured endpoint. There is no server side.
fn build(settings: &OAuth2Client) -> Result<AuthProviders, BuildError> {
    let client = OAuth2Auth(TokenProvider::new(settings, MIN_REJECTED_TOKEN_AGE)?);
    Ok(AuthProviders { client: Some(Arc::new(client)), server: None })
}

struct OAuth2Auth(Arc<TokenProvider>);

struct TokenProvider {
    fetch: TokenFetcher,
    expiry_buffer: Duration,
    min_age: Duration,
    current: ArcSwapOption<AccessToken>,
    /// Held while a token request is under way; contains the last failure.
    turn: Mutex<Option<(Instant, AuthError)>>,
}

/// A token, as the value of the `authorization` header.
struct AccessToken {
    value: HeaderValue,
    since: Instant,
    /// `None`: the token does not expire.
    expires: Option<Instant>,
}

impl TokenProvider {
    fn new(settings: &OAuth2Client, min_age: Duration) -> Result<Arc<Self>, BuildError> {
        Ok(Arc::new(Self {
            fetch: TokenFetcher::new(settings)?,
            expiry_buffer: settings.expiry_buffer,
            min_age,
            current: ArcSwapOption::empty(),
            turn: Mutex::default(),
        }))
    }

    fn fresh_token(&self) -> Option<HeaderValue> {
        self.usable_token(self.expiry_buffer)
    }

    /// The current token, if it is valid for longer than `left`.
    fn usable_token(&self, left: Duration) -> Option<HeaderValue> {
        let current = self.current.load();
        let token = current.as_ref()?;
        let lives = token.expires.is_none_or(|end| Instant::now() + left < end);
        lives.then(|| token.value.clone())
    }

    async fn renew(self: Arc<Self>) -> Result<HeaderValue, AuthError> {
        let mut failure = self.turn.lock().await;
        // A previous holder of the lock may have fetched a token.
        if let Some(value) = self.fresh_token() {
            return Ok(value);
        }
        let error = match failure.as_ref() {
            Some((when, error)) if when.elapsed() < FETCH_RETRY_INTERVAL => error.clone(),
            _ => match self.fetch.fetch_token().await {
                Ok(token) => {
                    let value = token.value.clone();
                    self.current.store(Some(Arc::new(token)));
                    *failure = None;
                    return Ok(value);
                }
                Err(error) => {
                    *failure = Some((Instant::now(), error.clone()));
                    error
                }
            },
        };
        self.usable_token(Duration::ZERO).ok_or(error)
    }

    fn invalidate(&self) {
        let current = self.current.load();
        if current.as_ref().is_some_and(|token| token.since.elapsed() >= self.min_age) {
            self.current.store(None);
        }
    }
}

impl ClientAuth for OAuth2Auth {
    fn headers(&self) -> HeadersFuture<'_> {
        Box::pin(async {
            let value = match self.0.fresh_token() {
                Some(value) => value,
                None => tokio::spawn(self.0.clone().renew())
                    .await
                    .unwrap_or_else(|_| Err(AuthError("the token request was interrupted".into())))?,
            };
            Ok(vec![(AUTHORIZATION, value)])
        })
    }

    fn invalidate(&self) {
        self.0.invalidate();
    }
}
