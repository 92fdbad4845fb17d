//! A sender: takes the number of the next request, fills the template, sends it, and retries if needed.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use bytes::Bytes;
use tokio::time::Instant;

use super::{
    client::LoadClient,
    encode::RequestValues,
    ids::RunSeed,
    report::RequestTally,
    response::{ExportResponse, ResponseCode, ResponseDisposition},
    schedule::RequestSchedule,
    shape::RequestShape,
    template::RequestTemplates,
};

/// Delay after a failed connection, which avoids a busy loop.
const RECONNECT_DELAY: Duration = Duration::from_millis(20);
/// The first delay before a retry, unless the receiver requests one; each further one doubles.
const FIRST_BACKOFF: Duration = Duration::from_millis(50);
/// The generator should notice soon that the receiver is back.
const MAX_BACKOFF: Duration = Duration::from_secs(1);

/// State that all senders of a run share.
#[derive(Debug)]
pub(crate) struct LoadRun {
    pub seed: RunSeed,
    pub shape: RequestShape,
    /// Number of consecutive requests with the same traces.
    pub spread: u64,
    pub templates: RequestTemplates,
    pub schedule: RequestSchedule,
    /// Whether refused requests are retried, and for how long after the end of the run.
    pub retry: Option<Duration>,
    /// Items acknowledged so far, for the progress bar.
    pub acknowledged: AtomicU64,
}

/// Sends until the run is over. Returns the client, so that its connection outlives the other senders'
/// requests.
pub(crate) async fn run_worker(run: Arc<LoadRun>, mut client: LoadClient) -> (RequestTally, LoadClient) {
    let mut tally = RequestTally::default();
    while let Some(number) = run.schedule.next_request().await {
        match run.templates.for_request(&run.shape, number).fill(&run.request_values(number)) {
            Ok(body) => run.send_with_retry(&mut client, number, body, &mut tally).await,
            Err(_) => tally.failed += 1,
        }
    }
    (tally, client)
}

impl LoadRun {
    fn request_values(&self, number: u64) -> RequestValues {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        RequestValues {
            seed: self.seed,
            first_trace: number / self.spread.max(1) * self.shape.traces,
            first_item: number * self.shape.items,
            now: now.as_nanos() as u64,
        }
    }

    /// Sends one request, with retries.
    async fn send_with_retry(&self, client: &mut LoadClient, number: u64, body: Bytes, tally: &mut RequestTally) {
        tally.started += 1;
        let mut backoff = FIRST_BACKOFF;
        loop {
            let answer = send_once(client, body.clone(), tally).await;
            let hint = match answer.disposition {
                ResponseDisposition::Acknowledged { rejected } => {
                    tally.record_acknowledged(number, rejected);
                    self.acknowledged.fetch_add(self.shape.items, Ordering::Relaxed);
                    return;
                }
                ResponseDisposition::Failed => {
                    tally.failed += 1;
                    return;
                }
                ResponseDisposition::Retryable(hint) => hint,
            };
            if !self.may_retry() || !self.wait_before_retry(hint.unwrap_or(backoff)).await {
                tally.record_abandoned(answer.code);
                return pause_without_connection(answer.code).await;
            }
            backoff = (backoff * 2).min(MAX_BACKOFF);
        }
    }

    fn may_retry(&self) -> bool {
        let Some(grace) = self.retry else { return false };
        self.schedule.end_time().is_none_or(|end| Instant::now() < end + grace)
    }

    async fn wait_before_retry(&self, time: Duration) -> bool {
        // Jitter, so that senders that were refused together do not retry together.
        let time = time.mul_f64(1.0 + fastrand::f64() / 4.0);
        self.schedule.sleep_until(Instant::now() + time).await
    }
}

async fn send_once(client: &mut LoadClient, body: Bytes, tally: &mut RequestTally) -> ExportResponse {
    let bytes = body.len() as u64;
    let sent_at = Instant::now();
    let answer = client.send(body).await;
    tally.record_response(&answer, bytes, sent_at.elapsed());
    answer
}

async fn pause_without_connection(code: ResponseCode) {
    if code == ResponseCode::Connect {
        tokio::time::sleep(RECONNECT_DELAY).await;
    }
}
