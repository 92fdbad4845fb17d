use proptest::prelude::*;

use super::*;
use crate::codec::MediaType;

fn list(query: &str) -> Result<ListOptions, StatusError> {
    ListOptions::from_query(&QueryParameters::parse(query))
}

#[track_caller]
fn refused<T: std::fmt::Debug>(result: Result<T, StatusError>) -> (u16, String) {
    let status = result.expect_err("a refusal");
    (status.code, status.message)
}

#[test]
fn parameters_are_decoded() {
    let query = QueryParameters::parse("a=1%2C2&b=x+y&a=3&bad=%zz&c;d=1&e");
    assert_eq!(query.get("a"), Some("1,2"));
    assert_eq!(query.all("a").collect::<Vec<_>>(), ["1,2", "3"]);
    assert_eq!(query.get("b"), Some("x y"));
    assert_eq!((query.get("bad"), query.get("d"), query.get("e")), (None, None, Some("")));
    assert_eq!(QueryParameters::parse("w=maybe").flag("w"), Some(true));
    assert_eq!(QueryParameters::parse("w=FALSE").flag("w"), Some(false));
    assert_eq!(QueryParameters::parse("w=0").flag("w"), Some(false));
    assert_eq!(QueryParameters::parse("w").flag("w"), Some(true));
}

