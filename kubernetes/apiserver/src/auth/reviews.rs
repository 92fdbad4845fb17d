//! The access and identity reviews, which are posted as objects and answered at once.
//!
//! Each function takes the posted object, decoded and with its managedFields, and returns the object of the
//! response (201). The kinds: SubjectAccessReview, LocalSubjectAccessReview, SelfSubjectAccessReview,
//! SelfSubjectRulesReview, SelfSubjectReview, TokenReview.

use jiff::Timestamp;
use serde_json::{Map, Value, json};

use crate::api::{GroupKind, StatusError, field, meta::MetaAccessor};

use super::{
    AuthorizationAttributes, AuthorizationDecision, DecisionKind, RbacAuthorizer, UnionAuthenticator, UnionAuthorizer,
    UserInfo, rbac::PolicyRule, rbac_index::join_errors, tokens::format_time, user::UserExtra,
};

mod selectors;
mod validate;

/// SubjectAccessReview: whether a user may do something.
pub async fn review_subject_access(review: Value, authorizers: &UnionAuthorizer) -> Result<Value, StatusError> {
    validate::check(&validate::subject_access(&review))?;
    let user = review_subject(&review);
    Ok(set_decision(review, &user, authorizers).await)
}

/// LocalSubjectAccessReview: the same in the namespace of the path.
pub async fn review_local_subject_access(
    mut review: Value,
    namespace: &str,
    authorizers: &UnionAuthorizer,
) -> Result<Value, StatusError> {
    if review.namespace().is_empty() {
        crate::api::meta::set_meta(&mut review, "namespace", namespace);
    }
    validate::check(&validate::local_subject_access(&review))?;
    if review.namespace() != namespace {
        return Err(StatusError::bad_request(format!(
            "spec.resourceAttributes.namespace must match namespace: {namespace}"
        )));
    }
    let user = review_subject(&review);
    Ok(set_decision(review, &user, authorizers).await)
}

/// SelfSubjectAccessReview: whether the requester may do something.
pub async fn review_self_subject_access(
    review: Value,
    user: &UserInfo,
    authorizers: &UnionAuthorizer,
) -> Result<Value, StatusError> {
    validate::check(&validate::self_subject_access(&review))?;
    Ok(set_decision(review, user, authorizers).await)
}

/// SelfSubjectRulesReview: all that the requester may do in a namespace, according to roles (`kubectl auth
/// can-i --list`).
pub fn review_self_subject_rules(review: &Value, user: &UserInfo, rbac: &RbacAuthorizer) -> Result<Value, StatusError> {
    let namespace = review.pointer("/spec/namespace").and_then(Value::as_str).unwrap_or_default();
    if namespace.is_empty() {
        return Err(StatusError::bad_request("no namespace on request"));
    }
    let found = rbac.rules_for(user, namespace);
    let resources = found.rules.iter().filter(|rule| !rule.resources.is_empty());
    let urls = found.rules.iter().filter(|rule| !rule.urls.is_empty());
    let resources: Vec<_> = resources.map(|rule| PolicyRule { urls: Vec::new(), ..rule.clone() }.to_value()).collect();
    let urls: Vec<_> = urls.map(|rule| json!({"verbs": rule.verbs, "nonResourceURLs": rule.urls})).collect();
    let mut status = json!({"resourceRules": resources, "nonResourceRules": urls, "incomplete": false});
    if !found.errors.is_empty()
        && let Some(status) = status.as_object_mut()
    {
        status.insert("evaluationError".into(), join_errors(found.errors).into());
    }
    Ok(review_object("authorization.k8s.io/v1", "SelfSubjectRulesReview", json!({}), status, true))
}

/// SelfSubjectReview: the requester's identity (`kubectl auth whoami`).
pub fn review_self_subject(user: &UserInfo, now: Timestamp) -> Value {
    let metadata = json!({"creationTimestamp": format_time(now)});
    review_object(
        "authentication.k8s.io/v1",
        "SelfSubjectReview",
        metadata,
        json!({"userInfo": user.to_value()}),
        false,
    )
}

