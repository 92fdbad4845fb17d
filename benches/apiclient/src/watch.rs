//! Watches, each on a connection of its own, and the events that they have seen.

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
    connect::{ApiConnection, ServerTarget, request_builder},
    requests::{COLLECTION, parse_revision},
};

#[derive(Default)]
pub(crate) struct WatchSet(Vec<OpenWatch>);

struct OpenWatch {
    seen: Arc<WatchProgress>,
    // Keeps the connection open.
    _connection: ApiConnection,
}

#[derive(Default)]
struct WatchProgress {
    revisions: Mutex<Vec<u64>>,
    more: Notify,
}

impl WatchSet {
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// Opens watches that report changes after a revision.
    pub(crate) async fn open(&mut self, target: &ServerTarget, after: u64, count: usize) -> anyhow::Result<()> {
        self.0.clear();
        for _ in 0..count {
            let mut connection = target.connect().await?;
            let path = format!("{COLLECTION}?watch=true&resourceVersion={after}");
            let response = connection.send_request(request_builder(&path).body(Full::default())?).await?;
            ensure!(response.status().is_success(), "a watch failed with status {}", response.status());
            let seen = Arc::new(WatchProgress::default());
            tokio::spawn(follow(response.into_body(), Arc::clone(&seen)));
            self.0.push(OpenWatch { seen, _connection: connection });
        }
        Ok(())
    }

    /// Waits until each watch has seen the number of created objects; counts those that saw exactly them, in
    /// order.
    pub(crate) async fn check(&self, created: &[u64], patience: Duration) -> anyhow::Result<Value> {
        let mut expected = created.to_vec();
        expected.sort_unstable();
        ensure!(!expected.is_empty(), "the API server created no object");
        let mut exact = 0;
        let mut events = 0;
        let mut late = 0;
        for watch in &self.0 {
            late += usize::from(timeout(patience, watch.seen.wait_for_count(expected.len())).await.is_err());
            let seen = watch.seen.revisions.lock().unwrap_or_else(PoisonError::into_inner);
            events += seen.len();
            exact += usize::from(*seen == expected);
        }
        Ok(json!({ "watchers": self.0.len(), "exact": exact, "events": events, "late": late }))
    }
}

impl WatchProgress {
    async fn wait_for_count(&self, count: usize) {
        while self.revisions.lock().unwrap_or_else(PoisonError::into_inner).len() < count {
            self.more.notified().await;
        }
    }
}

/// Reads events, a line each, until the watch ends.
async fn follow(mut body: Incoming, seen: Arc<WatchProgress>) -> anyhow::Result<()> {
    let mut rest = Vec::new();
    while let Some(frame) = body.frame().await {
        let Ok(data) = frame?.into_data() else { continue };
        rest.extend_from_slice(&data);
        let mut start = 0;
        while let Some(length) = memchr::memchr(b'\n', rest.get(start..).unwrap_or_default()) {
            let line = rest.get(start..start + length).unwrap_or_default();
            let revision = parse_revision(line).context("an event has no resourceVersion")?;
            seen.revisions.lock().unwrap_or_else(PoisonError::into_inner).push(revision);
            start += length + 1;
        }
        rest.drain(..start);
        seen.more.notify_one();
    }
    Ok(())
}
