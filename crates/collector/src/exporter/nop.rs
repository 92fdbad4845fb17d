//! `nop`: takes everything and does nothing, for tests of what is before it.

use std::sync::Arc;

use crate::{
    components::{BuildError, BuiltExporter},
    core::{Batch, Delivered, Destination, Exporter, SendFuture},
};

struct Nop;

impl Exporter for Nop {
    fn send<'a>(&'a self, _: &'a Batch) -> SendFuture<'a> {
        Box::pin(std::future::ready(Ok(Delivered::default())))
    }
}

/// Builds it. There is nothing to wait for, so there is no queue.
///
/// # Errors
///
/// None; the type is that of every exporter.
pub(crate) fn build() -> Result<BuiltExporter, BuildError> {
    let destination = Destination::default();
    Ok(BuiltExporter { exporter: Arc::new(Nop), timeout: None, retry: None, queue: None, destination })
}

#[cfg(test)]
mod tests {
    use kubewake_otlp::Signal;

    use super::*;

    #[tokio::test]
    async fn everything_is_delivered() {
        let built = build().expect("builds");
        assert_eq!(built.exporter.send(&Batch::empty(Signal::Logs)).await.expect("delivered"), Delivered::default());
        assert!(built.queue.is_none() && built.retry.is_none());
    }
}
