//! Reads a Telemetry field by field: where one is invalid the others still apply.

use super::{
    CollectorSettings, DEFAULT_CPU_UTILIZATION_PERCENT, DEFAULT_MAX_REPLICAS, DEFAULT_MIN_REPLICAS, SendingSettings,
    image, resources,
};
use crate::{
    SpecProblem,
    v1alpha1::{ContainerResources, PipelineSlots, PullSecret, TelemetrySpec, TrustedRelay},
    validate::{check_range, is_label, is_name, refuse, sending},
};

/// The schema's limit of any count.
const MAX_COUNT: i64 = 1000;
/// The schema's limit.
const MAX_TRUSTED_RELAYS: i64 = 32;
/// The schema's limit.
const MAX_LINKED_LOG_DIRECTORIES: i64 = 8;

/// Applies a spec over the defaults, and returns all problems.
pub(super) fn apply_spec(
    spec: &TelemetrySpec,
    mut settings: CollectorSettings,
) -> (CollectorSettings, Vec<SpecProblem>) {
    let mut all = Vec::new();
    let found = &mut all;
    settings.defaults = read_if_valid(found, |problems| defaults(spec, problems)).unwrap_or_default();
    if let Some((min, max)) = read_if_valid(found, |problems| replicas(spec, problems)) {
        (settings.min_replicas, settings.max_replicas) = (min, max);
    }
    let cpu = spec.scaling.as_ref().and_then(|scaling| scaling.cpu_utilization);
    let cpu = read_if_valid(found, |problems| read_count("spec.scaling.cpuUtilization", cpu, problems)).flatten();
    settings.cpu_utilization = cpu.unwrap_or(DEFAULT_CPU_UTILIZATION_PERCENT);
    settings.resources =
        read_if_valid(found, |problems| resources("spec.resources", spec.resources.as_ref(), problems))
            .unwrap_or_default();
    let sticky = spec.sticky.as_ref();
    let count = sticky.and_then(|sticky| sticky.replicas);
    let count = read_if_valid(found, |problems| read_count("spec.sticky.replicas", count, problems)).flatten();
    settings.sticky_replicas = count.unwrap_or(DEFAULT_MIN_REPLICAS);
    let own = sticky.and_then(|sticky| sticky.resources.as_ref());
    settings.sticky_resources =
        read_if_valid(found, |problems| resources("spec.sticky.resources", own, problems)).unwrap_or_default();
    let agent = spec.agent.as_ref();
    let own = agent.and_then(|agent| agent.resources.as_ref());
    settings.agent_resources =
        read_if_valid(found, |problems| resources("spec.agent.resources", own, problems)).unwrap_or_default();
    settings.linked_log_directories =
        read_if_valid(found, |problems| linked_log_directories(spec, problems)).unwrap_or_default();
    settings.image = read_if_valid(found, |problems| container_image(spec, problems)).flatten();
    settings.image_pull_secrets = read_if_valid(found, |problems| pull_secrets(spec, problems)).unwrap_or_default();
    settings.slots = read_if_valid(found, |problems| slots(spec, problems)).unwrap_or_default();
    let opencensus = spec.receivers.as_ref().and_then(|receivers| receivers.opencensus.as_ref());
    settings.opencensus = opencensus.is_some_and(|opencensus| opencensus.enabled);
    settings.enrichment = spec.enrichment.as_ref().is_none_or(|enrichment| enrichment.enabled);
    settings.trusted_relays = read_if_valid(found, |problems| trusted_relays(spec, problems)).unwrap_or_default();
    settings.log_level = spec.log_level.unwrap_or_default();
    (settings, all)
}

/// Returns a value unless reading it added a problem.
fn read_if_valid<T>(all: &mut Vec<SpecProblem>, read: impl FnOnce(&mut Vec<SpecProblem>) -> T) -> Option<T> {
    let before = all.len();
    let piece = read(all);
    (all.len() == before).then_some(piece)
}

fn defaults(spec: &TelemetrySpec, problems: &mut Vec<SpecProblem>) -> SendingSettings {
    spec.defaults.as_ref().map(|defaults| sending("spec.defaults", defaults, problems)).unwrap_or_default()
}

fn read_count(path: &str, count: Option<i32>, problems: &mut Vec<SpecProblem>) -> Option<i32> {
    check_range(path, count.map(i64::from), 1, MAX_COUNT, problems);
    count
}