#[test]
fn lists_are_refused_in_kubes_words() {
    let bad = |message: &str| (400, message.to_owned());
    assert_eq!(refused(list("limit=abc")), bad(r#"strconv.ParseInt: parsing "abc": invalid syntax"#));
    assert_eq!(refused(list("timeoutSeconds=x")), bad(r#"strconv.ParseInt: parsing "x": invalid syntax"#));
    let out = r#"strconv.ParseInt: parsing "99999999999999999999": value out of range"#;
    assert_eq!(refused(list("limit=99999999999999999999")), bad(out));
    assert_eq!(list("limit=-1").expect("fine").limit, -1);
    for text in ["abc", "-1"] {
        let why =
            format!(r#"resourceVersion: Invalid value: "{text}": strconv.ParseUint: parsing "{text}": invalid syntax"#);
        let query = format!("resourceVersion={text}");
        let options = list(&query).expect("read");
        assert_eq!(refused(options.list_resource_version()), (400, format!("invalid resource version: {why}")));
        let options = GetOptions::from_query(&QueryParameters::parse(&query)).unwrap();
        assert_eq!(refused(options.get_resource_version()), (500, why));
    }
}

#[test]
fn the_rules_of_initial_events_are_kept() {
    let invalid = |why: &str| (422, format!("ListOptions.meta.k8s.io \"\" is invalid: {why}"));
    assert_eq!(
        refused(list("watch=1&sendInitialEvents=true")),
        invalid(
            "resourceVersionMatch: Forbidden: sendInitialEvents requires setting resourceVersionMatch to NotOlderThan"
        )
    );
    assert_eq!(
        refused(list("watch=1&resourceVersionMatch=NotOlderThan")),
        invalid(
            "resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided"
        )
    );
    assert_eq!(
        refused(list("watch=1&sendInitialEvents=true&resourceVersionMatch=Exact&resourceVersion=1")),
        invalid(
            "[resourceVersionMatch: Forbidden: sendInitialEvents requires setting resourceVersionMatch to NotOlderThan, \
             resourceVersionMatch: Unsupported value: \"Exact\": supported values: \"NotOlderThan\"]"
        )
    );
    assert_eq!(
        refused(list("sendInitialEvents=true&resourceVersionMatch=NotOlderThan")),
        invalid(
            "[resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden unless resourceVersion is provided, \
             sendInitialEvents: Forbidden: sendInitialEvents is forbidden for list]"
        )
    );
    let good = list("watch=1&sendInitialEvents=false&resourceVersionMatch=NotOlderThan").expect("fine");
    assert_eq!(
        (good.send_initial_events, good.resource_version_match),
        (Some(false), Some(ResourceVersionMatch::NotOlderThan))
    );
}

#[test]
fn options_of_writes_are_checked() {
    let create = |query: &str| WriteOptions::for_create(&QueryParameters::parse(query));
    let invalid = |why: &str| (422, format!("CreateOptions.meta.k8s.io \"\" is invalid: {why}"));
    assert_eq!(
        refused(create("dryRun=Some")),
        invalid(r#"dryRun: Unsupported value: ["Some"]: supported values: "All""#)
    );
    assert_eq!(
        refused(create("fieldValidation=Loud")),
        invalid(r#"fieldValidation: Unsupported value: "Loud": supported values: "", "Ignore", "Strict", "Warn""#)
    );
    let long = format!("fieldManager={}", "x".repeat(129));
    assert_eq!(refused(create(&long)), invalid("fieldManager: Too long: may not be more than 128 bytes"));
    let options = create("dryRun=All&fieldManager=me&fieldValidation=Strict").expect("fine");
    let strict = FieldValidation::Strict;
    let same = WriteOptions { dry_run: true, field_manager: "me".into(), field_validation: strict, force: None };
    assert_eq!(options, same);

    let patch = |query: &str, apply| WriteOptions::for_patch(&QueryParameters::parse(query), apply);
    let invalid = |why: &str| (422, format!("PatchOptions.meta.k8s.io \"\" is invalid: {why}"));
    let required = "fieldManager: Required value: is required for apply patch";
    assert_eq!(refused(patch("", true)), invalid(required));
    assert_eq!(refused(patch("fieldManager=", true)), invalid(required));
    assert_eq!(
        refused(patch("force=true", false)),
        invalid("force: Forbidden: may not be specified for non-apply patch")
    );
    assert_eq!(patch("fieldManager=a&force=false", true).expect("fine").force, Some(false));
}

#[test]
fn options_of_deletes_come_from_the_body_or_the_query() {
    let read = |query: &str, body: &str| {
        DeleteOptions::from_request(&QueryParameters::parse(query), MediaType::Json, body.as_bytes())
    };
    let invalid = |why: &str| (422, format!("DeleteOptions.meta.k8s.io \"\" is invalid: {why}"));
    assert_eq!(
        refused(read("dryRun=Yes", "")),
        invalid(r#"dryRun: Unsupported value: ["Yes"]: supported values: "All""#)
    );
    assert_eq!(
        refused(read("propagationPolicy=Never", "")),
        invalid(
            r#"propagationPolicy: Unsupported value: "Never": supported values: "Foreground", "Background", "Orphan", "nil""#
        )
    );
    let both = r#"{"apiVersion":"v1","kind":"DeleteOptions","propagationPolicy":"Orphan","orphanDependents":true}"#;
    assert_eq!(
        refused(read("", both)),
        invalid(
            r#"propagationPolicy: Invalid value: "Orphan": orphanDependents and deletionPropagation cannot be both set"#
        )
    );
    let kind = "no kind \"ConfigMap\" is registered for version \"v1\" in scheme \
                \"k8s.io/apimachinery/pkg/apis/meta/internalversion/scheme/register.go:27\"";
    assert_eq!(refused(read("", r#"{"apiVersion":"v1","kind":"ConfigMap"}"#)), (400, kind.to_owned()));
    let end = "couldn't get version/kind; json parse error: unexpected end of JSON input";
    assert_eq!(refused(read("", "{")), (400, end.to_owned()));
    let wrong = "json: cannot unmarshal string into Go struct field DeleteOptions.gracePeriodSeconds of type int64";
    assert_eq!(refused(read("", r#"{"gracePeriodSeconds":"x"}"#)), (400, wrong.to_owned()));

    let body = r#"{"gracePeriodSeconds":0,"preconditions":{"uid":"u","resourceVersion":"7"},"dryRun":["All"]}"#;
    let options = read("propagationPolicy=Foreground", body).expect("fine");
    let same = DeleteOptions {
        dry_run: true,
        grace_period_seconds: Some(0),
        uid: Some("u".into()),
        resource_version: Some("7".into()),
        ..DeleteOptions::default()
    };
    assert_eq!(options, same);
    let options = read("propagationPolicy=Foreground&gracePeriodSeconds=5", "").expect("fine");
    assert_eq!((options.propagation(), options.grace_period_seconds), (Some(DeletionPropagation::Foreground), Some(5)));
    assert_eq!(read("orphanDependents=true", "").expect("fine").propagation(), Some(DeletionPropagation::Orphan));
}

#[test]
fn bad_continue_tokens_are_refused_in_kubes_words() {
    let message = |token: &str| refused(ContinueToken::decode(token)).1;
    let bad = |why: &str| format!("invalid continue token: continue key is not valid: {why}");
    assert_eq!(message("garbage"), bad("invalid character '\\x81' looking for beginning of value"));
    assert_eq!(message("e30"), bad("server does not recognize this encoded version "));
    assert_eq!(message("!"), bad("illegal base64 data at input byte 0"));
    let up = ContinueToken { resource_version: Some(1), start: "../secrets/a".into() };
    assert_eq!(message(&up.encode()), bad("../secrets/a"));
}

#[test]
fn tokens_have_kubes_form() {
    let token = ContinueToken::after_key(Some(5), "a").encode();
    // {"v":"meta.k8s.io/v1","rv":5,"start":"a\u0000"}
    assert_eq!(token, "eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6NSwic3RhcnQiOiJhXHUwMDAwIn0");
}

proptest! {
    #[test]
    fn tokens_come_back(version in prop::option::of(1..u64::MAX >> 1), key in "[a-z]{1,9}(/[a-z]{1,9})?") {
        let token = ContinueToken::after_key(version, &key);
        prop_assert_eq!(ContinueToken::decode(&token.encode()), Ok(token));
    }

    #[test]
    fn no_query_makes_it_panic(text in "[a-zA-Z=&%0-9+;\u{e9}]{0,40}") {
        let query = QueryParameters::parse(&text);
        let _ = (ListOptions::from_query(&query), WriteOptions::for_create(&query), ContinueToken::decode(&text));
    }
}
