//! The names of the annotations, all in one place.

/// The prefix of the context itself: the one that KEP-5915 proposes, so that others find it.
const PREFIX: &str = "tracing.k8s.io";
/// A prefix is a DNS subdomain, which Kubernetes limits.
const MAX_PREFIX: usize = 253;

/// Where a context and what belongs to it stand.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Keys {
    /// The context.
    pub traceparent: String,
    /// What vendors added.
    pub tracestate: String,
    /// The hash of the spec that the context belongs to.
    pub spec: String,
    /// The generation that it belongs to.
    pub generation: String,
    /// When it was stamped, RFC 3339.
    pub changed: String,
    /// The context that it replaced.
    pub previous: String,
    /// Whether contexts of others (Tekton, a bare `traceparent`, `trace.kubernetes.io/context`) are read where there is none of ours.
    pub others: bool,
}

/// A prefix that no annotation may have.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} cannot be the prefix of an annotation: use a DNS name such as \"tracing.example.com\"")]
pub struct BadPrefix(pub String);

impl Default for Keys {
    fn default() -> Self {
        Self::prefixed(PREFIX)
    }
}

impl Keys {
    /// The keys with another prefix for `traceparent` and `tracestate`.
    ///
    /// # Errors
    /// Where the prefix is no DNS name.
    pub fn new(prefix: &str) -> Result<Self, BadPrefix> {
        let label = |label: &str| {
            let inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
            !label.is_empty() && label.bytes().all(inner) && !label.starts_with('-') && !label.ends_with('-')
        };
        if prefix.len() > MAX_PREFIX || !prefix.split('.').all(label) {
            return Err(BadPrefix(prefix.chars().take(MAX_PREFIX).collect()));
        }
        Ok(Self::prefixed(prefix))
    }

    /// Every key that a stamp may use.
    #[must_use]
    pub fn all(&self) -> [&str; 6] {
        [&self.traceparent, &self.tracestate, &self.spec, &self.generation, &self.changed, &self.previous]
    }

    fn prefixed(prefix: &str) -> Self {
        Self {
            traceparent: format!("{prefix}/traceparent"),
            tracestate: format!("{prefix}/tracestate"),
            spec: "trail.kubewake.io/spec".to_owned(),
            generation: "trail.kubewake.io/generation".to_owned(),
            changed: "trail.kubewake.io/changed".to_owned(),
            previous: "trail.kubewake.io/previous".to_owned(),
            others: true,
        }
    }
}
