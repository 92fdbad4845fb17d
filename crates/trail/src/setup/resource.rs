//! The resource of all spans.

use opentelemetry::KeyValue;
use opentelemetry_sdk::{
    Resource,
    resource::{EnvResourceDetector, TelemetryResourceDetector},
};

/// The namespace of a pod, mounted with its service account token.
const NAMESPACE_FILE: &str = "/var/run/secrets/kubernetes.io/serviceaccount/namespace";

/// The usual variables of the downward API, with their attributes.
const VARIABLE_ATTRIBUTES: [(&str, &str); 6] = [
    ("POD_NAME", "k8s.pod.name"),
    ("POD_NAMESPACE", "k8s.namespace.name"),
    ("POD_UID", "k8s.pod.uid"),
    ("POD_IP", "k8s.pod.ip"),
    ("CONTAINER_NAME", "k8s.container.name"),
    ("NODE_NAME", "k8s.node.name"),
];

/// Detects the resource; `OTEL_RESOURCE_ATTRIBUTES` and `OTEL_SERVICE_NAME` override detected attributes.
pub(super) fn build_resource(
    service: &str,
    version: Option<&str>,
    variable: &dyn Fn(&str) -> Option<String>,
) -> Resource {
    let found =
        VARIABLE_ATTRIBUTES.iter().filter_map(|(name, key)| variable(name).map(|value| KeyValue::new(*key, value)));
    let mut attributes: Vec<_> = found.collect();
    let is_known = |key: &str| attributes.iter().any(|attribute| attribute.key.as_str() == key);
    if !is_known("k8s.namespace.name")
        && let Ok(namespace) = std::fs::read_to_string(NAMESPACE_FILE)
    {
        attributes.push(KeyValue::new("k8s.namespace.name", namespace.trim().to_owned()));
    }
    if let Some(pod) = variable("POD_NAME").or_else(|| variable("HOSTNAME")) {
        attributes.push(KeyValue::new("service.instance.id", pod));
    }
    attributes.extend(version.map(|version| KeyValue::new("service.version", version.to_owned())));
    let name = variable("OTEL_SERVICE_NAME");
    Resource::builder_empty()
        .with_attribute(KeyValue::new("service.name", service.to_owned()))
        .with_attributes(attributes)
        .with_detector(Box::new(TelemetryResourceDetector))
        .with_detector(Box::new(EnvResourceDetector::new()))
        .with_attributes(name.map(|name| KeyValue::new("service.name", name)))
        .build()
}

#[cfg(test)]
mod tests {
    use opentelemetry::Key;

    use super::build_resource;

    #[test]
    fn a_pod_says_who_it_is() {
        let variable = |name: &str| match name {
            "POD_NAME" => Some("head-1".to_owned()),
            "POD_NAMESPACE" => Some("operators".to_owned()),
            _ => None,
        };
        let resource = build_resource("head-operator", Some("1.2"), &variable);
        let text = |key: &'static str| resource.get(&Key::new(key)).map(|value| value.to_string());
        assert_eq!(text("service.name").as_deref(), Some("head-operator"));
        assert_eq!(text("k8s.pod.name").as_deref(), Some("head-1"));
        assert_eq!(text("service.version").as_deref(), Some("1.2"));
        assert_eq!(text("service.instance.id").as_deref(), Some("head-1"));
        assert_eq!(text("k8s.namespace.name").as_deref(), Some("operators"));
        assert_eq!(text("telemetry.sdk.language").as_deref(), Some("rust"));
        let named = build_resource("head-operator", Some("1.2"), &|name| {
            (name == "OTEL_SERVICE_NAME").then(|| "mine".to_owned())
        });
        assert_eq!(named.get(&Key::new("service.name")).map(|value| value.to_string()).as_deref(), Some("mine"));
    }
}
