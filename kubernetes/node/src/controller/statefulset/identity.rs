//! The identity of a pod for its ordinal: its name, labels, host name and claims.

use std::collections::BTreeMap;

use k8s_openapi::api::{
    apps::v1::{StatefulSet, StatefulSetSpec},
    core::v1::{PersistentVolumeClaim, PersistentVolumeClaimVolumeSource, Pod, PodTemplateSpec, Volume},
};
use kube::{ResourceExt, api::ObjectMeta};

use crate::controller::{pods, revision};

const POD_NAME_LABEL: &str = "statefulset.kubernetes.io/pod-name";
const POD_INDEX_LABEL: &str = "apps.kubernetes.io/pod-index";

/// The ordinal of a pod with this name, if it can be one of the set.
pub fn ordinal_of(set: &StatefulSet, pod: &str) -> Option<i32> {
    let ordinal = pod.strip_prefix(set.metadata.name.as_deref()?)?.strip_prefix('-')?;
    let number: i32 = ordinal.parse().ok()?;
    (number.to_string() == ordinal && number >= 0).then_some(number)
}

pub fn pod_name(set: &StatefulSet, ordinal: i32) -> String {
    format!("{}-{ordinal}", set.name_any())
}

/// The pod of an ordinal, from the template of the revision with this name.
pub fn new_pod(set: &StatefulSet, template: &PodTemplateSpec, revision: &str, ordinal: i32) -> Pod {
    let name = pod_name(set, ordinal);
    let mut pod = pods::from_template(template, set);
    pod.labels_mut().extend(labels(&name, ordinal));
    pod.labels_mut().insert(revision::POD_REVISION_HASH_LABEL.to_owned(), revision.to_owned());
    let spec = pod.spec.get_or_insert_default();
    spec.hostname = Some(name.clone());
    spec.subdomain = set.spec.as_ref().and_then(|set| set.service_name.clone()).filter(|service| !service.is_empty());
    spec.volumes = Some(volumes(set, &name, spec.volumes.take())).filter(|volumes| !volumes.is_empty());
    pod.metadata.name = Some(name);
    pod
}

/// Identity labels that are missing or wrong on the pod.
pub fn lost_labels(set: &StatefulSet, pod: &Pod) -> BTreeMap<String, String> {
    let name = pod.name_any();
    let Some(ordinal) = ordinal_of(set, &name) else { return BTreeMap::new() };
    labels(&name, ordinal).filter(|(label, value)| pod.labels().get(label) != Some(value)).collect()
}

fn labels(name: &str, ordinal: i32) -> impl Iterator<Item = (String, String)> {
    [(POD_NAME_LABEL.to_owned(), name.to_owned()), (POD_INDEX_LABEL.to_owned(), ordinal.to_string())].into_iter()
}

pub fn claims(set: &StatefulSet, pod: &str) -> Vec<PersistentVolumeClaim> {
    let Some(spec) = &set.spec else { return Vec::new() };
    templates(spec).iter().map(|template| claim(set, spec, template, pod)).collect()
}

/// The names of the claims of a pod with this name.
pub fn claim_names(set: &StatefulSet, pod: &str) -> impl Iterator<Item = String> {
    let templates = set.spec.as_ref().map(templates).unwrap_or_default();
    templates.iter().map(move |template| claim_name(template, pod))
}

fn templates(spec: &StatefulSetSpec) -> &[PersistentVolumeClaim] {
    spec.volume_claim_templates.as_deref().unwrap_or_default()
}

fn claim_name(template: &PersistentVolumeClaim, pod: &str) -> String {
    format!("{}-{pod}", template.name_any())
}

/// The claim also has the labels of the set's pods, so that people can select it.
fn claim(
    set: &StatefulSet,
    spec: &StatefulSetSpec,
    template: &PersistentVolumeClaim,
    pod: &str,
) -> PersistentVolumeClaim {
    let mut labels = template.labels().clone();
    labels.extend(spec.selector.match_labels.clone().unwrap_or_default());
    let metadata = ObjectMeta {
        name: Some(claim_name(template, pod)),
        namespace: set.namespace(),
        labels: Some(labels),
        annotations: template.metadata.annotations.clone(),
        ..ObjectMeta::default()
    };
    PersistentVolumeClaim { metadata, spec: template.spec.clone(), status: None }
}

/// The volumes of the claims come first, and replace volumes of the same names.
fn volumes(set: &StatefulSet, pod: &str, given: Option<Vec<Volume>>) -> Vec<Volume> {
    let templates = set.spec.as_ref().map(templates).unwrap_or_default();
    let of_claim = |template: &PersistentVolumeClaim| Volume {
        name: template.name_any(),
        persistent_volume_claim: Some(PersistentVolumeClaimVolumeSource {
            claim_name: claim_name(template, pod),
            read_only: None,
        }),
        ..Volume::default()
    };
    let mut volumes: Vec<Volume> = templates.iter().map(of_claim).collect();
    let is_claim = |volume: &Volume| templates.iter().any(|template| template.name_any() == volume.name);
    volumes.extend(given.into_iter().flatten().filter(|volume| !is_claim(volume)));
    volumes
}
