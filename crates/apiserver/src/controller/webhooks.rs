//! Keeps compiled webhooks and policies as new as their objects.

use std::{collections::BTreeMap, fmt, sync::Arc};

use serde_json::Value;
use tokio::task::JoinSet;

use super::{Change, Feed};
use crate::{
    admission::{Admission, Binding, Compiled, Configuration, Policy},
    api::GroupResource,
    core::Core,
    store::{ListQuery, Stored},
};

/// Starts to follow all of them. What is stored now is in force when this returns: no request may come before.
pub fn start(core: &Arc<Core>, tasks: &mut JoinSet<()>) {
    let hooks = Configuration::compile;
    let mutating = Follower::load(core, "mutatingwebhookconfigurations", hooks, |admission| &admission.mutating);
    let validating = Follower::load(core, "validatingwebhookconfigurations", hooks, |admission| &admission.validating);
    let policies = Follower::load(core, "validatingadmissionpolicies", Policy::compile, |all| &all.policies);
    let bindings = Follower::load(core, "validatingadmissionpolicybindings", Binding::compile, |all| &all.bindings);
    tasks.spawn(mutating.run());
    tasks.spawn(validating.run());
    tasks.spawn(policies.run());
    tasks.spawn(bindings.run());
}

/// The compiled objects of a collection, by name, and the revision of each.
struct Follower<T> {
    core: Arc<Core>,
    collection: GroupResource,
    compile: fn(&Value) -> T,
    target: fn(&Admission) -> &Compiled<T>,
    all: BTreeMap<Arc<str>, (u64, Arc<T>)>,
}

impl<T: fmt::Debug + Send + Sync + 'static> Follower<T> {
    fn load(
        core: &Arc<Core>,
        collection: &str,
        compile: fn(&Value) -> T,
        target: fn(&Admission) -> &Compiled<T>,
    ) -> Self {
        let collection = GroupResource::new("admissionregistration.k8s.io", collection);
        let mut follower = Self { core: Arc::clone(core), collection, compile, target, all: BTreeMap::new() };
        follower.list();
        follower
    }

    /// Follows the collection. What did not change keeps its connections.
    async fn run(mut self) {
        let mut feed = Feed::new(&self.core.store, self.collection.clone());
        loop {
            match feed.next().await {
                // Never fewer than there are: while they come one by one, a request could slip through.
                Change::Reset => Arc::clone(&self.core).heavy.run(async { self.list() }).await,
                Change::Set(stored) => {
                    // Expressions may take long to compile: no async thread waits for them.
                    Arc::clone(&self.core).heavy.run(async { self.set(&stored) }).await;
                    self.publish();
                }
                Change::Gone(stored) => {
                    // Unless the list has shown one that came after it.
                    self.all.retain(|name, (revision, _)| *name != stored.key.name || *revision > stored.revision);
                    self.publish();
                }
            }
        }
    }

    fn list(&mut self) {
        // The state of now can always be listed.
        let Ok(listed) = self.core.store.list(&self.collection, &ListQuery::default()) else { return };
        self.all.retain(|name, _| listed.items.iter().any(|stored| stored.key.name == *name));
        listed.items.iter().for_each(|stored| self.set(stored));
        self.publish();
    }

    fn set(&mut self, stored: &Stored) {
        // After a list, the feed tells of the same once more.
        if self.all.get(&stored.key.name).is_none_or(|(revision, _)| *revision < stored.revision) {
            let compiled = Arc::new((self.compile)(&stored.value()));
            self.all.insert(Arc::clone(&stored.key.name), (stored.revision, compiled));
        }
    }

    fn publish(&self) {
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

    /// Compiles until somebody else has been served.
    fn compile(value: &Value) -> Configuration {
        let served = SERVED.lock().unwrap().take();
        if let Some(served) = served {
            served.recv_timeout(Duration::from_secs(60)).unwrap();
        }
        Configuration::compile(value)
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 1)]
    async fn configuration_is_compiled_on_no_async_thread() {
        let core = testing::core().await;
        let follower = Follower::load(&core, "mutatingwebhookconfigurations", compile, |all| &all.mutating);
        let (serve, served) = channel();
        *SERVED.lock().unwrap() = Some(served);
        tokio::spawn(follower.run());
        let key = ObjectKey::new(
            GroupResource::new("admissionregistration.k8s.io", "mutatingwebhookconfigurations"),
            "",
            "hooks",
        );
        core.store.create(key, json!({"metadata": {"name": "hooks", "uid": "u"}, "webhooks": []})).await.unwrap();
        // Taken by the compiler: from here on it waits for the only async thread to serve another task.
        while SERVED.lock().unwrap().is_some() {
            tokio::task::yield_now().await;
        }
        tokio::spawn(async move { serve.send(()).ok() }).await.unwrap();
        while core.admission.mutating.load().is_empty() {
            tokio::task::yield_now().await;
        }
    }
}
