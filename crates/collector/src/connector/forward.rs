//! `forward`: passes data on as it is.

use std::sync::Arc;

use kubewake_config::model::ForwardConnector;

use crate::{
    components::{BuildError, Connector, ConnectorContext, ConnectorSite, PrepareConnector, PreparedConnector},
    core::{Batch, ConnectorOutput, ConsumeOutcome, OverflowPolicy},
};

pub(crate) fn prepare(_: &ForwardConnector, _: &ConnectorContext<'_>) -> Result<PreparedConnector, BuildError> {
    Ok(PreparedConnector::new(PreparedForward))
}

struct PreparedForward;

impl PrepareConnector for PreparedForward {
    type Running = ForwardNode;

    fn start(self, site: &ConnectorSite<'_>) -> Arc<ForwardNode> {
        Arc::new(ForwardNode { output: site.output.clone() })
    }

    fn reconfigure(self, _: &ForwardNode, _: &ConnectorSite<'_>) {}
}

/// It holds nothing: the outcome is that of the pipelines that it feeds.
struct ForwardNode {
    output: Arc<ConnectorOutput>,
}

impl Connector for ForwardNode {
    fn pass_on(self: Arc<Self>, batch: Batch, pressure: OverflowPolicy) -> ConsumeOutcome {
        self.output.pass_on(batch, pressure)
    }
}
