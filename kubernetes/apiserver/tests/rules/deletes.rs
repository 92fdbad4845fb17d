//! Deletions.

use serde_json::{Value, json};

use crate::stage::{MAPS, Stage};

const PODS: &str = "/api/v1/namespaces/default/pods";
const JOBS: &str = "/apis/batch/v1/namespaces/default/jobs";

fn pod(name: &str, node: &str) -> Value {
    let container = json!({"name": "c", "image": "i"});
    json!({"metadata": {"name": name}, "spec": {"nodeName": node, "containers": [container]}})
}

impl Stage {
    async fn delete(&self, path: &str, options: Value) -> crate::stage::Answer {
        self.send("DELETE", path, "application/json", options).await
    }

    async fn made(&self, path: &str, object: Value) -> Value {
        let created = self.post(path, object).await;
        assert_eq!(created.code, 201, "{created:?}");
        created.body
    }
}

#[tokio::test]
async fn object_with_finalizers_deleted_with_dependents_the_old_way_is_accepted() {
    let stage = Stage::new().await;
    stage.made(MAPS, json!({"metadata": {"name": "a", "finalizers": ["example.com/hold"]}})).await;
    assert_eq!(stage.delete(&format!("{MAPS}/a"), json!({"orphanDependents": false})).await.code, 202);
    assert_eq!(stage.delete(&format!("{MAPS}/a"), json!({"propagationPolicy": "Background"})).await.code, 200);
}

#[tokio::test]
async fn content_type_of_a_deletion_without_a_body_is_not_read() {
    let stage = Stage::new().await;
    stage.made(MAPS, json!({"metadata": {"name": "a"}})).await;
    assert_eq!(stage.send("DELETE", &format!("{MAPS}/a"), "text/plain", "x").await.code, 415);
    assert_eq!(stage.send("DELETE", &format!("{MAPS}/a?uid="), "text/plain", "").await.code, 200);
}

#[tokio::test]
async fn pods_of_a_job_are_kept_unless_its_deletion_says_otherwise() {
    let stage = Stage::new().await;
    let job = |name: &str| {
        let container = json!({"name": "c", "image": "i"});
        let template = json!({"spec": {"restartPolicy": "Never", "containers": [container]}});
        json!({"metadata": {"name": name, "finalizers": ["example.com/hold"]}, "spec": {"template": template}})
    };
    for name in ["a", "b", "c"] {
        stage.made(JOBS, job(name)).await;
    }
    let plain = stage.send("DELETE", &format!("{JOBS}/a"), "", "").await;
    assert_eq!(plain.body["metadata"]["finalizers"], json!(["example.com/hold", "orphan"]));
    let warning = "299 - \"child pods are preserved by default when jobs are deleted; set propagationPolicy=Background to remove \
                   them or set propagationPolicy=Orphan to suppress this warning\"";
    assert_eq!(plain.warnings, [warning]);
    let said = stage.delete(&format!("{JOBS}/b"), json!({"propagationPolicy": "Background"})).await;
    assert_eq!((&said.body["metadata"]["finalizers"], said.warnings.len()), (&json!(["example.com/hold"]), 0));
    assert_eq!(stage.send("DELETE", JOBS, "", "").await.warnings, [warning]);
}

#[tokio::test]
async fn event_is_deleted_whatever_is_said_of_its_dependents() {
    let stage = Stage::new().await;
    let events = "/api/v1/namespaces/default/events";
    stage.made(events, json!({"metadata": {"name": "e"}, "involvedObject": {"namespace": "default"}})).await;
    let gone = stage.send("DELETE", &format!("{events}/e?propagationPolicy=Foreground"), "", "").await;
    assert_eq!((gone.code, &gone.body["kind"]), (200, &json!("Status")));
}

#[tokio::test]
async fn kinds_that_answer_with_what_they_were_do_not_say_that_it_is_deleted() {
    let stage = Stage::new().await;
    let accounts = "/api/v1/namespaces/default/serviceaccounts";
    stage.made(accounts, json!({"metadata": {"name": "a"}})).await;
    let classes = "/apis/storage.k8s.io/v1/storageclasses";
    stage.made(classes, json!({"metadata": {"name": "a"}, "provisioner": "example.com/a"})).await;
    for (path, kind) in [(accounts, "ServiceAccount"), (classes, "StorageClass")] {
        let gone = stage.send("DELETE", &format!("{path}/a"), "", "").await;
        assert_eq!((gone.code, &gone.body["kind"]), (200, &json!(kind)));
        assert_eq!(gone.body["metadata"]["deletionTimestamp"], Value::Null);
    }
}

