//! Validates the probes and hooks of a container.

use serde_json::Value;

use crate::{
    api::field::{FieldError, FieldErrors},
    kinds::{field_value::FieldValue, names},
};

pub(super) fn probes(container: &FieldValue<'_>, errors: &mut FieldErrors) {
    for name in ["livenessProbe", "startupProbe", "readinessProbe"] {
        let probe = container.get(name);
        if !probe.is_set() {
            continue;
        }
        handler(&probe, &["exec", "httpGet", "tcpSocket", "grpc"], errors);
        for number in ["initialDelaySeconds", "timeoutSeconds", "periodSeconds", "successThreshold", "failureThreshold"]
        {
            probe.get(number).require_non_negative(errors);
        }
        let grace = probe.get("terminationGracePeriodSeconds");
        if name == "readinessProbe" {
            if grace.is_set() {
                grace.report_invalid(errors, "must not be set for readinessProbes");
            }
        } else {
            if probe.get("successThreshold").int().is_some_and(|count| count != 1) {
                probe.get("successThreshold").report_invalid(errors, "must be 1");
            }
            grace.require_positive(errors);
        }
    }
}

pub(super) fn lifecycle(lifecycle: &FieldValue<'_>, errors: &mut FieldErrors) {
    for hook in ["postStart", "preStop"] {
        let hook = lifecycle.get(hook);
        if hook.is_set() {
            handler(&hook, &["exec", "httpGet", "tcpSocket", "sleep"], errors);
        }
    }
}

fn handler(at: &FieldValue<'_>, known: &[&str], errors: &mut FieldErrors) {
    let mut given = known.iter().filter(|name| at.get(name).is_set());
    if given.next().is_none() {
        return at.report_required(errors, "must specify a handler type");
    }
    for more in given {
        at.get(more).report_forbidden(errors, "may not specify more than 1 handler type");
    }
    let exec = at.get("exec");
    let http = at.get("httpGet");
    if exec.is_set() {
        exec.get("command").require(errors, "");
    }
    if http.is_set() {
        http.get("path").require(errors, "");
        port(&http.get("port"), errors);
        http.get("scheme").require_one_of(errors, &["HTTP", "HTTPS"]);
        for header in http.get("httpHeaders").items() {
            header.get("name").report_invalid_each(errors, names::http_header(header.get("name").str()));
        }
    }
    for field in ["tcpSocket", "grpc"] {
        if at.get(field).is_set() {
            port(&at.get(field).get("port"), errors);
        }
    }
}

/// Validates a port number or name.
pub(in crate::kinds) fn port(port: &FieldValue<'_>, errors: &mut FieldErrors) {
    match port.value {
        Value::String(name) => port.report_invalid_each(errors, names::port_name(name)),
        other => {
            let number = other.as_i64().unwrap_or(0);
            for detail in names::port_number(number) {
                errors.push(FieldError::invalid(port.path(), &Value::from(number), &detail));
            }
        }
    }
}
