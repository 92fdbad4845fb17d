//! Why a step of a controller or of a node failed.

use kube::core::Status;

/// It is tried again: see [`queue`](crate::queue).
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The API server refused, or was not reached.
    #[error("the API server: {}", plain(.0))]
    Api(#[from] Box<kube::Error>),
    /// An object does not say what it must.
    #[error("{0}")]
    Object(String),
    /// A mistake of ours, which the log tells more about.
    #[error("it panicked")]
    Panicked,
    /// A file or a process.
    #[error("{what}")]
    Io {
        /// What was tried.
        what: String,
        /// Why it failed.
        source: std::io::Error,
    },
}

impl From<kube::Error> for Error {
    fn from(error: kube::Error) -> Self {
        Self::Api(Box::new(error))
    }
}

impl Error {
    /// Something else wrote the object in between: nothing is wrong, and it is tried again at once.
    pub fn is_conflict(&self) -> bool {
        self.is_code(409)
    }

    /// The object is not there (any more).
    pub fn is_not_found(&self) -> bool {
        self.is_code(404)
    }

    /// The API server does not take what was sent.
    pub fn is_invalid(&self) -> bool {
        self.is_code(422)
    }

    /// There is one of this name already.
    pub fn already_exists(&self) -> bool {
        self.status().is_some_and(|status| status.reason == "AlreadyExists")
    }

    /// Nothing new is made in a namespace that is going away.
    pub fn is_namespace_terminating(&self) -> bool {
        let details = self.status().and_then(|status| status.details.as_ref());
        details.is_some_and(|details| details.causes.iter().any(|cause| cause.reason == "NamespaceTerminating"))
    }

    /// The namespace is going or gone: nothing can be made in it any more.
    pub fn is_refused_by_namespace(&self) -> bool {
        self.is_not_found() || self.is_namespace_terminating()
    }

    /// What the API server said, for people to read in an event or a condition.
    pub fn message(&self) -> String {
        self.status().map_or_else(|| self.to_string(), |status| status.message.clone())
    }

    fn is_code(&self, code: u16) -> bool {
        self.status().is_some_and(|status| status.code == code)
    }

    fn status(&self) -> Option<&Status> {
        match self {
            Self::Api(error) => match &**error {
                kube::Error::Api(status) => Some(status),
                _ => None,
            },
            _ => None,
        }
    }
}

/// Without what is only for those who look for a mistake in this program.
fn plain(error: &kube::Error) -> String {
    match error {
        kube::Error::Api(status) => status.message.clone(),
        other => other.to_string(),
    }
}

/// Of a step that may fail.
pub type Result<T, E = Error> = std::result::Result<T, E>;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_is_told_in_the_words_of_the_api_server() {
        let status = Status::failure("pods \"a\" is forbidden: no", "Forbidden").with_code(403);
        let error = Error::from(kube::Error::Api(status.boxed()));
        assert_eq!(error.to_string(), "the API server: pods \"a\" is forbidden: no");
        assert_eq!(error.message(), "pods \"a\" is forbidden: no");
    }
}
