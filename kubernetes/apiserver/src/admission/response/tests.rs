use super::*;

fn review(response: Value) -> Value {
    json!({ "apiVersion": "admission.k8s.io/v1", "kind": ADMISSION_REVIEW_KIND, "response": response })
}

fn judged(sort: WebhookType, response: Value) -> Result<AdmissionDecision, String> {
    check_response(&review(response), sort, "v1", "u")
}

#[test]
fn an_answer_that_makes_sense_is_taken() {
    let patch = STANDARD.encode("[]");
    let response =
        json!({ "uid": "u", "allowed": true, "patch": patch, "patchType": "JSONPatch", "warnings": ["w", 1] });
    let verdict = judged(WebhookType::Mutating, response).unwrap();
    assert_eq!((verdict.allowed, verdict.patch.as_deref()), (true, Some(&b"[]"[..])));
    assert_eq!(verdict.warnings, ["w"]);
    assert!(!judged(WebhookType::Validating, json!({ "uid": "u" })).unwrap().allowed);
}

#[test]
fn a_patch_may_be_a_list_of_bytes_as_kube_rs_writes_it() {
    let response = |patch: Value| json!({ "uid": "u", "allowed": true, "patch": patch, "patchType": "JSONPatch" });
    let verdict = judged(WebhookType::Mutating, response(json!([91, 93]))).unwrap();
    assert_eq!(verdict.patch.as_deref(), Some(&b"[]"[..]));
    let said = judged(WebhookType::Mutating, response(json!([91, 256]))).unwrap_err();
    assert!(said.contains("cannot unmarshal number"), "{said}");
}

#[test]
fn an_answer_that_makes_none_is_refused_in_kubernetes_words() {
    let patch = STANDARD.encode("[]");
    for (sort, response, said) in [
        (WebhookType::Validating, json!(null), "webhook response was absent"),
        (WebhookType::Validating, json!({ "uid": "v" }), r#"expected response.uid="u", got "v""#),
        (
            WebhookType::Validating,
            json!({ "uid": "u", "patch": patch }),
            "validating webhook may not return response.patch",
        ),
        (
            WebhookType::Validating,
            json!({ "uid": "u", "patchType": "JSONPatch" }),
            "validating webhook may not return response.patchType",
        ),
        (
            WebhookType::Mutating,
            json!({ "uid": "u", "patch": patch }),
            "webhook returned response.patch but not response.patchType",
        ),
        (
            WebhookType::Mutating,
            json!({ "uid": "u", "patchType": "JSONPatch" }),
            "webhook returned response.patchType but not response.patch",
        ),
        (
            WebhookType::Mutating,
            json!({ "uid": "u", "patch": patch, "patchType": "" }),
            "webhook returned invalid response.patchType of \"\"",
        ),
        (
            WebhookType::Mutating,
            json!({ "uid": "u", "patch": patch, "patchType": "Merge" }),
            "unsupported patch type \"Merge\"",
        ),
        (
            WebhookType::Mutating,
            json!({ "uid": "u", "allowed": "yes" }),
            "json: cannot unmarshal string into Go struct field AdmissionResponse.response.allowed of type bool",
        ),
    ] {
        assert_eq!(judged(sort, response).unwrap_err(), said);
    }
    assert!(judged(WebhookType::Mutating, json!({ "uid": "u", "patch": "%", "patchType": "JSONPatch" })).is_err());
}

#[test]
fn a_review_of_another_version_is_refused_but_v1beta1_is_not_so_strict() {
    let old = json!({ "apiVersion": "admission.k8s.io/v1beta1", "kind": ADMISSION_REVIEW_KIND, "response": { "uid": "u", "allowed": true } });
    let said = "expected webhook response of admission.k8s.io/v1, Kind=AdmissionReview, got admission.k8s.io/v1beta1, \
                Kind=AdmissionReview";
    assert_eq!(check_response(&old, WebhookType::Validating, "v1", "u").unwrap_err(), said);
    assert!(check_response(&old, WebhookType::Validating, "v1beta1", "other").unwrap().allowed);
}

#[test]
fn garbage_is_no_review() {
    let text =
        "couldn't get version/kind; json parse error: json: cannot unmarshal string into Go value of type struct";
    assert!(decode_review(b"not json").unwrap_err().starts_with(text));
    assert_eq!(decode_review(b"{}").unwrap_err(), "Object 'Kind' is missing in '{}'");
    assert_eq!(decode_review(br#"{"kind":"X"}"#).unwrap_err(), r#"Object 'apiVersion' is missing in '{"kind":"X"}'"#);
    assert!(
        decode_review(br#"{"kind":"X","apiVersion":"v1"}"#)
            .unwrap_err()
            .starts_with(r#"no kind "X" is registered for version "v1""#)
    );
    assert_eq!(decode_review(br#"{"kind":"Status","apiVersion":"v1","message":"no"}"#).unwrap_err(), "no");
    assert!(decode_review(&[0xff, 0xfe, 0]).is_err());
    assert!(decode_review("[".repeat(100_000).as_bytes()).is_err());
}

#[test]
fn a_refusal_says_what_the_webhook_said_and_is_never_a_success() {
    let said = |status: Value| {
        let status = denied_status("w", status.as_object().cloned());
        (status.code, status.message.clone(), status.to_value())
    };
    let denied = "admission webhook \"w\" denied the request";
    for (given, code, message) in [
        (json!(null), 400, format!("{denied} without explanation")),
        (json!({ "message": "no" }), 400, format!("{denied}: no")),
        (json!({ "reason": "Because" }), 400, format!("{denied}: Because")),
        (json!({ "code": 200, "status": "Success" }), 400, format!("{denied} without explanation")),
        (json!({ "code": 418, "message": "tea" }), 418, format!("{denied}: tea")),
        (json!({ "code": 70_000 }), 500, format!("{denied} without explanation")),
    ] {
        let (found, words, value) = said(given);
        assert_eq!((found, words), (code, message));
        assert_eq!((&value["status"], &value["code"]), (&json!("Failure"), &json!(code)));
    }
    let (.., value) = said(json!({ "reason": "Teapot", "details": { "kind": "pots" }, "message": "m" }));
    assert_eq!((&value["reason"], &value["details"]["kind"]), (&json!("Teapot"), &json!("pots")));
}
