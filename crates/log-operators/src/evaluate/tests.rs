use proptest::prelude::*;

use super::*;

fn entry() -> LogEntry {
    let mut entry = LogEntry::new("Hello World".into());
    entry.attributes.insert("level".into(), "warn".into());
    entry.attributes.insert("n".into(), LogValue::Int(5));
    entry.attributes.insert("f".into(), LogValue::Double(2.5));
    entry.attributes.insert("list".into(), LogValue::List(vec!["a".into(), LogValue::Int(2)]));
    entry.attributes.insert("map".into(), LogValue::Map([("k".to_owned(), LogValue::Bool(true))].into()));
    entry
}

#[track_caller]
fn value(text: &str) -> LogValue {
    let entry = entry();
    let expression = Expression::parse(text).unwrap();
    evaluate(expression.root(), &entry).and_then(Operand::into_value).unwrap_or_else(|error| panic!("{text}: {error}"))
}

#[track_caller]
fn holds(text: &str) {
    assert_eq!(value(text), LogValue::Bool(true), "{text}");
}

#[track_caller]
fn fails(text: &str, word: &str) {
    let entry = entry();
    let expression = Expression::parse(text).unwrap();
    let error = evaluate(expression.root(), &entry).and_then(Operand::into_value).unwrap_err();
    assert!(error.to_string().contains(word), "{text}: {error}");
}

#[test]
fn comparisons_know_numbers_texts_and_nil() {
    for text in [
        "attributes.level == 'warn'",
        "attributes.n == 5.0 and attributes.n != 6",
        "attributes.n > 4 and attributes.f <= 2.5",
        "'a' < 'b'",
        "attributes.none == nil",
        "attributes.n != '5'",
        "attributes.list == ['a', 2]",
        "timestamp != nil",
        "attributes.map.k",
    ] {
        holds(text);
    }
}

#[test]
fn logic_looks_at_the_right_side_only_if_it_counts() {
    holds("true or attributes.none.deep == 1");
    holds("not (false and attributes.none.deep == 1)");
    holds("(body startsWith 'x' or body endsWith 'World') and not (body contains '1')");
    assert_eq!(value("attributes.none ?? 'other'"), "other".into());
    assert_eq!(value("attributes.n > 3 ? 'many' : 'few'"), "many".into());
}

#[test]
fn membership_is_that_of_lists_and_keys() {
    for text in [
        "'level' in attributes",
        "'none' not in attributes",
        "attributes.level in ['warn', 'error']",
        "2 in attributes.list",
        "not ('x' in attributes.none)",
    ] {
        holds(text);
    }
}

#[test]
fn operators_of_texts_are_false_for_nil() {
    holds("not (attributes.none contains 'x')");
    holds("not (attributes.none matches 'x')");
    holds(r#"body matches "^Hello\\s\\w+$""#);
    holds("attributes.none?.deep == nil");
}

#[test]
fn indexes_count_from_either_end() {
    assert_eq!(value("attributes.list[0]"), "a".into());
    assert_eq!(value("attributes.list[-1]"), LogValue::Int(2));
    assert_eq!(value("[1, [2, 3]][1][0]"), LogValue::Int(2));
    fails("attributes.list[2]", "no item 2");
}

#[test]
fn functions_give_what_the_language_says() {
    assert_eq!(value("lower(body) + upper('x')"), "hello worldX".into());
    assert_eq!(value("len(body) + len(attributes.list) + len('é')"), LogValue::Int(14));
    assert_eq!(value("split(body, ' ')[1]"), "World".into());
    assert_eq!(value("replace(body, 'l', 'L')"), "HeLLo WorLd".into());
    assert_eq!(value("trim('  x ') + trim('-y-', '-') + trimPrefix('ab', 'a') + trimSuffix('ab', 'b')"), "xyba".into());
    assert_eq!(value("indexOf(body, 'World')"), LogValue::Int(6));
    assert_eq!(value("int('42') + int(1.9)"), LogValue::Int(43));
    assert_eq!(value("string(1.5) + string(1e21) + string(3.0) + string(nil)"), "1.51e+213<nil>".into());
    assert_eq!(value("type(attributes) + type(1)"), "mapint".into());
    holds("hasPrefix(body, 'Hello') and hasSuffix(body, 'World')");
}

#[test]
fn arithmetic_is_that_of_go() {
    assert_eq!(value("7 % 3 + 2 * 3"), LogValue::Int(7));
    assert_eq!(value("7 / 2"), LogValue::Double(3.5));
    assert_eq!(value("2 ** 10"), LogValue::Double(1024.0));
    assert_eq!(value("-attributes.n + 0.5"), LogValue::Double(-4.5));
    fails("1 % 0", "division by zero");
}

#[test]
fn wrong_types_and_keys_of_nil_are_errors() {
    fails("attributes.none.deep == 1", "nil has no key \"deep\"");
    fails("attributes.level > 1", "comparison");
    fails("attributes.n contains 'x'", "`contains`");
    fails("body.key == 1", "a text");
    fails("attributes.none and true", "nil");
    fails("lower(attributes.n)", "texts");
}

#[test]
fn text_that_is_made_is_bounded() {
    let long = "o".repeat(1000);
    let text = format!("{}body", "replace(".repeat(5)) + &format!(", 'o', '{long}')").repeat(5);
    let error = evaluate(Expression::parse(&text).unwrap().root(), &entry()).map(|_| ()).unwrap_err();
    assert!(error.to_string().contains("longer than"), "{error}");
}

proptest! {
    #[test]
    fn any_expression_has_a_value_or_an_error(
        words in prop::collection::vec(prop::sample::select(vec![
            "body", "attributes", ".n", ".list", "[0]", "(", ")", "not", "and", "==", "<", "'a'", "1", "in", "??",
            "contains", "+", "-", "*", "len(", "lower(", "nil", "?", ":",
        ]), 0..12)
    ) {
        if let Ok(expression) = Expression::parse(&words.join(" ")) {
            let _ = evaluate(expression.root(), &entry()).map(Operand::into_value);
        }
    }
}
