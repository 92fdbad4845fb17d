//! Leader election by a Lease: of several operators one works.
//!
//! Each candidate reads the Lease at intervals. A Lease that is free, or was not renewed for its duration, is
//! taken by a write at the revision that was read, of which the API server accepts one. Its holder renews it in
//! the same way.
//!
//! *Guaranteed*: one operator leads at a time. A leader leads from the response to its write until four fifths
//! of the lease duration after it sent that write, whether the API server answers then or not; it stops at once
//! when it sees another holder. All others count the whole duration from when they observed the write. A Lease
//! that was released or deleted is taken at the next attempt. *Assumed*: the API server refuses a write at a
//! revision that is not the newest; clocks run at the same speed, up to a fifth of the duration; nobody else
//! writes or deletes the Lease. If somebody does, its holder notices at the next renewal, and another one may
//! lead until then. *Not done*: a process that was stopped for longer than the duration, or ran on a machine
//! that slept, may still send what it was about to send. That does no harm: locks and documents are safe with
//! two active operators. The Lease only keeps them from doing everything twice.

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::{coordination::v1::Lease, core::v1::Namespace};
use kube::{
    Api, Client,
    api::{ObjectMeta, PostParams},
};
use kubewake_trail::error_chain;
use tokio::time::{Instant, sleep, sleep_until, timeout, timeout_at};

use self::lease_rules::{LeaseAction, ObservedLease, decide_action, released_lease};
use crate::model::names;

mod lease_rules;
#[cfg(test)]
mod tests;

/// The timeout for releasing the Lease. If it is not released, another operator waits until it expires, which
/// does no harm.
const RELEASE_TIMEOUT: Duration = Duration::from_secs(3);

/// The limit of the interval between attempts; shorter for a short lease duration.
const MAX_RETRY_PERIOD: Duration = Duration::from_secs(2);

/// The limit of the timeout of a request, after which a dead connection is given up; shorter for a short lease
/// duration.
const MAX_REQUEST_TIMEOUT: Duration = Duration::from_secs(10);

/// The parameters of the election.
#[derive(Clone, Debug)]
pub struct LeaseConfig {
    /// The holder identity, which must be unique among running operators.
    pub identity: String,
    /// The lease duration: another operator takes over when the Lease was not renewed for that long.
    pub seconds: u64,
}

impl LeaseConfig {
    fn lease_duration(&self) -> Duration {
        Duration::from_secs(self.seconds.max(1))
    }

    /// The interval of renewals, which leaves time for further attempts.
    fn renew_interval(&self) -> Duration {
        self.lease_duration() / 3
    }

    /// How long a leader leads without a response. The rest of the lease duration allows for clocks that
    /// differ, and for stopping.
    fn renew_deadline(&self) -> Duration {
        self.lease_duration() * 4 / 5
    }

    /// The delay before the next attempt, with jitter so that candidates do not keep colliding.
    fn retry_period(&self) -> Duration {
        MAX_RETRY_PERIOD.min(self.lease_duration() / 6).mul_f64(0.75 + fastrand::f64() / 2.0)
    }

    fn request_timeout(&self) -> Duration {
        MAX_REQUEST_TIMEOUT.min(self.renew_interval())
    }
}

