//! `StatusError`: every error response of the server, with kube-apiserver's codes, reasons and messages.

use http::StatusCode;
use serde_json::{Map, Value};

use super::{
    field,
    names::{GroupKind, GroupResource},
};

/// An error response. Every error of a handler is one.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{message}")]
pub struct StatusError {
    pub code: u16,
    /// Empty where Kubernetes has no reason.
    pub reason: &'static str,
    pub message: String,
    pub details: Option<Box<StatusDetails>>,
    /// `Retry-After` in seconds, also in `details.retryAfterSeconds`.
    pub retry_after: Option<u32>,
    /// The continue token of an inconsistent rest of a list.
    pub continuation: Option<String>,
    /// The whole status if it was created elsewhere: a webhook that refuses may choose reason and details.
    pub verbatim: Option<Box<Value>>,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct StatusDetails {
    pub name: String,
    pub group: String,
    pub kind: String,
    pub uid: String,
    pub causes: Vec<StatusCause>,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct StatusCause {
    pub reason: String,
    pub message: String,
    pub field: String,
}

impl StatusError {
    pub fn new(code: StatusCode, reason: &'static str, message: impl Into<String>) -> Self {
        Self {
            code: code.as_u16(),
            reason,
            message: message.into(),
            details: None,
            retry_after: None,
            continuation: None,
            verbatim: None,
        }
    }

    #[must_use]
    pub fn with(mut self, details: StatusDetails) -> Self {
        self.details = Some(Box::new(details));
        self
    }

    pub fn not_found(resource: &GroupResource, name: &str) -> Self {
        let message = format!("{resource} {name:?} not found");
        Self::new(StatusCode::NOT_FOUND, "NotFound", message).with(StatusDetails::for_resource(resource, name))
    }

    pub fn no_such_path() -> Self {
        let message = "the server could not find the requested resource";
        Self::new(StatusCode::NOT_FOUND, "NotFound", message).with(StatusDetails::default())
    }

    pub fn already_exists(resource: &GroupResource, name: &str) -> Self {
        let message = format!("{resource} {name:?} already exists");
        Self::new(StatusCode::CONFLICT, "AlreadyExists", message).with(StatusDetails::for_resource(resource, name))
    }

    /// A concurrent write, or a precondition that does not hold.
    pub fn conflict(resource: &GroupResource, name: &str, why: &str) -> Self {
        let message = format!("Operation cannot be fulfilled on {resource} {name:?}: {why}");
        Self::new(StatusCode::CONFLICT, "Conflict", message).with(StatusDetails::for_resource(resource, name))
    }

    /// The expected resourceVersion is not the newest.
    pub fn modified(resource: &GroupResource, name: &str) -> Self {
        let why = "the object has been modified; please apply your changes to the latest version and try again";
        Self::conflict(resource, name, why)
    }

    pub fn invalid(kind: &GroupKind, name: &str, errors: &[field::FieldError]) -> Self {
        let all: Vec<String> = errors.iter().map(ToString::to_string).collect();
        let joined = match all.as_slice() {
            [one] => one.clone(),
            many => format!("[{}]", many.join(", ")),
        };
        let causes = errors.iter().map(StatusCause::from).collect();
        let details = StatusDetails {
            name: name.into(),
            group: kind.group.to_string(),
            kind: kind.kind.to_string(),
            causes,
            ..StatusDetails::default()
        };
        Self::new(StatusCode::UNPROCESSABLE_ENTITY, "Invalid", format!("{kind} {name:?} is invalid: {joined}"))
            .with(details)
    }

    pub fn bad_request(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "BadRequest", message)
    }

    pub fn unauthorized() -> Self {
        Self::new(StatusCode::UNAUTHORIZED, "Unauthorized", "Unauthorized")
    }

    /// The user is not authorized.
    pub fn forbidden(resource: &GroupResource, name: &str, why: &str) -> Self {
        let message = match (resource.resource.is_empty(), name.is_empty()) {
            (true, _) => format!("forbidden: {why}"),
            (false, true) => format!("{resource} is forbidden: {why}"),
            (false, false) => format!("{resource} {name:?} is forbidden: {why}"),
        };
        Self::new(StatusCode::FORBIDDEN, "Forbidden", message).with(StatusDetails::for_resource(resource, name))
    }

    /// The verb is not supported at this path.
    pub fn method_not_allowed() -> Self {
        let message = "the server does not allow this method on the requested resource";
        Self::new(StatusCode::METHOD_NOT_ALLOWED, "MethodNotAllowed", message).with(StatusDetails::default())
    }

    /// A resourceVersion or a continue token is older than the history.
    pub fn expired(message: impl Into<String>) -> Self {
        Self::new(StatusCode::GONE, "Expired", message)
    }

    /// An unexpected error.
    pub fn internal(message: impl std::fmt::Display) -> Self {
        let message = message.to_string();
        let cause = StatusCause { message: message.clone(), ..StatusCause::default() };
        let details = StatusDetails { causes: vec![cause], ..StatusDetails::default() };
        let message = format!("Internal error occurred: {message}");
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "InternalError", message).with(details)
    }

    /// The time limit of the request was reached.
    pub fn timeout() -> Self {
        let message = "Timeout: request did not complete within the allotted timeout";
        Self::new(StatusCode::GATEWAY_TIMEOUT, "Timeout", message).with(StatusDetails::default())
    }

    pub fn to_value(&self) -> Value {
        if let Some(verbatim) = &self.verbatim {
            return Value::clone(verbatim);
        }
        let mut status =
            string_map([("kind", "Status"), ("apiVersion", "v1"), ("status", "Failure"), ("message", &self.message)]);
        status.append(&mut string_map([("reason", self.reason)]));
        status.insert(
            "metadata".into(),
            string_map([("continue", self.continuation.as_deref().unwrap_or_default())]).into(),
        );
        status.insert("code".into(), self.code.into());
        if self.details.is_some() || self.retry_after.is_some() {
            let mut details = self.details.as_deref().map(StatusDetails::to_map).unwrap_or_default();
            details.extend(self.retry_after.map(|seconds| ("retryAfterSeconds".to_owned(), seconds.into())));
            status.insert("details".into(), details.into());
        }
        status.into()
    }
}

impl StatusDetails {
    /// Details that name an object of a collection.
    pub fn for_resource(resource: &GroupResource, name: &str) -> Self {
        let group = resource.group.to_string();
        let kind = resource.resource.to_string();
        Self { name: name.to_owned(), group, kind, ..Self::default() }
    }

    fn to_map(&self) -> Map<String, Value> {
        let mut details =
            string_map([("name", &*self.name), ("group", &self.group), ("kind", &self.kind), ("uid", &self.uid)]);
        if !self.causes.is_empty() {
            details.insert("causes".into(), self.causes.iter().map(StatusCause::to_value).collect());
        }
        details
    }
}

impl StatusCause {
    fn to_value(&self) -> Value {
        string_map([("reason", &*self.reason), ("message", &self.message), ("field", &self.field)]).into()
    }
}

/// An object of the non-empty strings.
fn string_map<const N: usize>(pairs: [(&str, &str); N]) -> Map<String, Value> {
    let present = pairs.into_iter().filter(|(_, text)| !text.is_empty());
    present.map(|(key, text)| (key.to_owned(), text.into())).collect()
}

impl From<&field::FieldError> for StatusCause {
    fn from(error: &field::FieldError) -> Self {
        Self { reason: error.kind.reason().into(), message: error.message.clone(), field: error.path.clone() }
    }
}
