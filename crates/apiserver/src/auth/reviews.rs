//! Reviews: questions about who somebody is and what they may do, posted as objects and answered as such.
//!
//! Each function takes the posted object, decoded and with its managedFields, and gives the one to answer with (201). The kinds:
//! SubjectAccessReview, LocalSubjectAccessReview, SelfSubjectAccessReview, SelfSubjectRulesReview, SelfSubjectReview, TokenReview.

use jiff::Timestamp;
use serde_json::{Map, Value, json};

use crate::api::{GroupKind, Status, field, meta::Meta};

use super::{
    Attributes, Authentication, Authorizers, Decision, Rbac, User, Verdict, index::aggregate, rbac::Rule,
    tokens::shown, user::Extra,
};

mod selectors;
mod validate;

/// SubjectAccessReview: what somebody may do.
pub async fn subject_access(review: Value, authorizers: &Authorizers) -> Result<Value, Status> {
    validate::check(&validate::subject_access(&review))?;
    let user = subject(&review);
    Ok(decided(review, &user, authorizers).await)
}

/// LocalSubjectAccessReview: the same in one namespace, that of the path.
pub async fn local_subject_access(
    mut review: Value,
    namespace: &str,
    authorizers: &Authorizers,
) -> Result<Value, Status> {
    if review.namespace().is_empty() {
        crate::api::meta::set_meta(&mut review, "namespace", namespace);
    }
    validate::check(&validate::local_subject_access(&review))?;
    if review.namespace() != namespace {
        return Err(Status::bad_request(format!(
            "spec.resourceAttributes.namespace must match namespace: {namespace}"
        )));
    }
    let user = subject(&review);
    Ok(decided(review, &user, authorizers).await)
}

/// SelfSubjectAccessReview: what the one who asks may do.
pub async fn self_subject_access(review: Value, user: &User, authorizers: &Authorizers) -> Result<Value, Status> {
    validate::check(&validate::self_subject_access(&review))?;
    Ok(decided(review, user, authorizers).await)
}

/// SelfSubjectRulesReview: all that the one who asks may do in a namespace, as far as roles say it (`kubectl auth can-i --list`).
pub fn self_subject_rules(review: &Value, user: &User, rbac: &Rbac) -> Result<Value, Status> {
    let namespace = review.pointer("/spec/namespace").and_then(Value::as_str).unwrap_or_default();
    if namespace.is_empty() {
        return Err(Status::bad_request("no namespace on request"));
    }
    let found = rbac.rules_for(user, namespace);
    let resources = found.rules.iter().filter(|rule| !rule.resources.is_empty());
    let urls = found.rules.iter().filter(|rule| !rule.urls.is_empty());
    let resources: Vec<_> = resources.map(|rule| Rule { urls: Vec::new(), ..rule.clone() }.to_value()).collect();
    let urls: Vec<_> = urls.map(|rule| json!({"verbs": rule.verbs, "nonResourceURLs": rule.urls})).collect();
    let mut status = json!({"resourceRules": resources, "nonResourceRules": urls, "incomplete": false});
    if !found.errors.is_empty()
        && let Some(status) = status.as_object_mut()
    {
        status.insert("evaluationError".into(), aggregate(found.errors).into());
    }
    Ok(answer("authorization.k8s.io/v1", "SelfSubjectRulesReview", json!({}), status, true))
}

/// SelfSubjectReview: who the one who asks is (`kubectl auth whoami`).
pub fn self_subject(user: &User, now: Timestamp) -> Value {
    let metadata = json!({"creationTimestamp": shown(now)});
    answer("authentication.k8s.io/v1", "SelfSubjectReview", metadata, json!({"userInfo": user.to_value()}), false)
}