#[derive(Debug, thiserror::Error)]
enum LeaseError {
    #[error(transparent)]
    Api(#[from] kube::Error),
    #[error("the request to the API server timed out")]
    Timeout,
    /// The Lease has changed since it was read.
    #[error("another client wrote the Lease first")]
    Conflict,
}

/// A candidate of the election. It tries to take the Lease within [`Self::wait_until_elected`], and renews it
/// within [`Self::wait_until_deposed`].
#[derive(Debug)]
pub struct Candidate {
    leases: Api<Lease>,
    namespaces: Api<Namespace>,
    config: LeaseConfig,
    observed: ObservedLease,
    /// The Lease as this candidate wrote it, if it is still assumed to be current.
    own_lease: Option<Lease>,
    /// When the last renewal that succeeded was sent.
    last_renewal: Option<Instant>,
    /// Whether the Lease may name this candidate as its holder.
    may_hold_lease: bool,
    has_succeeded: bool,
    /// The last logged error, so that each is logged once.
    last_logged: Option<String>,
}

impl Candidate {
    /// A candidate for the Lease in this namespace, which is created if it does not exist.
    pub fn new(client: &Client, namespace: &str, terms: &LeaseConfig) -> Self {
        Self {
            leases: Api::namespaced(client.clone(), namespace),
            namespaces: Api::all(client.clone()),
            config: terms.clone(),
            observed: ObservedLease::default(),
            own_lease: None,
            last_renewal: None,
            may_hold_lease: false,
            has_succeeded: false,
            last_logged: None,
        }
    }

    /// Waits until this candidate leads, however long the API server cannot be reached.
    ///
    /// # Errors
    /// If the API server forbids the first attempts.
    pub async fn wait_until_elected(&mut self) -> Result<(), kube::Error> {
        loop {
            match self.acquire_or_renew().await {
                Ok(Some(sent)) => {
                    self.last_renewal = Some(sent);
                    return Ok(());
                }
                Ok(None) => {}
                Err(LeaseError::Api(error)) if !self.has_succeeded && status_code(&error) == Some(403) => {
                    return Err(error);
                }
                Err(error) => self.log_once(&error, "failed to acquire the Lease, retrying"),
            }
            sleep(self.config.retry_period()).await;
        }
    }

    /// Waits until this candidate no longer leads, or can no longer be sure that it does.
    pub async fn wait_until_deposed(&mut self) {
        while let Some(sent) = self.last_renewal {
            match timeout_at(sent + self.config.renew_deadline(), self.renew_when_due(sent)).await {
                Ok(Some(sent)) => self.last_renewal = Some(sent),
                Ok(None) => {
                    tracing::warn!("another operator acquired the Lease");
                    self.last_renewal = None;
                }
                Err(_) => {
                    tracing::error!("failed to renew the Lease in time: another operator can acquire it");
                    self.last_renewal = None;
                }
            }
        }
    }

    /// Releases the Lease, so that another operator takes over at once. Gives up after `RELEASE_TIMEOUT`.
    pub async fn resign(self) {
        match timeout(RELEASE_TIMEOUT, self.release_lease()).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::warn!(error = error_chain(&error), "failed to release the Lease"),
            Err(_) => tracing::warn!("failed to release the Lease: the request to the API server timed out"),
        }
    }

    /// Renews the Lease when that is due. Returns when the write was sent, or `None` if another candidate holds
    /// the Lease.
    async fn renew_when_due(&mut self, sent: Instant) -> Option<Instant> {
        sleep_until(sent + self.config.renew_interval()).await;
        loop {
            match self.acquire_or_renew().await {
                Ok(asked) => return asked,
                Err(error) => self.log_once(&error, "failed to renew the Lease, retrying"),
            }
            sleep(self.config.retry_period()).await;
        }
    }

    /// Takes or renews the Lease. Returns when the write was sent, or `None` if another candidate holds it.
    async fn acquire_or_renew(&mut self) -> Result<Option<Instant>, LeaseError> {
        let is_known = self.own_lease.is_some();
        let mut asked = self.try_acquire_or_renew().await;
        if is_known && matches!(asked, Err(LeaseError::Conflict)) {
            // Somebody wrote the Lease, but not necessarily its holder.
            asked = self.try_acquire_or_renew().await;
        }
        if asked.is_ok() {
            (self.has_succeeded, self.last_logged) = (true, None);
        }
        asked
    }

