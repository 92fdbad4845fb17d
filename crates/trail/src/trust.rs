//! The namespaces whose contexts are trusted.
//!
//! Everybody who may write an object may write its annotations. A tenant could name another tenant's trace
//! there, or force the recording of everything with the `sampled` flag. An untrusted context is not followed:
//! the work on that object is a trace of its own. Cluster-scoped objects are trusted, as only administrators
//! write them.

use std::collections::BTreeSet;

/// The namespaces whose contexts are trusted; by default all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NamespaceTrust {
    namespaces: TrustedNamespaces,
    link_others: bool,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
enum TrustedNamespaces {
    #[default]
    Everyone,
    Only(BTreeSet<String>),
    Except(BTreeSet<String>),
}

impl NamespaceTrust {
    /// Trusts every context.
    #[must_use]
    pub fn everyone() -> Self {
        Self::default()
    }

    /// Trusts only contexts in these namespaces.
    #[must_use]
    pub fn only<N: Into<String>>(namespaces: impl IntoIterator<Item = N>) -> Self {
        Self {
            namespaces: TrustedNamespaces::Only(namespaces.into_iter().map(Into::into).collect()),
            link_others: false,
        }
    }

    /// Trusts all contexts but those in these namespaces.
    #[must_use]
    pub fn except<N: Into<String>>(namespaces: impl IntoIterator<Item = N>) -> Self {
        Self {
            namespaces: TrustedNamespaces::Except(namespaces.into_iter().map(Into::into).collect()),
            link_others: false,
        }
    }

    /// Links untrusted contexts, so that their traces can be found. The `sampled` flag of such a link is
    /// ignored.
    #[must_use]
    pub fn link_others(mut self) -> Self {
        self.link_others = true;
        self
    }

    /// Whether a context on an object in this namespace is trusted.
    #[must_use]
    pub fn is_trusted(&self, namespace: Option<&str>) -> bool {
        match (&self.namespaces, namespace) {
            (TrustedNamespaces::Everyone, _) | (_, None) => true,
            (TrustedNamespaces::Only(names), Some(namespace)) => names.contains(namespace),
            (TrustedNamespaces::Except(names), Some(namespace)) => !names.contains(namespace),
        }
    }

    /// Whether untrusted contexts are linked.
    #[must_use]
    pub fn links_others(&self) -> bool {
        self.link_others
    }
}

#[cfg(test)]
mod tests {
    use super::NamespaceTrust;

    #[test]
    fn namespaces_are_believed_as_said() {
        assert!(NamespaceTrust::everyone().is_trusted(Some("a")));
        let only = NamespaceTrust::only(["a"]);
        assert!(only.is_trusted(Some("a")) && !only.is_trusted(Some("b")) && only.is_trusted(None));
        let except = NamespaceTrust::except(["a"]);
        assert!(!except.is_trusted(Some("a")) && except.is_trusted(Some("b")));
        assert!(!except.links_others() && except.link_others().links_others());
    }
}
