//! Creates, updates, patches and applies.

use serde_json::json;

use crate::stage::{APPLY, MAPS, MERGE, Stage};

const MODIFIED: &str = "Operation cannot be fulfilled on configmaps \"a\": the object has been modified; please apply your changes \
                        to the latest version and try again";

#[tokio::test]
async fn apply_that_does_not_say_what_it_is_is_refused() {
    let stage = Stage::new().await;
    let path = format!("{MAPS}/a?fieldManager=m");
    for (body, shown) in [
        (json!({"metadata": {"name": "a"}}), "/, Kind="),
        (json!({"kind": "ConfigMap", "metadata": {"name": "a"}}), "/, Kind=ConfigMap"),
        (json!({"apiVersion": "v1", "metadata": {"name": "a"}}), "/v1, Kind="),
        (json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "a"}}), "/v1, Kind=Secret"),
    ] {
        let refused = stage.send("PATCH", &path, APPLY, body).await;
        assert_eq!(refused.message(), (400, format!("invalid object type: {shown}").as_str()));
    }
    let list = stage.send("PATCH", &path, APPLY, "[1]").await;
    let why = "error decoding patch: error unmarshaling JSON: while decoding JSON: json: cannot unmarshal array into Go value of type \
               map[string]interface {}";
    assert_eq!(list.message(), (400, why));
    assert_eq!(stage.get(&format!("{MAPS}/a")).await.code, 404);
}

#[tokio::test]
async fn uid_of_a_write_is_compared_where_its_verb_compares_it() {
    let stage = Stage::new().await;
    let path = format!("{MAPS}/a");
    let apply = format!("{MAPS}/a?fieldManager=m");
    let body = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "uid": "other"}});
    let absent = "Operation cannot be fulfilled on configmaps \"a\": uid mismatch: the provided object specified uid other, and no \
                  existing object was found";
    assert_eq!(stage.send("PATCH", &apply, APPLY, body.clone()).await.message(), (409, absent));
    let created = stage.post(MAPS, json!({"metadata": {"name": "a"}})).await;
    let uid = created.body["metadata"]["uid"].as_str().unwrap();
    let storage = format!(
        "Operation cannot be fulfilled on configmaps \"a\": StorageError: invalid object, Code: 4, Key: \
         /registry/configmaps/default/a, ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: UID in precondition: other, \
         UID in object meta: {uid}"
    );
    assert_eq!(stage.put(&path, body.clone()).await.message(), (409, storage.as_str()));
    let immutable = "ConfigMap \"a\" is invalid: metadata.uid: Invalid value: \"other\": field is immutable";
    assert_eq!(stage.send("PATCH", &apply, APPLY, body).await.message(), (422, immutable));
    let patch = json!({"metadata": {"uid": "other"}});
    assert_eq!(stage.send("PATCH", &path, MERGE, patch).await.message(), (422, immutable));
}

#[tokio::test]
async fn resource_version_of_a_write_is_compared_unless_it_is_none() {
    let stage = Stage::new().await;
    let path = format!("{MAPS}/a");
    let with = |version: &str| json!({"metadata": {"name": "a", "resourceVersion": version}, "data": {"k": version}});
    // It does not prevent a create: an invalid version is ignored, and an apply or a PUT that creates drops it.
    assert_eq!(stage.post(MAPS, with("0")).await.code, 201);
    let set = (500, "resourceVersion should not be set on objects to be created");
    let named = json!({"metadata": {"name": "b", "resourceVersion": "7"}});
    assert_eq!(stage.post(MAPS, named).await.message(), set);
    let lease = "/apis/coordination.k8s.io/v1/namespaces/default/leases/l";
    let renewed = json!({"metadata": {"name": "l", "resourceVersion": "7"}, "spec": {}});
    assert_eq!(stage.put(lease, renewed).await.code, 201);

    assert_eq!(stage.put(&path, with("0")).await.code, 200);
    assert_eq!(stage.put(&path, with("1")).await.message(), (409, MODIFIED));
    assert_eq!(stage.send("PATCH", &path, MERGE, with("1")).await.message(), (409, MODIFIED));
    let bad = "strconv.ParseUint: parsing \"x\": invalid syntax";
    assert_eq!(stage.put(&path, with("x")).await.message(), (500, bad));
    let apply = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "resourceVersion": "1"}});
    let applied = stage.send("PATCH", &format!("{path}?fieldManager=m"), APPLY, apply).await;
    assert_eq!(applied.message(), (409, MODIFIED));
}

