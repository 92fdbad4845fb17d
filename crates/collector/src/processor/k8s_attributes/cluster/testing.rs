//! A cluster that is told what is there.

use super::*;

/// A cluster that is told what is there.
pub(in crate::processor::k8s_attributes) fn told(
    settings: &KubernetesAttributes,
    events: &[serde_json::Value],
) -> Arc<Cluster> {
    let cluster = Cluster::new(settings, Arc::default(), &ComponentId::new("k8s_attributes"));
    events.iter().for_each(|object| cluster.tell(object));
    cluster
}

impl Cluster {
    /// An object is there.
    pub(in crate::processor::k8s_attributes) fn tell(&self, object: &serde_json::Value) {
        let kind = match object["kind"].as_str().unwrap() {
            "Pod" => {
                let pod: Pod = serde_json::from_value(object.clone()).unwrap();
                return self.pod(Event::Applied(pod), &mut HashSet::new());
            }
            "ReplicaSet" => Kind::ReplicaSet,
            "Namespace" => Kind::Of(Owner::Namespace),
            "Node" => Kind::Of(Owner::Node),
            "Deployment" => Kind::Of(Owner::Deployment),
            "Job" => Kind::Of(Owner::Job),
            other => panic!("{other}"),
        };
        let any: Any = serde_json::from_value(object.clone()).unwrap();
        self.other(kind, Event::Applied(any), &mut HashSet::new());
    }

    /// A pod is gone.
    pub(in crate::processor::k8s_attributes) fn forget(&self, uid: &str) {
        self.pod_gone(uid);
    }

    /// What is counted.
    pub(in crate::processor::k8s_attributes) fn stats(&self) -> &ClusterStats {
        &self.stats
    }

    /// Lists of what is no pod come, and are empty.
    pub(in crate::processor::k8s_attributes) fn list_nothing(&self) {
        for kind in self.kinds().into_iter().filter(|kind| *kind != Kind::Pod) {
            self.other(kind, Event::Complete, &mut HashSet::new());
        }
    }

    /// Time has passed.
    pub(in crate::processor::k8s_attributes) fn sweep(&self) {
        self.change(|state| state.sweep(Instant::now()));
    }

    /// What is asked of the API server.
    pub(in crate::processor::k8s_attributes) fn asks(&self) -> Vec<String> {
        let text = |query: Query| format!("{} {} {}", query.path, query.fields, query.labels).trim_end().to_owned();
        self.kinds().into_iter().map(|kind| text(self.query(kind))).collect()
    }

    /// The cluster cannot be asked for pods.
    pub(in crate::processor::k8s_attributes) fn fail(&self, error: kubernetes::ApiError) {
        self.pod(Event::Failed(error), &mut HashSet::new());
    }

    /// Every list is complete.
    pub(in crate::processor::k8s_attributes) fn complete_all(&self) {
        self.kinds().into_iter().for_each(|kind| self.complete(kind));
    }
}
