//! The whole: what listens, and what it needs.

use std::{net::SocketAddr, path::PathBuf, sync::Arc, time::Duration};

use tokio::{net::TcpListener, sync::watch, task::JoinHandle, time::timeout};

use crate::{
    receive::{self, Receiver, Settings},
    serve::{self, State},
    store::{DiskError, Keeper, Limits, Store},
};

/// How long those who are being answered may take when it stops.
const GRACE: Duration = Duration::from_secs(2);

/// How a viewer is to run.
#[derive(Clone, Debug)]
pub struct Options {
    /// Where the page and the queries are served.
    pub listen: SocketAddr,
    /// Where OTLP over gRPC is taken.
    pub otlp_grpc: Option<SocketAddr>,
    /// Where OTLP over HTTP is taken.
    pub otlp_http: Option<SocketAddr>,
    /// How many bytes of memory traces may take.
    pub memory: usize,
    /// Where traces are kept across restarts.
    pub data_dir: Option<PathBuf>,
    /// The cluster whose pipelines and objects are shown. The file need not be there yet.
    pub kubeconfig: Option<PathBuf>,
    /// The namespace of that cluster in which the operator and the collectors run.
    pub namespace: String,
    /// Names, beside addresses and `localhost`, by which browsers may ask for the page, and senders on this machine for OTLP over
    /// HTTP.
    pub hosts: Vec<String>,
}

impl Default for Options {
    fn default() -> Self {
        let local = |port| SocketAddr::from(([127, 0, 0, 1], port));
        Self {
            listen: local(16686),
            otlp_grpc: Some(local(4317)),
            otlp_http: Some(local(4318)),
            memory: Limits::default().bytes,
            data_dir: None,
            kubeconfig: None,
            namespace: "kubewake-system".to_owned(),
            hosts: Vec::new(),
        }
    }
}

/// Why a viewer could not start.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The address of the page is not to be had.
    #[error("cannot listen on {0}")]
    Listen(SocketAddr, #[source] std::io::Error),
    /// An address for OTLP is not to be had.
    #[error("{0}")]
    Otlp(String),
    /// The folder for traces cannot be used.
    #[error("cannot keep traces")]
    Disk(#[from] DiskError),
    /// What was kept could not be read.
    #[error("cannot read what was kept")]
    Read(#[source] tokio::task::JoinError),
}

/// Where a viewer listens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Addresses {
    /// The page.
    pub page: SocketAddr,
    /// OTLP over gRPC.
    pub otlp_grpc: Option<SocketAddr>,
    /// OTLP over HTTP.
    pub otlp_http: Option<SocketAddr>,
}

/// A viewer that runs. It ends with [`Viewer::stop`]; dropped, it ends without waiting for anybody.
#[derive(Debug)]
pub struct Viewer {
    store: Arc<Store>,
    keeper: Keeper,
    receiver: Receiver,
    addresses: Addresses,
    stopping: watch::Sender<bool>,
    server: JoinHandle<()>,
}

impl Viewer {
    /// Listens, and serves from then on.
    ///
    /// # Errors
    ///
    /// If an address is not to be had.
    pub async fn start(options: Options) -> Result<Self, Error> {
        let failed = |error| Error::Listen(options.listen, error);
        let listener = TcpListener::bind(options.listen).await.map_err(failed)?;
        let page = listener.local_addr().map_err(failed)?;
        let store = Arc::new(Store::new(Limits { bytes: options.memory, ..Limits::default() }));
        let keeper = keeper(&options, store.clone()).await?;
        let hosts = options.hosts.clone();
        let settings = Settings { grpc: options.otlp_grpc, http: options.otlp_http, hosts };
        let receiver = Receiver::start(&settings, keeper.clone())?;
        let addresses = Addresses { page, otlp_grpc: receiver.grpc(), otlp_http: receiver.http() };
        let stopping = watch::Sender::new(false);
        let state = State::new(store.clone(), keeper.clone(), addresses, &options, stopping.subscribe());
        let server = tokio::spawn(serve::run(listener, state, stopping.subscribe()));
        Ok(Self { store, keeper, receiver, addresses, stopping, server })
    }

    /// Where it listens.
    pub fn addresses(&self) -> Addresses {
        self.addresses
    }

    /// Its traces.
    pub fn store(&self) -> &Arc<Store> {
        &self.store
    }

    /// Takes no more, answers what was asked, and ends.
    pub async fn stop(mut self) {
        self.receiver.stop().await;
        self.stopping.send_replace(true);
        // Streams end with the signal, and what else is asked takes no time, unless somebody does not read the answer.
        if timeout(GRACE, &mut self.server).await.is_err() {
            self.server.abort();
        }
        let keeper = self.keeper;
        let _ = tokio::task::spawn_blocking(move || keeper.sync()).await;
    }
}

/// With a folder, what it holds is read before anything else comes.
async fn keeper(options: &Options, store: Arc<Store>) -> Result<Keeper, Error> {
    let Some(folder) = options.data_dir.clone() else { return Ok(Keeper::in_memory(store, receive::now)) };
    let limit = options.memory as u64;
    let read = move || Keeper::on_disk(store, receive::now, &folder, limit);
    Ok(tokio::task::spawn_blocking(read).await.map_err(Error::Read)??)
}