#[tokio::test]
async fn body_of_another_kind_is_refused_by_what_the_server_knows_of_it() {
    let stage = Stage::new().await;
    let post = |api_version: &'static str, kind: &'static str| {
        stage.post(MAPS, json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": "a"}}))
    };
    let head = |kind: &str, why: &str| format!("{kind} in version \"v1\" cannot be handled as a ConfigMap: {why}");
    for (version, kind) in [("v1", "Secret"), ("v1", "ConfigMapList"), ("apps/v1", "Deployment"), ("v1", "Status")] {
        let why = head(kind, &format!("converting (v1.{kind}) to (core.ConfigMap): unknown conversion"));
        assert_eq!(post(version, kind).await.message(), (400, why.as_str()));
    }
    let unknown = "no kind \"Nope\" is registered for version \"v1\" in scheme \"pkg/api/legacyscheme/scheme.go:30\"";
    assert_eq!(post("v1", "Nope").await.message(), (400, head("Nope", unknown).as_str()));
    let event = json!({"apiVersion": "events.k8s.io/v1", "kind": "Event", "metadata": {"name": "a"}});
    let refused = stage.post("/api/v1/namespaces/default/events", event).await;
    let why = "the API version in the data (events.k8s.io/v1) does not match the expected API version (v1)";
    assert_eq!(refused.message(), (400, why));
}

#[tokio::test]
async fn nothing_is_stored_where_the_answer_is_not_acceptable() {
    let stage = Stage::new().await;
    let body = json!({"metadata": {"name": "a"}});
    for accept in ["application/json;as=Nope;g=meta.k8s.io;v=v1", "text/plain", "application/*"] {
        assert_eq!(stage.ask("POST", MAPS, "application/json", accept, body.clone()).await.code, 406, "{accept}");
    }
    assert_eq!(stage.get(&format!("{MAPS}/a")).await.code, 404);
    // The parameters of a Table are only checked when there is one.
    let table = "application/json;as=Table;g=meta.k8s.io;v=v1";
    let path = format!("{MAPS}?includeObject=Nope");
    assert_eq!(stage.ask("POST", &path, "application/json", table, body).await.code, 400);
    assert_eq!(stage.get(&format!("{MAPS}/a")).await.code, 200);
}

#[tokio::test]
async fn event_keeps_managers_of_the_group_that_wrote_it() {
    let stage = Stage::new().await;
    let event = json!({
        "metadata": {"name": "e"}, "eventTime": "2024-01-01T00:00:00.000000Z", "reportingController": "example.com/c",
        "reportingInstance": "i", "action": "Do", "reason": "R", "type": "Normal", "note": "hello",
        "regarding": {"kind": "Pod", "namespace": "default", "name": "p"},
    });
    let (new, old) = ("/apis/events.k8s.io/v1/namespaces/default/events", "/api/v1/namespaces/default/events/e");
    assert_eq!(stage.post(new, event).await.code, 201);
    let read = stage.get(old).await.body["metadata"]["managedFields"].take();
    assert_eq!(read[0]["apiVersion"], "events.k8s.io/v1");
    assert!(read[0]["fieldsV1"]["f:note"].is_object() && read[0]["fieldsV1"]["f:message"].is_null(), "{read}");
    let patched = stage.send("PATCH", &format!("{old}?fieldManager=m"), MERGE, json!({"message": "bye"})).await;
    let managed = patched.body["metadata"]["managedFields"].as_array().unwrap().clone();
    let of = |version: &str| managed.iter().find(|entry| entry["apiVersion"] == version).unwrap()["fieldsV1"].clone();
    assert_eq!(of("v1"), json!({"f:message": {}}));
    assert!(of("events.k8s.io/v1")["f:note"].is_null() && of("events.k8s.io/v1")["f:reason"].is_object());
}

#[tokio::test]
async fn strict_patch_tells_fields_that_are_there_twice_or_unknown_to_an_operation() {
    let stage = Stage::new().await;
    assert_eq!(stage.post(MAPS, json!({"metadata": {"name": "a"}, "data": {"k": "1"}})).await.code, 201);
    let (json, strategic) = ("application/json-patch+json", "application/strategic-merge-patch+json");
    let twice = r#"{"data": {"k": "1", "k": "2"}}"#;
    for (media, patch, wanted) in [
        (MERGE, twice, vec![r#"duplicate field "data.k""#]),
        (strategic, twice, vec![r#"duplicate field "data.k""#]),
        (
            MERGE,
            r#"{"data": {"k": "1", "k": "2"}, "x": 1}"#,
            vec![r#"duplicate field "data.k""#, r#"unknown field "x""#],
        ),
        (
            json,
            r#"[{"op": "add", "op": "add", "path": "/data/k", "value": "2"}]"#,
            vec![r#"json patch duplicate field "[0].op""#],
        ),
        (
            json,
            r#"[{"op": "add", "path": "/data/k", "value": "2", "why": 1}]"#,
            vec![r#"json patch unknown field "[0].why""#],
        ),
    ] {
        let refused = stage.send("PATCH", &format!("{MAPS}/a?fieldValidation=Strict"), media, patch).await;
        let why = format!("strict decoding error: {}", wanted.join(", "));
        assert!(refused.code == 422 && refused.message().1.ends_with(&why), "{patch}: {refused:?}");
        let warned = stage.send("PATCH", &format!("{MAPS}/a?fieldValidation=Warn"), media, patch).await;
        let shown: Vec<String> = wanted.iter().map(|why| format!("299 - {:?}", *why)).collect();
        assert_eq!((warned.code, warned.warnings), (200, shown), "{patch}");
        let ignored = stage.send("PATCH", &format!("{MAPS}/a?fieldValidation=Ignore"), media, patch).await;
        assert_eq!((ignored.code, ignored.warnings.len()), (200, 0), "{patch}");
    }
}

#[tokio::test]
async fn patched_object_must_still_be_of_a_kind_that_is_known() {
    let stage = Stage::new().await;
    assert_eq!(stage.post(MAPS, json!({"metadata": {"name": "a"}})).await.code, 201);
    let path = format!("{MAPS}/a");
    let scheme = "in scheme \"pkg/api/legacyscheme/scheme.go:30\"";
    for (patch, why) in [
        (json!({"kind": "Secret"}), "converting (v1.Secret) to (core.ConfigMap): unknown conversion".to_owned()),
        (json!({"kind": "Foo"}), format!("no kind \"Foo\" is registered for version \"v1\" {scheme}")),
        (json!({"apiVersion": "v2"}), format!("no kind \"ConfigMap\" is registered for version \"v2\" {scheme}")),
    ] {
        let refused = stage.send("PATCH", &path, MERGE, patch.clone()).await;
        assert!(refused.code == 422 && refused.message().1.ends_with(&why), "{patch}: {refused:?}");
        // A strategic merge patch changes fields of an object that has a kind already.
        let merged = stage.send("PATCH", &path, "application/strategic-merge-patch+json", patch).await;
        assert_eq!(
            (merged.code, &merged.body["kind"], &merged.body["apiVersion"]),
            (200, &json!("ConfigMap"), &json!("v1"))
        );
    }
    assert_eq!(stage.send("PATCH", &path, MERGE, json!({"kind": null})).await.code, 200);
}

#[tokio::test]
async fn deletion_of_a_page_says_where_the_next_one_begins() {
    let stage = Stage::new().await;
    for name in ["a", "b", "c"] {
        assert_eq!(stage.post(MAPS, json!({"metadata": {"name": name, "labels": {"x": "y"}}})).await.code, 201);
    }
    let page = stage.send("DELETE", &format!("{MAPS}?limit=1"), "", "").await.body;
    assert_eq!((page["items"].as_array().unwrap().len(), &page["metadata"]["remainingItemCount"]), (1, &json!(2)));
    assert!(page["metadata"]["continue"].is_string());
    let rest = stage.send("DELETE", &format!("{MAPS}?labelSelector=x%3Dy"), "", "").await.body;
    assert_eq!((rest["items"].as_array().unwrap().len(), &rest["metadata"]["continue"]), (2, &json!(null)));
}

#[tokio::test]
async fn owner_that_is_named_twice_is_kept_once_and_the_writer_is_warned() {
    let stage = Stage::new().await;
    let owner = |uid: &str| json!({"apiVersion": "v1", "kind": "ConfigMap", "name": "o", "uid": uid});
    let mut blocking = owner("1");
    blocking["blockOwnerDeletion"] = json!(true);
    let owners = json!([owner("1"), owner("2"), owner("1"), blocking, owner("2")]);
    let body = json!({"metadata": {"name": "a", "ownerReferences": owners}});
    let said = |when: &str| {
        format!(
            "299 - \".metadata.ownerReferences contains duplicate entries{when}; API server dedups owner references in 1.20+, and may \
             reject such requests as early as 1.24; please fix your requests; duplicate UID(s) observed: 1, 2\""
        )
    };
    let kept = json!([owner("1"), owner("2"), blocking]);
    let path = format!("{MAPS}/a");
    let created = stage.post(MAPS, body.clone()).await;
    assert_eq!((created.code, created.warnings), (201, vec![said("")]));
    assert_eq!(created.body["metadata"]["ownerReferences"], kept);
    let updated = stage.put(&path, body.clone()).await;
    assert_eq!((updated.code, updated.warnings), (200, vec![said("")]));
    assert_eq!(updated.body["metadata"]["resourceVersion"], created.body["metadata"]["resourceVersion"]);
    let patched = stage.send("PATCH", &path, MERGE, body).await;
    assert_eq!((patched.code, patched.warnings), (200, vec![said(" after mutating admission happens")]));
    assert_eq!(patched.body["metadata"]["ownerReferences"], kept);
}
