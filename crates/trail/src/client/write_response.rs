//! Decides from a response whether the write changed anything.

use std::time::Duration;

use http::{HeaderMap, Method, StatusCode, header::DATE};
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::Deserialize as _;
use serde_json::Value;
use xxhash_rust::xxh3::xxh3_64;

use super::{
    target::RequestTarget,
    write_history::{ApplierId, ContentHashes, SpecFingerprint, WriteExchange},
};

/// The known state of an object before a request is sent.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct WriteBaseline {
    /// The newest revision of its resource.
    pub(super) newest_revision: u64,
    /// The revision of the object that a watch showed last.
    pub(super) watched_revision: Option<u64>,
    /// The last known desired state of the object.
    pub(super) fingerprint: Option<SpecFingerprint>,
    /// The last exchange, if this request repeats it.
    pub(super) last_exchange: Option<WriteExchange>,
    /// The applier, if this is a server-side apply.
    pub(super) applier: Option<ApplierId>,
    /// The fields that the applier owned.
    pub(super) owned_fields: Option<u64>,
    /// The second in which the request was sent, by the API server's clock.
    pub(super) sent_at: Option<Timestamp>,
}

/// A response of the API server. An unreadable one is treated as empty.
#[derive(Debug, Default)]
pub(super) struct WriteResponse(Value);

impl WriteResponse {
    pub(super) fn parse(body: &[u8]) -> Self {
        Self(serde_json::from_slice(body).unwrap_or_default())
    }

    pub(super) fn revision(&self) -> Option<&str> {
        self.0.get("metadata")?.get("resourceVersion")?.as_str()
    }

    /// Hashes of the part that a request to this target may change, and of the rest.
    pub(super) fn content_hashes(&self, target: &RequestTarget<'_>) -> ContentHashes {
        let hash = |value: &Value| xxh3_64(value.to_string().as_bytes());
        let mut object = self.0.clone();
        let status = object.as_object_mut().and_then(|map| map.remove("status")).unwrap_or_default();
        if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
            ["resourceVersion", "managedFields", "generation"].iter().for_each(|key| drop(metadata.remove(*key)));
        }
        let object = hash(&object);
        let status = hash(&status);
        match target.subresource {
            Some("status") => ContentHashes { own: status, others: object },
            _ => ContentHashes { own: object, others: status },
        }
    }

    /// Whether the request changed something.
    pub(super) fn is_change(
        &self,
        method: &Method,
        target: &RequestTarget<'_>,
        status: StatusCode,
        before: WriteBaseline,
    ) -> bool {
        if !status.is_success() || target.is_event() {
            return false;
        }
        if let Some(items) = self.0.get("items").and_then(Value::as_array) {
            // The deletion of a collection.
            return !items.is_empty();
        }
        match (self.0.get("kind").and_then(Value::as_str), self.revision()) {
            // A deletion, a binding, an eviction.
            (Some("Status"), _) => true,
            // Nothing was stored: a review, a token.
            (_, None) => method == Method::DELETE,
            (_, Some(_)) if status == StatusCode::CREATED => true,
            (_, Some(revision)) => {
                revision.parse::<u64>().map_or(true, |revision| revision > before.newest_revision)
                    && !self.is_changed_by_other(target, before)
            }
        }
    }

    pub(super) fn meta(&self) -> Option<ObjectMeta> {
        ObjectMeta::deserialize(self.0.get("metadata")?).ok()
    }

    /// Whether another writer, not this request, caused the newer revision.
    fn is_changed_by_other(&self, target: &RequestTarget<'_>, before: WriteBaseline) -> bool {
        // The same request was sent and answered before, and the watch has shown nothing since: the newer
        // revision comes from other writers, and is visible in the part that this request does not write. If
        // that part were unchanged, too, this request would have undone a change that was not seen.
        let is_repeated = before.last_exchange.zip(before.watched_revision).is_some_and(|(last, shown)| {
            let now = self.content_hashes(target);
            shown <= last.revision && last.content.own == now.own && last.content.others != now.others
        });
        is_repeated
            || self.meta().is_some_and(|meta| {
                is_spec_unchanged(&meta, target, before)
                    || is_ownership_unchanged(&meta, before)
                    || is_untouched(&meta, before)
            })
    }
}

