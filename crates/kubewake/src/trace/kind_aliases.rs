//! kubectl's short names of kinds.
//!
//! Short names of Kubernetes' own kinds and of Kubewake's, in lower case as in kubectl: `Quota` is a kind of
//! its own. Other short names are known only to their cluster, which may not be reachable.

const SHORT_NAMES: [(&str, &str); 27] = [
    ("cj", "CronJob"),
    ("cm", "ConfigMap"),
    ("crd", "CustomResourceDefinition"),
    ("crds", "CustomResourceDefinition"),
    ("csr", "CertificateSigningRequest"),
    ("deploy", "Deployment"),
    ("ds", "DaemonSet"),
    ("ep", "Endpoints"),
    ("ev", "Event"),
    ("hpa", "HorizontalPodAutoscaler"),
    ("ing", "Ingress"),
    ("limits", "LimitRange"),
    ("netpol", "NetworkPolicy"),
    ("no", "Node"),
    ("ns", "Namespace"),
    ("pc", "PriorityClass"),
    ("pdb", "PodDisruptionBudget"),
    ("po", "Pod"),
    ("pv", "PersistentVolume"),
    ("pvc", "PersistentVolumeClaim"),
    ("quota", "ResourceQuota"),
    ("rc", "ReplicationController"),
    ("rs", "ReplicaSet"),
    ("sa", "ServiceAccount"),
    ("sc", "StorageClass"),
    ("sts", "StatefulSet"),
    ("svc", "Service"),
];
/// Short names of the project's own kinds, as in their CRDs.
const OWN_SHORT_NAMES: [(&str, &str); 4] =
    [("logp", "LogPipeline"), ("metricp", "MetricPipeline"), ("tel", "Telemetry"), ("tracep", "TracePipeline")];

/// Expands a short name. Other text is returned unchanged.
pub(super) fn expand_kind(written: &str) -> &str {
    let is_it = |(short, _): &&(&str, &'static str)| *short == written;
    SHORT_NAMES.iter().chain(&OWN_SHORT_NAMES).find(is_it).map_or(written, |(_, kind)| kind)
}

#[cfg(test)]
mod tests {
    use kube::CustomResourceExt as _;
    use kubewake_api::v1alpha1::{LogPipeline, MetricPipeline, Telemetry, TracePipeline};

    use super::*;

    #[test]
    fn a_short_name_is_its_kind_and_all_else_stays() {
        assert_eq!(
            ["deploy", "cm", "ns", "quota"].map(expand_kind),
            ["Deployment", "ConfigMap", "Namespace", "ResourceQuota"]
        );
        assert_eq!(["deployments", "Head", "Quota", ""].map(expand_kind), ["deployments", "Head", "Quota", ""]);
    }

    #[test]
    fn our_own_kinds_have_the_names_of_their_definitions() {
        for definition in [LogPipeline::crd(), MetricPipeline::crd(), Telemetry::crd(), TracePipeline::crd()] {
            let names = definition.spec.names;
            let shorts = names.short_names.unwrap_or_default();
            assert!(!shorts.is_empty());
            assert!(shorts.iter().all(|short| expand_kind(short) == names.kind), "{shorts:?}");
        }
    }
}
