//! Keeps compiled webhooks and policies up to date with their objects.

use std::{collections::BTreeMap, fmt, sync::Arc};

use serde_json::Value;
use tokio::task::JoinSet;

use super::{ObjectChange, ObjectFeed};
use crate::{
    admission::{AdmissionChain, AdmissionPolicy, AdmissionPolicyBinding, CompiledSet, WebhookConfiguration},
    api::GroupResource,
    server_state::ServerState,
    store::{ListQuery, Stored},
};

/// Starts to follow all collections. Stored configurations are active when this returns: no request may come
/// before.
pub fn start(core: &Arc<ServerState>, tasks: &mut JoinSet<()>) {
    let hooks = WebhookConfiguration::compile;
    let mutating = ConfigurationFollower::load(core, "mutatingwebhookconfigurations", hooks, |admission| {
        &admission.mutating_webhooks
    });
    let validating = ConfigurationFollower::load(core, "validatingwebhookconfigurations", hooks, |admission| {
        &admission.validating_webhooks
    });
    let policies =
        ConfigurationFollower::load(core, "validatingadmissionpolicies", AdmissionPolicy::compile, |all| &all.policies);
    let bindings = ConfigurationFollower::load(
        core,
        "validatingadmissionpolicybindings",
        AdmissionPolicyBinding::compile,
        |all| &all.bindings,
    );
    tasks.spawn(mutating.run());
    tasks.spawn(validating.run());
    tasks.spawn(policies.run());
    tasks.spawn(bindings.run());
}

/// The compiled objects of a collection by name, each with its revision.
struct ConfigurationFollower<T> {
    core: Arc<ServerState>,
    collection: GroupResource,
    compile: fn(&Value) -> T,
    target: fn(&AdmissionChain) -> &CompiledSet<T>,
    all: BTreeMap<Arc<str>, (u64, Arc<T>)>,
}

impl<T: fmt::Debug + Send + Sync + 'static> ConfigurationFollower<T> {
    fn load(
        core: &Arc<ServerState>,
        collection: &str,
        compile: fn(&Value) -> T,
        target: fn(&AdmissionChain) -> &CompiledSet<T>,
    ) -> Self {
        let collection = GroupResource::new("admissionregistration.k8s.io", collection);
        let mut follower = Self { core: Arc::clone(core), collection, compile, target, all: BTreeMap::new() };
        follower.reload_all();
        follower
    }

    /// Follows the collection. Unchanged objects keep their connections.
    async fn run(mut self) {
        let mut feed = ObjectFeed::new(&self.core.store, self.collection.clone());
        loop {
            match feed.next().await {
                // The set is replaced as a whole: if objects were added one by one, a request could bypass
                // some.
                ObjectChange::Reset => Arc::clone(&self.core).heavy.run(async { self.reload_all() }).await,
                ObjectChange::Set(stored) => {
                    // Expressions may take long to compile, so that this is off the async threads.
                    Arc::clone(&self.core).heavy.run(async { self.compile_object(&stored) }).await;
                    self.publish_compiled();
                }
                ObjectChange::Deleted(stored) => {
                    // Unless the list has shown a later object of that name.
                    self.all.retain(|name, (revision, _)| *name != stored.key.name || *revision > stored.revision);
                    self.publish_compiled();
                }
            }
        }
    }

    fn reload_all(&mut self) {
        // The newest state can always be listed.
        let Ok(listed) = self.core.store.list(&self.collection, &ListQuery::default()) else { return };
        self.all.retain(|name, _| listed.items.iter().any(|stored| stored.key.name == *name));
        listed.items.iter().for_each(|stored| self.compile_object(stored));
        self.publish_compiled();
    }

    fn compile_object(&mut self, stored: &Stored) {
        // After a list, the feed repeats the same objects.
        if self.all.get(&stored.key.name).is_none_or(|(revision, _)| *revision < stored.revision) {
            let compiled = Arc::new((self.compile)(&stored.value()));
            self.all.insert(Arc::clone(&stored.key.name), (stored.revision, compiled));
        }
    }

    fn publish_compiled(&self) {
        let all = self.all.values().map(|(_, compiled)| Arc::clone(compiled)).collect();
        (self.target)(&self.core.admission).store(Arc::new(all));
    }
}

#[cfg(test)]
mod tests {
    use std::{
        sync::{
            Mutex,
            mpsc::{Receiver, channel},
        },
        time::Duration,
    };

    use serde_json::json;

    use super::*;
    use crate::{admission::testing, api::ObjectKey};

    static SERVED: Mutex<Option<Receiver<()>>> = Mutex::new(None);

    /// Computes until another task has run.
    fn compile(value: &Value) -> WebhookConfiguration {
        let served = SERVED.lock().unwrap().take();
        if let Some(served) = served {
            served.recv_timeout(Duration::from_secs(60)).unwrap();
        }
        WebhookConfiguration::compile(value)
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 1)]
    async fn configuration_is_compiled_on_no_async_thread() {
        let core = testing::core().await;
        let follower =
            ConfigurationFollower::load(&core, "mutatingwebhookconfigurations", compile, |all| &all.mutating_webhooks);
        let (serve, served) = channel();
        *SERVED.lock().unwrap() = Some(served);
        tokio::spawn(follower.run());
        let key = ObjectKey::new(
            GroupResource::new("admissionregistration.k8s.io", "mutatingwebhookconfigurations"),
            "",
            "hooks",
        );
        core.store.create(key, json!({"metadata": {"name": "hooks", "uid": "u"}, "webhooks": []})).await.unwrap();
        // Taken by `compile`, which from here on waits for the only async thread to run another task.
        while SERVED.lock().unwrap().is_some() {
            tokio::task::yield_now().await;
        }
        tokio::spawn(async move { serve.send(()).ok() }).await.unwrap();
        while core.admission.mutating_webhooks.load().is_empty() {
            tokio::task::yield_now().await;
        }
    }
}
