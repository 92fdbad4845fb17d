//! Evaluates the policies in effect against a request.

use std::sync::Arc;

use http::StatusCode;
use serde_json::{Map, Value};

use super::{
    matching::AdmissionAttributes,
    params::{self, Misconfigured},
    policy::{AdmissionPolicy, AdmissionPolicyBinding, ExpressionVariable, PolicyValidation},
    review::VersionedAttributes,
};
use crate::{
    api::{
        StatusError,
        status::{StatusCause, StatusDetails},
    },
    cel::{self, CelValue},
    registry::ServedResource,
};

/// The limit of messages that expressions produce; longer ones are not used.
const MAX_MESSAGE_BYTES: usize = 5 << 10;

/// A violation of a policy by a request.
struct PolicyViolation {
    message: String,
    reason: &'static str,
}

/// Evaluates every policy with a binding. The first violation that denies becomes the response.
pub fn run(
    policies: &[Arc<AdmissionPolicy>],
    bindings: &[Arc<AdmissionPolicyBinding>],
    subject: AdmissionAttributes<'_>,
) -> Result<(), StatusError> {
    // Reviews are never refused by a policy: the question whether a request is allowed must get an answer.
    if subject.request.on.is_review() {
        return Ok(());
    }
    let mut denied = None;
    for policy in policies {
        let mut bound = bindings.iter().filter(|binding| binding.policy == policy.name).peekable();
        if bound.peek().is_none() {
            continue;
        }
        let resource = match subject.wanted(&policy.constraints) {
            Ok(Some(resource)) => resource,
            Ok(None) => continue,
            Err(status) if policy.ignores_failure => {
                tracing::warn!(policy = policy.name, "ignored: {status}");
                continue;
            }
            Err(status) => {
                let said = format!("ValidatingAdmissionPolicy '{}' denied request: {status}", policy.name);
                denied.get_or_insert_with(|| denied_status(subject, said, "Invalid"));
                continue;
            }
        };
        for binding in bound {
            let refused = enforce_binding(policy, binding, subject, &resource);
            denied = denied.or(refused);
        }
    }
    denied.map_or(Ok(()), Err)
}

/// Evaluates a policy for one binding.
fn enforce_binding(
    policy: &AdmissionPolicy,
    binding: &AdmissionPolicyBinding,
    subject: AdmissionAttributes<'_>,
    resource: &Arc<ServedResource>,
) -> Option<StatusError> {
    match binding.constraints.as_ref().map(|constraints| subject.wanted(constraints)) {
        None | Some(Ok(Some(_))) => {}
        Some(Ok(None)) => return None,
        Some(Err(_)) if policy.ignores_failure => return None,
        Some(Err(status)) => return Some(status),
    }
    let policy_name = &policy.name;
    let name = &binding.name;
    let refused = |why: String| {
        if policy.ignores_failure {
            None
        } else {
            Some(denied_status(subject, format!("ValidatingAdmissionPolicy '{policy_name}'{why}"), "Invalid"))
        }
    };
    let all = match params::collect(policy, binding, subject) {
        Ok(all) => all,
        Err(Misconfigured::Policy(why)) => {
            return refused(format!(" denied request: failed to configure policy: {why}"));
        }
        Err(Misconfigured::Binding(why)) => {
            return refused(format!(" with binding '{name}' denied request: failed to configure binding: {why}"));
        }
    };
    let shown = VersionedAttributes::for_version(subject, resource);
    let objections = all.iter().flat_map(|params| evaluate_policy(policy, &shown, params.as_ref()));
    let mut denied = None;
    for PolicyViolation { message, reason } in objections {
        if binding.warns {
            subject.request.on.call.warnings.add(format!(
                "Validation failed for ValidatingAdmissionPolicy '{policy_name}' with binding '{name}': {message}"
            ));
        }
        if binding.denies && denied.is_none() {
            let said =
                format!("ValidatingAdmissionPolicy '{policy_name}' with binding '{name}' denied request: {message}");
            denied = Some(denied_status(subject, said, reason));
        }
    }
    denied
}

