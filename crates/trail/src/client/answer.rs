//! Whether an answer says that something was changed.

use std::time::Duration;

use http::{HeaderMap, Method, StatusCode, header::DATE};
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::Deserialize as _;
use serde_json::Value;
use xxhash_rust::xxh3::xxh3_64;

use super::{
    known::{Applier, Content, Exchange, Shape},
    target::Target,
};

/// What is known of an object before a request is sent to it.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Before {
    /// The newest revision of its resource.
    pub(super) newest: u64,
    /// Its own, as a watch showed it last.
    pub(super) shown: Option<u64>,
    /// What it asked for, as far as is known.
    pub(super) shape: Option<Shape>,
    /// The last exchange, if this request is the same.
    pub(super) last: Option<Exchange>,
    /// Who applies, if this is a server-side apply.
    pub(super) applier: Option<Applier>,
    /// What that one owned.
    pub(super) owned: Option<u64>,
    /// The second before the request was sent, by the API server's clock.
    pub(super) sent: Option<Timestamp>,
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

    /// What a request to this target could have changed, and what it could not.
    pub(super) fn content(&self, target: &Target<'_>) -> Content {
        let hash = |value: &Value| xxh3_64(value.to_string().as_bytes());
        let mut object = self.0.clone();
        let status = object.as_object_mut().and_then(|map| map.remove("status")).unwrap_or_default();
        if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
            ["resourceVersion", "managedFields", "generation"].iter().for_each(|key| drop(metadata.remove(*key)));
        }
        let (object, status) = (hash(&object), hash(&status));
        match target.subresource {
            Some("status") => Content { own: status, others: object },
            _ => Content { own: object, others: status },
        }
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

    /// The object's metadata.
    pub(super) fn meta(&self) -> Option<ObjectMeta> {
        ObjectMeta::deserialize(self.0.get("metadata")?).ok()
    }

    /// Whether somebody else made the revision newer.
    fn is_anothers_work(&self, target: &Target<'_>, before: Before) -> bool {
        // The same was asked for and answered before, the watch has shown nothing since, and what is newer is what others write. Were all as
        // it was, then something was changed unseen, and the request has undone it.
        let is_repeated = before.last.zip(before.shown).is_some_and(|(last, shown)| {
            let now = self.content(target);
            shown <= last.revision && last.content.own == now.own && last.content.others != now.others
        });
        is_repeated
            || self.meta().is_some_and(|meta| {
                is_as_before(&meta, target, before) || is_owned_as_before(&meta, before) || is_untouched(&meta, before)
            })
    }
}

/// When a request was sent, by the API server's clock: what its answer says, and as long before as it took. Both have seconds.
pub(super) fn sent_at(headers: &HeaderMap, took: Duration) -> Option<Timestamp> {
    let date = headers.get(DATE)?.to_str().ok()?;
    let answered = jiff::fmt::rfc2822::parse(date).ok()?.timestamp();
    answered
        .checked_sub(SignedDuration::try_from(took).ok()?)
        .ok()
        .and_then(|at| Timestamp::from_second(at.as_second()).ok())
}

/// The object asks for what it asked for before: what is newer is its status.
fn is_as_before(meta: &ObjectMeta, target: &Target<'_>, before: Before) -> bool {
    let shapes = before.shape.zip(Shape::of(meta)).filter(|_| target.subresource.is_none());
    shapes.is_some_and(|(before, now)| now.is_same(&before))
}

/// The same was applied again, and who applied owns what it owned, since when it did. Whoever takes a field of it away takes it out of that, as a watch or an answer has told.
fn is_owned_as_before(meta: &ObjectMeta, before: Before) -> bool {
    let (Some(applier), Some(owned), Some(_)) = (before.applier, before.owned, before.last) else { return false };
    applier.owns(meta) == Some(owned)
}

