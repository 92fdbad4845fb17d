//! The cluster under test: the embedded API server, or any other cluster.
//!
//! [`KUBECONFIG_VARIABLE`] names another cluster, as `cargo xtask test --cluster` does. A story works there in
//! a namespace of its own, and removes what it created unless a failure prevents that. The variable is not
//! `KUBECONFIG`, because many people set that to a cluster that is not for tests.

use std::{
    net::SocketAddr,
    path::{Path, PathBuf},
    sync::atomic::{AtomicU32, Ordering},
};

use tempfile::TempDir;

use crate::process::{ChildProcess, kubewake};

/// Names the kubeconfig of another cluster to run stories on.
pub const KUBECONFIG_VARIABLE: &str = "KUBEWAKE_E2E_KUBECONFIG";

/// Names the address at which that cluster reaches programs of this machine, such as webhooks.
pub const HOST_VARIABLE: &str = "KUBEWAKE_E2E_HOST";

pub struct ClusterUnderTest {
    kubeconfig: PathBuf,
    folder: TempDir,
    /// The arguments it was started with.
    args: Vec<String>,
    server: Option<ChildProcess>,
}

impl ClusterUnderTest {
    /// Starts an API server, or uses the cluster that the environment names.
    pub fn start() -> Self {
        Self::start_with(&[])
    }

    /// The same with additional arguments of the API server, if one is started.
    pub fn start_with(args: &[&str]) -> Self {
        let folder = tempfile::tempdir().expect("a temporary directory");
        if let Some(kubeconfig) = std::env::var_os(KUBECONFIG_VARIABLE) {
            return Self { kubeconfig: kubeconfig.into(), folder, args: Vec::new(), server: None };
        }
        Self::start_embedded(folder, &[&["apiserver"], args].concat())
    }

    /// Starts a whole cluster with nodes, and with these additional arguments.
    pub fn with_nodes(args: &[&str]) -> Self {
        Self::start_embedded(tempfile::tempdir().expect("a temporary directory"), &[&["cluster"], args].concat())
    }

    fn start_embedded(folder: TempDir, args: &[&str]) -> Self {
        let kubeconfig = folder.path().join("kubeconfig");
        let args = args.iter().map(|arg| (*arg).to_owned()).collect();
        let mut cluster = Self { kubeconfig, folder, args, server: None };
        cluster.restart();
        cluster
    }

    /// Restarts the embedded one, in the same folder and with the same arguments.
    pub fn restart(&mut self) {
        let mut command = kubewake();
        command.args(&self.args).args(["--listen", "127.0.0.1:0", "--kubeconfig"]).arg(&self.kubeconfig);
        command.env("TMPDIR", self.folder.path()).current_dir(self.folder.path());
        let mut server = ChildProcess::start(&mut command);
        server.wait_until_ready();
        self.server = Some(server);
    }

    /// The process of the cluster, if this value started it.
    pub fn process(&mut self) -> Option<&mut ChildProcess> {
        self.server.as_mut()
    }

    /// Kubeconfig of an administrator.
    pub fn kubeconfig(&self) -> &Path {
        &self.kubeconfig
    }

    /// The host at which the cluster reaches programs that stories start.
    pub fn host() -> String {
        std::env::var(HOST_VARIABLE).unwrap_or_else(|_| "127.0.0.1".to_owned())
    }

    pub fn any_port() -> SocketAddr {
        let host =
            Self::host().parse().unwrap_or_else(|_| panic!("{HOST_VARIABLE} is not an IP address: {}", Self::host()));
        SocketAddr::new(host, 0)
    }

    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Whether it is the embedded API server, without controllers and nodes that could interfere.
    pub fn is_embedded(&self) -> bool {
        self.server.is_some()
    }

    /// A name that no other story and no other run uses.
    pub fn unique_name(&self) -> String {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let next = NEXT.fetch_add(1, Ordering::Relaxed);
        format!("story-{}-{next}", std::process::id())
    }
}
