//! Many messages become one: their bytes after each other, as protobuf merges repeated fields.

use std::sync::Arc;

use tokio::{
    sync::{Semaphore, mpsc},
    time::{Instant, timeout_at},
};

use crate::{gzip, receive::Message, settings, upstream::Upstream};

/// Joins what arrives and sends it on, until nothing more can arrive.
pub(crate) async fn join(mut waiting: mpsc::Receiver<Message>, count: usize, deflate: bool, upstream: Upstream) {
    let upstream = Arc::new(upstream);
    let under_way = Arc::new(Semaphore::new(settings::UNDER_WAY));
    while let Some(batch) = next_batch(&mut waiting, count).await {
        // When the backend is slow the channel fills, and the senders wait.
        let Ok(permit) = Arc::clone(&under_way).acquire_owned().await else { return };
        let upstream = Arc::clone(&upstream);
        tokio::spawn(async move {
            let batch = if deflate { gzip::deflate(&batch).map(|bytes| vec![bytes]) } else { Ok(batch) };
            let sent = match batch {
                Ok(batch) => upstream.send(batch).await,
                Err(error) => Err(error.into()),
            };
            if let Err(error) = sent {
                eprintln!("a batch is lost: {error:#}");
            }
            drop(permit);
        });
    }
}

/// The frames of up to `count` messages; fewer when the first has waited long enough.
async fn next_batch(waiting: &mut mpsc::Receiver<Message>, count: usize) -> Option<Message> {
    let mut batch = waiting.recv().await?;
    let deadline = Instant::now() + settings::FLUSH;
    for _ in 1..count {
        match timeout_at(deadline, waiting.recv()).await {
            Ok(Some(message)) => batch.extend(message),
            Ok(None) | Err(_) => break,
        }
    }
    Some(batch)
}
