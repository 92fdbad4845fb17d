//! Who of several operators works: the one that holds the Lease.
//!
//! *Guaranteed*: whoever loses it stops what it does, and so does who cannot renew it in time, whether the API server answers or not (`fence`). Of several that take it at once one gets it.
//! *Not needed* for anything to be right: locks and documents are safe with two that work at once, which happens when one was paused. It keeps them from doing everything twice.

use std::time::Duration;

use k8s_openapi::api::{coordination::v1::Lease, core::v1::Namespace};
use kube::{
    Api, Client,
    api::{ObjectMeta, PostParams},
};
use kube_lease_manager::{LeaseManager, LeaseManagerBuilder, LeaseManagerError};
use tokio::{
    sync::watch,
    task::JoinHandle,
    time::{Instant, sleep, timeout},
};
use xxhash_rust::xxh3::xxh3_64;

use self::fence::Fence;
use crate::names;

mod fence;
#[cfg(test)]
mod tests;

/// How long it may take to give the Lease back. Without that another one waits until it expires, which is no harm.
const FAREWELL: Duration = Duration::from_secs(3);

/// How often who waits looks whether the Lease was given back.
const LOOK: Duration = Duration::from_secs(2);

/// How the Lease is held.
#[derive(Clone, Debug)]
pub struct Terms {
    /// Who this is. Nobody else may have the same name at the same time.
    pub identity: String,
    /// After so many seconds without a word another one takes over.
    pub seconds: u64,
}

/// Stands for election as long as it is there.
#[derive(Debug)]
pub struct Candidate {
    leases: Api<Lease>,
    state: watch::Receiver<bool>,
    fence: Fence,
    task: JoinHandle<Result<LeaseManager, LeaseManagerError>>,
}

impl Candidate {
    /// Begins to ask for the Lease. The namespace is made if it is not there.
    ///
    /// # Errors
    /// If there can be no Lease.
    pub async fn stand(client: &Client, namespace: &str, terms: &Terms) -> Result<Self, LeaseManagerError> {
        let fence = Fence::new(Duration::from_secs(terms.seconds));
        let client = &fence.watch(client);
        // Each has a name of its own, as the API server refuses to one what another owns. An identity may be too long for it.
        let manager = format!("{}-{:016x}", names::MANAGER, xxh3_64(terms.identity.as_bytes()));
        // It is renewed when a third of the term is over, so that there is time to try again.
        let build = || {
            LeaseManagerBuilder::new(client.clone(), names::LEASE)
                .with_namespace(namespace)
                .with_identity(&terms.identity)
                .with_field_manager(&manager)
                .with_duration(terms.seconds)
                .with_grace((terms.seconds * 2 / 3).max(1))
                .build()
        };
        let manager = match build().await {
            Ok(manager) => manager,
            Err(_) => {
                make_namespace(client, namespace).await;
                build().await?
            }
        };
        let (state, task) = manager.watch().await;
        Ok(Self { leases: Api::namespaced(client.clone(), namespace), state, fence, task })
    }

    /// Waits until it leads. It does not, if nobody asks for the Lease any more, or if it was given back: until that would have expired nobody asks, and
    /// whoever stands anew takes it at once.
    pub async fn elected(&mut self) -> bool {
        let is_elected = tokio::select! {
            biased;
            state = self.state.wait_for(|leads| *leads) => state.is_ok(),
            () = given_back(&self.leases) => false,
        };
        // Who finds its own name in the Lease has not written it.
        self.fence.renew(Instant::now());
        is_elected
    }

    /// Waits until it does not lead any more, or does not know.
    pub async fn deposed(&mut self) {
        let fence = self.fence.clone();
        tokio::select! {
            // Also if nobody asks for the Lease any more.
            _ = self.state.wait_for(|leads| !*leads) => {}
            () = fence.fallen() => {
                tracing::error!("the Lease could not be renewed in time, and another operator may take it");
            }
        }
    }

    /// Gives the Lease back, so that another one takes over at once; as far as the API server answers soon.
    pub async fn resign(mut self) {
        drop(self.state);
        match timeout(FAREWELL, &mut self.task).await {
            Ok(Ok(Ok(_))) => {}
            Ok(Ok(Err(error))) => tracing::warn!(%error, "the Lease is not given back"),
            Ok(Err(error)) => tracing::warn!(%error, "the Lease is not given back"),
            Err(_) => {
                self.task.abort();
                tracing::warn!("the Lease is not given back: the API server does not answer");
            }
        }
    }
}

/// Waits until nobody holds the Lease.
async fn given_back(leases: &Api<Lease>) {
    loop {
        sleep(LOOK).await;
        let lease = leases.get_opt(names::LEASE).await.ok().flatten();
        let spec = lease.and_then(|lease| lease.spec);
        if spec.is_some_and(|spec| spec.holder_identity.is_none_or(|holder| holder.is_empty())) {
            return;
        }
    }
}

/// On somebody's own machine nobody else would. Where it may not be made, it is there.
async fn make_namespace(client: &Client, name: &str) {
    let metadata = ObjectMeta { name: Some(name.to_owned()), ..ObjectMeta::default() };
    let namespace = Namespace { metadata, ..Namespace::default() };
    if let Err(error) = Api::<Namespace>::all(client.clone()).create(&PostParams::default(), &namespace).await {
        tracing::debug!(kind = "Namespace", name, %error, "it is not made");
    }
}
