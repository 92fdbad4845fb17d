//! Whether an answer says that something was changed.

use http::{Method, StatusCode};
use serde::{Deserialize, de::IgnoredAny};

use super::target::Target;

/// What is read of an answer.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Answer {
    kind: Option<String>,
    metadata: Metadata,
    items: Option<Vec<IgnoredAny>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Metadata {
    resource_version: Option<String>,
}

impl Answer {
    /// An answer that cannot be read says nothing.
    pub(super) fn read(body: &[u8]) -> Self {
        serde_json::from_slice(body).unwrap_or_default()
    }

    pub(super) fn revision(&self) -> Option<&str> {
        self.metadata.resource_version.as_deref()
    }

    /// Whether the request changed something, given the newest revision that had been seen before it was sent.
    pub(super) fn is_change(&self, method: &Method, target: &Target<'_>, status: StatusCode, newest: u64) -> bool {
        if !status.is_success() || target.is_event() {
            return false;
        }
        if let Some(items) = &self.items {
            // A collection was deleted.
            return !items.is_empty();
        }
        match (self.kind.as_deref(), self.revision()) {
            // A deletion, a binding, an eviction.
            (Some("Status"), _) => true,
            // Nothing was stored: a review, a token.
            (_, None) => method == Method::DELETE,
            (_, Some(_)) if status == StatusCode::CREATED => true,
            (_, Some(revision)) => revision.parse::<u64>().map_or(true, |revision| revision > newest),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn changes(method: Method, path: &str, status: StatusCode, answer: Value) -> bool {
        let target = Target::parse(path).unwrap();
        Answer::read(answer.to_string().as_bytes()).is_change(&method, &target, status, 100)
    }

    #[test]
    fn an_answer_tells_whether_something_changed() {
        let path = "/api/v1/namespaces/a/configmaps/b";
        let of = |revision: &str| json!({"kind": "ConfigMap", "metadata": {"resourceVersion": revision}});
        assert!(changes(Method::PATCH, path, StatusCode::OK, of("101")));
        assert!(!changes(Method::PATCH, path, StatusCode::OK, of("100")));
        assert!(changes(Method::PATCH, path, StatusCode::CREATED, of("7")));
        assert!(changes(Method::PUT, path, StatusCode::OK, of("opaque")));
        assert!(!changes(Method::PATCH, path, StatusCode::CONFLICT, of("101")));
        assert!(changes(Method::DELETE, path, StatusCode::OK, json!({"kind": "Status", "status": "Success"})));
        assert!(!changes(Method::DELETE, path, StatusCode::OK, of("99")), "it was on its way out already");
        let list =
            |items: Value| json!({"kind": "ConfigMapList", "metadata": {"resourceVersion": "200"}, "items": items});
        let all = "/api/v1/namespaces/a/configmaps";
        assert!(!changes(Method::DELETE, all, StatusCode::OK, list(json!([]))));
        assert!(changes(Method::DELETE, all, StatusCode::OK, list(json!([{}]))));
        let review = json!({"kind": "SubjectAccessReview", "metadata": {}, "status": {"allowed": true}});
        let reviews = "/apis/authorization.k8s.io/v1/subjectaccessreviews";
        assert!(!changes(Method::POST, reviews, StatusCode::CREATED, review));
        assert!(!changes(Method::POST, "/api/v1/namespaces/a/events", StatusCode::CREATED, of("101")));
        assert!(!changes(Method::PATCH, path, StatusCode::OK, json!("what is this")));
    }
}