#[tokio::test]
async fn watchers_see_that_an_unscheduled_pod_is_deleted_before_it_is_gone() {
    let stage = Stage::new().await;
    let made = stage.made(PODS, pod("p", "")).await;
    assert_eq!(stage.send("DELETE", &format!("{PODS}/p"), "", "").await.code, 200);
    let from = made["metadata"]["resourceVersion"].as_str().unwrap();
    let watch = stage.get(&format!("{PODS}?watch=1&timeoutSeconds=1&resourceVersion={from}")).await;
    let events: Vec<Value> = watch.text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let seen: Vec<_> = events.iter().map(|event| &event["type"]).collect();
    assert_eq!(seen, ["MODIFIED", "DELETED"]);
    for event in &events {
        assert_eq!(event["object"]["metadata"]["deletionGracePeriodSeconds"], 0);
    }
}

#[tokio::test]
async fn grace_period_of_a_pod_can_only_become_shorter() {
    let stage = Stage::new().await;
    let made = stage.made(PODS, pod("p", "n")).await;
    let path = format!("{PODS}/p");
    let seconds = |answer: &crate::stage::Answer| {
        let meta = &answer.body["metadata"];
        (meta["deletionGracePeriodSeconds"].as_i64(), meta["resourceVersion"].as_str().unwrap().to_owned())
    };
    let end =
        |value: &Value| value["metadata"]["deletionTimestamp"].as_str().unwrap().parse::<jiff::Timestamp>().unwrap();
    let began: jiff::Timestamp = made["metadata"]["creationTimestamp"].as_str().unwrap().parse().unwrap();
    let first = stage.send("DELETE", &path, "", "").await;
    assert_eq!(seconds(&first).0, Some(30));
    assert!(end(&first.body).duration_since(began).as_secs() >= 30, "{first:?}");
    let again = stage.send("DELETE", &path, "", "").await;
    let longer = stage.delete(&path, json!({"gracePeriodSeconds": 60})).await;
    assert_eq!((seconds(&again), seconds(&longer)), (seconds(&first), seconds(&first)));
    let shorter = stage.delete(&path, json!({"gracePeriodSeconds": 10})).await;
    assert_eq!(seconds(&shorter).0, Some(10));
    assert!(end(&shorter.body) < end(&first.body));
    assert_eq!(stage.delete(&path, json!({"gracePeriodSeconds": 0})).await.code, 200);
    assert_eq!(stage.get(&path).await.code, 404);
}

#[tokio::test]
async fn preconditions_are_refused_in_the_words_of_their_kind() {
    let stage = Stage::new().await;
    let template = json!({"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}});
    let spec = json!({"selector": {"matchLabels": {"a": "b"}}, "template": template});
    let sets = "/apis/apps/v1/namespaces/default/replicasets";
    stage.made(sets, json!({"metadata": {"name": "a"}, "spec": spec})).await;
    let refused = stage.delete(&format!("{sets}/a"), json!({"preconditions": {"uid": "x"}})).await;
    let start =
        "Operation cannot be fulfilled on ReplicaSet.apps \"a\": the UID in the precondition (x) does not match";
    assert!(refused.message().1.starts_with(start), "{refused:?}");
    let space = stage.made("/api/v1/namespaces", json!({"metadata": {"name": "n"}})).await;
    let version = space["metadata"]["resourceVersion"].as_str().unwrap();
    let options = json!({"preconditions": {"resourceVersion": "1"}});
    let refused = stage.delete("/api/v1/namespaces/n", options).await;
    let words = format!(
        "Operation cannot be fulfilled on namespaces \"n\": Precondition failed: ResourceVersion in precondition: 1, \
         ResourceVersion in object meta: {version}"
    );
    assert_eq!(refused.message(), (409, words.as_str()));
    assert_eq!(refused.body["details"], json!({"name": "n", "kind": "namespaces"}));
}

#[tokio::test]
async fn priority_class_of_the_system_cannot_be_deleted() {
    let stage = Stage::new().await;
    let path = "/apis/scheduling.k8s.io/v1/priorityclasses/system-node-critical";
    let refused = stage.send("DELETE", path, "", "").await;
    let words = "priorityclasses.scheduling.k8s.io \"system-node-critical\" is forbidden: this is a system priority class and \
                 cannot be deleted";
    assert_eq!(refused.message(), (403, words));
}

#[tokio::test]
async fn options_of_the_list_are_checked_before_those_of_the_deletion_of_a_collection() {
    let stage = Stage::new().await;
    let refused = stage.send("DELETE", &format!("{MAPS}?limit=x&dryRun=Bad"), "", "").await;
    assert_eq!(refused.message(), (400, "strconv.ParseInt: parsing \"x\": invalid syntax"));
}
