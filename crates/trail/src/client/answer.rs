//! Whether an answer says that something was changed.

use http::{Method, StatusCode};
use serde_json::Value;
use xxhash_rust::xxh3::xxh3_64;

use super::{known::Exchange, target::Target};

/// What is known of an object before a request is sent to it.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Before {
    /// The newest revision of its resource.
    pub(super) newest: u64,
    /// Its own, as a watch showed it last.
    pub(super) shown: Option<u64>,
    /// The last exchange, if this request is the same.
    pub(super) last: Option<Exchange>,
}

/// An answer of the API server. One that cannot be read says nothing.
#[derive(Debug, Default)]
pub(super) struct Answer(Value);

impl Answer {
    pub(super) fn read(body: &[u8]) -> Self {
        Self(serde_json::from_slice(body).unwrap_or_default())
    }

    pub(super) fn revision(&self) -> Option<&str> {
        self.0.get("metadata")?.get("resourceVersion")?.as_str()
    }

    /// What a request to this target could have changed, as a hash.
    pub(super) fn content(&self, target: &Target<'_>) -> u64 {
        let mut content = self.0.clone();
        if target.subresource == Some("status") {
            content = content.get("status").cloned().unwrap_or_default();
        } else if let Some(map) = content.as_object_mut() {
            map.remove("status");
            if let Some(metadata) = map.get_mut("metadata").and_then(Value::as_object_mut) {
                ["resourceVersion", "managedFields", "generation"].iter().for_each(|key| drop(metadata.remove(*key)));
            }
        }
        xxh3_64(content.to_string().as_bytes())
    }

    /// Whether the request changed something.
    pub(super) fn is_change(&self, method: &Method, target: &Target<'_>, status: StatusCode, before: Before) -> bool {
        if !status.is_success() || target.is_event() {
            return false;
        }
        if let Some(items) = self.0.get("items").and_then(Value::as_array) {
            // A collection was deleted.
            return !items.is_empty();
        }
        match (self.0.get("kind").and_then(Value::as_str), self.revision()) {
            // A deletion, a binding, an eviction.
            (Some("Status"), _) => true,
            // Nothing was stored: a review, a token.
            (_, None) => method == Method::DELETE,
            (_, Some(_)) if status == StatusCode::CREATED => true,
            (_, Some(revision)) => {
                revision.parse::<u64>().map_or(true, |revision| revision > before.newest)
                    && !self.is_anothers_work(target, before)
            }
        }
    }

    /// The same was asked for and answered before, and the watch has shown nothing since: whatever made the revision newer was somebody else.
    fn is_anothers_work(&self, target: &Target<'_>, before: Before) -> bool {
        before
            .last
            .zip(before.shown)
            .is_some_and(|(last, shown)| shown <= last.revision && last.content == self.content(target))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn changes(method: Method, path: &str, status: StatusCode, answer: Value) -> bool {
        let target = Target::parse(path).unwrap();
        let before = Before { newest: 100, ..Before::default() };
        Answer::read(answer.to_string().as_bytes()).is_change(&method, &target, status, before)
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

    #[test]
    fn a_change_by_somebody_else_in_between_is_not_ours() {
        let known = crate::client::known::Known::default();
        let target = Target::parse("/apis/e.io/v1/namespaces/n/heads/a/status").unwrap();
        let answer = |revision: &str, size: i32| {
            let metadata = json!({"resourceVersion": revision, "generation": size});
            let object =
                json!({"kind": "Head", "metadata": metadata, "spec": {"size": size}, "status": {"ready": true}});
            Answer::read(object.to_string().as_bytes())
        };
        known.answered("path", b"body", answer("100", 1).content(&target), 100);
        let changes = |shown, answer: &Answer| {
            let before = Before { newest: 100, shown, last: known.repeats("path", b"body") };
            answer.is_change(&Method::PATCH, &target, StatusCode::OK, before)
        };
        assert!(!changes(Some(100), &answer("105", 2)), "the spec was changed by another");
        assert!(changes(Some(103), &answer("105", 2)), "the watch had shown something else, which was undone");
        assert!(changes(None, &answer("105", 2)), "no watch shows it: it may have been undone");
    }
}
