//! Many concurrent senders, on real threads and a real clock.

use std::sync::{Arc, atomic::Ordering};

use super::support::*;
use crate::core::{Budget, Processor};

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn senders_decisions_and_reloads_at_once_lose_and_double_nothing() {
    const SENDERS: u128 = 8;
    const REQUESTS: u128 = 60;
    let text = |more: &str| {
        format!("decision_wait: 200ms\nnum_shards: 3\npolicies: [{{name: all, type: always_sample}}{more}]")
    };
    let budget = Budget::new(64 << 20, 8 << 20);
    let setup = Arc::new(Setup::new(&text("")).charged_to(budget.join()));
    let senders: Vec<_> = (0..SENDERS)
        .map(|sender| {
            let setup = setup.clone();
            tokio::spawn(async move {
                for request in 0..REQUESTS {
                    // Traces that begin, continue in the next requests, and are shared with another sender.
                    let trace = |offset: u128| 1 + (sender / 2) * 1000 + request + offset;
                    setup.send((0..20).map(|n| span(trace(n % 5))).collect()).await;
                    tokio::task::yield_now().await;
                }
            })
        })
        .collect();
    for round in 0..10 {
        let more = format!(", {{name: p{round}, type: latency, latency: {{threshold_ms: {round}}}}}");
        setup.sampler.reconfigure(settings(&text(&more)));
        tokio::time::sleep(std::time::Duration::from_millis(30)).await;
    }
    for sender in senders {
        sender.await.unwrap();
    }
    setup.sampler.flush().await;
    let sent = SENDERS * REQUESTS * 20;
    assert_eq!(setup.kept().values().sum::<usize>() as u128, sent);
    assert_eq!(budget.used(), 0);
    assert_eq!(setup.stats.waiting_bytes.load(Ordering::Relaxed), 0);
}
