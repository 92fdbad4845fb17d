//! Validates the security contexts of pods and containers.
//!
//! Not done: the options of Windows, and the policy of `--allow-privileged`, which is on here.

use std::collections::BTreeSet;

use serde_json::Value;

use super::container::report_invalid_number;
use crate::{
    api::field::{FieldError, FieldErrors},
    kinds::{field_value::FieldValue, names},
};

/// The longest name of a sysctl, and the longest AppArmor profile.
const MAX_SYSCTL_BYTES: usize = 253;
const MAX_APP_ARMOR_PROFILE_BYTES: usize = 4095;

/// Prefixes of the sysctls of a namespace of the host.
const NETWORK_SYSCTLS: [&str; 1] = ["net."];
const IPC_SYSCTLS: [&str; 4] = ["kernel.sem", "kernel.shm", "kernel.msg", "fs.mqueue."];

/// Validates the security context of a pod, and what depends on it.
pub(super) fn pod_context(spec: &FieldValue<'_>, errors: &mut FieldErrors) {
    let context = spec.get("securityContext");
    user_ids(&context, &["fsGroup", "runAsUser", "runAsGroup"], errors);
    for group in context.get("supplementalGroups").items() {
        user_id(&group, errors);
    }
    if spec.get("shareProcessNamespace").is_true() && spec.get("hostPID").is_true() {
        context.get("shareProcessNamespace").report_invalid_as(
            errors,
            "true",
            "ShareProcessNamespace and HostPID cannot both be enabled",
        );
    }
    sysctls(spec, &context.get("sysctls"), errors);
    for (field, known) in [
        ("fsGroupChangePolicy", &["Always", "OnRootMismatch"]),
        ("supplementalGroupsPolicy", &["Merge", "Strict"]),
        ("seLinuxChangePolicy", &["MountOption", "Recursive"]),
    ] {
        if context.get(field).is_set() {
            context.get(field).require_one_of(errors, known);
        }
    }
    profiles(&context, errors);
}

/// Validates the security context of a container. `user_namespace` says whether the pod's users are those of
/// the host.
pub(super) fn container_context(context: &FieldValue<'_>, users: HostUsers, errors: &mut FieldErrors) {
    user_ids(context, &["runAsUser", "runAsGroup"], errors);
    let mount = context.get("procMount");
    if mount.is_set() {
        mount.require_one_of(errors, &["Default", "Unmasked"]);
        if users == HostUsers::Shared && mount.str() == "Unmasked" {
            mount.report_invalid(errors, "`hostUsers` must be false to use `Unmasked`");
        }
    }
    if context.get("allowPrivilegeEscalation").value == &Value::Bool(false) {
        let shown = || internal_form(context);
        if context.get("privileged").is_true() {
            let detail = "cannot set `allowPrivilegeEscalation` to false and `privileged` to true";
            context.report_invalid_as(errors, &shown(), detail);
        }
        let added = context.get("capabilities");
        let added = added.get("add");
        if added.items().any(|capability| capability.str() == "CAP_SYS_ADMIN") {
            let detail = "cannot set `allowPrivilegeEscalation` to false and `capabilities.Add` CAP_SYS_ADMIN";
            context.report_invalid_as(errors, &shown(), detail);
        }
    }
    profiles(context, errors);
}

/// Whether the users of a pod are those of its node, or of a namespace of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum HostUsers {
    Shared,
    Separate,
}

impl HostUsers {
    pub(super) fn from_spec(spec: &FieldValue<'_>) -> Self {
        if spec.get("hostUsers").value == &Value::Bool(false) { Self::Separate } else { Self::Shared }
    }
}

/// What a pod with users of its own may not share with its node.
pub(super) fn host_users(spec: &FieldValue<'_>, errors: &mut FieldErrors) {
    if HostUsers::from_spec(spec) == HostUsers::Shared {
        return;
    }
    for (field, shown) in [("hostNetwork", "hostNetwork"), ("hostPID", "HostPID"), ("hostIPC", "HostIPC")] {
        if spec.get(field).is_true() {
            spec.get(shown).report_forbidden(errors, "when `hostUsers` is false");
        }
    }
    for list in ["initContainers", "containers", "ephemeralContainers"] {
        for container in spec.get(list).items() {
            if !container.get("volumeDevices").is_empty() {
                container.get("volumeDevices").report_forbidden(errors, "when `hostUsers` is false");
            }
        }
    }
}

/// The operating system, and what a Linux pod may not set.
pub(super) fn operating_system(spec: &FieldValue<'_>, errors: &mut FieldErrors) {
    const DETAIL: &str = "windows options cannot be set for a linux pod";
    let system = spec.get("os");
    let name = system.get("name");
    if !system.is_set() || !name.require(errors, "") {
        return;
    }
    if !["linux", "windows"].contains(&name.str()) {
        return errors.push(FieldError::not_supported(system.path(), name.value, &["linux", "windows"]));
    }
    if name.str() != "linux" {
        return;
    }
    let context = spec.get("securityContext");
    if context.get("windowsOptions").is_set() {
        context.get("windowsOptions").report_forbidden(errors, DETAIL);
    }
    for list in ["initContainers", "containers", "ephemeralContainers"] {
        for container in spec.get(list).items() {
            let context = container.get("securityContext");
            if context.get("windowsOptions").is_set() {
                context.get("windowsOptions").report_forbidden(errors, DETAIL);
            }
        }
    }
}

fn user_ids(context: &FieldValue<'_>, fields: &[&str], errors: &mut FieldErrors) {
    for field in fields {
        user_id(&context.get(field), errors);
    }
}

fn user_id(id: &FieldValue<'_>, errors: &mut FieldErrors) {
    if let Some(number) = id.int() {
        report_invalid_number(id, names::in_range(number, 0, i64::from(i32::MAX)), errors);
    }
}