/// The time at which a request was sent, by the API server's clock: the response's `Date` minus the duration of
/// the call, to the second.
pub(super) fn server_send_time(headers: &HeaderMap, took: Duration) -> Option<Timestamp> {
    let date = headers.get(DATE)?.to_str().ok()?;
    let answered = jiff::fmt::rfc2822::parse(date).ok()?.timestamp();
    answered
        .checked_sub(SignedDuration::try_from(took).ok()?)
        .ok()
        .and_then(|at| Timestamp::from_second(at.as_second()).ok())
}

/// Whether the desired state is the one of before: the newer revision is a change of the status.
fn is_spec_unchanged(meta: &ObjectMeta, target: &RequestTarget<'_>, before: WriteBaseline) -> bool {
    let shapes = before.fingerprint.zip(SpecFingerprint::from_meta(meta)).filter(|_| target.subresource.is_none());
    shapes.is_some_and(|(before, now)| now.is_same(&before))
}

/// Whether the same body was applied again, and the applier's fields and their time are unchanged. A writer
/// that takes over one of these fields removes it from the applier's set, as a watch or a response has shown.
fn is_ownership_unchanged(meta: &ObjectMeta, before: WriteBaseline) -> bool {
    let (Some(applier), Some(owned), Some(_)) = (before.applier, before.owned_fields, before.last_exchange) else {
        return false;
    };
    applier.owned_fields_hash(meta) == Some(owned)
}