/// Who applies owns what it applied since before this request: an apply that changes something makes that newer.
fn is_untouched(meta: &ObjectMeta, before: Before) -> bool {
    let own = before.applier.and_then(|applier| applier.entry(meta)).and_then(|entry| entry.time.as_ref());
    own.zip(before.sent).is_some_and(|(time, sent)| time.0 < sent)
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
            let before = Before { newest: 100, shown, last: known.repeats("path", b"body"), ..Before::default() };
            answer.is_change(&Method::PATCH, &target, StatusCode::OK, before)
        };
        assert!(!changes(Some(100), &answer("105", 2)), "the spec was changed by another");
        assert!(changes(Some(103), &answer("105", 2)), "the watch had shown something else, which was undone");
        assert!(changes(None, &answer("105", 2)), "no watch shows it: it may have been undone");
        assert!(changes(Some(100), &answer("105", 1)), "nothing of it is left: it was undone unseen");
    }

    fn answer(revision: u64, generation: i64, label: &str, applied: &str) -> Answer {
        let own = json!({"manager": "head", "operation": "Apply", "time": applied});
        let status = json!({"manager": "kubelet", "operation": "Update", "subresource": "status", "time": "2026-01-01T00:10:00Z"});
        let metadata = json!({
            "name": "a", "namespace": "n", "resourceVersion": revision.to_string(), "generation": generation,
            "labels": {"label": label}, "managedFields": [own, status],
        });
        Answer::read(json!({"kind": "Deployment", "metadata": metadata}).to_string().as_bytes())
    }

    #[test]
    fn a_status_that_somebody_wrote_in_between_is_not_ours() {
        let target = Target::parse("/apis/apps/v1/namespaces/n/deployments/a").unwrap();
        let known = answer(100, 3, "x", "2026-01-01T00:10:00Z").meta().and_then(|meta| Shape::of(&meta));
        let changes = |answer: Answer| {
            let before = Before { newest: 100, shape: known, ..Before::default() };
            answer.is_change(&Method::PATCH, &target, StatusCode::OK, before)
        };
        assert!(!changes(answer(105, 3, "x", "2026-01-01T00:10:00Z")));
        assert!(changes(answer(105, 4, "x", "2026-01-01T00:10:00Z")), "the spec is another");
        assert!(changes(answer(105, 3, "y", "2026-01-01T00:10:00Z")), "a label is another");
    }

    #[test]
    fn an_apply_that_owns_nothing_newer_changed_nothing() {
        let target = Target::parse("/apis/apps/v1/namespaces/n/deployments/a").unwrap();
        let sent = "2026-01-01T00:10:00Z".parse().unwrap();
        let changes = |manager: &str, applied: &str| {
            let applier = Some(Applier::new(manager, None));
            let before = Before { newest: 100, applier, sent: Some(sent), ..Before::default() };
            answer(105, 3, "x", applied).is_change(&Method::PATCH, &target, StatusCode::OK, before)
        };
        assert!(!changes("head", "2026-01-01T00:09:59Z"), "whatever is newer is not what was applied");
        assert!(changes("head", "2026-01-01T00:10:00Z"), "that may be now");
        assert!(changes("other", "2026-01-01T00:09:59Z"), "nothing is known of that one");
    }

    #[test]
    fn what_others_add_in_the_same_second_is_not_ours() {
        let known = crate::client::known::Known::default();
        let target = Target::parse("/apis/apps/v1/namespaces/n/deployments/a").unwrap();
        let now = "2026-01-01T00:10:00Z";
        let first = answer(100, 1, "x", now);
        known.shaped("apps", "deployments", &first.meta().unwrap());
        known.answered("path", b"body", first.content(&target), 100);
        let changes = |body: &[u8], shown: &Answer, answer: &Answer| {
            known.shaped("apps", "deployments", &shown.meta().unwrap());
            let applier = Applier::new("head", None);
            let owned = known.owned("apps", "deployments", Some("n"), "a", applier);
            let (last, sent) = (known.repeats("path", body), now.parse().ok());
            let before = Before { newest: 100, last, applier: Some(applier), owned, sent, ..Before::default() };
            answer.is_change(&Method::PATCH, &target, StatusCode::OK, before)
        };
        assert!(!changes(b"body", &first, &answer(105, 1, "revision", now)), "a label of somebody else");
        assert!(!changes(b"body", &first, &answer(105, 2, "revision", now)), "or an annotation that counts");
        assert!(changes(b"other body", &first, &answer(105, 2, "x", now)), "another thing was asked for");
        assert!(changes(b"body", &first, &answer(105, 1, "y", "2026-01-01T00:10:01Z")), "what is owned is newer");
        let taken = answer(104, 2, "x", "2026-01-01T00:09:00Z");
        assert!(changes(b"body", &taken, &answer(105, 3, "x", now)), "somebody had taken something away");
    }

    #[test]
    fn when_a_request_was_sent_is_told_by_the_clock_of_the_server() {
        let headers = HeaderMap::from_iter([(DATE, "Sun, 06 Nov 1994 08:49:37 GMT".parse().unwrap())]);
        let sent = |took: u64| sent_at(&headers, Duration::from_millis(took)).unwrap().to_string();
        assert_eq!(
            (sent(0), sent(1), sent(2500)),
            ("1994-11-06T08:49:37Z".into(), "1994-11-06T08:49:36Z".into(), "1994-11-06T08:49:34Z".into())
        );
        assert!(sent_at(&HeaderMap::new(), Duration::ZERO).is_none());
    }
}
