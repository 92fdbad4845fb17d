//! What the spans of this process say about it.

use std::{fs, path::Path};

use opentelemetry::KeyValue;
use opentelemetry_sdk::Resource;

/// Where a pod finds the name of its namespace.
const NAMESPACE_FILE: &str = "/var/run/secrets/kubernetes.io/serviceaccount/namespace";

/// What is known. What the variables of OpenTelemetry say counts more.
pub(super) fn resource(service: &str, version: Option<String>, variable: impl Fn(&str) -> Option<String>) -> Resource {
    let get = |name: &str| variable(name).filter(|value| !value.is_empty());
    let namespace = || fs::read_to_string(Path::new(NAMESPACE_FILE)).ok().map(|name| name.trim().to_owned());
    let known = [
        ("service.version", version),
        ("k8s.pod.name", get("POD_NAME")),
        ("k8s.namespace.name", get("POD_NAMESPACE").or_else(namespace)),
        ("k8s.node.name", get("NODE_NAME")),
    ];
    let known = known.into_iter().filter_map(|(key, value)| Some(KeyValue::new(key, value?)));
    let said = get("OTEL_RESOURCE_ATTRIBUTES").unwrap_or_default();
    let said: Vec<KeyValue> = said.split(',').filter_map(pair).collect();
    let names_itself = said.iter().find(|pair| pair.key.as_str() == "service.name").map(|pair| pair.value.to_string());
    let service = get("OTEL_SERVICE_NAME").or(names_itself).unwrap_or_else(|| service.to_owned());
    Resource::builder().with_attributes(known).with_attributes(said).with_service_name(service).build()
}

fn pair(text: &str) -> Option<KeyValue> {
    let (key, value) = text.split_once('=')?;
    Some(KeyValue::new(key.trim().to_owned(), value.trim().to_owned()))
}

#[cfg(test)]
mod tests {
    use opentelemetry::Key;

    use super::*;

    fn value(variables: &[(&str, &str)], key: &'static str) -> Option<String> {
        let get = |name: &str| variables.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned());
        let resource = resource("operator", Some("1".to_owned()), get);
        resource.get(&Key::from_static_str(key)).map(|value| value.to_string())
    }

    #[test]
    fn the_environment_names_the_service_or_the_program_does() {
        assert_eq!(value(&[], "service.name").as_deref(), Some("operator"));
        let attributes = ("OTEL_RESOURCE_ATTRIBUTES", "service.name=b,team=x,service.version=2");
        assert_eq!(value(&[attributes], "service.name").as_deref(), Some("b"));
        assert_eq!(value(&[attributes, ("OTEL_SERVICE_NAME", "c")], "service.name").as_deref(), Some("c"));
        assert_eq!(value(&[attributes], "team").as_deref(), Some("x"));
        assert_eq!(value(&[attributes], "service.version").as_deref(), Some("2"));
        assert_eq!(value(&[("POD_NAME", "p")], "k8s.pod.name").as_deref(), Some("p"));
    }
}
