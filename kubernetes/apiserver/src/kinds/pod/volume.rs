//! Validates the volumes of a pod, and where containers mount them.
//!
//! Not done: the fields of volume types that are only served by drivers elsewhere (iSCSI, RBD, Azure and the
//! like), and of `clusterTrustBundle` and `podCertificate` sources.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::env::{FieldReference, field_ref, resource_field_ref};
use crate::{
    api::field::{FieldError, FieldErrors},
    kinds::{field_value::FieldValue, names},
    schema::quantity::Quantity,
};

/// The longest name of a CSI driver.
const MAX_DRIVER_NAME_BYTES: usize = 63;
/// The range of the lifetime of a projected token, in seconds.
const TOKEN_SECONDS: std::ops::RangeInclusive<i64> = 600..=1 << 32;

/// The order in which the sources of a volume are validated. Of two, the later one is refused.
const SOURCES: [&str; 30] = [
    "emptyDir",
    "hostPath",
    "gitRepo",
    "gcePersistentDisk",
    "awsElasticBlockStore",
    "secret",
    "nfs",
    "iscsi",
    "glusterfs",
    "flocker",
    "persistentVolumeClaim",
    "rbd",
    "cinder",
    "cephfs",
    "quobyte",
    "downwardAPI",
    "fc",
    "flexVolume",
    "configMap",
    "azureFile",
    "vsphereVolume",
    "photonPersistentDisk",
    "portworxVolume",
    "azureDisk",
    "storageos",
    "projected",
    "scaleIO",
    "csi",
    "ephemeral",
    "image",
];

/// The valid volumes of a pod, by name.
#[derive(Debug, Default)]
pub(super) struct VolumeIndex<'a>(BTreeMap<&'a str, &'a Value>);

impl VolumeIndex<'_> {
    fn has(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }

    /// Whether a volume can be a block device.
    fn is_claim(&self, name: &str) -> bool {
        let of =
            |source: &str| self.0.get(name).and_then(|volume| volume.get(source)).is_some_and(|one| !one.is_null());
        of("persistentVolumeClaim") || of("ephemeral")
    }
}

/// Validates the volumes of a spec. A volume with an error cannot be mounted.
pub(super) fn volumes<'a>(all: &FieldValue<'a>, errors: &mut FieldErrors) -> VolumeIndex<'a> {
    let list: &'a [Value] = all.value.as_array().map_or(&[], Vec::as_slice);
    let mut index = VolumeIndex::default();
    for (volume, value) in all.items().zip(list) {
        let text = value.get("name").and_then(Value::as_str).unwrap_or_default();
        let before = errors.len();
        source(&volume, errors);
        let name = volume.get("name");
        if name.require(errors, "") {
            name.report_invalid_each(errors, names::label(text));
        }
        if index.has(text) {
            name.report_duplicate(errors);
        }
        if errors.len() == before {
            index.0.insert(text, value);
        }
    }
    index
}

fn source(volume: &FieldValue<'_>, errors: &mut FieldErrors) {
    let mut given = SOURCES.into_iter().filter(|source| volume.get(source).is_set());
    let Some(first) = given.next() else { return volume.report_required(errors, "must specify a volume type") };
    let source = volume.get(first);
    match first {
        "emptyDir" => {
            let limit = Quantity::from_value(source.get("sizeLimit").value);
            if limit.is_some_and(Quantity::is_negative) {
                let detail = "SizeLimit field must be a valid resource quantity";
                source.get("sizeLimit").report_forbidden(errors, detail);
            }
        }
        "hostPath" => host_path(&source, errors),
        "secret" => {
            source.get("secretName").require(errors, "");
            keyed_files(&source, errors);
        }
        "configMap" => {
            source.get("name").require(errors, "");
            keyed_files(&source, errors);
        }
        "nfs" => nfs(&source, errors),
        "persistentVolumeClaim" => {
            source.get("claimName").require(errors, "");
        }
        "downwardAPI" => {
            mode(&source.get("defaultMode"), errors);
            for file in source.get("items").items() {
                pod_file(&file, &source.path(), errors);
            }
        }
        "projected" => projected(&source, errors),
        "csi" => csi(&source, errors),
        "ephemeral" => {
            source.get("volumeClaimTemplate").require(errors, "");
        }
        "image" => {
            source.get("pullPolicy").require_one_of(errors, &["Always", "IfNotPresent", "Never"]);
        }
        _ => {}
    }
    for more in given {
        // The names in these messages are not those of the fields.
        let shown = match more {
            "downwardAPI" => "downwarAPI",
            "cephfs" => "cephFS",
            other => other,
        };
        volume.get(shown).report_forbidden(errors, "may not specify more than 1 volume type");
    }
}

