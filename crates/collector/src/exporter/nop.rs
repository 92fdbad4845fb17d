//! `nop`: accepts and discards everything, for tests of the components before it.

use std::sync::Arc;

use kubewake_config::model::NopExporter;

use crate::{
    components::{BuildError, ExporterContext, ExporterParts, PreparedExporter},
    core::{Batch, DestinationLabels, Exporter, SendFuture, SendSuccess},
};

struct DiscardingExporter;

impl Exporter for DiscardingExporter {
    fn send<'a>(&'a self, _: &'a Batch) -> SendFuture<'a> {
        Box::pin(std::future::ready(Ok(SendSuccess::default())))
    }
}

/// Builds the exporter. Nothing takes time, so that there is no queue.
///
/// # Errors
///
/// None; the signature is that of every exporter.
pub(crate) fn prepare(_: &NopExporter, _: &ExporterContext<'_>) -> Result<PreparedExporter, BuildError> {
    Ok(PreparedExporter::new(build()))
}

fn build() -> ExporterParts {
    let destination = DestinationLabels::default();
    ExporterParts { exporter: Arc::new(DiscardingExporter), timeout: None, retry: None, queue: None, destination }
}

#[cfg(test)]
mod tests {
    use kubewake_otlp::Signal;

    use super::*;

    #[tokio::test]
    async fn everything_is_delivered() {
        let built = build();
        assert_eq!(built.exporter.send(&Batch::empty(Signal::Logs)).await.expect("delivered"), SendSuccess::default());
        assert!(built.queue.is_none() && built.retry.is_none());
    }
}
