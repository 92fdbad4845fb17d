//! Validates the probes and hooks of a container.

use serde_json::Value;

use crate::{
    api::field::{FieldError, FieldErrors},
    kinds::{field_value::FieldValue, names},
};

pub(super) fn probes(container: &FieldValue<'_>, grace: Option<i64>, errors: &mut FieldErrors) {
    for name in ["livenessProbe", "startupProbe", "readinessProbe"] {
        let probe = container.get(name);
        if !probe.is_set() {
            continue;
        }
        handler(&probe, &["exec", "httpGet", "tcpSocket", "grpc"], grace, errors);
        for number in ["initialDelaySeconds", "timeoutSeconds", "periodSeconds", "successThreshold", "failureThreshold"]
        {
            probe.get(number).require_non_negative(errors);
        }
        let own_grace = probe.get("terminationGracePeriodSeconds");
        own_grace.require_positive(errors);
        if name == "readinessProbe" {
            if own_grace.is_set() {
                own_grace.report_invalid(errors, "must not be set for readinessProbes");
            }
        } else if probe.get("successThreshold").int() != Some(1) {
            probe.get("successThreshold").report_invalid(errors, "must be 1");
        }
    }
}

/// Validates the hooks of a container. `grace` is the pod's time to end, in seconds.
pub(super) fn lifecycle(lifecycle: &FieldValue<'_>, spec: &FieldValue<'_>, errors: &mut FieldErrors) {
    let grace = spec.get("terminationGracePeriodSeconds").int();
    for hook in ["postStart", "preStop"] {
        let hook = lifecycle.get(hook);
        if hook.is_set() {
            handler(&hook, &["exec", "httpGet", "tcpSocket", "sleep"], grace, errors);
        }
    }
    let signal = lifecycle.get("stopSignal");
    if !signal.is_set() {
        return;
    }
    let system = spec.get("os");
    match system.get("name").str() {
        "" => signal.report_forbidden(errors, "may not be set for containers with empty `spec.os.name`"),
        "windows" => signal.require_one_of(errors, &["SIGKILL", "SIGTERM"]),
        _ => {}
    }
}

fn handler(at: &FieldValue<'_>, known: &[&str], grace: Option<i64>, errors: &mut FieldErrors) {
    let mut given = known.iter().filter(|name| at.get(name).is_set());
    let Some(first) = given.next() else { return at.report_required(errors, "must specify a handler type") };
    let action = at.get(first);
    match *first {
        "exec" => {
            action.get("command").require(errors, "");
        }
        "httpGet" => {
            action.get("path").require(errors, "");
            port(&action.get("port"), errors);
            action.get("scheme").require_one_of(errors, &["HTTP", "HTTPS"]);
            for header in action.get("httpHeaders").items() {
                let name = header.value.get("name").and_then(Value::as_str).unwrap_or_default();
                for wrong in names::http_header(name) {
                    errors.push(FieldError::invalid(action.get("httpHeaders").path(), &name.into(), &wrong));
                }
            }
        }
        "sleep" => {
            let seconds = action.get("seconds").int().unwrap_or_default();
            if let Some(grace) = grace.filter(|grace| !(0..=*grace).contains(&seconds)) {
                let detail = format!("must be non-negative and less than terminationGracePeriodSeconds ({grace})");
                action.report_invalid_as(errors, &seconds.to_string(), &detail);
            }
        }
        _ => port(&action.get("port"), errors),
    }
    for more in given {
        at.get(more).report_forbidden(errors, "may not specify more than 1 handler type");
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
