//! Who of several operators works: the one that holds the Lease.
//!
//! Each looks at the Lease now and then. One that is free, or has not been renewed for its term, is taken by a write at the revision that was read, of which the API server lets one
//! through. Its holder renews it in the same way.
//!
//! *Guaranteed*: one leads at a time. A leader leads from the answer to its write, for four fifths of the term since it sent that write, whether the API server answers then or not; it stops
//! at once when it sees another one in the Lease. All others count the whole term, from when they saw the write. A Lease that was given back or deleted is taken at the next look.
//! *Assumed*: the API server refuses a write at a revision that is not the newest; clocks run at the same speed, as far as a fifth of the term; nobody else writes or deletes the Lease: if somebody does,
//! its holder notices when it renews it, and another one may lead until then.
//! *Not done*: a process that was stopped for longer than the term, or on a machine that slept, may send what it was about to send when it wakes up. That does no harm: locks and documents are safe
//! with two that work at once. The Lease keeps them from doing everything twice.

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::{coordination::v1::Lease, core::v1::Namespace};
use kube::{
    Api, Client,
    api::{ObjectMeta, PostParams},
};
use kubewake_trail::in_words;
use tokio::time::{Instant, sleep, sleep_until, timeout, timeout_at};

use self::rule::{Seen, Step, decide, freed};
use crate::names;

mod rule;
#[cfg(test)]
mod tests;

/// How long it may take to give the Lease back. Without that another one waits until it expires, which is no harm.
const FAREWELL: Duration = Duration::from_secs(3);

/// How often who waits looks at the Lease, unless the term is short.
const LOOK: Duration = Duration::from_secs(2);

/// How long an answer may take, unless the term is short. A connection that is dead is given up then.
const ANSWER: Duration = Duration::from_secs(10);

/// How the Lease is held.
#[derive(Clone, Debug)]
pub struct Terms {
    /// Who this is. Nobody else may have the same name at the same time.
    pub identity: String,
    /// After so many seconds without a word another one takes over.
    pub seconds: u64,
}

impl Terms {
    fn term(&self) -> Duration {
        Duration::from_secs(self.seconds.max(1))
    }

    /// When the Lease is renewed, so that there is time to try again.
    fn renewal(&self) -> Duration {
        self.term() / 3
    }

    /// How long a leader leads without an answer. What is left of the term is for clocks that differ, and to stop.
    fn limit(&self) -> Duration {
        self.term() * 4 / 5
    }

    /// Until the next attempt; never the same, so that several do not keep meeting.
    fn pause(&self) -> Duration {
        LOOK.min(self.term() / 6).mul_f64(0.75 + fastrand::f64() / 2.0)
    }

    /// How long an answer is waited for.
    fn patience(&self) -> Duration {
        ANSWER.min(self.renewal())
    }
}

/// Why an attempt came to nothing.
#[derive(Debug, thiserror::Error)]
enum Error {
    #[error(transparent)]
    Api(#[from] kube::Error),
    #[error("the API server does not answer")]
    Silence,
    /// There is another Lease than the one that was read.
    #[error("somebody else was faster")]
    Race,
}

/// Stands for election. It asks for the Lease while somebody waits for it to be elected, and renews it while somebody waits for it to be deposed.
#[derive(Debug)]
pub struct Candidate {
    leases: Api<Lease>,
    namespaces: Api<Namespace>,
    terms: Terms,
    seen: Seen,
    /// The Lease as it was written by this one, unless somebody wrote it since.
    own: Option<Lease>,
    /// When the last renewal was sent that was answered.
    held: Option<Instant>,
    /// Whether the Lease may have this one's name in it.
    is_in_doubt: bool,
    /// Whether any attempt ever worked.
    is_let: bool,
    /// What was said last, so that it is said once.
    trouble: Option<String>,
}

impl Candidate {
    /// For the Lease in this namespace, which is made if it is not there.
    pub fn new(client: &Client, namespace: &str, terms: &Terms) -> Self {
        Self {
            leases: Api::namespaced(client.clone(), namespace),
            namespaces: Api::all(client.clone()),
            terms: terms.clone(),
            seen: Seen::default(),
            own: None,
            held: None,
            is_in_doubt: false,
            is_let: false,
            trouble: None,
        }
    }

    /// Waits until it leads, however long the API server cannot be reached.
    ///
    /// # Errors
    /// If the API server says, before anything has worked, that it may not have the Lease.
    pub async fn elected(&mut self) -> Result<(), kube::Error> {
        loop {
            match self.ask().await {
                Ok(Some(sent)) => {
                    self.held = Some(sent);
                    return Ok(());
                }
                Ok(None) => {}
                Err(Error::Api(error)) if !self.is_let && code(&error) == Some(403) => return Err(error),
                Err(error) => self.tell(&error, "this operator cannot stand for election"),
            }
            sleep(self.terms.pause()).await;
        }
    }

    /// Waits until it does not lead any more, or does not know.
    pub async fn deposed(&mut self) {
        while let Some(sent) = self.held {
            match timeout_at(sent + self.terms.limit(), self.renewed(sent)).await {
                Ok(Some(sent)) => self.held = Some(sent),
                Ok(None) => {
                    tracing::warn!("another operator has taken the Lease");
                    self.held = None;
                }
                Err(_) => {
                    tracing::error!("the Lease could not be renewed in time, and another operator may take it");
                    self.held = None;
                }
            }
        }
    }