/// TokenReview: whose token it is. `own` are the server's audiences, for reviews that name none.
pub async fn token(mut review: Value, own: &[String], authentication: &Authentication) -> Result<Value, Status> {
    let Some(token) = review.pointer("/spec/token").and_then(Value::as_str).filter(|token| !token.is_empty()) else {
        return Err(Status::bad_request("token is required for TokenReview in authentication"));
    };
    let named = texts(review.pointer("/spec/audiences"));
    let wanted = if named.is_empty() { own } else { &named };
    let wanted = (!wanted.is_empty()).then_some(wanted);
    let status = match bearer_safe(token) {
        Some(token) => match authentication.token(token, wanted).await {
            Ok(identity) => {
                let mut status = json!({"authenticated": true, "user": identity.user.to_value()});
                if let Some(status) = status.as_object_mut().filter(|_| !identity.audiences.is_empty()) {
                    status.insert("audiences".into(), json!(*identity.audiences));
                }
                status
            }
            Err(error) => json!({"user": {}, "error": error}),
        },
        None => json!({"user": {}}),
    };
    put(&mut review, "status", status);
    Ok(review)
}

/// A token is looked at as if it had come in a header, which a space would end. One that begins with a space is none.
fn bearer_safe(token: &str) -> Option<&str> {
    token.trim_end().split(' ').next().filter(|token| !token.is_empty())
}

async fn decided(mut review: Value, user: &User, authorizers: &Authorizers) -> Value {
    let mut status = status(&authorizers.decide(&attributes(&review, user)).await);
    let ignored = selectors::ignored(&review);
    if !ignored.is_empty() {
        put(&mut status, "evaluationError", ignored.into());
    }
    put(&mut review, "status", status);
    review
}

fn status(decision: &Decision) -> Value {
    let mut status = Map::from_iter([("allowed".to_owned(), decision.is_allowed().into())]);
    if decision.verdict == Verdict::Deny {
        status.insert("denied".to_owned(), true.into());
    }
    if !decision.reason.is_empty() {
        status.insert("reason".to_owned(), (&*decision.reason).into());
    }
    status.into()
}

/// What a review asks about.
fn attributes<'a>(review: &'a Value, user: &'a User) -> Attributes<'a> {
    let part = |name: &str| review.get("spec").and_then(|spec| spec.get(name)).filter(|part| !part.is_null());
    let text = |part: &'a Value, field: &str| part.get(field).and_then(Value::as_str).unwrap_or_default();
    if let Some(resource) = part("resourceAttributes") {
        let version = if text(resource, "version").is_empty() { "*" } else { text(resource, "version") };
        let about =
            Attributes::resource(user, text(resource, "verb"), text(resource, "group"), text(resource, "resource"));
        let about = about.subresource(text(resource, "subresource")).namespace(text(resource, "namespace"));
        return Attributes { version, ..about.name(text(resource, "name")) };
    }
    let path = part("nonResourceAttributes").unwrap_or(&Value::Null);
    Attributes::path(user, text(path, "verb"), text(path, "path"))
}

/// Whom a review asks about.
fn subject(review: &Value) -> User {
    let Some(spec) = review.get("spec") else { return User::default() };
    let text = |field: &str| spec.get(field).and_then(Value::as_str).unwrap_or_default();
    let groups = texts(spec.get("groups"));
    let extra: Extra = spec
        .get("extra")
        .and_then(Value::as_object)
        .into_iter()
        .flatten()
        .map(|(key, values)| (key.clone(), texts(Some(values))))
        .collect();
    User::new(text("user"), groups.iter().map(String::as_str)).with_uid(text("uid")).with_extra(extra)
}

fn texts(list: Option<&Value>) -> Vec<String> {
    let all = list.and_then(Value::as_array).into_iter().flatten();
    all.filter_map(|text| text.as_str().map(str::to_owned)).collect()
}

/// An answer that is an object of its own and not the posted one.
fn answer(version: &str, kind: &str, metadata: Value, status: Value, has_spec: bool) -> Value {
    let mut answer = json!({"kind": kind, "apiVersion": version, "metadata": metadata, "status": status});
    if has_spec {
        put(&mut answer, "spec", json!({}));
    }
    answer
}

fn put(object: &mut Value, field: &str, value: Value) {
    if let Some(members) = object.as_object_mut() {
        members.insert(field.to_owned(), value);
    }
}

#[cfg(test)]
mod tests;
