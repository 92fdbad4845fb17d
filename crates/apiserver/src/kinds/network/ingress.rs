//! Ingress and IngressClass.

use std::net::IpAddr;

use serde_json::{Value, json};

use super::number;
use crate::{
    api::{field::Errors, meta::Meta},
    kinds::{
        at::At,
        names,
        object::{
            fill, fill_text, first_generation, keep_status_apart_and_count, made, next_generation_of_all, part, set,
            sub,
        },
    },
    registry::Strategy,
};

/// Rules of Ingress.
#[derive(Clone, Copy, Debug)]
pub struct Ingress;

/// Rules of IngressClass.
#[derive(Clone, Copy, Debug)]
pub struct IngressClass;

impl Strategy for Ingress {
    fn warnings(&self, object: &Value) -> Vec<String> {
        let class = "kubernetes.io/ingress.class";
        let annotated = object.meta("annotations").is_some_and(|annotations| annotations.get(class).is_some());
        if !annotated || object.pointer("/spec/ingressClassName").is_some_and(|name| !name.is_null()) {
            return Vec::new();
        }
        vec![format!("annotation {class:?} is deprecated, please use 'spec.ingressClassName' instead")]
    }

    fn warnings_on_update(&self, _new: &Value, _old: &Value) -> Vec<String> {
        Vec::new()
    }

    fn default(&self, object: &mut Value) {
        made(object, "spec");
        if let Some(status) = made(object, "status") {
            fill(status, "loadBalancer", json!({}));
        }
    }

    fn prepare_create(&self, object: &mut Value) {
        set(object, "status", json!({"loadBalancer": {}}));
        first_generation(object);
    }

    fn prepare_update(&self, new: &mut Value, old: &Value, subresource: &str) {
        keep_status_apart_and_count(new, old, subresource);
    }

    fn validate_create(&self, object: &Value, errors: &mut Errors) {
        let root = At::root(object);
        let spec = root.get("spec");
        let (rules, backend) = (spec.get("rules"), spec.get("defaultBackend"));
        if rules.is_empty() && !backend.is_set() {
            spec.invalid_as(errors, "[]", "either `defaultBackend` or `rules` must be specified");
        }
        if backend.is_set() {
            self::backend(&backend, errors);
        }
        let class = spec.get("ingressClassName");
        if class.is_set() {
            class.invalid_each(errors, names::subdomain(class.str()));
        }
        for rule in rules.items() {
            self::rule(&rule, errors);
        }
        for tls in spec.get("tls").items() {
            tls.get("hosts").items().for_each(|host| self::host(&host, errors));
        }
    }

    fn validate_update(&self, new: &Value, _old: &Value, subresource: &str, errors: &mut Errors) {
        if subresource != "status" {
            self.validate_create(new, errors);
        }
    }
}

fn host(host: &At<'_>, errors: &mut Errors) {
    let check = if host.str().contains('*') { names::wildcard_subdomain } else { names::subdomain };
    host.invalid_each(errors, check(host.str()));
}

fn rule(rule: &At<'_>, errors: &mut Errors) {
    let host = rule.get("host");
    if !host.is_empty() {
        if host.str().parse::<IpAddr>().is_ok() {
            host.invalid(errors, "must be a DNS name, not an IP address");
        }
        self::host(&host, errors);
    }
    let http = rule.get("http");
    if !http.is_set() {
        return;
    }
    http.get("paths").require(errors, "");
    for path in http.get("paths").items() {
        let (kind, text) = (path.get("pathType"), path.get("path"));
        if !kind.is_set() {
            kind.required(errors, "pathType must be specified");
        } else {
            kind.one_of(errors, &["Exact", "ImplementationSpecific", "Prefix"]);
        }
        let needs_path = ["Exact", "Prefix"].contains(&kind.str());
        if (needs_path || !text.is_empty()) && !text.str().starts_with('/') {
            text.invalid_each(errors, vec!["must be an absolute path".to_owned()]);
        }
        self::backend(&path.get("backend"), errors);
    }
}

fn backend(backend: &At<'_>, errors: &mut Errors) {
    let (service, resource) = (backend.get("service"), backend.get("resource"));
    match (service.is_set(), resource.is_set()) {
        (true, true) => return backend.invalid_as(errors, "\"\"", "cannot set both resource and service backends"),
        (false, false) => return backend.invalid_as(errors, "\"\"", "resource or service backend is required"),
        (false, true) => return,
        (true, false) => {}
    }
    let name = service.get("name");
    if name.require(errors, "") {
        name.invalid_each(errors, names::label_1035(name.str()));
    }
    let port = service.get("port");
    let (by_name, by_number) = (port.get("name"), port.get("number"));
    match (!by_name.is_empty(), by_number.int().unwrap_or(0) != 0) {
        (true, true) => backend.invalid_as(errors, "\"\"", "cannot set both port name & port number"),
        (true, false) => by_name.invalid_each(errors, names::port_name(by_name.str())),
        (false, true) => number(&by_number, errors),
        (false, false) => backend.required(errors, "port name or number is required"),
    }
}

impl Strategy for IngressClass {
    fn default(&self, object: &mut Value) {
        if let Some(parameters) = part(object, "spec").and_then(|spec| sub(spec, "parameters")) {
            fill_text(parameters, "scope", "Cluster");
        }
    }

    fn prepare_create(&self, object: &mut Value) {
        first_generation(object);
    }

    fn prepare_update(&self, new: &mut Value, old: &Value, _subresource: &str) {
        next_generation_of_all(new, old);
    }

    fn validate_update(&self, new: &Value, old: &Value, _subresource: &str, errors: &mut Errors) {
        let (root, old_root) = (At::root(new), At::root(old));
        let (spec, old_spec) = (root.get("spec"), old_root.get("spec"));
        spec.get("controller").immutable(errors, &old_spec.get("controller"));
    }
}
