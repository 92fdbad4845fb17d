//! A cluster cache whose objects are set by the test.

use super::*;

/// A cluster cache with these objects.
pub(in crate::processor::k8s_attributes) fn cluster_with_objects(
    settings: &KubernetesAttributesProcessor,
    events: &[serde_json::Value],
) -> Arc<ClusterCache> {
    let cluster = ClusterCache::new(settings, Arc::default(), &ComponentId::new("k8s_attributes"));
    events.iter().for_each(|object| cluster.apply_object(object));
    cluster
}

impl ClusterCache {
    pub(in crate::processor::k8s_attributes) fn apply_object(&self, object: &serde_json::Value) {
        let kind = match object["kind"].as_str().unwrap() {
            "Pod" => {
                let pod: WatchedPod = serde_json::from_value(object.clone()).unwrap();
                return self.on_pod_event(ObjectEvent::Applied(pod), &mut HashSet::new());
            }
            "ReplicaSet" => WatchedKind::ReplicaSet,
            "Namespace" => WatchedKind::Of(ExtractFrom::Namespace),
            "Node" => WatchedKind::Of(ExtractFrom::Node),
            "Deployment" => WatchedKind::Of(ExtractFrom::Deployment),
            "Job" => WatchedKind::Of(ExtractFrom::Job),
            other => panic!("{other}"),
        };
        let any: MetadataOnly = serde_json::from_value(object.clone()).unwrap();
        self.on_object_event(kind, ObjectEvent::Applied(any), &mut HashSet::new());
    }

    pub(in crate::processor::k8s_attributes) fn forget(&self, uid: &str) {
        self.mark_pod_gone(uid);
    }

    pub(in crate::processor::k8s_attributes) fn stats(&self) -> &ClusterStats {
        &self.stats
    }

    /// Completes the lists of all kinds but pods; they are empty.
    pub(in crate::processor::k8s_attributes) fn list_nothing(&self) {
        for kind in self.kinds().into_iter().filter(|kind| *kind != WatchedKind::Pod) {
            self.on_object_event(kind, ObjectEvent::ListCompleted, &mut HashSet::new());
        }
    }

    pub(in crate::processor::k8s_attributes) fn sweep(&self) {
        self.update_state(|state| state.sweep(Instant::now()));
    }

    /// The requests to the API server.
    pub(in crate::processor::k8s_attributes) fn asks(&self) -> Vec<String> {
        let text =
            |query: WatchQuery| format!("{} {} {}", query.path, query.fields, query.labels).trim_end().to_owned();
        self.kinds().into_iter().map(|kind| text(self.query(kind))).collect()
    }

    /// Lets the watch of pods fail.
    pub(in crate::processor::k8s_attributes) fn fail(&self, error: kubernetes::ApiError) {
        self.on_pod_event(ObjectEvent::Failed(error), &mut HashSet::new());
    }

    pub(in crate::processor::k8s_attributes) fn complete_all(&self) {
        self.kinds().into_iter().for_each(|kind| self.mark_synced(kind));
    }
}
