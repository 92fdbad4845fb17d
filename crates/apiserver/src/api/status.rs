//! `Status`: every refusal of the server, with kube-apiserver's codes, reasons and words.

use http::StatusCode;
use serde_json::{Map, Value};

use super::{
    field,
    names::{GroupKind, GroupResource},
};

/// An answer that is not an object. An error in the server's code is always one of these.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{message}")]
pub struct Status {
    /// The HTTP status.
    pub code: u16,
    /// Empty where Kubernetes has no reason.
    pub reason: &'static str,
    /// For people.
    pub message: String,
    /// For programs.
    pub details: Option<Box<Details>>,
    /// `Retry-After` in seconds, also in `details.retryAfterSeconds`.
    pub retry_after: Option<u32>,
    /// Where a list may go on although it is no longer consistent.
    pub continuation: Option<String>,
    /// The whole answer where somebody else made it: a webhook that refuses may choose its own reason and details.
    pub verbatim: Option<Box<Value>>,
}

/// The machine-readable part.
#[derive(Clone, Debug, Default, PartialEq)]
#[expect(missing_docs, reason = "the names are Kubernetes' own")]
pub struct Details {
    pub name: String,
    pub group: String,
    pub kind: String,
    pub uid: String,
    pub causes: Vec<Cause>,
}

/// One of the causes.
#[derive(Clone, Debug, Default, PartialEq)]
#[expect(missing_docs, reason = "the names are Kubernetes' own")]
pub struct Cause {
    pub reason: String,
    pub message: String,
    pub field: String,
}

impl Status {
    /// Any refusal.
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

    /// With details.
    #[must_use]
    pub fn with(mut self, details: Details) -> Self {
        self.details = Some(Box::new(details));
        self
    }

    /// The object is not there.
    pub fn not_found(resource: &GroupResource, name: &str) -> Self {
        let message = format!("{resource} {name:?} not found");
        Self::new(StatusCode::NOT_FOUND, "NotFound", message).with(Details::of(resource, name))
    }

    /// Nothing is served at this path.
    pub fn no_such_path() -> Self {
        let message = "the server could not find the requested resource";
        Self::new(StatusCode::NOT_FOUND, "NotFound", message).with(Details::default())
    }

    /// The object is there already.
    pub fn already_exists(resource: &GroupResource, name: &str) -> Self {
        let message = format!("{resource} {name:?} already exists");
        Self::new(StatusCode::CONFLICT, "AlreadyExists", message).with(Details::of(resource, name))
    }

    /// Somebody else has written meanwhile, or a precondition does not hold.
    pub fn conflict(resource: &GroupResource, name: &str, why: &str) -> Self {
        let message = format!("Operation cannot be fulfilled on {resource} {name:?}: {why}");
        Self::new(StatusCode::CONFLICT, "Conflict", message).with(Details::of(resource, name))
    }

    /// The resourceVersion that a writer expects is not the newest.
    pub fn modified(resource: &GroupResource, name: &str) -> Self {
        let why = "the object has been modified; please apply your changes to the latest version and try again";
        Self::conflict(resource, name, why)
    }

    /// The object breaks rules.
    pub fn invalid(kind: &GroupKind, name: &str, errors: &[field::Error]) -> Self {
        let all: Vec<String> = errors.iter().map(ToString::to_string).collect();
        let joined = match all.as_slice() {
            [one] => one.clone(),
            many => format!("[{}]", many.join(", ")),
        };
        let causes = errors.iter().map(Cause::from).collect();
        let details = Details {
            name: name.into(),
            group: kind.group.to_string(),
            kind: kind.kind.to_string(),
            causes,
            ..Details::default()
        };
        Self::new(StatusCode::UNPROCESSABLE_ENTITY, "Invalid", format!("{kind} {name:?} is invalid: {joined}"))
            .with(details)
    }