    /// Gives the Lease back, so that another one takes over at once; as far as the API server answers soon.
    pub async fn resign(self) {
        match timeout(FAREWELL, self.release()).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::warn!(error = in_words(&error), "the Lease is not given back"),
            Err(_) => tracing::warn!("the Lease is not given back: the API server does not answer"),
        }
    }

    /// Renews the Lease when it is time. Says when that was sent; nothing, if another one holds it.
    async fn renewed(&mut self, sent: Instant) -> Option<Instant> {
        sleep_until(sent + self.terms.renewal()).await;
        loop {
            match self.ask().await {
                Ok(asked) => return asked,
                Err(error) => self.tell(&error, "the Lease is not renewed"),
            }
            sleep(self.terms.pause()).await;
        }
    }

    /// Takes or renews the Lease. Says when that was sent; nothing, if another one holds it.
    async fn ask(&mut self) -> Result<Option<Instant>, Error> {
        let is_known = self.own.is_some();
        let mut asked = self.attempt().await;
        if is_known && matches!(asked, Err(Error::Race)) {
            // Somebody wrote it, and not necessarily the name in it.
            asked = self.attempt().await;
        }
        if asked.is_ok() {
            (self.is_let, self.trouble) = (true, None);
        }
        asked
    }

    async fn attempt(&mut self) -> Result<Option<Instant>, Error> {
        let lease = match self.own.take() {
            Some(own) => Some(own),
            None => self.answer(self.leases.get_opt(names::LEASE)).await?,
        };
        let unchanged = self.seen.look(lease.as_ref(), Instant::now());
        let step = decide(lease, &self.terms, unchanged, Timestamp::now());
        self.is_in_doubt = step != Step::Wait;
        let sent = Instant::now();
        let written = match step {
            Step::Wait => return Ok(None),
            Step::Create(lease) => self.create(&lease).await,
            Step::Write(lease) => {
                let written = self.answer(self.leases.replace(names::LEASE, &by_us(), &lease)).await;
                written.map_err(|error| race(error, &[404, 409]))
            }
        };
        self.own = Some(written?);
        Ok(Some(sent))
    }

    /// Makes the Lease, and the namespace before it if that is not there.
    async fn create(&self, lease: &Lease) -> Result<Lease, Error> {
        let by_us = by_us();
        let mut made = self.answer(self.leases.create(&by_us, lease)).await;
        if matches!(&made, Err(Error::Api(error)) if code(error) == Some(404)) {
            self.make_namespace().await;
            made = self.answer(self.leases.create(&by_us, lease)).await;
        }
        made.map_err(|error| race(error, &[409]))
    }

    /// On somebody's own machine nobody else would. Where it may not be made, it is there.
    async fn make_namespace(&self) {
        let name = self.leases.namespace();
        let metadata = ObjectMeta { name: name.map(str::to_owned), ..ObjectMeta::default() };
        let namespace = Namespace { metadata, ..Namespace::default() };
        if let Err(error) = self.answer(self.namespaces.create(&PostParams::default(), &namespace)).await {
            tracing::debug!(kind = "Namespace", name, %error, "it is not made");
        }
    }

    async fn release(&self) -> Result<(), kube::Error> {
        // Who only ever waited need not ask.
        if !self.is_in_doubt {
            return Ok(());
        }
        loop {
            let lease = self.leases.get_opt(names::LEASE).await?;
            let freed = lease.and_then(|lease| freed(lease, &self.terms.identity, Timestamp::now()));
            let Some(freed) = freed else { return Ok(()) };
            match self.leases.replace(names::LEASE, &by_us(), &freed).await {
                Err(error) if matches!(code(&error), Some(404 | 409)) => {}
                written => return written.map(drop),
            }
        }
    }

    async fn answer<T>(&self, asked: impl Future<Output = Result<T, kube::Error>>) -> Result<T, Error> {
        Ok(timeout(self.terms.patience(), asked).await.map_err(|_| Error::Silence)??)
    }

    /// Says what does not work, once.
    fn tell(&mut self, error: &Error, what: &str) {
        let words = match error {
            // The next attempt looks at it anew.
            Error::Race => return tracing::debug!("{error}"),
            Error::Silence => error.to_string(),
            Error::Api(error) => in_words(error),
        };
        if self.trouble.as_ref() != Some(&words) {
            tracing::warn!(error = words, "{what}");
            self.trouble = Some(words);
        }
    }
}

fn code(error: &kube::Error) -> Option<u16> {
    match error {
        kube::Error::Api(status) => Some(status.code),
        _ => None,
    }
}

/// What these codes mean: that the Lease was written, made or deleted by somebody since it was read.
fn race(error: Error, codes: &[u16]) -> Error {
    match error {
        Error::Api(error) if code(&error).is_some_and(|code| codes.contains(&code)) => Error::Race,
        error => error,
    }
}

fn by_us() -> PostParams {
    PostParams { field_manager: Some(names::MANAGER.to_owned()), ..PostParams::default() }
}