/// Validates those sources of a persistent volume that have rules here, and that there is only one.
pub(in crate::kinds) fn sources(spec: &FieldValue<'_>, known: &[&str], errors: &mut FieldErrors) {
    let mut count = 0;
    for kind in known.iter().filter(|kind| spec.get(kind).is_set()) {
        let source = spec.get(kind);
        count += 1;
        if count > 1 {
            source.report_forbidden(errors, "may not specify more than 1 volume type");
            continue;
        }
        match *kind {
            "hostPath" => host_path(&source, errors),
            "nfs" => nfs(&source, errors),
            _ => {
                let path = source.get("path");
                if path.require(errors, "") {
                    no_backsteps(&path, &path.path(), errors);
                }
            }
        }
    }
}

fn nfs(source: &FieldValue<'_>, errors: &mut FieldErrors) {
    source.get("server").require(errors, "");
    let path = source.get("path");
    path.require(errors, "");
    if !path.str().starts_with('/') {
        path.report_invalid_as(errors, &Value::from(path.str()).to_string(), "must be an absolute path");
    }
}

fn host_path(source: &FieldValue<'_>, errors: &mut FieldErrors) {
    let path = source.get("path");
    if !path.require(errors, "") {
        return;
    }
    no_backsteps(&path, &path.path(), errors);
    if source.get("type").is_set() {
        let known =
            ["", "BlockDevice", "CharDevice", "Directory", "DirectoryOrCreate", "File", "FileOrCreate", "Socket"];
        source.get("type").require_one_of(errors, &known);
    }
}

fn csi(source: &FieldValue<'_>, errors: &mut FieldErrors) {
    let driver = source.get("driver");
    if driver.require(errors, "") {
        if driver.str().len() > MAX_DRIVER_NAME_BYTES {
            errors.push(FieldError::too_long(driver.path(), MAX_DRIVER_NAME_BYTES));
        }
        driver.report_invalid_each(errors, names::subdomain(&driver.str().to_lowercase()));
    }
    let secret = source.get("nodePublishSecretRef");
    if secret.is_set() && secret.get("name").require(errors, "") {
        for detail in names::subdomain(secret.get("name").str()) {
            errors.push(FieldError::invalid(source.get("name").path(), secret.get("name").value, &detail));
        }
    }
}

/// The files of a Secret or ConfigMap.
fn keyed_files(source: &FieldValue<'_>, errors: &mut FieldErrors) {
    mode(&source.get("defaultMode"), errors);
    for item in source.get("items").items() {
        keyed_file(&item, errors);
    }
}

fn keyed_file(item: &FieldValue<'_>, errors: &mut FieldErrors) {
    item.get("key").require(errors, "");
    let path = item.get("path");
    path.require(errors, "");
    local_path(&path, &path.path(), errors);
    mode(&item.get("mode"), errors);
}

/// A file with a field of the pod. Its errors are at the source, as in kube-apiserver.
fn pod_file(file: &FieldValue<'_>, at: &str, errors: &mut FieldErrors) {
    let path = file.get("path");
    if path.is_empty() {
        errors.push(FieldError::required(format!("{at}.path"), ""));
    }
    local_path(&path, &format!("{at}.path"), errors);
    let field = file.get("fieldRef");
    let resource = file.get("resourceFieldRef");
    if field.is_set() {
        field_ref(&field, &format!("{at}.fieldRef"), FieldReference::Volume, errors);
        if resource.is_set() {
            let detail = "fieldRef and resourceFieldRef can not be specified simultaneously";
            errors.push(FieldError::invalid(at, &"resource".into(), detail));
        }
    } else if resource.is_set() {
        let at = format!("{at}.resourceFieldRef");
        if resource.get("containerName").is_empty() {
            errors.push(FieldError::required(format!("{at}.containerName"), ""));
        } else {
            resource_field_ref(&resource, &at, errors);
        }
    } else {
        errors.push(FieldError::required(at, "one of fieldRef and resourceFieldRef is required"));
    }
    let mode = file.get("mode");
    if !is_mode(&mode) {
        errors.push(FieldError::invalid(format!("{at}.mode"), mode.value, MODE_DETAIL));
    }
}

