use proptest::prelude::*;
use serde_json::{Value, json};

use super::{COST_PER_CALL, CelValue, Condition, Expression, Inputs, Scope, plain};

fn holds(source: &str, inputs: Inputs<'_>) -> Result<bool, String> {
    Condition::compile(source).unwrap().evaluate(inputs)
}

#[test]
fn conditions_see_the_request() {
    let object = json!({"metadata": {"labels": {"a-b": "x"}}});
    let request = json!({"operation": "CREATE", "userInfo": {"username": "me"}});
    let inputs = Inputs { object: Some(&object), old_object: None, request: Some(&request) };
    assert_eq!(holds("object.metadata.labels['a-b'] == 'x' && request.operation == 'CREATE'", inputs), Ok(true));
    assert_eq!(holds("oldObject == null", inputs), Ok(true));
    assert_eq!(holds("request.userInfo.username.startsWith('system:')", inputs), Ok(false));
    assert_eq!(holds("object.spec.x == 1", inputs).unwrap_err(), "no such key: spec");
    assert_eq!(holds("'text'", inputs).unwrap_err(), "cel expression must evaluate to a bool");
    assert!(holds("authorizer.group('').check('get').allowed()", inputs).is_err());
}

#[test]
fn what_does_not_compile_is_shown() {
    let error = Condition::compile("object.x ==").unwrap_err();
    assert!(error.starts_with("ERROR: <input>:1:"), "{error}");
    assert!(error.contains("\n | object.x ==\n | "), "{error}");
    assert!(Condition::compile("a.B{c: 1}").is_err());
    assert!(Condition::compile(&"x".repeat(100_001)).unwrap_err().contains("exceeds limit"));
}

#[test]
fn deep_and_long_expressions_do_no_harm() {
    for source in ["(".repeat(5_000), "!".repeat(20_000), "-".repeat(20_000), "[".repeat(5_000), "a?".repeat(5_000)] {
        let _ = Expression::compile(&source);
    }
    for joint in [" + 1", " && true", " || true", "[0]", ".a", " == 1", " ? 1 : 1"] {
        let _ = Expression::compile(&format!("1{}", joint.repeat(2_000)))
            .map(|expression| expression.evaluate(&Scope::new([])));
    }
}

#[test]
fn loops_cost_what_is_there() {
    let filters = |count: usize| vec![json!({"type": "R", "redirect": {"path": {"type": "P"}}}); count];
    let rule = "(has(self.refs) && self.refs.exists_one(b, has(b.filters) && b.filters.exists_one(f, has(f.redirect) \
                && f.redirect.path.type == 'P'))) ? (size(self.matches) != 1 || self.matches[0].path.type != 'P') : true";
    let cost = |object: Value| Expression::compile(rule).unwrap().cost(&[("self", &object)]);
    assert!(cost(json!({"filters": filters(10)})) < 1_000, "what is absent is not looped over");
    let few =
        cost(json!({"refs": [{"filters": filters(2)}], "matches": [{"path": {"type": "P"}}], "rest": filters(100)}));
    assert!(few < 5_000, "{few}");
    let many = vec![json!({"filters": filters(200)}); 200];
    assert!((1_000_000..).contains(&cost(json!({"refs": many}))), "also beyond what is followed item by item");
    let escaped = Expression::compile("self.__if__.all(x, self.__if__.all(y, x == y))").unwrap();
    assert!(escaped.cost(&[("self", &json!({"if": vec!["x"; 1000]}))]) > COST_PER_CALL);
}

#[test]
fn cost_grows_with_loops_and_values() {
    let list = json!((0..2_000).collect::<Vec<_>>());
    let cost = |source: &str| Expression::compile(source).unwrap().cost(&[("self", &list)]);
    assert!(cost("self.all(x, x > 1)") < COST_PER_CALL);
    assert!(cost("self.all(x, self.exists(y, y == x))") > COST_PER_CALL);
    assert!(cost("self.map(x, x + 1).size() > 0") < COST_PER_CALL);
    assert!(cost("self.size() > 1") < 10_000);
}

#[test]
fn optional_values_and_bindings() {
    let value = json!({"a": {"b": 2}});
    let run = |source: &str| Expression::compile(source).unwrap().evaluate(&Scope::new([("self", plain(&value))]));
    let yes = Ok(CelValue::Bool(true));
    assert_eq!(run("self.?a.?b.orValue(0) == 2 && self.?x.?b.orValue(0) == 0"), yes);
    assert_eq!(run("!self.?x.hasValue() && self[?'a'].hasValue()"), yes);
    assert_eq!(run("self.?a.?b.optMap(n, n * 3).orValue(0) == 6 && !self.?x.optMap(n, n * 3).hasValue()"), yes);
    assert_eq!(run("self.?a.optFlatMap(a, a.?b).value() == 2"), yes);
    assert_eq!(run("cel.bind(n, self.a.b, n + n == 4)"), yes);
}

#[test]
fn ranges_are_short() {
    let run = |source: &str| Expression::compile(source).unwrap().evaluate(&Scope::new([]));
    assert_eq!(run("lists.range(3).size()"), Ok(CelValue::Int(3)));
    assert!(run("lists.range(1000000000)").is_err());
}

proptest! {
    /// Any text compiles or not, and runs or not.
    #[test]
    fn nothing_breaks(source in "[a-z0-9+*/.,:?!&|<>=(){}'\\[\\] -]{0,40}") {
        if let Ok(expression) = Expression::compile(&source) {
            let value = json!({"a": [1, "x", null]});
            expression.cost(&[("a", &value)]);
            let _ = expression.evaluate(&Scope::new([("a", plain(&value))]));
        }
    }
}