fn sysctls(spec: &FieldValue<'_>, list: &FieldValue<'_>, errors: &mut FieldErrors) {
    let mut seen = BTreeSet::new();
    for sysctl in list.items() {
        let name = sysctl.get("name");
        if name.require(errors, "") {
            if !is_sysctl(name.str()) {
                let format = r"^([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?$";
                let detail = format!("must have at most {MAX_SYSCTL_BYTES} characters and match regex {format}");
                name.report_invalid(errors, &detail);
            } else if seen.contains(name.str()) {
                name.report_duplicate(errors);
            }
        }
        let plain = name.str().replace('/', ".");
        for (host, prefixes) in [("hostNetwork", &NETWORK_SYSCTLS[..]), ("hostIPC", &IPC_SYSCTLS)] {
            if spec.get(host).is_true() && prefixes.iter().any(|prefix| plain.starts_with(prefix)) {
                name.report_invalid(errors, &format!("may not be specified when '{host}' is true"));
            }
        }
        seen.insert(sysctl.value.get("name").and_then(Value::as_str).unwrap_or_default());
    }
}

fn is_sysctl(name: &str) -> bool {
    let is_segment = |segment: &str| {
        let ends = segment.chars().next().into_iter().chain(segment.chars().last());
        !segment.is_empty()
            && segment.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || "-_".contains(c))
            && ends.into_iter().all(char::is_alphanumeric)
    };
    name.len() <= MAX_SYSCTL_BYTES && name.split(['.', '/']).all(is_segment)
}

/// The profiles of seccomp and AppArmor.
fn profiles(context: &FieldValue<'_>, errors: &mut FieldErrors) {
    let seccomp = context.get("seccompProfile");
    if seccomp.is_set() {
        profile_type(&seccomp, "type is required when seccompProfile is set", errors);
        let local = seccomp.get("localhostProfile");
        match (seccomp.get("type").str(), local.is_set()) {
            ("Localhost", false) => local.report_required(errors, "must be set when seccomp type is Localhost"),
            ("Localhost", true) => super::volume::descending_path(&local, &local.path(), errors),
            (_, true) => {
                let shown = seccomp.format_internal(&[("Type", "\"\""), ("LocalhostProfile", "null")]);
                local.report_invalid_as(errors, &shown, "can only be set when seccomp type is Localhost");
            }
            _ => {}
        }
    }
    let app_armor = context.get("appArmorProfile");
    if app_armor.is_set() {
        profile_type(&app_armor, "type is required when appArmorProfile is set", errors);
        app_armor_profile(&app_armor.get("localhostProfile"), app_armor.get("type").str(), errors);
    }
}

fn profile_type(profile: &FieldValue<'_>, required: &str, errors: &mut FieldErrors) {
    let sort = profile.get("type");
    if sort.require(errors, required) {
        sort.require_one_of(errors, &["Localhost", "RuntimeDefault", "Unconfined"]);
    }
}

fn app_armor_profile(local: &FieldValue<'_>, sort: &str, errors: &mut FieldErrors) {
    const REQUIRED: &str = "must be set when AppArmor type is Localhost";
    match sort {
        "Localhost" if !local.is_set() => local.report_required(errors, REQUIRED),
        "Localhost" => {
            if local.str().trim() != local.str() {
                local.report_invalid(errors, "must not be padded with whitespace");
            } else {
                local.require(errors, REQUIRED);
            }
            if local.str().len() > MAX_APP_ARMOR_PROFILE_BYTES {
                errors.push(FieldError::too_long(local.path(), MAX_APP_ARMOR_PROFILE_BYTES));
            }
        }
        "RuntimeDefault" | "Unconfined" if local.is_set() => {
            local.report_invalid(errors, "can only be set when AppArmor type is Localhost");
        }
        _ => {}
    }
}

/// A security context as kube-apiserver's messages show it: its internal type in JSON.
fn internal_form(context: &FieldValue<'_>) -> String {
    const PROFILE: [(&str, &str); 2] = [("Type", "\"\""), ("LocalhostProfile", "null")];
    let get = |name: &str| context.value.get(name).unwrap_or(&Value::Null);
    let labels = [("User", "\"\""), ("Role", "\"\""), ("Type", "\"\""), ("Level", "\"\"")];
    let windows = [
        ("GmsaCredentialSpecName", "null"),
        ("GmsaCredentialSpec", "null"),
        ("RunAsUserName", "null"),
        ("HostProcess", "null"),
    ];
    [
        ("Capabilities", context.get("capabilities").format_internal(&[("Add", "null"), ("Drop", "null")])),
        ("Privileged", get("privileged").to_string()),
        ("SELinuxOptions", context.get("seLinuxOptions").format_internal(&labels)),
        ("WindowsOptions", context.get("windowsOptions").format_internal(&windows).replace("Gmsa", "GMSA")),
        ("RunAsUser", get("runAsUser").to_string()),
        ("RunAsGroup", get("runAsGroup").to_string()),
        ("RunAsNonRoot", get("runAsNonRoot").to_string()),
        ("ReadOnlyRootFilesystem", get("readOnlyRootFilesystem").to_string()),
        ("AllowPrivilegeEscalation", get("allowPrivilegeEscalation").to_string()),
        ("ProcMount", get("procMount").to_string()),
        ("SeccompProfile", context.get("seccompProfile").format_internal(&PROFILE)),
        ("AppArmorProfile", context.get("appArmorProfile").format_internal(&PROFILE)),
    ]
    .iter()
    .fold(String::new(), |text, (name, value)| {
        let before = if text.is_empty() { '{' } else { ',' };
        format!("{text}{before}\"{name}\":{value}")
    }) + "}"
}
