//! The names of the annotations.

/// The prefix of the context itself. KEP-5915 proposes this one, so that other tools find the context.
const DEFAULT_PREFIX: &str = "tracing.k8s.io";
/// The Kubernetes limit for a DNS subdomain.
const MAX_PREFIX_LENGTH: usize = 253;

/// The annotation keys of a context and its details.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AnnotationKeys {
    /// The key of the context.
    pub traceparent: String,
    /// The key of the vendors' `tracestate`.
    pub tracestate: String,
    /// The key of the hash of the spec that the context belongs to.
    pub spec: String,
    /// The key of the generation that the context belongs to.
    pub generation: String,
    /// The key of the time of the stamp (RFC 3339).
    pub stamped_at: String,
    /// The key of the context that was replaced.
    pub previous: String,
    /// Whether contexts of other tools (Tekton, a bare `traceparent`, `trace.kubernetes.io/context`) are read
    /// where there is none under our keys.
    pub read_foreign: bool,
}

/// A prefix that is not valid for an annotation key.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} cannot be the prefix of an annotation: use a DNS name such as \"tracing.example.com\"")]
pub struct InvalidKeyPrefix(pub String);

impl Default for AnnotationKeys {
    fn default() -> Self {
        Self::prefixed(DEFAULT_PREFIX)
    }
}

impl AnnotationKeys {
    /// The default keys with another prefix for `traceparent` and `tracestate`.
    ///
    /// # Errors
    /// Where the prefix is not a DNS subdomain.
    pub fn new(prefix: &str) -> Result<Self, InvalidKeyPrefix> {
        let label = |label: &str| {
            let inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
            !label.is_empty() && label.bytes().all(inner) && !label.starts_with('-') && !label.ends_with('-')
        };
        if prefix.len() > MAX_PREFIX_LENGTH || !prefix.split('.').all(label) {
            return Err(InvalidKeyPrefix(prefix.chars().take(MAX_PREFIX_LENGTH).collect()));
        }
        Ok(Self::prefixed(prefix))
    }

    /// Every key that a stamp may use.
    #[must_use]
    pub fn all(&self) -> [&str; 6] {
        [&self.traceparent, &self.tracestate, &self.spec, &self.generation, &self.stamped_at, &self.previous]
    }

    fn prefixed(prefix: &str) -> Self {
        Self {
            traceparent: format!("{prefix}/traceparent"),
            tracestate: format!("{prefix}/tracestate"),
            spec: "trail.kubewake.io/spec".to_owned(),
            generation: "trail.kubewake.io/generation".to_owned(),
            stamped_at: "trail.kubewake.io/changed".to_owned(),
            previous: "trail.kubewake.io/previous".to_owned(),
            read_foreign: true,
        }
    }
}
