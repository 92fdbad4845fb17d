use serde_json::json;

use super::*;

fn body(request: Value) -> Vec<u8> {
    json!({ "kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1", "request": request }).to_string().into()
}

fn request() -> Value {
    json!({
        "uid": "u", "operation": "CREATE", "userInfo": {"username": "ann", "groups": ["g"]}, "dryRun": false,
        "kind": { "group": "", "version": "v1", "kind": "ConfigMap" },
        "resource": { "group": "", "version": "v1", "resource": "configmaps" },
        "object": { "metadata": { "generateName": "a-" } }, "oldObject": null,
    })
}

#[test]
fn a_review_is_read() {
    let review = ReviewRequest::parse(&body(request())).unwrap();
    assert_eq!((&*review.uid, &*review.kind.kind, review.display_name()), ("u", "ConfigMap", "a-"));
    assert_eq!((review.user_info.username.as_deref(), review.user_info.groups), (Some("ann"), Some(vec!["g".into()])));
    assert_eq!((&*review.namespace, &*review.sub_resource, review.old_object), ("", "", Value::Null));
}

#[test]
fn what_cannot_be_read_but_has_an_id_can_be_answered() {
    let mut bad = request();
    bad["operation"] = json!("FLY");
    assert!(matches!(ReviewRequest::parse(&body(bad)), Err(ReviewParseError::Answerable { uid, .. }) if uid == "u"));
}

#[test]
fn anything_else_is_no_review() {
    let mut other = serde_json::from_slice::<Value>(&body(request())).unwrap();
    other["apiVersion"] = json!("admission.k8s.io/v1beta1");
    let mut long = request();
    long["uid"] = json!("u".repeat(MAX_UID_LENGTH + 1));
    let deep = format!("{}1{}", "[".repeat(100_000), "]".repeat(100_000));
    for bad in
        [other.to_string().into(), body(long), deep.into_bytes(), b"".to_vec(), b"{}".to_vec(), body(json!(null))]
    {
        assert!(matches!(ReviewRequest::parse(&bad), Err(ReviewParseError::NotAReview(_))));
    }
}

fn response(verdict: &ReviewDecision, warnings: &[String]) -> Value {
    serde_json::from_slice::<Value>(&verdict.to_response_body("u", warnings)).unwrap()["response"].take()
}

#[test]
fn an_answer_has_a_patch_only_if_there_is_one() {
    assert_eq!(response(&ReviewDecision::pass(), &[]), json!({ "uid": "u", "allowed": true }));
    assert_eq!(
        response(&ReviewDecision::Pass { operations: vec![json!({})] }, &[]),
        json!({ "uid": "u", "allowed": true, "patchType": "JSONPatch", "patch": "W3t9XQ==" })
    );
}

#[test]
fn a_refusal_says_why_and_a_warning_is_passed_on() {
    let warnings = ["look out".to_owned()];
    assert_eq!(
        response(&ReviewDecision::invalid("no output"), &warnings),
        json!({
            "uid": "u", "allowed": false, "warnings": warnings,
            "status": { "message": "no output", "reason": "Invalid", "code": 422 },
        })
    );
    assert_eq!(response(&ReviewDecision::forbidden("not yours"), &[])["status"]["code"], 403);
}