    async fn try_acquire_or_renew(&mut self) -> Result<Option<Instant>, LeaseError> {
        let lease = match self.own_lease.take() {
            Some(own) => Some(own),
            None => self.with_timeout(self.leases.get_opt(names::LEASE_NAME)).await?,
        };
        let unchanged = self.observed.observe(lease.as_ref(), Instant::now());
        let step = decide_action(lease, &self.config, unchanged, Timestamp::now());
        self.may_hold_lease = step != LeaseAction::Wait;
        let sent = Instant::now();
        let written = match step {
            LeaseAction::Wait => return Ok(None),
            LeaseAction::Create(lease) => self.create(&lease).await,
            LeaseAction::Write(lease) => {
                let written = self.with_timeout(self.leases.replace(names::LEASE_NAME, &post_params(), &lease)).await;
                written.map_err(|error| race_or(error, &[404, 409]))
            }
        };
        self.own_lease = Some(written?);
        Ok(Some(sent))
    }

    /// Creates the Lease, and its namespace first if that does not exist.
    async fn create(&self, lease: &Lease) -> Result<Lease, LeaseError> {
        let by_us = post_params();
        let mut made = self.with_timeout(self.leases.create(&by_us, lease)).await;
        if matches!(&made, Err(LeaseError::Api(error)) if status_code(error) == Some(404)) {
            self.make_namespace().await;
            made = self.with_timeout(self.leases.create(&by_us, lease)).await;
        }
        made.map_err(|error| race_or(error, &[409]))
    }

    /// Creates the namespace, as nobody else does on a developer's machine. Where that is forbidden, it exists.
    async fn make_namespace(&self) {
        let name = self.leases.namespace();
        let metadata = ObjectMeta { name: name.map(str::to_owned), ..ObjectMeta::default() };
        let namespace = Namespace { metadata, ..Namespace::default() };
        if let Err(error) = self.with_timeout(self.namespaces.create(&PostParams::default(), &namespace)).await {
            tracing::debug!(kind = "Namespace", name, %error, "failed to create the namespace of the Lease");
        }
    }

    async fn release_lease(&self) -> Result<(), kube::Error> {
        // A candidate that never wrote the Lease has nothing to release.
        if !self.may_hold_lease {
            return Ok(());
        }
        loop {
            let lease = self.leases.get_opt(names::LEASE_NAME).await?;
            let freed = lease.and_then(|lease| released_lease(lease, &self.config.identity, Timestamp::now()));
            let Some(freed) = freed else { return Ok(()) };
            match self.leases.replace(names::LEASE_NAME, &post_params(), &freed).await {
                Err(error) if matches!(status_code(&error), Some(404 | 409)) => {}
                written => return written.map(drop),
            }
        }
    }

    async fn with_timeout<T>(&self, asked: impl Future<Output = Result<T, kube::Error>>) -> Result<T, LeaseError> {
        Ok(timeout(self.config.request_timeout(), asked).await.map_err(|_| LeaseError::Timeout)??)
    }

    /// Logs an error, unless it was the last one logged.
    fn log_once(&mut self, error: &LeaseError, what: &str) {
        let words = match error {
            // The next attempt reads the Lease again.
            LeaseError::Conflict => return tracing::debug!("{error}"),
            LeaseError::Timeout => error.to_string(),
            LeaseError::Api(error) => error_chain(error),
        };
        if self.last_logged.as_ref() != Some(&words) {
            tracing::warn!(error = words, "{what}");
            self.last_logged = Some(words);
        }
    }
}

fn status_code(error: &kube::Error) -> Option<u16> {
    match error {
        kube::Error::Api(status) => Some(status.code),
        _ => None,
    }
}

/// Maps these codes to a conflict: the Lease was written, created or deleted since it was read.
fn race_or(error: LeaseError, codes: &[u16]) -> LeaseError {
    match error {
        LeaseError::Api(error) if status_code(&error).is_some_and(|code| codes.contains(&code)) => LeaseError::Conflict,
        error => error,
    }
}

fn post_params() -> PostParams {
    PostParams { field_manager: Some(names::FIELD_MANAGER.to_owned()), ..PostParams::default() }
}