    /// The request makes no sense.
    pub fn bad_request(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "BadRequest", message)
    }

    /// Nobody knows who is asking.
    pub fn unauthorized() -> Self {
        Self::new(StatusCode::UNAUTHORIZED, "Unauthorized", "Unauthorized")
    }

    /// Whoever is asking may not do it.
    pub fn forbidden(resource: &GroupResource, name: &str, why: &str) -> Self {
        let message = match (resource.resource.is_empty(), name.is_empty()) {
            (true, _) => format!("forbidden: {why}"),
            (false, true) => format!("{resource} is forbidden: {why}"),
            (false, false) => format!("{resource} {name:?} is forbidden: {why}"),
        };
        Self::new(StatusCode::FORBIDDEN, "Forbidden", message).with(Details::of(resource, name))
    }

    /// The verb is not for this path.
    pub fn method_not_allowed() -> Self {
        let message = "the server does not allow this method on the requested resource";
        Self::new(StatusCode::METHOD_NOT_ALLOWED, "MethodNotAllowed", message).with(Details::default())
    }

    /// A resourceVersion or a continue token is older than the history that is kept.
    pub fn expired(message: impl Into<String>) -> Self {
        Self::new(StatusCode::GONE, "Expired", message)
    }

    /// Something that should not happen.
    pub fn internal(message: impl std::fmt::Display) -> Self {
        let message = message.to_string();
        let cause = Cause { message: message.clone(), ..Cause::default() };
        let details = Details { causes: vec![cause], ..Details::default() };
        let message = format!("Internal error occurred: {message}");
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "InternalError", message).with(details)
    }

    /// It took longer than its caller, or this server, was ready to wait.
    pub fn timeout() -> Self {
        let message = "Timeout: request did not complete within the allotted timeout";
        Self::new(StatusCode::GATEWAY_TIMEOUT, "Timeout", message).with(Details::default())
    }

    /// As JSON.
    pub fn to_value(&self) -> Value {
        if let Some(verbatim) = &self.verbatim {
            return Value::clone(verbatim);
        }
        let mut status =
            texts([("kind", "Status"), ("apiVersion", "v1"), ("status", "Failure"), ("message", &self.message)]);
        status.append(&mut texts([("reason", self.reason)]));
        status
            .insert("metadata".into(), texts([("continue", self.continuation.as_deref().unwrap_or_default())]).into());
        status.insert("code".into(), self.code.into());
        if self.details.is_some() || self.retry_after.is_some() {
            let mut details = self.details.as_deref().map(Details::to_map).unwrap_or_default();
            details.extend(self.retry_after.map(|seconds| ("retryAfterSeconds".to_owned(), seconds.into())));
            status.insert("details".into(), details.into());
        }
        status.into()
    }
}

impl Details {
    /// Details that name an object of a collection.
    pub fn of(resource: &GroupResource, name: &str) -> Self {
        let (group, kind) = (resource.group.to_string(), resource.resource.to_string());
        Self { name: name.to_owned(), group, kind, ..Self::default() }
    }

    fn to_map(&self) -> Map<String, Value> {
        let mut details =
            texts([("name", &*self.name), ("group", &self.group), ("kind", &self.kind), ("uid", &self.uid)]);
        if !self.causes.is_empty() {
            details.insert("causes".into(), self.causes.iter().map(Cause::to_value).collect());
        }
        details
    }
}

impl Cause {
    fn to_value(&self) -> Value {
        texts([("reason", &*self.reason), ("message", &self.message), ("field", &self.field)]).into()
    }
}

/// An object of those texts that are not empty.
fn texts<const N: usize>(pairs: [(&str, &str); N]) -> Map<String, Value> {
    let present = pairs.into_iter().filter(|(_, text)| !text.is_empty());
    present.map(|(key, text)| (key.to_owned(), text.into())).collect()
}

impl From<&field::Error> for Cause {
    fn from(error: &field::Error) -> Self {
        Self { reason: error.kind.reason().into(), message: error.message.clone(), field: error.path.clone() }
    }
}