/// TokenReview: the identity of a token. `own` are the server's audiences, for reviews without any.
pub async fn review_token(
    mut review: Value,
    own: &[String],
    authentication: &UnionAuthenticator,
) -> Result<Value, StatusError> {
    let Some(token) = review.pointer("/spec/token").and_then(Value::as_str).filter(|token| !token.is_empty()) else {
        return Err(StatusError::bad_request("token is required for TokenReview in authentication"));
    };
    let named = texts(review.pointer("/spec/audiences"));
    let wanted = if named.is_empty() { own } else { &named };
    let wanted = (!wanted.is_empty()).then_some(wanted);
    let status = match bearer_safe(token) {
        Some(token) => match authentication.authenticate_token(token, wanted).await {
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
    set_field(&mut review, "status", status);
    Ok(review)
}

/// The token as a header would carry it, which a space would end. One that begins with a space is none.
fn bearer_safe(token: &str) -> Option<&str> {
    token.trim_end().split(' ').next().filter(|token| !token.is_empty())
}

async fn set_decision(mut review: Value, user: &UserInfo, authorizers: &UnionAuthorizer) -> Value {
    let mut status = access_review_status(&authorizers.decide(&review_attributes(&review, user)).await);
    let ignored = selectors::parse_warning(&review);
    if !ignored.is_empty() {
        set_field(&mut status, "evaluationError", ignored.into());
    }
    set_field(&mut review, "status", status);
    review
}

fn access_review_status(decision: &AuthorizationDecision) -> Value {
    let mut status = Map::from_iter([("allowed".to_owned(), decision.is_allowed().into())]);
    if decision.kind == DecisionKind::Deny {
        status.insert("denied".to_owned(), true.into());
    }
    if !decision.reason.is_empty() {
        status.insert("reason".to_owned(), (&*decision.reason).into());
    }
    status.into()
}

/// The attributes in a review.
fn review_attributes<'a>(review: &'a Value, user: &'a UserInfo) -> AuthorizationAttributes<'a> {
    let part = |name: &str| review.get("spec").and_then(|spec| spec.get(name)).filter(|part| !part.is_null());
    let text = |part: &'a Value, field: &str| part.get(field).and_then(Value::as_str).unwrap_or_default();
    if let Some(resource) = part("resourceAttributes") {
        let version = if text(resource, "version").is_empty() { "*" } else { text(resource, "version") };
        let about = AuthorizationAttributes::for_resource(
            user,
            text(resource, "verb"),
            text(resource, "group"),
            text(resource, "resource"),
        );
        let about = about.with_subresource(text(resource, "subresource")).namespace(text(resource, "namespace"));
        return AuthorizationAttributes { version, ..about.name(text(resource, "name")) };
    }
    let path = part("nonResourceAttributes").unwrap_or(&Value::Null);
    AuthorizationAttributes::for_path(user, text(path, "verb"), text(path, "path"))
}

/// The user in a review.
fn review_subject(review: &Value) -> UserInfo {
    let Some(spec) = review.get("spec") else { return UserInfo::default() };
    let text = |field: &str| spec.get(field).and_then(Value::as_str).unwrap_or_default();
    let groups = texts(spec.get("groups"));
    let extra: UserExtra = spec
        .get("extra")
        .and_then(Value::as_object)
        .into_iter()
        .flatten()
        .map(|(key, values)| (key.clone(), texts(Some(values))))
        .collect();
    UserInfo::new(text("user"), groups.iter().map(String::as_str)).with_uid(text("uid")).with_extra(extra)
}

fn texts(list: Option<&Value>) -> Vec<String> {
    let all = list.and_then(Value::as_array).into_iter().flatten();
    all.filter_map(|text| text.as_str().map(str::to_owned)).collect()
}

/// A response that is not the posted object.
fn review_object(version: &str, kind: &str, metadata: Value, status: Value, has_spec: bool) -> Value {
    let mut answer = json!({"kind": kind, "apiVersion": version, "metadata": metadata, "status": status});
    if has_spec {
        set_field(&mut answer, "spec", json!({}));
    }
    answer
}

fn set_field(object: &mut Value, field: &str, value: Value) {
    if let Some(members) = object.as_object_mut() {
        members.insert(field.to_owned(), value);
    }
}

#[cfg(test)]
mod tests;
