//! What a request is about, read from its path.

use std::fmt::Write as _;

/// A request to the API server.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Target<'a> {
    pub(super) group: &'a str,
    pub(super) version: &'a str,
    pub(super) namespace: Option<&'a str>,
    pub(super) resource: &'a str,
    pub(super) name: Option<&'a str>,
    pub(super) subresource: Option<&'a str>,
}

impl<'a> Target<'a> {
    /// None where the path is not that of objects.
    pub(super) fn parse(path: &'a str) -> Option<Self> {
        // What stands before is the prefix of a proxy.
        let (at, core) = match (path.find("/apis/"), path.find("/api/")) {
            (Some(at), _) => (at + "/apis/".len(), false),
            (None, Some(at)) => (at + "/api/".len(), true),
            _ => return None,
        };
        let mut parts = path.get(at..)?.split('/').filter(|part| !part.is_empty());
        let group = if core { "" } else { parts.next()? };
        let version = parts.next()?;
        let (mut resource, mut name, mut rest) = (parts.next()?, parts.next(), parts.next());
        let mut namespace = None;
        if resource == "namespaces"
            && name.is_some()
            && let Some(inner) = rest.filter(|inner| !matches!(*inner, "status" | "finalize"))
        {
            (namespace, resource, name, rest) = (name, inner, parts.next(), parts.next());
        }
        Some(Self { group, version, namespace, resource, name, subresource: rest })
    }

    /// The path as kube-apiserver's own spans have it, without what is different for every object.
    pub(super) fn pattern(&self) -> String {
        let mut pattern = match self.group {
            "" => format!("/api/{}", self.version),
            group => format!("/apis/{group}/{}", self.version),
        };
        if self.namespace.is_some() {
            pattern.push_str("/namespaces/{:namespace}");
        }
        // Writing to a string cannot fail.
        let _ = write!(pattern, "/{}", self.resource);
        if self.name.is_some() {
            pattern.push_str("/{:name}");
        }
        if let Some(subresource) = self.subresource {
            let _ = write!(pattern, "/{subresource}");
        }
        pattern
    }

    /// Heartbeats and locks: they come all the time and mean nothing.
    pub(super) fn is_lease(&self) -> bool {
        self.group == "coordination.k8s.io"
    }

    /// Whether the API server stores nothing of it: a question about rights, a token.
    pub(super) fn is_question(&self) -> bool {
        matches!(self.group, "authorization.k8s.io" | "authentication.k8s.io")
    }

    /// What is said about objects changes none.
    pub(super) fn is_event(&self) -> bool {
        self.resource == "events" && matches!(self.group, "" | "events.k8s.io")
    }
}

#[cfg(test)]
mod tests {
    use super::Target;

    #[test]
    fn paths_become_patterns() {
        for (path, pattern) in [
            ("/api/v1/namespaces/a/configmaps/b", "/api/v1/namespaces/{:namespace}/configmaps/{:name}"),
            ("/api/v1/namespaces/a", "/api/v1/namespaces/{:name}"),
            ("/api/v1/namespaces/a/status", "/api/v1/namespaces/{:name}/status"),
            ("/apis/apps/v1/deployments", "/apis/apps/v1/deployments"),
            ("/apis/e.io/v1/heads/a/status", "/apis/e.io/v1/heads/{:name}/status"),
            (
                "/proxy/apis/e.io/v1/namespaces/n/heads/a/status",
                "/apis/e.io/v1/namespaces/{:namespace}/heads/{:name}/status",
            ),
        ] {
            assert_eq!(Target::parse(path).map(|target| target.pattern()).as_deref(), Some(pattern), "{path}");
        }
        for path in ["/version", "/api", "/apis/apps", "/apis/apps/v1", "", "/apis//"] {
            assert_eq!(Target::parse(path), None, "{path}");
        }
    }

    #[test]
    fn what_changes_nothing_is_known() {
        assert!(Target::parse("/apis/authorization.k8s.io/v1/subjectaccessreviews").unwrap().is_question());
        assert!(Target::parse("/apis/coordination.k8s.io/v1/namespaces/a/leases/b").unwrap().is_lease());
        assert!(Target::parse("/apis/events.k8s.io/v1/namespaces/a/events").unwrap().is_event());
        assert!(!Target::parse("/apis/other.io/v1/namespaces/a/events").unwrap().is_event());
    }
}
