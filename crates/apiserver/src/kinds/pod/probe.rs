//! What is wrong with the probes and hooks of a container.

use serde_json::Value;

use crate::{
    api::field::{Error, Errors},
    kinds::{at::At, names},
};

pub(super) fn probes(container: &At<'_>, errors: &mut Errors) {
    for name in ["livenessProbe", "startupProbe", "readinessProbe"] {
        let probe = container.get(name);
        if !probe.is_set() {
            continue;
        }
        handler(&probe, &["exec", "httpGet", "tcpSocket", "grpc"], errors);
        for number in ["initialDelaySeconds", "timeoutSeconds", "periodSeconds", "successThreshold", "failureThreshold"]
        {
            probe.get(number).non_negative(errors);
        }
        let grace = probe.get("terminationGracePeriodSeconds");
        if name == "readinessProbe" {
            if grace.is_set() {
                grace.invalid(errors, "must not be set for readinessProbes");
            }
        } else {
            if probe.get("successThreshold").int().is_some_and(|count| count != 1) {
                probe.get("successThreshold").invalid(errors, "must be 1");
            }
            grace.positive(errors);
        }
    }
}

pub(super) fn lifecycle(lifecycle: &At<'_>, errors: &mut Errors) {
    for hook in ["postStart", "preStop"] {
        let hook = lifecycle.get(hook);
        if hook.is_set() {
            handler(&hook, &["exec", "httpGet", "tcpSocket", "sleep"], errors);
        }
    }
}

fn handler(at: &At<'_>, known: &[&str], errors: &mut Errors) {
    let mut given = known.iter().filter(|name| at.get(name).is_set());
    if given.next().is_none() {
        return at.required(errors, "must specify a handler type");
    }
    for more in given {
        at.get(more).forbidden(errors, "may not specify more than 1 handler type");
    }
    let (exec, http) = (at.get("exec"), at.get("httpGet"));
    if exec.is_set() {
        exec.get("command").require(errors, "");
    }
    if http.is_set() {
        http.get("path").require(errors, "");
        port(&http.get("port"), errors);
        http.get("scheme").one_of(errors, &["HTTP", "HTTPS"]);
        for header in http.get("httpHeaders").items() {
            header.get("name").invalid_each(errors, names::http_header(header.get("name").str()));
        }
    }
    for field in ["tcpSocket", "grpc"] {
        if at.get(field).is_set() {
            port(&at.get(field).get("port"), errors);
        }
    }
}

/// A port by its number or its name.
pub(in crate::kinds) fn port(port: &At<'_>, errors: &mut Errors) {
    match port.value {
        Value::String(name) => port.invalid_each(errors, names::port_name(name)),
        other => {
            let number = other.as_i64().unwrap_or(0);
            for detail in names::port_number(number) {
                errors.push(Error::invalid(port.path(), &Value::from(number), &detail));
            }
        }
    }
}
