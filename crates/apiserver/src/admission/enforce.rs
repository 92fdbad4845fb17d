//! Policies in force: whether a request is what they ask for.

use std::sync::Arc;

use http::StatusCode;
use serde_json::{Map, Value};

use super::{
    matching::Subject,
    policy::{Binding, Policy, Validation, Variable},
    review::Shown,
};
use crate::{
    api::{
        Status,
        status::{Cause, Details},
    },
    cel::{self, CelValue},
    registry::Resource,
};

/// Longer messages are not shown.
const MAX_MESSAGE: usize = 5 << 10;

/// Something that a policy objects to.
struct Objection {
    message: String,
    reason: &'static str,
}

/// Asks every policy that is bound. The first objection that denies is the answer.
pub fn run(policies: &[Arc<Policy>], bindings: &[Arc<Binding>], subject: Subject<'_>) -> Result<(), Status> {
    // Questions are never refused by a policy: who asks whether it may must get an answer.
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
                denied.get_or_insert_with(|| refusal(subject, said, "Invalid"));
                continue;
            }
        };
        for binding in bound {
            let refused = of_binding(policy, binding, subject, &resource);
            denied = denied.or(refused);
        }
    }
    denied.map_or(Ok(()), Err)
}

/// What a policy says where it is bound.
fn of_binding(policy: &Policy, binding: &Binding, subject: Subject<'_>, resource: &Arc<Resource>) -> Option<Status> {
    match binding.constraints.as_ref().map(|constraints| subject.wanted(constraints)) {
        None | Some(Ok(Some(_))) => {}
        Some(Ok(None)) => return None,
        Some(Err(_)) if policy.ignores_failure => return None,
        Some(Err(status)) => return Some(status),
    }
    let (policy_name, name) = (&policy.name, &binding.name);
    let mut denied = None;
    for Objection { message, reason } in objections(policy, &Shown::of(subject, resource)) {
        if binding.warns {
            subject.request.on.call.warnings.add(format!(
                "Validation failed for ValidatingAdmissionPolicy '{policy_name}' with binding '{name}': {message}"
            ));
        }
        if binding.denies && denied.is_none() {
            let said =
                format!("ValidatingAdmissionPolicy '{policy_name}' with binding '{name}' denied request: {message}");
            denied = Some(refusal(subject, said, reason));
        }
    }
    denied
}

fn refusal(subject: Subject<'_>, message: String, reason: &'static str) -> Status {
    let code = match reason {
        "Forbidden" => StatusCode::FORBIDDEN,
        "Unauthorized" => StatusCode::UNAUTHORIZED,
        "RequestEntityTooLarge" => StatusCode::PAYLOAD_TOO_LARGE,
        _ => StatusCode::UNPROCESSABLE_ENTITY,
    };
    let collection = subject.request.on.collection();
    let status = subject.forbidden(&message);
    let causes = vec![Cause { message, ..Cause::default() }];
    let details = Details { causes, ..Details::of(&collection, subject.name()) };
    Status { code: code.as_u16(), reason, ..status }.with(details)
}

/// Everything that a policy objects to.
fn objections(policy: &Policy, shown: &Shown<'_>) -> Vec<Objection> {
    // What cannot be evaluated is an objection, unless the policy says otherwise.
    let failed = |message: String| match policy.ignores_failure {
        true => None,
        false => Some(Objection { message, reason: "Invalid" }),
    };
    match policy.conditions.is_empty() || policy.has_parameters {
        true => {}
        false => match policy.conditions.hold(shown) {
            Ok(true) => {}
            Ok(false) => return Vec::new(),
            Err(why) => return failed(why).into_iter().collect(),
        },
    }
    if policy.has_parameters {
        return failed("failed to configure policy: parameters are not supported".to_owned()).into_iter().collect();
    }
    let (request, namespace) = (shown.request(), namespace(shown));
    let given = [
        ("object", shown.object.as_deref()),
        ("oldObject", shown.old.as_deref()),
        ("request", Some(&request)),
        ("namespaceObject", namespace.as_ref()),
        ("params", None),
    ];
    let given =
        given.map(|(name, value)| (name, value.map_or(CelValue::Null, cel::plain), value.unwrap_or(&Value::Null)));
    let (named, sizes) = variables(policy, &given);
    let mut all = given.to_vec();
    all.push(("variables", named, &sizes));
    let check = |validation: &Validation| match validation.rule.evaluate(&all) {
        Ok(CelValue::Bool(true)) => None,
        Ok(_) => Some(Objection { message: message(validation, &all), reason: validation.reason }),
        Err(why) => failed(why),
    };
    policy.validations.iter().filter_map(check).collect()
}

/// `variables`, each made from those before it. One that fails is not there.
fn variables(policy: &Policy, given: &[Variable<'_>]) -> (CelValue, Value) {
    let (mut named, mut sizes) = (Vec::new(), Map::new());
    for (name, rule) in &policy.variables {
        let (so_far, size) = (cel::map(named.iter().cloned()), Value::Object(sizes.clone()));
        let mut all = given.to_vec();
        all.push(("variables", so_far, &size));
        if let Ok(value) = rule.evaluate(&all) {
            sizes.insert(name.clone(), cel::measured(&value));
            named.push((name.clone(), value));
        }
    }
    (cel::map(named.into_iter()), sizes.into())
}

fn namespace(shown: &Shown<'_>) -> Option<Value> {
    let (on, subject) = (shown.subject.request.on, shown.subject);
    let name = Some(subject.namespace()).filter(|name| !name.is_empty() && !subject.is_namespace())?;
    on.core().namespace(name).map(|stored| stored.value())
}

fn message(validation: &Validation, variables: &[Variable<'_>]) -> String {
    let made = validation.message_rule.as_ref().and_then(|rule| match rule.evaluate(variables) {
        Ok(CelValue::String(text)) => Some(text.trim().to_owned()),
        _ => None,
    });
    let usable = |text: &String| !text.is_empty() && text.len() <= MAX_MESSAGE && !text.contains('\n');
    match (made.filter(usable), validation.message.as_str()) {
        (Some(made), _) => made,
        (None, "") => format!("failed expression: {}", validation.rule.source.trim()),
        (None, message) => message.to_owned(),
    }
}

#[cfg(test)]
mod tests;
