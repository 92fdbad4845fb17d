//! `oauth2client`: a token by the client credentials grant.
//!
//! *Guarantees.* One request for a token at a time, whoever asks. A token is used until `expiry_buffer` before its end,
//! and beyond that while no newer one can be had. A request that was begun goes on when the one who asked for it has
//! given up, so that an endpoint that is slower than an exporter's timeout still serves the next attempt. Errors hold
//! neither the secret nor a token.

mod fetch;

#[cfg(test)]
mod tests;

#[cfg(feature = "fuzzing")]
pub(crate) use fetch::read_token;

use std::{sync::Arc, time::Duration};

use arc_swap::ArcSwapOption;
use http::{HeaderValue, header::AUTHORIZATION};
use kubewake_config::model::OAuth2Client;
use tokio::{sync::Mutex, time::Instant};

use super::{AuthError, ClientAuth, HeadersFuture};
use crate::components::{Auth, BuildError};
use fetch::Fetch;

/// An endpoint that fails is left alone this long, and all who wait hear the same error.
const PAUSE: Duration = Duration::from_secs(1);
/// A destination that refuses a token of this age refuses the next one too: asking again for every batch would only
/// burden the token endpoint.
const MIN_AGE: Duration = Duration::from_secs(10);

/// Gets tokens from the endpoint of the settings; there is nothing in it for a server.
pub(crate) fn build(settings: &OAuth2Client) -> Result<Auth, BuildError> {
    let client = OAuth2(Tokens::new(settings, MIN_AGE)?);
    Ok(Auth { client: Some(Arc::new(client)), server: None })
}

struct OAuth2(Arc<Tokens>);

struct Tokens {
    fetch: Fetch,
    expiry_buffer: Duration,
    min_age: Duration,
    current: ArcSwapOption<Token>,
    /// Held while a request is under way; what it holds is the last failure.
    turn: Mutex<Option<(Instant, AuthError)>>,
}

/// A token, as the header that carries it.
struct Token {
    value: HeaderValue,
    since: Instant,
    /// `None`: it does not expire.
    expires: Option<Instant>,
}

impl Tokens {
    fn new(settings: &OAuth2Client, min_age: Duration) -> Result<Arc<Self>, BuildError> {
        Ok(Arc::new(Self {
            fetch: Fetch::new(settings)?,
            expiry_buffer: settings.expiry_buffer,
            min_age,
            current: ArcSwapOption::empty(),
            turn: Mutex::default(),
        }))
    }

    fn fresh(&self) -> Option<HeaderValue> {
        self.usable(self.expiry_buffer)
    }

    /// The token in hand, if it lives longer than `left`.
    fn usable(&self, left: Duration) -> Option<HeaderValue> {
        let current = self.current.load();
        let token = current.as_ref()?;
        let lives = token.expires.is_none_or(|end| Instant::now() + left < end);
        lives.then(|| token.value.clone())
    }

    async fn renew(self: Arc<Self>) -> Result<HeaderValue, AuthError> {
        let mut failure = self.turn.lock().await;
        // Whoever had the turn before may have done the work.
        if let Some(value) = self.fresh() {
            return Ok(value);
        }
        let error = match failure.as_ref() {
            Some((when, error)) if when.elapsed() < PAUSE => error.clone(),
            _ => match self.fetch.token().await {
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
        self.usable(Duration::ZERO).ok_or(error)
    }

    fn forget(&self) {
        let current = self.current.load();
        if current.as_ref().is_some_and(|token| token.since.elapsed() >= self.min_age) {
            self.current.store(None);
        }
    }
}

impl ClientAuth for OAuth2 {
    fn headers(&self) -> HeadersFuture<'_> {
        Box::pin(async {
            let value = match self.0.fresh() {
                Some(value) => value,
                None => tokio::spawn(self.0.clone().renew())
                    .await
                    .unwrap_or_else(|_| Err(AuthError("the request for a token was cut short".into())))?,
            };
            Ok(vec![(AUTHORIZATION, value)])
        })
    }

    fn rejected(&self) {
        self.0.forget();
    }
}
