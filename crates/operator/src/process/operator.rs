//! The operator process: stands for election, and leads while it is elected.

use std::{sync::Arc, time::Duration};

use futures_util::FutureExt as _;
use kube::Client;
use kubewake_trail::Trail;

use super::leader::{Candidate, LeaseConfig};
use crate::{model::names, runtime::metrics::OperatorMetrics};

#[derive(Debug, thiserror::Error)]
pub enum OperatorError {
    /// The API server forbids access to the Lease.
    #[error("failed to access Lease {namespace}/{name}", name = names::LEASE_NAME)]
    Lease { namespace: String, source: kube::Error },
}

#[derive(Clone, Debug)]
pub struct OperatorOptions {
    /// The namespace of the collectors, the operator's Lease and the locks.
    pub namespace: String,
    /// The namespace of the collectors on the nodes.
    pub agent_namespace: String,
    /// The collectors' image, unless a Telemetry names one.
    pub image: String,
    /// The interval of reconciles of a pipeline without events.
    pub resync: Duration,
}

pub struct Operator {
    /// A client whose calls are traced.
    pub client: Client,
    /// A client for the Lease, without tracing: its calls come every few seconds and interest nobody.
    pub lease_client: Client,
    pub trail: Trail,
    pub options: OperatorOptions,
    pub lease_config: LeaseConfig,
    pub metrics: Arc<OperatorMetrics>,
}

/// Why leadership ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TermEnd {
    Shutdown,
    StandAgain,
}

impl Operator {
    /// Runs until `stop`: waits to be elected, leads, and finishes work in progress. An operator that loses the
    /// Lease stands for election again.
    ///
    /// # Errors
    /// If the API server forbids access to the Lease. An API server that cannot be reached is waited for.
    pub async fn run(self, stop: impl Future<Output = ()> + Send + Sync + 'static) -> Result<(), OperatorError> {
        let stop = stop.shared();
        let namespace = &self.options.namespace;
        let mut candidate = Candidate::new(&self.lease_client, namespace, &self.lease_config);
        loop {
            tokio::select! {
                elected = candidate.wait_until_elected() => {
                    elected.map_err(|source| OperatorError::Lease { namespace: namespace.clone(), source })?;
                }
                () = stop.clone() => break,
            }
            if self.run_term(&mut candidate, stop.clone()).await == TermEnd::Shutdown {
                break;
            }
        }
        candidate.resign().await;
        Ok(())
    }

    /// Leads until `stop` or until the Lease is lost.
    async fn run_term(
        &self,
        candidate: &mut Candidate,
        stop: impl Future<Output = ()> + Clone + Send + Sync + 'static,
    ) -> TermEnd {
        tracing::info!(identity = self.lease_config.identity, "this operator is now the leader");
        self.metrics.set_leading(true);
        let next = tokio::select! {
            // The loss of the Lease is checked first, so that a process that was suspended for too long begins
            // nothing.
            biased;
            () = candidate.wait_until_deposed() => TermEnd::StandAgain,
            () = self.run_as_leader(stop) => TermEnd::Shutdown,
        };
        self.metrics.set_leading(false);
        tracing::info!(identity = self.lease_config.identity, "this operator is no longer the leader");
        next
    }
}
