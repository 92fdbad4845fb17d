//! Requests with receipts: what no peer takes is returned, and never counted as dropped.

use super::*;
use crate::core::{
    Batch, Charge, DeliveryOutcome, DeliveryReceipt, Origin, ReceiptListener, ReceiptOutput, testing::part,
};

#[derive(Default)]
struct Ended(Mutex<Vec<DeliveryOutcome>>);

impl ReceiptListener for Ended {
    fn end_token(&self, _: u64, _: &ReceiptOutput, outcome: DeliveryOutcome) {
        self.0.lock().push(outcome);
    }
}

/// A request with a receipt.
fn receipted(numbers: impl IntoIterator<Item = u64>, ended: &Arc<Ended>) -> Batch {
    let pipeline = PipelineId { signal: Signal::Traces, name: None };
    let output = ReceiptOutput::new(pipeline, ComponentId::new("load_balancing"), 0);
    let listener: Arc<dyn ReceiptListener> = ended.clone();
    let receipt = DeliveryReceipt::new(1, [(&output, 0)], &listener);
    let mut part = part(numbers, Charge::exempt());
    part.origin = Arc::new(Origin { receipt: Some(Arc::new(receipt)), ..Origin::default() });
    Batch::single(Signal::Traces, part)
}

impl Fixture {
    fn total_dropped(&self) -> u64 {
        DropReason::ALL.iter().map(|reason| self.dropped(*reason)).sum()
    }
}

#[tokio::test(start_paused = true)]
async fn token_ends_when_all_peers_have_their_shares() {
    let scripts = three();
    scripts[1].1.always(Reply::Hang);
    let fixture = fixture(&scripts, |_| {}, |_| {});
    let ended = Arc::<Ended>::default();
    let outcome = fixture.balancer.clone().consume(receipted(0..30, &ended), OverflowPolicy::Refuse);
    assert!(matches!(outcome, ConsumeOutcome::Now(Ok(()))));
    let_run().await;
    assert!(ended.0.lock().is_empty());
    scripts[1].1.always(Reply::Take);
    let_run().await;
    assert_eq!(*ended.0.lock(), [DeliveryOutcome::Settled]);
    assert_eq!(fixture.all(), numbers(0..30));
}

#[tokio::test(start_paused = true)]
async fn share_that_no_peer_takes_in_time_returns_the_request() {
    let scripts = three();
    for (_, script) in &scripts {
        script.always(Reply::NotNow(None));
    }
    let fixture = fixture(&scripts, |_| {}, |_| {});
    let ended = Arc::<Ended>::default();
    let outcome = fixture.balancer.clone().consume(receipted(0..30, &ended), OverflowPolicy::Refuse);
    assert!(matches!(outcome, ConsumeOutcome::Now(Ok(()))));
    tokio::time::sleep(120 * SECOND).await;
    fixture.balancer.drain(Instant::now() + SECOND).await;
    assert_eq!(*ended.0.lock(), [DeliveryOutcome::Returned]);
    assert_eq!(fixture.total_dropped(), 0);
}
