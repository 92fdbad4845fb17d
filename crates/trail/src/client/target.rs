//! The target of a request to the API server, parsed from its path.

use std::fmt::Write as _;

/// The target of a request to the API server.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct RequestTarget<'a> {
    pub(super) group: &'a str,
    pub(super) version: &'a str,
    pub(super) namespace: Option<&'a str>,
    pub(super) resource: &'a str,
    pub(super) name: Option<&'a str>,
    pub(super) subresource: Option<&'a str>,
}

impl<'a> RequestTarget<'a> {
    /// Parses a path; none where it does not address a resource.
    pub(super) fn parse(path: &'a str) -> Option<Self> {
        // Anything before is the path prefix of a proxy.
        let (at, core) = match (path.find("/apis/"), path.find("/api/")) {
            (Some(at), _) => (at + "/apis/".len(), false),
            (None, Some(at)) => (at + "/api/".len(), true),
            _ => return None,
        };
        let mut parts = path.get(at..)?.split('/').filter(|part| !part.is_empty());
        let group = if core { "" } else { parts.next()? };
        let version = parts.next()?;
        let mut resource = parts.next()?;
        let mut name = parts.next();
        let mut rest = parts.next();
        let mut namespace = None;
        if resource == "namespaces"
            && name.is_some()
            && let Some(inner) = rest.filter(|inner| !matches!(*inner, "status" | "finalize"))
        {
            (namespace, resource, name, rest) = (name, inner, parts.next(), parts.next());
        }
        Some(Self { group, version, namespace, resource, name, subresource: rest })
    }

    /// The path in the form of kube-apiserver's own spans, without the parts that differ for every object.
    pub(super) fn path_template(&self) -> String {
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

    /// Leases are heartbeats and locks: frequent and without information.
    pub(super) fn is_lease(&self) -> bool {
        self.group == "coordination.k8s.io"
    }

    /// Reviews and token requests: the API server stores nothing of them.
    pub(super) fn is_review(&self) -> bool {
        matches!(self.group, "authorization.k8s.io" | "authentication.k8s.io")
    }

    /// Events describe objects and change none.
    pub(super) fn is_event(&self) -> bool {
        self.resource == "events" && matches!(self.group, "" | "events.k8s.io")
    }
}

#[cfg(test)]
mod tests {
    use super::RequestTarget;

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
            assert_eq!(
                RequestTarget::parse(path).map(|target| target.path_template()).as_deref(),
                Some(pattern),
                "{path}"
            );
        }
        for path in ["/version", "/api", "/apis/apps", "/apis/apps/v1", "", "/apis//"] {
            assert_eq!(RequestTarget::parse(path), None, "{path}");
        }
    }

    #[test]
    fn what_changes_nothing_is_known() {
        assert!(RequestTarget::parse("/apis/authorization.k8s.io/v1/subjectaccessreviews").unwrap().is_review());
        assert!(RequestTarget::parse("/apis/coordination.k8s.io/v1/namespaces/a/leases/b").unwrap().is_lease());
        assert!(RequestTarget::parse("/apis/events.k8s.io/v1/namespaces/a/events").unwrap().is_event());
        assert!(!RequestTarget::parse("/apis/other.io/v1/namespaces/a/events").unwrap().is_event());
    }
}
