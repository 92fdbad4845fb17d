use serde_json::{Value, json};

use super::{DeletionProgress, is_condition_true, set_terminating, status};

const NOW: &str = "2026-01-02T03:04:05Z";

fn crd(plural: &str) -> Value {
    json!({
        "metadata": {"name": format!("{plural}.example.com")},
        "spec": {"group": "example.com", "names": {
            "plural": plural, "singular": "widget", "kind": "Widget", "listKind": "WidgetList", "shortNames": ["wd"], "categories": ["all"]}},
        "status": {"conditions": null, "acceptedNames": {"plural": "", "kind": ""}, "storedVersions": ["v1"]},
    })
}

fn established(plural: &str) -> Value {
    let mut crd = crd(plural);
    crd["status"] = status(&crd, [], NOW).unwrap();
    crd
}

#[test]
fn free_names_are_accepted() {
    let crd = established("widgets");
    assert_eq!(crd["status"]["acceptedNames"], crd["spec"]["names"]);
    assert_eq!(
        crd["status"]["conditions"],
        json!([
            {"type": "NamesAccepted", "status": "True", "lastTransitionTime": NOW, "reason": "NoConflicts", "message": "no conflicts found"},
            {"type": "Established", "status": "True", "lastTransitionTime": NOW, "reason": "InitialNamesAccepted",
             "message": "the initial names have been accepted"},
        ])
    );
    assert_eq!(crd["status"]["storedVersions"], json!(["v1"]));
    assert_eq!(status(&crd, [&crd], "later"), None, "nothing changes when nothing is to change");
}

#[test]
fn taken_names_are_not() {
    let first = established("widgets");
    let second = crd("widgetz");
    let status = status(&second, [&first, &second], NOW).unwrap();
    assert_eq!(status["acceptedNames"], json!({"plural": "widgetz", "kind": "", "categories": ["all"]}));
    assert_eq!(
        status["conditions"],
        json!([
            {"type": "NamesAccepted", "status": "False", "lastTransitionTime": NOW, "reason": "ListKindConflict",
             "message": "\"WidgetList\" is already in use"},
            {"type": "Established", "status": "False", "lastTransitionTime": NOW, "reason": "NotAccepted",
             "message": "not all names are accepted"},
        ])
    );
}

#[test]
fn other_groups_do_not_matter_and_names_come_free() {
    let first = established("widgets");
    let mut other = crd("widgetz");
    other["spec"]["group"] = json!("example.org");
    other["status"] = status(&other, [&first], NOW).unwrap();
    assert!(is_condition_true(&other, "Established"));
    let mut second = crd("widgetz");
    second["status"] = status(&second, [&first], NOW).unwrap();
    second["status"] = status(&second, [], "later").unwrap();
    assert!(is_condition_true(&second, "Established"));
    assert_eq!(second["status"]["conditions"][0]["lastTransitionTime"], "later");
}

#[test]
fn an_established_crd_stays_so() {
    let first = established("widgets");
    let mut second = established("gadgets");
    second["spec"]["names"]["shortNames"] = json!(["wd", "gd"]);
    second["status"]["acceptedNames"]["shortNames"] = json!(["gd"]);
    let status = status(&second, [&first], NOW).unwrap();
    assert_eq!(status["acceptedNames"]["shortNames"], json!(["gd"]));
    assert_eq!(status["conditions"][0]["reason"], "ShortNamesConflict");
    assert_eq!(status["conditions"][1]["status"], "True");
}

#[test]
fn deletion_waits_for_the_objects() {
    let mut crd = established("widgets");
    set_terminating(&mut crd, DeletionProgress::Pending, NOW);
    assert_eq!(crd["metadata"]["finalizers"], json!(["customresourcecleanup.apiextensions.k8s.io"]));
    assert_eq!(crd["status"]["conditions"][2]["reason"], "InstanceDeletionPending");
    set_terminating(&mut crd, DeletionProgress::InProgress, "later");
    assert_eq!(
        crd["status"]["conditions"][2],
        json!({"type": "Terminating", "status": "True", "lastTransitionTime": NOW, "reason": "InstanceDeletionInProgress",
               "message": "CustomResource deletion is in progress"})
    );
    set_terminating(&mut crd, DeletionProgress::Done, "later");
    assert_eq!(crd["metadata"].get("finalizers"), None);
}
