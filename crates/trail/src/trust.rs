//! Whose contexts are believed.
//!
//! An annotation is written by whoever may write the object. A tenant could name the trace of another tenant there, or force everything to be
//! recorded by the `sampled` flag. A context that is not believed is not followed: the work on that object is a trace of its own.
//! Objects without a namespace are believed, as only administrators write them.

use std::collections::BTreeSet;

/// Which namespaces' contexts are believed. All, unless said otherwise.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Trust {
    who: Who,
    link: bool,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
enum Who {
    #[default]
    Everyone,
    Only(BTreeSet<String>),
    Except(BTreeSet<String>),
}

impl Trust {
    /// Every context is believed.
    #[must_use]
    pub fn everyone() -> Self {
        Self::default()
    }

    /// Only contexts of these namespaces are believed.
    #[must_use]
    pub fn only<N: Into<String>>(namespaces: impl IntoIterator<Item = N>) -> Self {
        Self { who: Who::Only(namespaces.into_iter().map(Into::into).collect()), link: false }
    }

    /// Contexts of these namespaces are not believed.
    #[must_use]
    pub fn except<N: Into<String>>(namespaces: impl IntoIterator<Item = N>) -> Self {
        Self { who: Who::Except(namespaces.into_iter().map(Into::into).collect()), link: false }
    }

    /// Links what is not believed, so that it can be found from here. The `sampled` flag of such a link counts for nothing.
    #[must_use]
    pub fn link_others(mut self) -> Self {
        self.link = true;
        self
    }

    /// Whether a context on an object in this namespace is believed.
    #[must_use]
    pub fn believes(&self, namespace: Option<&str>) -> bool {
        match (&self.who, namespace) {
            (Who::Everyone, _) | (_, None) => true,
            (Who::Only(names), Some(namespace)) => names.contains(namespace),
            (Who::Except(names), Some(namespace)) => !names.contains(namespace),
        }
    }

    /// Whether contexts that are not believed are linked.
    #[must_use]
    pub fn links_others(&self) -> bool {
        self.link
    }
}

#[cfg(test)]
mod tests {
    use super::Trust;

    #[test]
    fn namespaces_are_believed_as_said() {
        assert!(Trust::everyone().believes(Some("a")));
        let only = Trust::only(["a"]);
        assert!(only.believes(Some("a")) && !only.believes(Some("b")) && only.believes(None));
        let except = Trust::except(["a"]);
        assert!(!except.believes(Some("a")) && except.believes(Some("b")));
        assert!(!except.links_others() && except.link_others().links_others());
    }
}
