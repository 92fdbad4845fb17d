//! A sender: takes a request's number, fills it, sends it, and does what the answer asks for.

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
    answer::{Answer, Code, Verdict},
    client::Client,
    encode::Values,
    ids::Seed,
    pace::Schedule,
    report::Tally,
    shape::Shape,
    template::Templates,
};

/// A sender that cannot connect waits this long, so that it does not spin.
const PAUSE_WITHOUT_CONNECTION: Duration = Duration::from_millis(20);
/// The first wait before a request is sent again, when the receiver names none; each next one doubles.
const FIRST_BACKOFF: Duration = Duration::from_millis(50);
/// A generator should notice soon that the receiver is back.
const MAX_BACKOFF: Duration = Duration::from_secs(1);

/// What all senders of a run share.
#[derive(Debug)]
pub(crate) struct Run {
    /// Whose ids they use.
    pub seed: Seed,
    /// What a request holds.
    pub shape: Shape,
    /// In how many requests in a row the same traces come.
    pub spread: u64,
    /// The requests to copy.
    pub templates: Templates,
    /// When to send.
    pub schedule: Schedule,
    /// Whether a refused request is sent again, and for how long after the run's end.
    pub retry: Option<Duration>,
    /// Items acknowledged so far, for the progress bar.
    pub acknowledged: AtomicU64,
}

/// Sends until the run is over. Gives the client back, so that its connection does not end before the others' work.
pub(crate) async fn work(run: Arc<Run>, mut client: Client) -> (Tally, Client) {
    let mut tally = Tally::default();
    while let Some(number) = run.schedule.next().await {
        match run.templates.of(&run.shape, number).fill(&run.values(number)) {
            Ok(body) => run.deliver(&mut client, number, body, &mut tally).await,
            Err(_) => tally.failed += 1,
        }
    }
    (tally, client)
}

impl Run {
    fn values(&self, number: u64) -> Values {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Values {
            seed: self.seed,
            first_trace: number / self.spread.max(1) * self.shape.traces,
            first_item: number * self.shape.items,
            now: now.as_nanos() as u64,
        }
    }

    /// Sends one request, again if need be.
    async fn deliver(&self, client: &mut Client, number: u64, body: Bytes, tally: &mut Tally) {
        tally.started += 1;
        let mut backoff = FIRST_BACKOFF;
        loop {
            let answer = attempt(client, body.clone(), tally).await;
            let hint = match answer.verdict {
                Verdict::Acknowledged { rejected } => {
                    tally.acknowledge(number, rejected);
                    self.acknowledged.fetch_add(self.shape.items, Ordering::Relaxed);
                    return;
                }
                Verdict::Failed => {
                    tally.failed += 1;
                    return;
                }
                Verdict::Retryable(hint) => hint,
            };
            if !self.may_retry() || !self.wait(hint.unwrap_or(backoff)).await {
                tally.give_up(answer.code);
                return pause_without_connection(answer.code).await;
            }
            backoff = (backoff * 2).min(MAX_BACKOFF);
        }
    }

    fn may_retry(&self) -> bool {
        let Some(grace) = self.retry else { return false };
        self.schedule.end().is_none_or(|end| Instant::now() < end + grace)
    }

    async fn wait(&self, time: Duration) -> bool {
        // Senders that were refused together should not come back together.
        let time = time.mul_f64(1.0 + fastrand::f64() / 4.0);
        self.schedule.sleep_until(Instant::now() + time).await
    }
}

async fn attempt(client: &mut Client, body: Bytes, tally: &mut Tally) -> Answer {
    let bytes = body.len() as u64;
    let sent_at = Instant::now();
    let answer = client.send(body).await;
    tally.count(&answer, bytes, sent_at.elapsed());
    answer
}

async fn pause_without_connection(code: Code) {
    if code == Code::Connect {
        tokio::time::sleep(PAUSE_WITHOUT_CONNECTION).await;
    }
}
