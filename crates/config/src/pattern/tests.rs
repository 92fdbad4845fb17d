use super::*;

fn matches(pattern: &str, text: &str) -> bool {
    RegexPattern::new(pattern).unwrap_or_else(|error| panic!("{pattern}: {error}")).is_match(text.as_bytes())
}

#[test]
fn an_expression_is_found_anywhere_unless_it_says_otherwise() {
    assert!(matches("admin", "the admin page"));
    assert!(!matches("^admin$", "the admin page"));
    assert!(matches("(?i)ADMIN", "the admin page"));
    assert!(matches("^(?:get|put)/", "get/1"));
    assert!(matches(r"\p{Greek}", "α"));
    assert!(matches(r"^\x{3b1}[\p{Greek}\x61]\pL$", "ααa"));
    assert!(matches("", "anything"));
}

#[test]
fn classes_know_ascii_alone_as_in_go() {
    for (class, other) in [(r"\d", "٣"), (r"\w", "é"), (r"\s", "\u{2003}"), (r"[\d]", "٣"), (r"[[:alpha:]]", "é")] {
        assert!(!matches(&format!("^{class}$"), other), "{class} {other}");
    }
    for (class, one) in [(r"\D", "٣"), (r"\W", "é"), (r"\S", "\u{2003}"), (r"[^\d]", "é"), (r"[\D]", "é"), (".", "é")]
    {
        assert!(matches(&format!("^{class}$"), one), "{class} {one}");
    }
    assert!(matches(r"\bok\b", "éokà"), "a letter that is not ASCII is no part of a word");
    assert!(!matches(r"\bok\b", "book"));
}

#[test]
fn braces_and_brackets_are_themselves_where_they_say_nothing() {
    assert!(matches("^/users/{id}$", "/users/{id}"));
    assert!(matches("^a{,2}$", "a{,2}"));
    assert!(matches("^a{2}b{1,}c{1,2}$", "aabbbc"));
    assert!(matches("^[[a]$", "["));
    assert!(matches("^[]a]$", "]"));
    assert!(matches("^[^]a]$", "x"));
    assert!(!matches("^[^]a]$", "]"));
    assert!(matches("^[a&&b]+$", "&b"));
    assert!(matches("^[a~~b]$", "~"));
    assert!(matches("^[[:digit:]x]+$", "1x"));
    assert!(matches(r"^\Qa.b{\E$", "a.b{"));
    assert!(matches(r"^[\w.-]+$", "a.b-c"));
}

#[test]
fn what_is_no_expression_is_refused_in_one_line_that_does_not_repeat_it() {
    for bad in ["secret(", "[secret", "*secret", r"secret\1", "(?P<n>", r"secret\", "(?=secret)"] {
        let error = RegexPattern::new(bad).unwrap_err().to_string();
        assert!(!error.is_empty() && !error.contains('\n') && !error.contains("secret"), "{bad}: {error}");
    }
    assert!(RegexPattern::new("((a{100}){100}){100}").unwrap_err().to_string().contains("more than"));
}

#[test]
fn groups_have_names() {
    let pattern = RegexPattern::new("^/(?P<kind>[a-z]+)/(?<id>[0-9]+)(/)?$").unwrap();
    assert_eq!(pattern.groups().collect::<Vec<_>>(), [Some("kind"), Some("id"), None]);
}