fn denied_status(subject: AdmissionAttributes<'_>, message: String, reason: &'static str) -> StatusError {
    let code = match reason {
        "Forbidden" => StatusCode::FORBIDDEN,
        "Unauthorized" => StatusCode::UNAUTHORIZED,
        "RequestEntityTooLarge" => StatusCode::PAYLOAD_TOO_LARGE,
        _ => StatusCode::UNPROCESSABLE_ENTITY,
    };
    let collection = subject.request.on.collection();
    let status = subject.forbidden_status(&message);
    let causes = vec![StatusCause { message, ..StatusCause::default() }];
    let details = StatusDetails { causes, ..StatusDetails::for_resource(&collection, subject.refused_name()) };
    StatusError { code: code.as_u16(), reason, ..status }.with(details)
}

/// All violations of a policy, with these parameters.
fn evaluate_policy(
    policy: &AdmissionPolicy,
    shown: &VersionedAttributes<'_>,
    params: Option<&Value>,
) -> Vec<PolicyViolation> {
    // A failed evaluation is a violation, unless the `failurePolicy` is `Ignore`.
    let failed = |message: String| {
        if policy.ignores_failure { None } else { Some(PolicyViolation { message, reason: "Invalid" }) }
    };
    if !policy.conditions.is_empty() {
        match policy.conditions.match_request(shown, params) {
            Ok(true) => {}
            Ok(false) => return Vec::new(),
            Err(why) => return failed(why).into_iter().collect(),
        }
    }
    let request = shown.request();
    let namespace = namespace_object(shown);
    let given = [
        ("object", shown.object.as_deref()),
        ("oldObject", shown.old.as_deref()),
        ("request", Some(&request)),
        ("namespaceObject", namespace.as_ref()),
        ("params", params),
    ];
    let given =
        given.map(|(name, value)| (name, value.map_or(CelValue::Null, cel::plain), value.unwrap_or(&Value::Null)));
    let (named, sizes) = evaluate_variables(policy, &given);
    let mut all = given.to_vec();
    all.push(("variables", named, &sizes));
    let check = |validation: &PolicyValidation| match validation.rule.evaluate(&all) {
        Ok(CelValue::Bool(true)) => None,
        Ok(_) => Some(PolicyViolation { message: violation_message(validation, &all), reason: validation.reason }),
        Err(why) => failed(why),
    };
    policy.validations.iter().filter_map(check).collect()
}

/// Evaluates `variables`, each with those before it. One that fails is left out.
fn evaluate_variables(policy: &AdmissionPolicy, given: &[ExpressionVariable<'_>]) -> (CelValue, Value) {
    let mut named = Vec::new();
    let mut sizes = Map::new();
    for (name, rule) in &policy.variables {
        let so_far = cel::map(named.iter().cloned());
        let size = Value::Object(sizes.clone());
        let mut all = given.to_vec();
        all.push(("variables", so_far, &size));
        if let Ok(value) = rule.evaluate(&all) {
            sizes.insert(name.clone(), cel::measured(&value));
            named.push((name.clone(), value));
        }
    }
    (cel::map(named.into_iter()), sizes.into())
}

fn namespace_object(shown: &VersionedAttributes<'_>) -> Option<Value> {
    let on = shown.subject.request.on;
    let subject = shown.subject;
    let name = Some(subject.namespace()).filter(|name| !name.is_empty() && !subject.is_namespace())?;
    on.core().namespace(name).map(|stored| stored.value())
}

fn violation_message(validation: &PolicyValidation, variables: &[ExpressionVariable<'_>]) -> String {
    let made = validation.message_rule.as_ref().and_then(|rule| match rule.evaluate(variables) {
        Ok(CelValue::String(text)) => Some(text.trim().to_owned()),
        _ => None,
    });
    let usable = |text: &String| !text.is_empty() && text.len() <= MAX_MESSAGE_BYTES && !text.contains('\n');
    match (made.filter(usable), validation.message.as_str()) {
        (Some(made), _) => made,
        (None, "") => format!("failed expression: {}", validation.rule.source.trim()),
        (None, message) => message.to_owned(),
    }
}

#[cfg(test)]
mod tests;
