//! Why a step of a controller or of a node failed.

/// It is tried again: see [`queue`](crate::queue).
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The API server refused, or was not reached.
    #[error("the API server: {0}")]
    Api(#[from] Box<kube::Error>),
    /// An object does not say what it must.
    #[error("{0}")]
    Object(String),
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

    /// The API server answered with this code.
    pub fn is_code(&self, code: u16) -> bool {
        matches!(self, Self::Api(error) if matches!(&**error, kube::Error::Api(status) if status.code == code))
    }
}

/// Of a step that may fail.
pub type Result<T, E = Error> = std::result::Result<T, E>;