/// Whether the applier's last change is older than this request: an apply that changes something renews its
/// time.
fn is_untouched(meta: &ObjectMeta, before: WriteBaseline) -> bool {
    let own =
        before.applier.and_then(|applier| applier.managed_fields_entry(meta)).and_then(|entry| entry.time.as_ref());
    own.zip(before.sent_at).is_some_and(|(time, sent)| time.0 < sent)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn changes(method: Method, path: &str, status: StatusCode, answer: Value) -> bool {
        let target = RequestTarget::parse(path).unwrap();
        let before = WriteBaseline { newest_revision: 100, ..WriteBaseline::default() };
        WriteResponse::parse(answer.to_string().as_bytes()).is_change(&method, &target, status, before)
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
        let known = crate::client::write_history::WriteHistory::default();
        let target = RequestTarget::parse("/apis/e.io/v1/namespaces/n/heads/a/status").unwrap();
        let answer = |revision: &str, size: i32| {
            let metadata = json!({"resourceVersion": revision, "generation": size});
            let object =
                json!({"kind": "Head", "metadata": metadata, "spec": {"size": size}, "status": {"ready": true}});
            WriteResponse::parse(object.to_string().as_bytes())
        };
        known.record_exchange("path", b"body", answer("100", 1).content_hashes(&target), 100);
        let changes = |shown, answer: &WriteResponse| {
            let before = WriteBaseline {
                newest_revision: 100,
                watched_revision: shown,
                last_exchange: known.repeated_exchange("path", b"body"),
                ..WriteBaseline::default()
            };
            answer.is_change(&Method::PATCH, &target, StatusCode::OK, before)
        };
        assert!(!changes(Some(100), &answer("105", 2)), "the spec was changed by another");
        assert!(changes(Some(103), &answer("105", 2)), "the watch had shown something else, which was undone");
        assert!(changes(None, &answer("105", 2)), "no watch shows it: it may have been undone");
        assert!(changes(Some(100), &answer("105", 1)), "nothing of it is left: it was undone unseen");
    }

    fn answer(revision: u64, generation: i64, label: &str, applied: &str) -> WriteResponse {
        let own = json!({"manager": "head", "operation": "Apply", "time": applied});
        let status = json!({"manager": "kubelet", "operation": "Update", "subresource": "status", "time": "2026-01-01T00:10:00Z"});
        let metadata = json!({
            "name": "a", "namespace": "n", "resourceVersion": revision.to_string(), "generation": generation,
            "labels": {"label": label}, "managedFields": [own, status],
        });
        WriteResponse::parse(json!({"kind": "Deployment", "metadata": metadata}).to_string().as_bytes())
    }

    #[test]
    fn a_status_that_somebody_wrote_in_between_is_not_ours() {
        let target = RequestTarget::parse("/apis/apps/v1/namespaces/n/deployments/a").unwrap();
        let known =
            answer(100, 3, "x", "2026-01-01T00:10:00Z").meta().and_then(|meta| SpecFingerprint::from_meta(&meta));
        let changes = |answer: WriteResponse| {
            let before = WriteBaseline { newest_revision: 100, fingerprint: known, ..WriteBaseline::default() };
            answer.is_change(&Method::PATCH, &target, StatusCode::OK, before)
        };
        assert!(!changes(answer(105, 3, "x", "2026-01-01T00:10:00Z")));
        assert!(changes(answer(105, 4, "x", "2026-01-01T00:10:00Z")), "the spec is another");
        assert!(changes(answer(105, 3, "y", "2026-01-01T00:10:00Z")), "a label is another");
    }

    #[test]
    fn an_apply_that_owns_nothing_newer_changed_nothing() {
        let target = RequestTarget::parse("/apis/apps/v1/namespaces/n/deployments/a").unwrap();
        let sent = "2026-01-01T00:10:00Z".parse().unwrap();
        let changes = |manager: &str, applied: &str| {
            let applier = Some(ApplierId::new(manager, None));
            let before =
                WriteBaseline { newest_revision: 100, applier, sent_at: Some(sent), ..WriteBaseline::default() };
            answer(105, 3, "x", applied).is_change(&Method::PATCH, &target, StatusCode::OK, before)
        };
        assert!(!changes("head", "2026-01-01T00:09:59Z"), "whatever is newer is not what was applied");
        assert!(changes("head", "2026-01-01T00:10:00Z"), "that may be now");
        assert!(changes("other", "2026-01-01T00:09:59Z"), "nothing is known of that one");
    }

    #[test]
    fn what_others_add_in_the_same_second_is_not_ours() {
        let known = crate::client::write_history::WriteHistory::default();
        let target = RequestTarget::parse("/apis/apps/v1/namespaces/n/deployments/a").unwrap();
        let now = "2026-01-01T00:10:00Z";
        let first = answer(100, 1, "x", now);
        known.record_fingerprint("apps", "deployments", &first.meta().unwrap());
        known.record_exchange("path", b"body", first.content_hashes(&target), 100);
        let changes = |body: &[u8], shown: &WriteResponse, answer: &WriteResponse| {
            known.record_fingerprint("apps", "deployments", &shown.meta().unwrap());
            let applier = ApplierId::new("head", None);
            let owned = known.owned_fields("apps", "deployments", Some("n"), "a", applier);
            let last = known.repeated_exchange("path", body);
            let sent = now.parse().ok();
            let before = WriteBaseline {
                newest_revision: 100,
                last_exchange: last,
                applier: Some(applier),
                owned_fields: owned,
                sent_at: sent,
                ..WriteBaseline::default()
            };
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
        let sent = |took: u64| server_send_time(&headers, Duration::from_millis(took)).unwrap().to_string();
        assert_eq!(
            (sent(0), sent(1), sent(2500)),
            ("1994-11-06T08:49:37Z".into(), "1994-11-06T08:49:36Z".into(), "1994-11-06T08:49:34Z".into())
        );
        assert!(server_send_time(&HeaderMap::new(), Duration::ZERO).is_none());
    }
}
