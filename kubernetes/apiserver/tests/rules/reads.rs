//! Gets, lists and watches.

use serde_json::{Value, json};

use crate::stage::{MAPS, Stage};

async fn with_maps() -> (Stage, Vec<String>) {
    let stage = Stage::new().await;
    let mut versions = Vec::new();
    for name in ["a", "b", "c"] {
        let created = stage.post(MAPS, json!({"metadata": {"name": name}})).await;
        versions.push(created.body["metadata"]["resourceVersion"].as_str().unwrap().to_owned());
    }
    (stage, versions)
}

fn names(list: &Value) -> Vec<&str> {
    list["items"].as_array().unwrap().iter().map(|item| item["metadata"]["name"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn page_of_a_resource_version_is_of_exactly_that_version() {
    let (stage, versions) = with_maps().await;
    let first = stage.get(&format!("{MAPS}?limit=1&resourceVersion={}", versions[1])).await.body;
    assert_eq!((names(&first), &first["metadata"]["remainingItemCount"]), (vec!["a"], &json!(1)));
    let token = first["metadata"]["continue"].as_str().unwrap();
    let rest = stage.get(&format!("{MAPS}?limit=5&continue={token}")).await.body;
    assert_eq!(names(&rest), ["b"]);
    // Without a limit, or if requested, a newer state is sufficient.
    let newer = stage.get(&format!("{MAPS}?resourceVersion={}", versions[1])).await.body;
    assert_eq!(names(&newer).len(), 3);
    let path = format!("{MAPS}?limit=5&resourceVersion={}&resourceVersionMatch=NotOlderThan", versions[1]);
    assert_eq!(names(&stage.get(&path).await.body).len(), 3);
}

#[tokio::test]
async fn continue_token_is_read_before_the_version_beside_it() {
    let (stage, _) = with_maps().await;
    let token = stage.get(&format!("{MAPS}?limit=1")).await.body["metadata"]["continue"].as_str().unwrap().to_owned();
    let both = "specifying resource version is not allowed when using continue";
    for version in ["1", "x"] {
        let refused = stage.get(&format!("{MAPS}?continue={token}&resourceVersion={version}")).await;
        assert_eq!(refused.message(), (400, both));
        let bad = stage.get(&format!("{MAPS}?continue=!&resourceVersion={version}")).await;
        assert!(bad.message().1.starts_with("invalid continue token"), "{bad:?}");
    }
    // With any version the token is ignored, and there are no pages.
    let rest = stage.get(&format!("{MAPS}?limit=1&continue={token}&resourceVersion=0")).await.body;
    assert_eq!(names(&rest), ["b", "c"]);
}

#[tokio::test]
async fn watch_and_get_of_a_bad_version_are_refused_alike() {
    let (stage, versions) = with_maps().await;
    let bad = "resourceVersion: Invalid value: \"x\": strconv.ParseUint: parsing \"x\": invalid syntax";
    assert_eq!(stage.get(&format!("{MAPS}?watch=1&resourceVersion=x")).await.message(), (500, bad));
    assert_eq!(stage.get(&format!("{MAPS}/a?resourceVersion=x")).await.message(), (500, bad));
    let future = stage.get(&format!("{MAPS}/a?resourceVersion=9000000")).await;
    assert_eq!(future.code, 504, "{future:?}");
    assert_eq!(stage.get(&format!("{MAPS}/a?resourceVersion={}", versions[0])).await.code, 200);
    let path = format!(
        "{MAPS}?watch=1&timeoutSeconds=5&resourceVersion=9000000&sendInitialEvents=true&resourceVersionMatch=NotOlderThan"
    );
    let watch = stage.get(&path).await;
    assert_eq!((watch.code, &watch.body["type"], &watch.body["object"]["code"]), (200, &json!("ERROR"), &json!(504)));
}

#[tokio::test]
async fn watch_from_nowhere_marks_the_end_of_what_existed_for_those_who_know_bookmarks() {
    let (stage, _) = with_maps().await;
    let lines = |text: &str| text.lines().map(|line| serde_json::from_str(line).unwrap()).collect::<Vec<Value>>();
    let plain = stage.get(&format!("{MAPS}?watch=1&timeoutSeconds=1")).await;
    assert_eq!(lines(&plain.text).len(), 3);
    let marked = stage.get(&format!("{MAPS}?watch=1&timeoutSeconds=1&allowWatchBookmarks=true")).await;
    let end = &lines(&marked.text)[3];
    assert_eq!(end["object"]["metadata"]["annotations"]["k8s.io/initial-events-end"], "true");
    // A timeout in the past ends it at once.
    assert_eq!(stage.get(&format!("{MAPS}?watch=1&timeoutSeconds=-1")).await.code, 200);
}

#[tokio::test]
async fn watch_of_one_name_takes_no_selector_of_another() {
    let (stage, _) = with_maps().await;
    let path = "/api/v1/watch/namespaces/default/configmaps/a";
    let refused = stage.get(&format!("{path}?timeoutSeconds=1&fieldSelector=metadata.name%3Db")).await;
    assert_eq!(refused.message(), (400, "fieldSelector metadata.name doesn't match requested name"));
    assert_eq!(stage.get(&format!("{path}?timeoutSeconds=1&fieldSelector=metadata.name%3Da")).await.code, 200);
}

#[tokio::test]
async fn servers_beside_this_one_find_whom_to_trust_and_their_roles() {
    let stage = Stage::new().await;
    let path = "/api/v1/namespaces/kube-system/configmaps/extension-apiserver-authentication";
    let mut found = stage.get(path).await;
    while found.code == 404 {
        found = stage.get(path).await;
    }
    let authority = found.body["data"]["client-ca-file"].as_str().unwrap().to_owned();
    assert!(authority.starts_with("-----BEGIN CERTIFICATE-----"));
    assert_eq!(stage.send("DELETE", path, "", "").await.code, 200);
    while stage.get(path).await.code == 404 {}
    assert_eq!(stage.get(path).await.body["data"]["client-ca-file"], authority);
    let roles = "/apis/rbac.authorization.k8s.io/v1/clusterroles/system:controller:deployment-controller";
    assert_eq!(stage.get(roles).await.code, 200);
}

#[tokio::test]
async fn watch_from_nowhere_takes_no_continue_token() {
    let (stage, versions) = with_maps().await;
    let words = "ListOptions.meta.k8s.io \"\" is invalid: resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden when \
                 continue is provided";
    for from in ["", "&resourceVersion=0"] {
        let refused = stage.get(&format!("{MAPS}?watch=1&timeoutSeconds=1&continue=x{from}")).await;
        assert_eq!(refused.message(), (422, words));
    }
    // With a version the token is ignored.
    let path = format!("{MAPS}?watch=1&timeoutSeconds=1&continue=x&resourceVersion={}", versions[2]);
    assert_eq!(stage.get(&path).await.code, 200);
}

#[tokio::test]
async fn watch_on_the_old_path_marks_no_end_of_what_existed() {
    let (stage, _) = with_maps().await;
    let path = "/api/v1/watch/namespaces/default/configmaps?timeoutSeconds=1&allowWatchBookmarks=true";
    let watch = stage.get(path).await;
    assert_eq!(watch.text.lines().filter(|line| line.contains("ADDED")).count(), 3);
    assert!(!watch.text.contains("initial-events-end"), "{watch:?}");
    let marked = stage.get(&format!("{path}&watch=1")).await;
    assert!(marked.text.contains("initial-events-end"), "{marked:?}");
}

#[tokio::test]
async fn timeout_must_be_a_duration_of_whatever_does_not_last() {
    let (stage, _) = with_maps().await;
    for (given, why) in [
        ("abc", "time: invalid duration \"abc\""),
        ("5", "time: missing unit in duration \"5\""),
        ("5x", "time: unknown unit \"x\" in duration \"5x\""),
        ("1s.", "time: invalid duration \"1s.\""),
    ] {
        let refused = stage.get(&format!("{MAPS}?timeout={given}")).await;
        let words = format!("invalid timeout specified in the request URL - {why}");
        assert_eq!(refused.message(), (400, words.as_str()));
    }
    for given in ["", "0", "-5s", "1m30s", "1.5h"] {
        assert_eq!(stage.get(&format!("{MAPS}?timeout={given}")).await.code, 200, "{given}");
    }
    assert_eq!(stage.get(&format!("{MAPS}?watch=1&timeoutSeconds=1&timeout=abc")).await.code, 200);
}

#[tokio::test]
async fn export_is_refused_unless_it_is_off() {
    let (stage, _) = with_maps().await;
    let words = "the export parameter, deprecated since v1.14, is no longer supported";
    assert_eq!(stage.get(&format!("{MAPS}/a?export=true")).await.message(), (400, words));
    assert_eq!(stage.get(&format!("{MAPS}/a?export=false")).await.code, 200);
    assert_eq!(stage.get(&format!("{MAPS}?export=true")).await.code, 200);
}

#[tokio::test]
async fn list_of_one_name_has_no_pages() {
    let (stage, _) = with_maps().await;
    let one = stage.get(&format!("{MAPS}?fieldSelector=metadata.name%3Da&limit=1")).await.body;
    assert_eq!((names(&one), &one["metadata"]["continue"]), (vec!["a"], &Value::Null));
}

#[tokio::test]
async fn path_that_no_verb_leads_to_is_not_found() {
    let stage = Stage::new().await;
    let reviews = "/apis/authorization.k8s.io/v1";
    assert_eq!(stage.get(&format!("{reviews}/selfsubjectaccessreviews")).await.code, 405);
    assert_eq!(stage.get(&format!("{reviews}/selfsubjectaccessreviews/x")).await.code, 404);
    assert_eq!(stage.post(&format!("{reviews}/localsubjectaccessreviews"), json!({})).await.code, 404);
    assert_eq!(stage.post("/api/v1/configmaps", json!({})).await.code, 405);
    // The old watch path supports no other method.
    let watch = stage.post("/api/v1/watch/namespaces/default/configmaps", json!({"metadata": {"name": "x"}})).await;
    assert_eq!(watch.code, 405);
    assert_eq!(stage.get(&format!("{MAPS}/x")).await.code, 404);
}

#[tokio::test]
async fn columns_say_of_themselves_what_the_documentation_of_their_kind_says() {
    let stage = Stage::new().await;
    let table = async |path: &str| {
        let accept = "application/json;as=Table;g=meta.k8s.io;v=v1";
        stage.ask("GET", path, "", accept, "").await.body["columnDefinitions"].clone()
    };
    let deployments = table("/apis/apps/v1/deployments").await;
    let available = "Total number of available non-terminating pods (ready for at least minReadySeconds) targeted by this deployment.";
    assert_eq!((&deployments[3]["name"], &deployments[3]["description"]), (&json!("Available"), &json!(available)));
    let names = |columns: Value| -> Vec<String> {
        columns.as_array().unwrap().iter().map(|column| column["name"].as_str().unwrap().to_owned()).collect()
    };
    let attachments = table("/apis/storage.k8s.io/v1/volumeattachments").await;
    assert_eq!(names(attachments), ["Name", "Attacher", "PV", "Node", "Attached", "Age"]);
    let schemas = table("/apis/flowcontrol.apiserver.k8s.io/v1/flowschemas").await;
    assert_eq!(names(schemas).last().unwrap(), "MissingPL");
}

#[tokio::test]
async fn scale_has_columns_of_its_own() {
    let stage = Stage::new().await;
    let template = json!({"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}});
    let spec = json!({"replicas": 3, "selector": {"matchLabels": {"a": "b"}}, "template": template});
    let path = "/apis/apps/v1/namespaces/default/deployments";
    stage.post(path, json!({"metadata": {"name": "d"}, "spec": spec})).await;
    let accept = "application/json;as=Table;g=meta.k8s.io;v=v1";
    let table = stage.ask("GET", &format!("{path}/d/scale"), "", accept, "").await.body;
    assert_eq!(table["columnDefinitions"][1]["name"], "Desired", "{table}");
    assert_eq!(table["rows"][0]["cells"].as_array().unwrap()[..3], [json!("d"), json!(3), json!(0)]);
}

#[tokio::test]
async fn discovery_is_written_in_what_is_accepted() {
    let stage = Stage::new().await;
    let ask = async |path: &str, accept: &str| stage.ask("GET", path, "", accept, "").await;
    let yaml = ask("/apis/apps/v1", "application/yaml").await;
    assert!(yaml.code == 200 && yaml.text.contains("\nkind: APIResourceList\n"), "{yaml:?}");
    let only = "only the following media types are accepted: application/json, application/yaml, \
                application/vnd.kubernetes.protobuf";
    for path in ["/apis", "/apis/apps"] {
        assert_eq!(ask(path, "text/plain").await.message(), (406, only));
    }
    let form = "application/json;g=apidiscovery.k8s.io;v=v3;as=APIGroupDiscoveryList";
    assert_eq!(ask("/apis", form).await.message(), (406, only));
    let routed = ask("/apis/apps/v1", "text/plain").await;
    assert!(routed.code == 406 && routed.message().1.starts_with("406: Not Acceptable"), "{routed:?}");
}

#[tokio::test]
async fn selectors_of_access_reviews_that_cannot_be_read_are_said_to_be_ignored() {
    let stage = Stage::new().await;
    let review = async |field: &str, selector: Value| {
        let mut attributes = json!({"verb": "list", "resource": "pods"});
        attributes[field] = selector;
        let review = json!({"spec": {"resourceAttributes": attributes}});
        stage.post("/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", review).await
    };
    let said = review("labelSelector", json!({"rawSelector": "a in ("})).await;
    let words = "spec.resourceAttributes.labelSelector ignored due to parse error";
    assert_eq!(said.body["status"], json!({"allowed": true, "evaluationError": words}));
    let some = json!([{"key": "a", "operator": "In", "values": ["b"]}, {"key": "a", "operator": "Exists"}]);
    let said = review("fieldSelector", json!({"requirements": some})).await;
    let words = "spec.resourceAttributes.fieldSelector partially ignored due to parse error";
    assert_eq!(said.body["status"]["evaluationError"], words);
    let empty = review("fieldSelector", json!({"requirements": [{"operator": "In"}]})).await;
    let causes: Vec<_> =
        empty.body["details"]["causes"].as_array().unwrap().iter().map(|cause| &cause["field"]).collect();
    let path = "spec.resourceAttributes.fieldSelector.requirements[0]";
    assert_eq!(causes, [&json!(format!("{path}.key")), &json!(format!("{path}.values"))]);
}
