//! A viewer: its listeners, store and cluster.

use std::{net::SocketAddr, path::PathBuf, sync::Arc, time::Duration};

use kubewake_runtime::listener::ConnectionListener;
use tokio::{net::TcpListener, sync::watch};

use crate::{
    log_tail::LogTail,
    receive::{self, ReceiverAddresses, ViewerReceiver},
    serve::{self, ViewerState},
    store::{DiskError, StoreLimits, StoreWriter, TraceStore},
};

/// How long responses in flight may take at shutdown.
const SHUTDOWN_GRACE_PERIOD: Duration = Duration::from_secs(2);

#[derive(Clone, Debug)]
pub struct ViewerOptions {
    /// Address of the page and the APIs.
    pub listen: SocketAddr,
    /// Address of OTLP over gRPC.
    pub otlp_grpc: Option<SocketAddr>,
    /// Address of OTLP over HTTP.
    pub otlp_http: Option<SocketAddr>,
    /// Memory for traces in bytes.
    pub memory: usize,
    /// Folder that keeps traces across restarts.
    pub data_dir: Option<PathBuf>,
    /// The cluster whose pipelines and objects are shown. The file need not exist yet.
    pub kubeconfig: Option<PathBuf>,
    /// Namespace of the operator and the collectors.
    pub namespace: String,
    /// Host names, beside addresses and `localhost`, that browsers may use for the page, and senders on this
    /// machine for OTLP over HTTP.
    pub hosts: Vec<String>,
}

impl Default for ViewerOptions {
    fn default() -> Self {
        let local = |port| SocketAddr::from(([127, 0, 0, 1], port));
        Self {
            listen: local(16686),
            otlp_grpc: Some(local(4317)),
            otlp_http: Some(local(4318)),
            memory: StoreLimits::default().bytes,
            data_dir: None,
            kubeconfig: None,
            namespace: "kubewake-system".to_owned(),
            hosts: Vec::new(),
        }
    }
}

/// Why a viewer failed to start.
#[derive(Debug, thiserror::Error)]
pub enum ViewerError {
    /// The address of the page cannot be bound.
    #[error("failed to listen on {0}")]
    Listen(SocketAddr, #[source] std::io::Error),
    /// An address for OTLP cannot be bound.
    #[error("{0}")]
    Otlp(String),
    /// The folder for traces cannot be used.
    #[error("failed to open the store on disk")]
    Disk(#[from] DiskError),
    /// Persisted traces could not be read.
    #[error("failed to read the stored traces")]
    Read(#[source] tokio::task::JoinError),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ViewerAddresses {
    pub page: SocketAddr,
    pub otlp_grpc: Option<SocketAddr>,
    pub otlp_http: Option<SocketAddr>,
}

/// A running viewer. [`Viewer::stop`] ends it gracefully; a drop ends it at once.
#[derive(Debug)]
pub struct Viewer {
    store: Arc<TraceStore>,
    keeper: StoreWriter,
    receiver: ViewerReceiver,
    addresses: ViewerAddresses,
    stopping: watch::Sender<bool>,
    server: ConnectionListener,
}

impl Viewer {
    /// Binds all addresses and starts serving.
    ///
    /// # Errors
    ///
    /// Fails if an address cannot be bound, or the folder cannot be used.
    pub async fn start(options: ViewerOptions) -> Result<Self, ViewerError> {
        let failed = |error| ViewerError::Listen(options.listen, error);
        let listener = TcpListener::bind(options.listen).await.map_err(failed)?;
        let page = listener.local_addr().map_err(failed)?;
        let store = Arc::new(TraceStore::new(StoreLimits { bytes: options.memory, ..StoreLimits::default() }));
        let keeper = open_store_writer(&options, store.clone()).await?;
        let hosts = options.hosts.clone();
        let settings = ReceiverAddresses { grpc: options.otlp_grpc, http: options.otlp_http, hosts };
        let logs = Arc::<LogTail>::default();
        let receiver = ViewerReceiver::start(&settings, keeper.clone(), Arc::clone(&logs))?;
        let addresses = ViewerAddresses { page, otlp_grpc: receiver.grpc(), otlp_http: receiver.http() };
        let stopping = watch::Sender::new(false);
        let state = ViewerState::new(store.clone(), keeper.clone(), logs, addresses, &options, stopping.subscribe());
        let server = serve::start(listener, state).map_err(failed)?;
        Ok(Self { store, keeper, receiver, addresses, stopping, server })
    }

    pub fn addresses(&self) -> ViewerAddresses {
        self.addresses
    }

    pub fn store(&self) -> &Arc<TraceStore> {
        &self.store
    }

    /// Stops accepting, completes responses in flight, and ends.
    pub async fn stop(self) {
        self.receiver.shutdown().await;
        self.stopping.send_replace(true);
        // Streams end with the signal, and other responses take no time, unless a client does not read.
        self.server.drain(SHUTDOWN_GRACE_PERIOD).await;
        let keeper = self.keeper;
        let _ = tokio::task::spawn_blocking(move || keeper.sync()).await;
    }
}

/// Opens the writer. A folder's content is read before any request is accepted.
async fn open_store_writer(options: &ViewerOptions, store: Arc<TraceStore>) -> Result<StoreWriter, ViewerError> {
    let Some(folder) = options.data_dir.clone() else {
        return Ok(StoreWriter::in_memory(store, receive::unix_nanos_now));
    };
    let limit = options.memory as u64;
    let read = move || StoreWriter::on_disk(store, receive::unix_nanos_now, &folder, limit);
    Ok(tokio::task::spawn_blocking(read).await.map_err(ViewerError::Read)??)
}
