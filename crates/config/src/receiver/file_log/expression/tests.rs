use proptest::prelude::*;

use super::{BinaryOperator::*, ExpressionNode as Node, *};

#[track_caller]
fn parsed(text: &str) -> Node {
    Expression::parse(text).unwrap_or_else(|error| panic!("{text}: {error}")).root
}

#[track_caller]
fn refused(text: &str, column: usize, word: &str) {
    let error = Expression::parse_condition(text).unwrap_err();
    assert!(error.column == column && error.problem.contains(word), "{text}: {error}");
}

fn binary(operator: BinaryOperator, left: Node, right: Node) -> Node {
    Node::Binary(operator, left.into(), right.into())
}

fn not(operand: Node) -> Node {
    Node::Unary(UnaryOperator::Not, operand.into())
}

#[test]
fn operators_bind_by_their_precedence() {
    let int = Node::Int;
    assert_eq!(parsed("1 + 2 * 3"), binary(Add, int(1), binary(Multiply, int(2), int(3))));
    assert_eq!(parsed("1 - 2 - 3"), binary(Subtract, binary(Subtract, int(1), int(2)), int(3)));
    assert_eq!(parsed("2 ** 3 ** 4"), binary(Power, int(2), binary(Power, int(3), int(4))));
    let (yes, no) = (Node::Bool(true), Node::Bool(false));
    assert_eq!(parsed("true or false && true"), binary(Or, yes.clone(), binary(And, no.clone(), yes.clone())));
    assert_eq!(parsed("not true and false"), binary(And, not(yes.clone()), no.clone()));
    assert_eq!(parsed("not true == false"), binary(Equal, not(yes), no));
    assert_eq!(parsed("-1 ** 2"), Node::Unary(UnaryOperator::Minus, binary(Power, int(1), int(2)).into()));
}

#[test]
fn word_operators_may_be_negated() {
    let body = Node::Variable(Variable::Body);
    let text = Node::Text("x".into());
    assert_eq!(parsed("body not contains 'x'"), not(binary(Contains, body.clone(), text.clone())));
    assert_eq!(parsed("body not in ['x']"), not(binary(In, body, Node::List(vec![text]))));
}

#[test]
fn keys_and_indexes_follow_each_other() {
    let key = |value: Node, key: &str, optional| Node::Index {
        value: value.into(),
        index: Node::Text(key.into()).into(),
        optional,
    };
    let attributes = Node::Variable(Variable::Attributes);
    assert_eq!(parsed("attributes.a[\"b\"]?.c"), key(key(key(attributes.clone(), "a", false), "b", false), "c", true));
    assert_eq!(parsed("attributes.in"), key(attributes, "in", false));
    assert_eq!(parsed("$.level"), key(Node::Variable(Variable::Body), "level", false));
}

#[test]
fn literals_are_those_of_the_language() {
    assert_eq!(parsed(r#""a\tb\u00e9\"""#), Node::Text("a\tbé\"".into()));
    assert_eq!(parsed("`a\\d`"), Node::Text("a\\d".into()));
    assert_eq!(parsed("[0x1F, 1_000, .5, 1e3, nil,]"), {
        let items = [Node::Int(31), Node::Int(1000), Node::Float(0.5), Node::Float(1000.0), Node::Nil];
        Node::List(items.into())
    });
}

#[test]
fn pattern_of_matches_is_compiled() {
    let Node::Matches(operand, pattern) = parsed(r#"body matches "^{.*}$""#) else { panic!() };
    assert_eq!(*operand, Node::Variable(Variable::Body));
    assert!(pattern.is_match(b"{x}") && !pattern.is_match(b"x"));
}

#[test]
fn condition_and_calls_have_their_parts() {
    let Node::Conditional(condition, ..) = parsed("len(body) > 3 ? 'long' : 'short'") else { panic!() };
    let Node::Binary(Greater, call, _) = *condition else { panic!() };
    assert_eq!(*call, Node::Call(Function::Len, vec![Node::Variable(Variable::Body)]));
}

#[test]
fn error_names_the_column_and_what_was_expected() {
    refused("body ==", 8, "expected a value and found the end");
    refused("body = 1", 6, "found `=`");
    refused("body ~ 1", 6, "unexpected character '~'");
    refused("(body", 6, "expected `)`");
    refused("body body", 6, "expected an operator or the end and found `body`");
    refused("body matches '('", 14, "regular expression");
    refused("body matches attributes.p", 14, "text in quotes");
    refused("é and 'x", 7, "not closed");
    refused(r#"body == "\d""#, 10, "unknown escape");
    refused("len()", 1, "takes 1 arguments and has 0");
    refused("99999999999999999999 == 1", 1, "not a number");
    refused("body.", 6, "expected a key");
}

#[test]
fn what_is_not_supported_is_named() {
    refused("any(attributes, {# == 1})", 1, "the function `any`");
    refused("env('HOME') == ''", 1, "the function `env`");
    refused("body | upper", 6, "`|` is not supported");
    refused("body in 1..3", 10, "`..` is not supported");
    refused("body[1:2] == 'x'", 7, "a range of indexes");
    refused("let x = 1; x == 1", 1, "`let`");
    refused("{a: 1} == body", 1, "a map in braces");
    refused("body.trim() == ''", 6, "the method `trim`");
}

#[test]
fn operands_that_never_fit_are_refused() {
    refused("not body contains 'x'", 1, "`contains` cannot be applied to true or false");
    refused("'a' and true", 1, "`and` cannot be applied to a text");
    refused("1 + 'a' == body", 1, "`+`");
    refused("attributes", 1, "expected a condition");
}

#[test]
fn unknown_variables_are_kept_for_a_warning() {
    let expression = Expression::parse("severity_number >= 17 or severity_number == x").unwrap();
    assert_eq!(expression.unknown_variables(), ["severity_number", "x"]);
}

#[test]
fn size_and_depth_are_bounded() {
    let deep = format!("{}1{}", "(".repeat(100), ")".repeat(100));
    assert!(Expression::parse(&deep).unwrap_err().problem.contains("nested deeper"));
    let long = vec!["body == 'x'"; 400].join(" or ");
    assert!(Expression::parse(&long).unwrap_err().problem.contains("parts"));
    assert!(Expression::parse(&vec!["body == 'x'"; 200].join(" or ")).is_ok());
    let text = format!("body == '{}'", "x".repeat(20_000));
    assert!(Expression::parse(&text).unwrap_err().problem.contains("longer"));
}

proptest! {
    #[test]
    fn any_text_is_an_expression_or_has_an_error_within_it(text in r#"[a-z $.\[\](){}"'`0-9=<>!&|?:+*/%^~\\é-]{0,60}"#) {
        if let Err(error) = Expression::parse(&text) {
            prop_assert!((1..=text.chars().count() + 1).contains(&error.column), "{}", error);
        }
    }

    #[test]
    fn words_of_the_language_in_any_order_are_parsed_or_refused(
        words in prop::collection::vec(prop::sample::select(vec![
            "body", "attributes", ".x", "[0]", "(", ")", "not", "!", "and", "or", "==", "<", "matches", "'a'", "1", "in",
            "contains", "??", "?", ":", "len(", ",", "nil", "-", "**",
        ]), 0..20)
    ) {
        let _ = Expression::parse(&words.join(" "));
    }
}