fn projected(volume: &FieldValue<'_>, errors: &mut FieldErrors) {
    mode(&volume.get("defaultMode"), errors);
    let mut paths = BTreeSet::new();
    let mut claim = |path: &str, shown: &str, errors: &mut FieldErrors| {
        if !path.is_empty() && !paths.insert(path.to_owned()) {
            errors.push(FieldError::invalid(volume.path(), &shown.into(), "conflicting duplicate paths"));
        }
    };
    for source in volume.get("sources").items() {
        for kind in ["secret", "configMap"] {
            let part = source.get(kind);
            if !part.is_set() {
                continue;
            }
            part.get("name").require(errors, "");
            for item in part.get("items").items() {
                keyed_file(&item, errors);
                claim(item.get("path").str(), part.get("name").str(), errors);
            }
        }
        let fields = source.get("downwardAPI");
        for file in fields.get("items").items() {
            pod_file(&file, &fields.path(), errors);
            claim(file.get("path").str(), file.get("path").str(), errors);
        }
        let token = source.get("serviceAccountToken");
        if token.is_set() {
            projected_token(volume, &token, errors);
        }
        let kinds =
            ["secret", "configMap", "downwardAPI", "serviceAccountToken", "clusterTrustBundle", "podCertificate"];
        if kinds.into_iter().filter(|kind| source.get(kind).is_set()).count() > 1 {
            source.report_forbidden(errors, "may not specify more than 1 volume type per source");
        }
    }
}

fn projected_token(volume: &FieldValue<'_>, token: &FieldValue<'_>, errors: &mut FieldErrors) {
    let lifetime = token.get("expirationSeconds");
    let seconds = lifetime.int().unwrap_or_default();
    if seconds < *TOKEN_SECONDS.start() {
        lifetime.report_invalid(errors, "may not specify a duration less than 10 minutes");
    }
    if seconds > *TOKEN_SECONDS.end() {
        lifetime.report_invalid(errors, "may not specify a duration larger than 2^32 seconds");
    }
    let at = volume.get("path").path();
    if token.get("path").is_empty() {
        errors.push(FieldError::required(at, ""));
    } else {
        local_path(&token.get("path"), &at, errors);
    }
}

const MODE_DETAIL: &str = "must be a number between 0 and 0777 (octal), both inclusive";

fn mode(mode: &FieldValue<'_>, errors: &mut FieldErrors) {
    if !is_mode(mode) {
        mode.report_invalid(errors, MODE_DETAIL);
    }
}

fn is_mode(mode: &FieldValue<'_>) -> bool {
    mode.int().is_none_or(|bits| (0..=0o777).contains(&bits))
}

/// A relative path that does not begin with two dots; errors are reported at `at`.
fn local_path(path: &FieldValue<'_>, at: &str, errors: &mut FieldErrors) {
    descending_path(path, at, errors);
    if path.str().starts_with("..") && !path.str().starts_with("../") {
        errors.push(FieldError::invalid(at, path.value, "must not start with '..'"));
    }
}

/// A relative path without backsteps.
pub(super) fn descending_path(path: &FieldValue<'_>, at: &str, errors: &mut FieldErrors) {
    if path.str().starts_with('/') {
        errors.push(FieldError::invalid(at, path.value, "must be a relative path"));
    }
    no_backsteps(path, at, errors);
}

fn no_backsteps(path: &FieldValue<'_>, at: &str, errors: &mut FieldErrors) {
    if has_backsteps(path.str()) {
        errors.push(FieldError::invalid(at, path.value, "must not contain '..'"));
    }
}

fn has_backsteps(path: &str) -> bool {
    path.split('/').any(|part| part == "..")
}

/// Validates the mounts and devices of a container.
pub(super) fn mounts(container: &FieldValue<'_>, volumes: &VolumeIndex<'_>, errors: &mut FieldErrors) {
    let list = container.get("volumeMounts");
    let devices = container.get("volumeDevices");
    let (device_names, device_paths) = texts(&devices, "devicePath");
    let mut seen = BTreeSet::new();
    for (mount, value) in list.items().zip(list.value.as_array().into_iter().flatten()) {
        let name = mount.get("name");
        name.require(errors, "");
        if !volumes.has(name.str()) {
            errors.push(FieldError::not_found(name.path(), &name.str().into()));
        }
        let path = mount.get("mountPath");
        path.require(errors, "");
        if !seen.insert(value.get("mountPath").and_then(Value::as_str).unwrap_or_default()) {
            path.report_invalid_each(errors, vec!["must be unique".to_owned()]);
        }
        if device_names.contains(name.str()) {
            name.report_invalid(errors, "must not already exist in volumeDevices");
        }
        if device_paths.contains(path.str()) {
            path.report_invalid(errors, "must not already exist as a path in volumeDevices");
        }
        mount_options(container, &list, &mount, errors);
    }
    let (mount_names, mount_paths) = texts(&list, "mountPath");
    block_devices(&devices, volumes, (&mount_names, &mount_paths), errors);
}

