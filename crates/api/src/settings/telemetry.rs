//! What a Telemetry says, read piece by piece: where one makes no sense the others hold.

use super::{CPU_UTILIZATION, MAX_REPLICAS, MIN_REPLICAS, Sending, Settings, amounts, image};
use crate::{
    Problem,
    v1alpha1::{PullSecret, Resources, Slots, TelemetrySpec, TrustedRelay},
    validate::{is_label, is_name, refuse, sending, within},
};

/// As many as the schema allows, of whatever is counted.
const MOST: i64 = 1000;
/// As many as the schema allows.
const MAX_TRUSTED_RELAYS: i64 = 32;

/// What is said over what holds by default, and what is wrong with it.
pub(super) fn read(spec: &TelemetrySpec, mut settings: Settings) -> (Settings, Vec<Problem>) {
    let mut all = Vec::new();
    let found = &mut all;
    settings.defaults = sound(found, |problems| defaults(spec, problems)).unwrap_or_default();
    if let Some((min, max)) = sound(found, |problems| replicas(spec, problems)) {
        (settings.min_replicas, settings.max_replicas) = (min, max);
    }
    let cpu = spec.scaling.as_ref().and_then(|scaling| scaling.cpu_utilization);
    let cpu = sound(found, |problems| counted("spec.scaling.cpuUtilization", cpu, problems)).flatten();
    settings.cpu_utilization = cpu.unwrap_or(CPU_UTILIZATION);
    settings.resources =
        sound(found, |problems| resources("spec.resources", spec.resources.as_ref(), problems)).unwrap_or_default();
    let sticky = spec.sticky.as_ref();
    let count = sticky.and_then(|sticky| sticky.replicas);
    let count = sound(found, |problems| counted("spec.sticky.replicas", count, problems)).flatten();
    settings.sticky_replicas = count.unwrap_or(MIN_REPLICAS);
    let own = sticky.and_then(|sticky| sticky.resources.as_ref());
    settings.sticky_resources =
        sound(found, |problems| resources("spec.sticky.resources", own, problems)).unwrap_or_default();
    settings.image = sound(found, |problems| named(spec, problems)).flatten();
    settings.image_pull_secrets = sound(found, |problems| pull_secrets(spec, problems)).unwrap_or_default();
    settings.slots = sound(found, |problems| slots(spec, problems)).unwrap_or_default();
    let opencensus = spec.receivers.as_ref().and_then(|receivers| receivers.opencensus.as_ref());
    settings.opencensus = opencensus.is_some_and(|opencensus| opencensus.enabled);
    settings.enrichment = spec.enrichment.as_ref().is_none_or(|enrichment| enrichment.enabled);
    settings.trusted_relays = sound(found, |problems| trusted_relays(spec, problems)).unwrap_or_default();
    settings.log_level = spec.log_level.unwrap_or_default();
    (settings, all)
}

/// A piece, unless something is wrong with it.
fn sound<T>(all: &mut Vec<Problem>, read: impl FnOnce(&mut Vec<Problem>) -> T) -> Option<T> {
    let before = all.len();
    let piece = read(all);
    (all.len() == before).then_some(piece)
}

fn defaults(spec: &TelemetrySpec, problems: &mut Vec<Problem>) -> Sending {
    spec.defaults.as_ref().map(|defaults| sending("spec.defaults", defaults, problems)).unwrap_or_default()
}

fn counted(path: &str, count: Option<i32>, problems: &mut Vec<Problem>) -> Option<i32> {
    within(path, count.map(i64::from), 1, MOST, problems);
    count
}

fn replicas(spec: &TelemetrySpec, problems: &mut Vec<Problem>) -> (i32, i32) {
    let (min, max) = spec.replicas.as_ref().map_or((None, None), |replicas| (replicas.min, replicas.max));
    counted("spec.replicas.min", min, problems);
    counted("spec.replicas.max", max, problems);
    if min.zip(max).is_some_and(|(min, max)| min > max) {
        refuse("spec.replicas", "`min` must not be greater than `max`", problems);
    }
    // What is not said follows what is.
    let most = max.unwrap_or(MAX_REPLICAS.max(min.unwrap_or(MIN_REPLICAS)));
    (min.unwrap_or(MIN_REPLICAS.min(most)), most)
}

fn resources(path: &str, said: Option<&Resources>, problems: &mut Vec<Problem>) -> Resources {
    let said = said.cloned().unwrap_or_default();
    amounts::check(path, &said, problems);
    said
}

fn named(spec: &TelemetrySpec, problems: &mut Vec<Problem>) -> Option<String> {
    if let Some(fault) = spec.image.as_deref().and_then(image::fault) {
        refuse("spec.image", fault, problems);
    }
    spec.image.clone()
}

fn pull_secrets(spec: &TelemetrySpec, problems: &mut Vec<Problem>) -> Vec<PullSecret> {
    for (index, _) in spec.image_pull_secrets.iter().enumerate().filter(|(_, secret)| !is_name(&secret.name)) {
        refuse(format!("spec.imagePullSecrets[{index}].name"), "is not the name of a Secret", problems);
    }
    spec.image_pull_secrets.clone()
}

fn trusted_relays(spec: &TelemetrySpec, problems: &mut Vec<Problem>) -> Vec<TrustedRelay> {
    within("spec.trustedRelays", i64::try_from(spec.trusted_relays.len()).ok(), 0, MAX_TRUSTED_RELAYS, problems);
    for (index, relay) in spec.trusted_relays.iter().enumerate() {
        if !is_label(&relay.namespace) {
            refuse(format!("spec.trustedRelays[{index}].namespace"), "is not the name of a namespace", problems);
        }
        if !is_name(&relay.service_account) {
            let path = format!("spec.trustedRelays[{index}].serviceAccount");
            refuse(path, "is not the name of a ServiceAccount", problems);
        }
    }
    // The order means nothing, and must not be a change of the document.
    let mut relays = spec.trusted_relays.clone();
    relays.sort_by(|a, b| (&a.namespace, &a.service_account).cmp(&(&b.namespace, &b.service_account)));
    relays.dedup();
    relays
}

fn slots(spec: &TelemetrySpec, problems: &mut Vec<Problem>) -> Slots {
    let slots = spec.slots.clone().unwrap_or_default();
    for (field, count) in [("traces", slots.traces), ("logs", slots.logs), ("metrics", slots.metrics)] {
        counted(&format!("spec.slots.{field}"), count, problems);
    }
    slots
}

#[cfg(test)]
mod tests;
