//! The components of `kubewake up`, and their shutdown.

use anyhow::Context;
use kubewake_node::cluster::{ClusterOptions, ClusterStartError, EmbeddedCluster};
use kubewake_viewer::Viewer;
use tokio::task::JoinHandle;

/// The components that are running.
#[derive(Default)]
pub(super) struct RunningComponents {
    /// The start is always awaited: a cluster that is partly started must be stopped, too.
    starting: Option<JoinHandle<Result<EmbeddedCluster, ClusterStartError>>>,
    cluster: Option<EmbeddedCluster>,
    /// Stopped last, since all others export to it.
    pub(super) viewer: Option<Viewer>,
}

impl RunningComponents {
    pub(super) async fn start_cluster(&mut self, options: ClusterOptions) -> anyhow::Result<&EmbeddedCluster> {
        let starting = self.starting.insert(tokio::spawn(EmbeddedCluster::start(options)));
        let started = starting.await;
        self.starting = None;
        Ok(self.cluster.insert(started??))
    }

    /// Whether no component is running.
    pub(super) fn is_empty(&self) -> bool {
        self.starting.is_none() && self.cluster.is_none() && self.viewer.is_none()
    }

    /// Stops everything: pods, then the API server, then the viewer.
    pub(super) async fn stop(&mut self) -> anyhow::Result<()> {
        if let Some(starting) = self.starting.take() {
            // A failed start leaves nothing behind.
            self.cluster = starting.await?.ok();
        }
        let stopped = match self.cluster.take() {
            Some(cluster) => cluster.stop().await.context("failed to stop the cluster"),
            None => Ok(()),
        };
        if let Some(viewer) = self.viewer.take() {
            viewer.stop().await;
        }
        stopped
    }
}