/// The names in a list of mounts or devices, and their paths.
fn texts<'a>(list: &FieldValue<'a>, path: &str) -> (BTreeSet<&'a str>, BTreeSet<&'a str>) {
    let items: &'a [Value] = list.value.as_array().map_or(&[], Vec::as_slice);
    let text = |item: &'a Value, field: &str| item.get(field).and_then(Value::as_str).unwrap_or_default();
    items.iter().map(|item| (text(item, "name"), text(item, path))).unzip()
}

/// What a mount says beside name and path. Its errors are at the list, as in kube-apiserver.
fn mount_options(container: &FieldValue<'_>, list: &FieldValue<'_>, mount: &FieldValue<'_>, errors: &mut FieldErrors) {
    let plain = mount.get("subPath");
    let expression = mount.get("subPathExpr");
    if !plain.is_empty() {
        descending_path(&plain, &list.get("subPath").path(), errors);
    }
    if !expression.is_empty() {
        if !plain.is_empty() {
            expression.report_invalid(errors, "subPathExpr and subPath are mutually exclusive");
        }
        descending_path(&expression, &list.get("subPathExpr").path(), errors);
    }
    let propagation = mount.get("mountPropagation");
    if propagation.is_set() {
        let at = list.get("mountPropagation").path();
        let known = ["Bidirectional", "HostToContainer", "None"];
        if !known.contains(&propagation.str()) {
            errors.push(FieldError::not_supported(at.as_str(), propagation.value, &known));
        }
        let context = container.get("securityContext");
        if propagation.str() == "Bidirectional" && !context.get("privileged").is_true() {
            let detail = "Bidirectional mount propagation is available only to privileged containers";
            errors.push(FieldError::forbidden(at, detail));
        }
    }
    let read_only = mount.get("recursiveReadOnly");
    let at = || list.get("recursiveReadOnly").path();
    match read_only.str() {
        "Enabled" | "IfPossible" => {
            if !mount.get("readOnly").is_true() {
                errors.push(FieldError::forbidden(at(), "may only be specified when readOnly is true"));
            }
            if propagation.is_set() && propagation.str() != "None" {
                let detail = "may only be specified when mountPropagation is None or not specified";
                errors.push(FieldError::forbidden(at(), detail));
            }
        }
        "Disabled" => {}
        _ if !read_only.is_set() => {}
        _ => {
            let known = ["Disabled", "Enabled", "IfPossible"];
            errors.push(FieldError::not_supported(at(), read_only.value, &known));
        }
    }
}

fn block_devices(
    list: &FieldValue<'_>,
    volumes: &VolumeIndex<'_>,
    (mount_names, mount_paths): (&BTreeSet<&str>, &BTreeSet<&str>),
    errors: &mut FieldErrors,
) {
    let mut names = BTreeSet::new();
    let mut paths = BTreeSet::new();
    for device in list.items() {
        let name = device.get("name");
        let path = device.get("devicePath");
        name.require(errors, "");
        if names.contains(name.str()) {
            name.report_invalid(errors, "must be unique");
        }
        if !volumes.has(name.str()) {
            errors.push(FieldError::not_found(name.path(), &name.str().into()));
        } else if !volumes.is_claim(name.str()) {
            let detail = "can only use volume source type of PersistentVolumeClaim or Ephemeral for block mode";
            name.report_invalid(errors, detail);
        }
        path.require(errors, "");
        if paths.contains(path.str()) {
            path.report_invalid_each(errors, vec!["must be unique".to_owned()]);
        }
        if has_backsteps(path.str()) {
            path.report_invalid(errors, "can not contain backsteps ('..')");
        } else {
            paths.insert(path.str().to_owned());
        }
        if mount_names.contains(name.str()) {
            name.report_invalid(errors, "must not already exist in volumeMounts");
        }
        if mount_paths.contains(path.str()) {
            path.report_invalid_each(errors, vec!["must not already exist as a path in volumeMounts".to_owned()]);
        }
        if !name.is_empty() {
            names.insert(name.str().to_owned());
        }
    }
}
