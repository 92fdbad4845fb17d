//! Watches, each on a connection of its own, and what they have seen.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use anyhow::{Context, ensure};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use serde_json::{Value, json};
use tokio::{sync::Notify, time::timeout};

use crate::{
    connect::{Connection, Target, request},
    requests::{COLLECTION, revision_of},
};

/// Watches that are open.
#[derive(Default)]
pub(crate) struct Watches(Vec<Watch>);

struct Watch {
    seen: Arc<Seen>,
    // Kept open as long as this.
    _connection: Connection,
}

#[derive(Default)]
struct Seen {
    revisions: Mutex<Vec<u64>>,
    more: Notify,
}

impl Watches {
    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// Opens some that show what comes after a revision.
    pub(crate) async fn open(&mut self, target: &Target, after: u64, count: usize) -> anyhow::Result<()> {
        self.0.clear();
        for _ in 0..count {
            let mut connection = target.connect().await?;
            let path = format!("{COLLECTION}?watch=true&resourceVersion={after}");
            let response = connection.send_request(request(&path).body(Full::default())?).await?;
            ensure!(response.status().is_success(), "a watch was answered with {}", response.status());
            let seen = Arc::new(Seen::default());
            tokio::spawn(follow(response.into_body(), Arc::clone(&seen)));
            self.0.push(Watch { seen, _connection: connection });
        }
        Ok(())
    }

    /// Waits until each has seen as many events as there were, and counts those that saw exactly them, in their order.
    pub(crate) async fn check(&self, created: &[u64], patience: Duration) -> anyhow::Result<Value> {
        let mut expected = created.to_vec();
        expected.sort_unstable();
        ensure!(!expected.is_empty(), "nothing was created");
        let (mut exact, mut events, mut late) = (0, 0, 0);
        for watch in &self.0 {
            late += usize::from(timeout(patience, watch.seen.reaches(expected.len())).await.is_err());
            let seen = watch.seen.revisions.lock().unwrap_or_else(PoisonError::into_inner);
            events += seen.len();
            exact += usize::from(*seen == expected);
        }
        Ok(json!({ "watchers": self.0.len(), "exact": exact, "events": events, "late": late }))
    }
}

impl Seen {
    async fn reaches(&self, count: usize) {
        while self.revisions.lock().unwrap_or_else(PoisonError::into_inner).len() < count {
            self.more.notified().await;
        }
    }
}

/// Reads events, a line each, until the watch ends.
async fn follow(mut body: Incoming, seen: Arc<Seen>) -> anyhow::Result<()> {
    let mut rest = Vec::new();
    while let Some(frame) = body.frame().await {
        let Ok(data) = frame?.into_data() else { continue };
        rest.extend_from_slice(&data);
        let mut start = 0;
        while let Some(length) = memchr::memchr(b'\n', rest.get(start..).unwrap_or_default()) {
            let line = rest.get(start..start + length).unwrap_or_default();
            let revision = revision_of(line).context("an event has no resourceVersion")?;
            seen.revisions.lock().unwrap_or_else(PoisonError::into_inner).push(revision);
            start += length + 1;
        }
        rest.drain(..start);
        seen.more.notify_one();
    }
    Ok(())
}
