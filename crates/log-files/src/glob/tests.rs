use proptest::prelude::*;

use super::*;

fn matches(pattern: &str, path: &str) -> bool {
    GlobPattern::parse(pattern).unwrap().matches(Path::new(path))
}

#[test]
fn star_and_question_mark_stay_within_a_name() {
    assert!(matches("/d/*.log", "/d/a.log"));
    assert!(matches("/d/*.log", "/d/.h.log"));
    assert!(matches("/d/*", "/d/x"));
    assert!(matches("/d/?.log", "/d/ü.log"));
    assert!(!matches("/d/*.log", "/d/x/a.log"));
    assert!(!matches("/d/?.log", "/d/bb.log"));
    assert!(!matches("/d/*.log", "/d/a.txt"));
    assert!(matches("/d/a*b*c", "/d/aXbYbZc"));
}

#[test]
fn classes_match_ranges_and_negations() {
    assert!(matches("/d/[ab].log", "/d/b.log"));
    assert!(matches("/d/[a-c]x", "/d/bx"));
    assert!(matches("/d/[^a-c]x", "/d/dx"));
    assert!(matches("/d/[!a]x", "/d/dx"));
    assert!(!matches("/d/[ab].log", "/d/c.log"));
    assert!(matches(r"/d/[\]]x", "/d/]x"));
}

#[test]
fn alternatives_nest_and_cross_directories() {
    assert!(matches("/d/{a,c}.log", "/d/c.log"));
    assert!(matches("/{d,e/f}/{a,b{1,2}}.log", "/e/f/b2.log"));
    assert!(!matches("/d/{a,c}.log", "/d/b.log"));
    assert!(matches(r"/d/\{a\}", "/d/{a}"));
    assert!(matches("/d/{,x}a", "/d/a"));
}

#[test]
fn two_stars_match_any_number_of_directories() {
    for path in ["/d/a.log", "/d/x/b.log", "/d/x/y/c.log"] {
        assert!(matches("/d/**/*.log", path), "{path}");
    }
    assert!(matches("/d/x/**", "/d/x/y/c.log"));
    assert!(matches("/d/**/x/**/a", "/d/1/x/2/3/a"));
    assert!(!matches("/d/**/x/**/a", "/d/1/2/3/a"));
    assert!(!matches("/d/**/*.log", "/e/a.log"));
    // Within a name they are one.
    assert!(matches("/d/a**b", "/d/aXb"));
    assert!(!matches("/d/a**b", "/d/aX/b"));
}

#[test]
fn base_is_the_directory_before_the_first_pattern() {
    let base = |text| GlobPattern::parse(text).unwrap().alternatives()[0].base.clone();
    assert_eq!(base("/var/log/pods/*/x/*.log"), Path::new("/var/log/pods"));
    assert_eq!(base("/var/log/a.log"), Path::new("/var/log"));
    assert_eq!(base("logs/*.log"), Path::new("logs"));
    assert_eq!(base("*.log"), Path::new(""));
}

#[test]
fn bad_pattern_is_refused_with_its_place() {
    for (text, place) in [("/d/[.log", 3), ("/d/{a", 3), ("/d/a}", 4), ("/d/\\", 3), ("/d/[]", 3)] {
        match GlobPattern::parse(text) {
            Err(GlobError::Syntax { at, .. }) => assert_eq!(at, place, "{text}"),
            other => panic!("{text}: {other:?}"),
        }
    }
    let many = "{a,b}".repeat(20);
    assert!(matches!(GlobPattern::parse(&many), Err(GlobError::TooLarge { .. })));
}

proptest! {
    #[test]
    fn arbitrary_patterns_neither_panic_nor_hang(pattern in "[a*?{},\\[\\]\\\\/^!-]{0,40}", path in "[a/\\[\\]{}-]{0,40}") {
        if let Ok(pattern) = GlobPattern::parse(&pattern) {
            pattern.matches(Path::new(&path));
        }
    }

    #[test]
    fn escaped_names_match_themselves_alone(name in "[a-z*?{}\\[\\],]{1,12}", other in "[a-z*?{}\\[\\],]{1,12}") {
        let escaped: String = name.chars().flat_map(|character| ['\\', character]).collect();
        let pattern = GlobPattern::parse(&format!("/d/{escaped}")).unwrap();
        prop_assert!(pattern.matches(&Path::new("/d").join(&name)));
        prop_assert_eq!(pattern.matches(&Path::new("/d").join(&other)), name == other);
    }
}
