//! A Kubernetes API to tell stories on: the embedded API server, or any cluster.
//!
//! `KUBEWAKE_E2E_KUBECONFIG` names another cluster, as `cargo xtask test --cluster` does. There a story works in a namespace of its own and
//! leaves nothing behind but what a failure kept it from removing. It is not `KUBECONFIG`, since for many people that is set to a
//! cluster that is not for tests.

use std::{
    net::SocketAddr,
    path::{Path, PathBuf},
    sync::atomic::{AtomicU32, Ordering},
};

use tempfile::TempDir;

use crate::process::{Process, kubewake};

/// Names the cluster to tell stories on.
pub const KUBECONFIG: &str = "KUBEWAKE_E2E_KUBECONFIG";

/// Names the address at which that cluster reaches programs of this machine, such as webhooks.
pub const HOST: &str = "KUBEWAKE_E2E_HOST";

/// A cluster that answers.
pub struct Cluster {
    kubeconfig: PathBuf,
    folder: TempDir,
    /// The arguments with which it was started.
    args: Vec<String>,
    server: Option<Process>,
}

impl Cluster {
    /// Starts an API server of its own, or takes the cluster that was named.
    pub fn start() -> Self {
        Self::start_with(&[])
    }

    /// The same; the API server of its own gets these arguments beside the usual ones.
    pub fn start_with(args: &[&str]) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        if let Some(kubeconfig) = std::env::var_os(KUBECONFIG) {
            return Self { kubeconfig: kubeconfig.into(), folder, args: Vec::new(), server: None };
        }
        Self::embedded(folder, &[&["apiserver"], args].concat())
    }

    /// Starts a whole cluster of its own, with nodes, and with these arguments beside the usual ones.
    pub fn with_nodes(args: &[&str]) -> Self {
        Self::embedded(tempfile::tempdir().expect("a folder"), &[&["cluster"], args].concat())
    }

    fn embedded(folder: TempDir, args: &[&str]) -> Self {
        let kubeconfig = folder.path().join("kubeconfig");
        let args = args.iter().map(|arg| (*arg).to_owned()).collect();
        let mut cluster = Self { kubeconfig, folder, args, server: None };
        cluster.restart();
        cluster
    }

    /// Starts the embedded one again, in the same folder and with the same arguments.
    pub fn restart(&mut self) {
        let mut command = kubewake();
        command.args(&self.args).args(["--listen", "127.0.0.1:0", "--kubeconfig"]).arg(&self.kubeconfig);
        command.env("TMPDIR", self.folder.path()).current_dir(self.folder.path());
        let mut server = Process::start(&mut command);
        server.ready();
        self.server = Some(server);
    }

    /// The process that is the cluster, if it is ours.
    pub fn process(&mut self) -> Option<&mut Process> {
        self.server.as_mut()
    }

    /// How an administrator reaches it.
    pub fn kubeconfig(&self) -> &Path {
        &self.kubeconfig
    }

    /// Where the cluster reaches programs that stories start.
    pub fn host() -> String {
        std::env::var(HOST).unwrap_or_else(|_| "127.0.0.1".to_owned())
    }

    /// Any port there.
    pub fn any_port() -> SocketAddr {
        let host = Self::host().parse().unwrap_or_else(|_| panic!("{HOST} is no IP address: {}", Self::host()));
        SocketAddr::new(host, 0)
    }

    /// Files of the story.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Whether it is the embedded API server, where no controller and no node comes in between.
    pub fn is_embedded(&self) -> bool {
        self.server.is_some()
    }

    /// A name that no other story and no other run has.
    pub fn unique_name(&self) -> String {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let next = NEXT.fetch_add(1, Ordering::Relaxed);
        format!("story-{}-{next}", std::process::id())
    }
}
