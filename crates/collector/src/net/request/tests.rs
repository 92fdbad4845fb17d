use super::*;

#[test]
fn configured_headers_are_sensitive_and_may_repeat() {
    let headers = [("X-A".to_owned(), SecretString::new("one")), ("x-a".to_owned(), SecretString::new("two"))];
    let map = configured_headers(&headers).unwrap();
    assert_eq!(map.get_all("x-a").iter().collect::<Vec<_>>(), ["one", "two"]);
    assert!(map.values().all(HeaderValue::is_sensitive) && !format!("{map:?}").contains("one"));
}

#[test]
fn a_bad_header_is_named_without_its_value() {
    for (name, value) in [("a b", "hunter2"), ("", "hunter2"), ("good", "hunter2\nmore")] {
        let problem = configured_headers(&[(name.to_owned(), SecretString::new(value))]).unwrap_err().0;
        assert!(problem.contains(&format!("\"{name}\"")) && !problem.contains("hunter2"), "{problem}");
    }
}

#[test]
fn only_what_was_sent_in_confidence_is_taken_out() {
    let sent = [
        sensitive_value("Bearer hunter2").unwrap(),
        sensitive_value("abc").unwrap(),
        HeaderValue::from_static("application"),
    ];
    let said = "application says: Bearer hunter2, hunter2 and abc".to_owned();
    assert_eq!(redact(said, sent.iter()), "application says: ***, *** and abc");
}
