//! Errors of controllers and nodes.

use kube::core::Status;

/// The failed step is retried: see [`queue`](crate::queue).
#[derive(Debug, thiserror::Error)]
pub enum ClusterError {
    /// The API server rejected a request or was not reachable.
    #[error("request to the API server failed: {}", plain_message(.0))]
    Api(#[from] Box<kube::Error>),
    /// An object is invalid.
    #[error("{0}")]
    Object(String),
    /// A bug; the log has the details.
    #[error("the task panicked")]
    Panicked,
    /// A file or process operation failed.
    #[error("{what}")]
    Io { what: String, source: std::io::Error },
}

impl From<kube::Error> for ClusterError {
    fn from(error: kube::Error) -> Self {
        Self::Api(Box::new(error))
    }
}

impl ClusterError {
    /// The object was changed by another writer; a retry resolves it.
    pub fn is_conflict(&self) -> bool {
        self.has_code(409)
    }

    /// The object does not exist (any more).
    pub fn is_not_found(&self) -> bool {
        self.has_code(404)
    }

    /// The API server rejected the object as invalid.
    pub fn is_invalid(&self) -> bool {
        self.has_code(422)
    }

    /// An object of this name exists already.
    pub fn already_exists(&self) -> bool {
        self.api_status().is_some_and(|status| status.reason == "AlreadyExists")
    }

    /// The namespace is terminating, so nothing can be created in it.
    pub fn is_namespace_terminating(&self) -> bool {
        let details = self.api_status().and_then(|status| status.details.as_ref());
        details.is_some_and(|details| details.causes.iter().any(|cause| cause.reason == "NamespaceTerminating"))
    }

    /// The namespace is terminating or gone, so nothing can be created in it.
    pub fn is_refused_by_namespace(&self) -> bool {
        self.is_not_found() || self.is_namespace_terminating()
    }

    /// The message of the API server, for an Event or a condition.
    pub fn message(&self) -> String {
        self.api_status().map_or_else(|| self.to_string(), |status| status.message.clone())
    }

    fn has_code(&self, code: u16) -> bool {
        self.api_status().is_some_and(|status| status.code == code)
    }

    fn api_status(&self) -> Option<&Status> {
        match self {
            Self::Api(error) => match &**error {
                kube::Error::Api(status) => Some(status),
                _ => None,
            },
            _ => None,
        }
    }
}

/// The message without details that only help to debug this program.
fn plain_message(error: &kube::Error) -> String {
    match error {
        kube::Error::Api(status) => status.message.clone(),
        other => other.to_string(),
    }
}

pub type Result<T, E = ClusterError> = std::result::Result<T, E>;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_is_told_in_the_words_of_the_api_server() {
        let status = Status::failure("pods \"a\" is forbidden: no", "Forbidden").with_code(403);
        let error = ClusterError::from(kube::Error::Api(status.boxed()));
        assert_eq!(error.to_string(), "request to the API server failed: pods \"a\" is forbidden: no");
        assert_eq!(error.message(), "pods \"a\" is forbidden: no");
    }
}
