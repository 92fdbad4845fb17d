//! The downward API: information about a pod, in its variables and files.

use std::{collections::BTreeMap, fmt::Write as _, net::IpAddr};

use k8s_openapi::{
    api::core::v1::{Container, Pod, PodSpec, ResourceFieldSelector},
    apimachinery::pkg::api::resource::Quantity as Text,
};
use kube::ResourceExt;
use kubewake_apiserver::schema::quantity::Quantity;

use super::node_facts::NodeFacts;

/// The ServiceAccount of a pod that names none.
const DEFAULT_SERVICE_ACCOUNT: &str = "default";

/// The ServiceAccount of a pod.
pub fn service_account(pod: &Pod) -> &str {
    let named = pod.spec.as_ref().and_then(|spec| spec.service_account_name.as_deref());
    named.filter(|name| !name.is_empty()).unwrap_or(DEFAULT_SERVICE_ACCOUNT)
}

/// The value of the field that a `fieldRef` names. Error messages are the kubelet's.
///
/// # Errors
/// If the downward API does not have the field.
pub fn resolve_field_ref(pod: &Pod, node: &NodeFacts, pod_ip: Option<IpAddr>, path: &str) -> Result<String, String> {
    if let Some((map, key)) = parse_subscript(path) {
        let values = match map {
            "metadata.labels" => pod.labels(),
            "metadata.annotations" => pod.annotations(),
            other => return Err(format!("fieldPath {other:?} does not support subscript")),
        };
        return Ok(values.get(key).cloned().unwrap_or_default());
    }
    let pod_ip = || pod_ip.map(|ip| ip.to_string()).unwrap_or_default();
    Ok(match path {
        "metadata.name" => pod.name_any(),
        "metadata.namespace" => pod.namespace().unwrap_or_default(),
        "metadata.uid" => pod.uid().unwrap_or_default(),
        "metadata.labels" => format_map(pod.labels()),
        "metadata.annotations" => format_map(pod.annotations()),
        "spec.nodeName" => node.name.clone(),
        "spec.serviceAccountName" => service_account(pod).to_owned(),
        "status.hostIP" | "status.hostIPs" => node.address.to_string(),
        "status.podIP" | "status.podIPs" => pod_ip(),
        other => return Err(format!("unsupported fieldPath: {other}")),
    })
}

/// Splits `metadata.labels['app']` into its two parts.
fn parse_subscript(path: &str) -> Option<(&str, &str)> {
    path.strip_suffix("']")?.split_once("['")
}

/// Formats one `key="value"` per line.
fn format_map(values: &BTreeMap<String, String>) -> String {
    let mut text = String::new();
    for (key, value) in values {
        let separator = if text.is_empty() { "" } else { "\n" };
        // Writing to a String cannot fail.
        let _ = write!(text, "{separator}{key}={}", go_quote(value));
    }
    text
}

/// Quotes a text as Go does.
fn go_quote(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for letter in text.chars() {
        let short = match letter {
            '"' | '\\' => letter,
            '\n' => 'n',
            '\r' => 'r',
            '\t' => 't',
            '\u{7}' => 'a',
            '\u{8}' => 'b',
            '\u{b}' => 'v',
            '\u{c}' => 'f',
            control if control.is_ascii_control() => {
                let _ = write!(quoted, "\\x{:02x}", u32::from(control));
                continue;
            }
            plain => {
                quoted.push(plain);
                continue;
            }
        };
        quoted.extend(['\\', short]);
    }
    quoted.push('"');
    quoted
}

/// The value of a `resourceFieldRef`. `own` is the container that uses it, for references without a container
/// name.
///
/// # Errors
/// If the container or the resource does not exist.
pub fn resolve_resource_field_ref(
    pod: &Pod,
    node: &NodeFacts,
    own: Option<&Container>,
    wanted: &ResourceFieldSelector,
) -> Result<String, String> {
    let named = wanted.container_name.as_deref().filter(|name| !name.is_empty());
    let container = match named {
        Some(name) => pod.spec.as_ref().and_then(|spec| container(spec, name)),
        None => own,
    };
    let container = container.ok_or_else(|| format!("container {} not found", named.unwrap_or_default()))?;
    let unknown = || format!("unsupported container resource : {}", wanted.resource);
    let (list, name) = wanted.resource.split_once('.').ok_or_else(unknown)?;
    let resources = container.resources.as_ref();
    let amount = match list {
        "limits" => {
            let limit = resources.and_then(|resources| resources.limits.as_ref()?.get(name));
            limit.or_else(|| node.allocatable.get(name))
        }
        "requests" => resources.and_then(|resources| resources.requests.as_ref()?.get(name)),
        _ => return Err(unknown()),
    };
    // cpu is in thousandths.
    let scale = if name == "cpu" { -3 } else { 0 };
    let amount = amount.map_or(Some(0), |amount| parse_quantity(amount, scale));
    let divisor = wanted.divisor.as_ref().map_or(Some(0), |divisor| parse_quantity(divisor, scale));
    let whole = if name == "cpu" { 1000 } else { 1 };
    let divisor = divisor.map(|divisor| if divisor == 0 { whole } else { divisor });
    let (amount, divisor) =
        amount.zip(divisor).ok_or_else(|| format!("failed to parse the quantity of {}", wanted.resource))?;
    Ok(divided_up(amount, divisor).to_string())
}

fn container<'a>(spec: &'a PodSpec, name: &str) -> Option<&'a Container> {
    spec.containers.iter().chain(spec.init_containers.iter().flatten()).find(|container| container.name == name)
}

fn parse_quantity(text: &Text, scale: i32) -> Option<i64> {
    Some(Quantity::parse(&text.0).ok()?.units(scale))
}

/// Rounds up, as in Kubernetes.
fn divided_up(amount: i64, divisor: i64) -> i64 {
    let whole = amount.wrapping_div(divisor);
    if amount.wrapping_rem(divisor) != 0 && (amount < 0) == (divisor < 0) { whole + 1 } else { whole }
}

#[cfg(test)]
mod tests;
