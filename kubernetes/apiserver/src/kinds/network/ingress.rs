//! Ingress and IngressClass.

use std::net::IpAddr;

use serde_json::{Value, json};

use super::number;
use crate::{
    api::{
        field::{FieldError, FieldErrors},
        meta::MetaAccessor,
    },
    kinds::{
        field_value::FieldValue,
        json_object::{
            bump_generation_if_anything_changed, init_generation, keep_status_apart_and_bump_generation, made,
            nested_object_mut, object_member_mut, set, set_if_absent, set_text_if_empty,
        },
        metadata, names,
    },
    registry::Strategy,
};

/// The longest name of a controller of a class, in bytes.
const MAX_CONTROLLER_BYTES: usize = 250;

#[derive(Clone, Copy, Debug)]
pub struct IngressStrategy;

#[derive(Clone, Copy, Debug)]
pub struct IngressClassStrategy;

impl Strategy for IngressStrategy {
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
            set_if_absent(status, "loadBalancer", json!({}));
        }
    }

    fn prepare_create(&self, object: &mut Value) {
        set(object, "status", json!({"loadBalancer": {}}));
        init_generation(object);
    }

    fn prepare_update(&self, new: &mut Value, old: &Value, subresource: &str) {
        keep_status_apart_and_bump_generation(new, old, subresource);
    }

    fn validate_create(&self, object: &Value, errors: &mut FieldErrors) {
        let root = FieldValue::root(object);
        let spec = root.get("spec");
        let rules = spec.get("rules");
        let backend = spec.get("defaultBackend");
        if rules.is_empty() && !backend.is_set() {
            let shown = if rules.is_set() { "[]" } else { "null" };
            spec.report_invalid_as(errors, shown, "either `defaultBackend` or `rules` must be specified");
        }
        if backend.is_set() {
            self::backend(&backend, errors);
        }
        let class = spec.get("ingressClassName");
        if class.is_set() {
            class.report_invalid_each(errors, names::subdomain(class.str()));
        }
        for rule in rules.items() {
            self::rule(&rule, errors);
        }
        for tls in spec.get("tls").items() {
            tls.get("hosts").items().for_each(|host| self::host(&host, errors));
        }
    }

    fn validate_update(&self, new: &Value, _old: &Value, subresource: &str, errors: &mut FieldErrors) {
        if subresource != "status" {
            self.validate_create(new, errors);
        }
    }
}

fn host(host: &FieldValue<'_>, errors: &mut FieldErrors) {
    let check = if host.str().contains('*') { names::wildcard_subdomain } else { names::subdomain };
    host.report_invalid_each(errors, check(host.str()));
}

fn rule(rule: &FieldValue<'_>, errors: &mut FieldErrors) {
    let host = rule.get("host");
    if !host.is_empty() {
        if host.str().parse::<IpAddr>().is_ok() {
            host.report_invalid(errors, "must be a DNS name, not an IP address");
        }
        self::host(&host, errors);
    }
    let http = rule.get("http");
    if !http.is_set() {
        return;
    }
    http.get("paths").require(errors, "");
    for path in http.get("paths").items() {
        let kind = path.get("pathType");
        let text = path.get("path");
        if !kind.is_set() {
            kind.report_required(errors, "pathType must be specified");
        } else {
            kind.require_one_of(errors, &["Exact", "ImplementationSpecific", "Prefix"]);
        }
        let needs_path = ["Exact", "Prefix"].contains(&kind.str());
        if (needs_path || !text.is_empty()) && !text.str().starts_with('/') {
            text.report_invalid_each(errors, vec!["must be an absolute path".to_owned()]);
        }
        self::backend(&path.get("backend"), errors);
    }
}

fn backend(backend: &FieldValue<'_>, errors: &mut FieldErrors) {
    let service = backend.get("service");
    let resource = backend.get("resource");
    match (service.is_set(), resource.is_set()) {
        (true, true) => {
            return backend.report_invalid_as(errors, "\"\"", "cannot set both resource and service backends");
        }
        (false, false) => return backend.report_invalid_as(errors, "\"\"", "resource or service backend is required"),
        (false, true) => return,
        (true, false) => {}
    }
    let name = service.get("name");
    if name.require(errors, "") {
        name.report_invalid_each(errors, names::label_1035(name.str()));
    }
    let port = service.get("port");
    let by_name = port.get("name");
    let by_number = port.get("number");
    match (!by_name.is_empty(), by_number.int().unwrap_or(0) != 0) {
        (true, true) => backend.report_invalid_as(errors, "\"\"", "cannot set both port name & port number"),
        (true, false) => by_name.report_invalid_each(errors, names::port_name(by_name.str())),
        (false, true) => number(&by_number, errors),
        (false, false) => backend.report_required(errors, "port name or number is required"),
    }
}

impl Strategy for IngressClassStrategy {
    fn default(&self, object: &mut Value) {
        if let Some(parameters) =
            object_member_mut(object, "spec").and_then(|spec| nested_object_mut(spec, "parameters"))
        {
            set_text_if_empty(parameters, "scope", "Cluster");
        }
    }

    fn prepare_create(&self, object: &mut Value) {
        init_generation(object);
    }

    fn prepare_update(&self, new: &mut Value, old: &Value, _subresource: &str) {
        bump_generation_if_anything_changed(new, old);
    }

    fn validate_create(&self, object: &Value, errors: &mut FieldErrors) {
        let root = FieldValue::root(object);
        let spec = root.get("spec");
        let controller = spec.get("controller");
        if controller.str().len() > MAX_CONTROLLER_BYTES {
            errors.push(FieldError::too_long(controller.path(), MAX_CONTROLLER_BYTES));
        }
        metadata::domain_prefixed_path(&controller, errors);
        if spec.get("parameters").is_set() {
            class_parameters(&spec.get("parameters"), errors);
        }
    }

    fn validate_update(&self, new: &Value, old: &Value, _subresource: &str, errors: &mut FieldErrors) {
        let root = FieldValue::root(new);
        let old_root = FieldValue::root(old);
        let spec = root.get("spec");
        let old_spec = old_root.get("spec");
        spec.get("controller").require_unchanged(errors, &old_spec.get("controller"));
        self.validate_create(new, errors);
    }
}

/// The object that configures a class: of the cluster, or of a namespace.
fn class_parameters(parameters: &FieldValue<'_>, errors: &mut FieldErrors) {
    let group = parameters.get("apiGroup");
    if group.is_set() {
        group.report_invalid_each(errors, names::subdomain(group.str()));
    }
    for field in ["kind", "name"] {
        let at = parameters.get(field);
        if at.require(errors, "") {
            at.report_invalid_each(errors, names::path_segment(at.str(), false));
        }
    }
    let scope = parameters.get("scope");
    let namespace = parameters.get("namespace");
    match scope.str() {
        _ if !scope.is_set() => scope.report_required(errors, ""),
        "Namespace" if !namespace.is_set() => {
            namespace.report_required(errors, "`parameters.scope` is set to 'Namespace'");
        }
        "Namespace" => namespace.report_invalid_each(errors, names::label(namespace.str())),
        "Cluster" if namespace.is_set() => {
            namespace.report_forbidden(errors, "`parameters.scope` is set to 'Cluster'");
        }
        "Cluster" => {}
        _ => scope.require_one_of(errors, &["Cluster", "Namespace"]),
    }
}
