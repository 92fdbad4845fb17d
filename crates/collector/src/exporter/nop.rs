//! `nop`: accepts and discards everything, for tests of the components before it.

use std::sync::Arc;

use crate::{
    components::{BuildError, ExporterParts},
    core::{Batch, DestinationLabels, Exporter, SendFuture, SendSuccess},
};

struct NopExporter;

impl Exporter for NopExporter {
    fn send<'a>(&'a self, _: &'a Batch) -> SendFuture<'a> {
        Box::pin(std::future::ready(Ok(SendSuccess::default())))
    }
}

/// Builds the exporter. Nothing takes time, so that there is no queue.
///
/// # Errors
///
/// None; the signature is that of every exporter.
pub(crate) fn build() -> Result<ExporterParts, BuildError> {
    let destination = DestinationLabels::default();
    Ok(ExporterParts { exporter: Arc::new(NopExporter), timeout: None, retry: None, queue: None, destination })
}

#[cfg(test)]
mod tests {
    use kubewake_otlp::Signal;

    use super::*;

    #[tokio::test]
    async fn everything_is_delivered() {
        let built = build().expect("builds");
        assert_eq!(built.exporter.send(&Batch::empty(Signal::Logs)).await.expect("delivered"), SendSuccess::default());
        assert!(built.queue.is_none() && built.retry.is_none());
    }
}
