//! What runs in this process, and how it ends.

use anyhow::Context;
use kubewake_node::cluster::{EmbeddedCluster, Options, StartError};
use kubewake_viewer::Viewer;
use tokio::task::JoinHandle;

/// The parts that run so far.
#[derive(Default)]
pub(super) struct Parts {
    /// It starts to its end, whoever stops waiting for it: what is half started has to be stopped, too.
    starting: Option<JoinHandle<Result<EmbeddedCluster, StartError>>>,
    cluster: Option<EmbeddedCluster>,
    /// The last to end, as all others tell it something.
    pub(super) viewer: Option<Viewer>,
}

impl Parts {
    /// Starts the cluster.
    pub(super) async fn start_cluster(&mut self, options: Options) -> anyhow::Result<&EmbeddedCluster> {
        let starting = self.starting.insert(tokio::spawn(EmbeddedCluster::start(options)));
        let started = starting.await;
        self.starting = None;
        Ok(self.cluster.insert(started??))
    }

    /// Whether there is nothing to end.
    pub(super) fn is_empty(&self) -> bool {
        self.starting.is_none() && self.cluster.is_none() && self.viewer.is_none()
    }

    /// Ends everything: pods, then the API server, then the viewer.
    pub(super) async fn stop(&mut self) -> anyhow::Result<()> {
        if let Some(starting) = self.starting.take() {
            // One that did not start has left nothing behind.
            self.cluster = starting.await?.ok();
        }
        let stopped = match self.cluster.take() {
            Some(cluster) => cluster.stop().await.context("the cluster did not stop as it should"),
            None => Ok(()),
        };
        if let Some(viewer) = self.viewer.take() {
            viewer.stop().await;
        }
        stopped
    }
}