fn replicas(spec: &TelemetrySpec, problems: &mut Vec<SpecProblem>) -> (i32, i32) {
    let (min, max) = spec.replicas.as_ref().map_or((None, None), |replicas| (replicas.min, replicas.max));
    read_count("spec.replicas.min", min, problems);
    read_count("spec.replicas.max", max, problems);
    if min.zip(max).is_some_and(|(min, max)| min > max) {
        refuse("spec.replicas", "`min` must not be greater than `max`", problems);
    }
    // A default adjusts to the bound that is set.
    let most = max.unwrap_or(DEFAULT_MAX_REPLICAS.max(min.unwrap_or(DEFAULT_MIN_REPLICAS)));
    (min.unwrap_or(DEFAULT_MIN_REPLICAS.min(most)), most)
}

fn resources(path: &str, said: Option<&ContainerResources>, problems: &mut Vec<SpecProblem>) -> ContainerResources {
    let said = said.cloned().unwrap_or_default();
    resources::check(path, &said, problems);
    said
}

/// Each must be a directory as container runtimes have it, so that no other files of a node can be mounted.
fn linked_log_directories(spec: &TelemetrySpec, problems: &mut Vec<SpecProblem>) -> Vec<String> {
    let given = spec.agent.as_ref().map(|agent| agent.linked_log_directories.as_slice()).unwrap_or_default();
    let path = "spec.agent.linkedLogDirectories";
    check_range(path, i64::try_from(given.len()).ok(), 0, MAX_LINKED_LOG_DIRECTORIES, problems);
    for (index, _) in given.iter().enumerate().filter(|(_, directory)| !is_log_directory(directory)) {
        let message =
            "is not the directory of a container runtime: write an absolute path that ends with `/containers`";
        refuse(format!("{path}[{index}]"), message, problems);
    }
    let mut directories = given.to_vec();
    directories.sort_unstable();
    directories.dedup();
    directories
}

fn is_log_directory(path: &str) -> bool {
    let inner = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    let is_part = |part: &str| !part.is_empty() && !part.starts_with('.') && part.chars().all(inner);
    let parts = path.strip_prefix('/').map(|rest| rest.split('/').collect::<Vec<_>>()).unwrap_or_default();
    path.len() <= 255
        && parts.len() > 1
        && parts.iter().all(|part| is_part(part))
        && parts.last() == Some(&"containers")
}

fn container_image(spec: &TelemetrySpec, problems: &mut Vec<SpecProblem>) -> Option<String> {
    if let Some(fault) = spec.image.as_deref().and_then(image::image_name_error) {
        refuse("spec.image", fault, problems);
    }
    spec.image.clone()
}

fn pull_secrets(spec: &TelemetrySpec, problems: &mut Vec<SpecProblem>) -> Vec<PullSecret> {
    for (index, _) in spec.image_pull_secrets.iter().enumerate().filter(|(_, secret)| !is_name(&secret.name)) {
        refuse(format!("spec.imagePullSecrets[{index}].name"), "is not the name of a Secret", problems);
    }
    spec.image_pull_secrets.clone()
}

fn trusted_relays(spec: &TelemetrySpec, problems: &mut Vec<SpecProblem>) -> Vec<TrustedRelay> {
    check_range("spec.trustedRelays", i64::try_from(spec.trusted_relays.len()).ok(), 0, MAX_TRUSTED_RELAYS, problems);
    for (index, relay) in spec.trusted_relays.iter().enumerate() {
        if !is_label(&relay.namespace) {
            refuse(format!("spec.trustedRelays[{index}].namespace"), "is not the name of a namespace", problems);
        }
        if !is_name(&relay.service_account) {
            let path = format!("spec.trustedRelays[{index}].serviceAccount");
            refuse(path, "is not the name of a ServiceAccount", problems);
        }
    }
    // The order has no meaning, and must not change the document.
    let mut relays = spec.trusted_relays.clone();
    relays.sort_by(|a, b| (&a.namespace, &a.service_account).cmp(&(&b.namespace, &b.service_account)));
    relays.dedup();
    relays
}

fn slots(spec: &TelemetrySpec, problems: &mut Vec<SpecProblem>) -> PipelineSlots {
    let slots = spec.slots.clone().unwrap_or_default();
    for (field, count) in [("traces", slots.traces), ("logs", slots.logs), ("metrics", slots.metrics)] {
        read_count(&format!("spec.slots.{field}"), count, problems);
    }
    slots
}

#[cfg(test)]
mod tests;
