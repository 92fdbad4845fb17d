//! Receivers as the engine handles them.
//!
//! A receiver need not be a listener: it may tail, scrape or watch. It is prepared, started, replaced by a successor
//! with new settings, and shut down, whatever it reads from.

use std::{
    any::Any,
    net::SocketAddr,
    path::{Path, PathBuf},
    sync::Arc,
};

use futures_util::future::BoxFuture;
use kubewake_config::ComponentId;

use super::{BuildError, state_directory};
use crate::{
    core::{PipelineSet, StatsRegistry},
    extension::ServerAuth,
    net::listener_pool::AddressClaims,
};

/// A running receiver.
///
/// The engine shuts every receiver down that is removed or replaced, waits until it is closed, and aborts it when a
/// third of the time for draining is over. A receiver does not hold its pipelines itself, only its tasks do: draining
/// waits until nothing refers to a pipeline.
pub trait Receiver: Any + Send + Sync {
    /// The protocol and address of each of its listeners. Empty for a receiver that is no listener.
    fn listeners(&self) -> Vec<(&'static str, SocketAddr)> {
        Vec::new()
    }

    /// Stops taking in data; requests under way may finish. What a successor has taken over goes on.
    fn shutdown(&self);

    /// Aborts the requests that are still under way.
    fn abort(&self);

    /// Resolves when nothing more comes from it.
    fn wait_closed(&self) -> BoxFuture<'_, ()>;

    /// Resolves when it has stored what it keeps for the next start. It is called last, after everything that came from
    /// the receiver was drained.
    fn finish(&self) -> BoxFuture<'_, ()> {
        Box::pin(std::future::ready(()))
    }
}

/// Looks up the authenticator of an extension.
pub type ServerAuthLookup<'a> = &'a dyn Fn(&ComponentId) -> Result<Arc<dyn ServerAuth>, BuildError>;

/// What a receiver may use while it is prepared.
pub struct ReceiverContext<'a> {
    pub id: &'a ComponentId,
    pub auth: ServerAuthLookup<'a>,
    pub claims: &'a AddressClaims,
    /// The running receiver of the same id, which the new one replaces.
    pub previous: Option<&'a dyn Receiver>,
    /// The directory below which each receiver may have one for its state: that of the storage extension which its
    /// settings name, or else that of the process.
    pub state_root: Option<&'a Path>,
}

impl ReceiverContext<'_> {
    /// The receiver that the new one replaces. An id keeps its type, so that a previous receiver is always found.
    pub fn previous<R: Receiver>(&self) -> Option<&R> {
        self.previous.and_then(downcast_receiver)
    }

    /// The directory in which this receiver keeps its state across restarts. It exists, and no other component of
    /// this process writes to it, except a receiver of the same id that was removed and is still being drained.
    ///
    /// # Errors
    ///
    /// If the process has no directory for state, or the directory cannot be created.
    pub fn state_directory(&self) -> Result<PathBuf, BuildError> {
        state_directory::create(self.state_root, "receivers", self.id)
    }
}

/// Where a receiver starts: its id, the pipelines that it feeds, and where it counts.
pub struct ReceiverSite<'a> {
    pub id: &'a ComponentId,
    pub pipelines: &'a Arc<PipelineSet>,
    pub registry: &'a StatsRegistry,
}

/// A receiver that is checked and bound, and has not started.
pub trait PrepareReceiver: Send + 'static {
    type Running: Receiver;

    /// Starts, and takes over from the previous receiver what both need, such as a listener with its connections.
    /// The engine shuts the previous receiver down afterwards.
    fn start(self, previous: Option<&Self::Running>, site: &ReceiverSite<'_>) -> Self::Running;
}

/// A prepared receiver of any type.
pub struct PreparedReceiver(Box<dyn AnyPrepared>);

impl PreparedReceiver {
    pub fn new(prepared: impl PrepareReceiver) -> Self {
        Self(Box::new(prepared))
    }

    /// Starts the receiver in place of the previous one.
    pub fn start(self, previous: Option<&dyn Receiver>, site: &ReceiverSite<'_>) -> Arc<dyn Receiver> {
        self.0.start(previous, site)
    }
}

trait AnyPrepared: Send {
    fn start(self: Box<Self>, previous: Option<&dyn Receiver>, site: &ReceiverSite<'_>) -> Arc<dyn Receiver>;
}

impl<P: PrepareReceiver> AnyPrepared for P {
    fn start(self: Box<Self>, previous: Option<&dyn Receiver>, site: &ReceiverSite<'_>) -> Arc<dyn Receiver> {
        Arc::new(PrepareReceiver::start(*self, previous.and_then(downcast_receiver), site))
    }
}

fn downcast_receiver<R: Receiver>(receiver: &dyn Receiver) -> Option<&R> {
    (receiver as &dyn Any).downcast_ref()
}
