use proptest::prelude::*;
use serde_json::{Value, json};

use super::{CelValue, ConditionInputs, EvaluationScope, Expression, MAX_EVALUATION_COST, MatchCondition, plain};

fn holds(source: &str, inputs: ConditionInputs<'_>) -> Result<bool, String> {
    MatchCondition::compile(source).unwrap().evaluate(inputs)
}

#[test]
fn conditions_see_the_request() {
    let object = json!({"metadata": {"labels": {"a-b": "x"}}});
    let request = json!({"operation": "CREATE", "userInfo": {"username": "me"}});
    let inputs = ConditionInputs { object: Some(&object), request: Some(&request), ..ConditionInputs::default() };
    assert_eq!(holds("object.metadata.labels['a-b'] == 'x' && request.operation == 'CREATE'", inputs), Ok(true));
    assert_eq!(holds("oldObject == null", inputs), Ok(true));
    assert_eq!(holds("request.userInfo.username.startsWith('system:')", inputs), Ok(false));
    assert_eq!(holds("object.spec.x == 1", inputs).unwrap_err(), "no such key: spec");
    assert_eq!(holds("'text'", inputs).unwrap_err(), "cel expression must evaluate to a bool");
    assert_eq!(holds("string(object == null) + string(true) == 'falsetrue'", inputs), Ok(true));
    assert!(holds("authorizer.group('').check('get').allowed()", inputs).is_err());
}

#[test]
fn what_does_not_compile_is_shown() {
    let error = MatchCondition::compile("object.x ==").unwrap_err();
    assert!(error.starts_with("ERROR: <input>:1:"), "{error}");
    assert!(error.contains("\n | object.x ==\n | "), "{error}");
    assert!(MatchCondition::compile("a.B{c: 1}").is_err());
    assert!(MatchCondition::compile(&"x".repeat(100_001)).unwrap_err().contains("exceeds limit"));
}

#[test]
fn deep_and_long_expressions_do_no_harm() {
    for source in ["(".repeat(5_000), "!".repeat(20_000), "-".repeat(20_000), "[".repeat(5_000), "a?".repeat(5_000)] {
        let _ = Expression::compile(&source);
    }
    for joint in [" + 1", " && true", " || true", "[0]", ".a", " == 1", " ? 1 : 1"] {
        let _ = Expression::compile(&format!("1{}", joint.repeat(2_000)))
            .map(|expression| expression.evaluate(&EvaluationScope::new([])));
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
    assert!(escaped.cost(&[("self", &json!({"if": vec!["x"; 1000]}))]) > MAX_EVALUATION_COST);
}

#[test]
fn cost_grows_with_loops_and_values() {
    let list = json!((0..2_000).collect::<Vec<_>>());
    let cost = |source: &str| Expression::compile(source).unwrap().cost(&[("self", &list)]);
    assert!(cost("self.all(x, x > 1)") < MAX_EVALUATION_COST);
    assert!(cost("self.all(x, self.exists(y, y == x))") > MAX_EVALUATION_COST);
    assert!(cost("self.map(x, x + 1).size() > 0") < MAX_EVALUATION_COST);
    assert!(cost("self.size() > 1") < 10_000);
}

#[test]
fn optional_values_and_bindings() {
    let value = json!({"a": {"b": 2}});
    let run =
        |source: &str| Expression::compile(source).unwrap().evaluate(&EvaluationScope::new([("self", plain(&value))]));
    let yes = Ok(CelValue::Bool(true));
    assert_eq!(run("self.?a.?b.orValue(0) == 2 && self.?x.?b.orValue(0) == 0"), yes);
    assert_eq!(run("!self.?x.hasValue() && self[?'a'].hasValue()"), yes);
    assert_eq!(run("self.?a.?b.optMap(n, n * 3).orValue(0) == 6 && !self.?x.optMap(n, n * 3).hasValue()"), yes);
    assert_eq!(run("self.?a.optFlatMap(a, a.?b).value() == 2"), yes);
    assert_eq!(run("cel.bind(n, self.a.b, n + n == 4)"), yes);
}

#[test]
fn field_of_what_has_no_fields_is_no_key() {
    let value = json!({"none": null, "text": "t", "list": [1], "map": {"x": {"y": 1}}});
    let run =
        |source: &str| Expression::compile(source).unwrap().evaluate(&EvaluationScope::new([("self", plain(&value))]));
    for source in ["self.none.a", "self.text.a == 'x'", "self.none.a.b", "[self.map, self.none].all(m, m.a == 1)"] {
        assert_eq!(run(source).unwrap_err().to_string(), "no such key: a", "{source}");
    }
    // An error is reported, whatever is selected before it.
    assert_eq!(run("self.map.x.y + 'a' == 'b'").unwrap_err().to_string(), "no such overload");
    for source in
        ["!has(self.none.a)", "self.?map.x.y.orValue(0) == 1", "!self.?nope.x.hasValue()", "self.none == null"]
    {
        assert_eq!(run(source), Ok(CelValue::Bool(true)), "{source}");
    }
}

#[test]
fn macros_with_two_variables_and_sorting_run() {
    let value = json!({"list": ["b", "c", "a"], "map": {"x": 1, "y": 2}, "n": 7});
    let run =
        |source: &str| Expression::compile(source).unwrap().evaluate(&EvaluationScope::new([("self", plain(&value))]));
    for source in [
        "self.list.all(i, v, i < 3 && v != 'z')",
        "self.map.exists(k, v, k == 'y' && v == 2) && !self.map.exists(k, v, k == 'x' && v == 2)",
        "self.map.existsOne(k, v, v > 1) && !self.list.exists_one(i, v, i >= 0)",
        "self.list.transformList(i, v, v + string(i)) == ['b0', 'c1', 'a2']",
        "self.list.transformList(i, v, i > 0, v) == ['c', 'a']",
        "self.map.transformMap(k, v, v * self.n) == {'x': 7, 'y': 14}",
        "self.map.transformMap(k, v, v > 1, k) == {'y': 'y'}",
        "self.list.transformMapEntry(i, v, {v: i}) == {'a': 2, 'b': 0, 'c': 1}",
        "self.list.transformMapEntry(i, v, i == 1, {v: i}) == {'c': 1}",
        "self.map.all(k, v, self.map.exists(l, w, k == l && v == w) && self.list.all(i, w, w != k))",
        "self.list.sortBy(v, v) == ['a', 'b', 'c']",
        "[{'n': 2, 't': 'x'}, {'n': 1, 't': 'y'}].sortBy(o, o.n).map(o, o.t) == ['y', 'x']",
    ] {
        assert_eq!(run(source), Ok(CelValue::Bool(true)), "{source}");
    }
    let twice = run("self.list.transformMapEntry(i, v, {'k': i})").unwrap_err().to_string();
    assert!(twice.contains("insert failed: key k already exists"), "{twice}");
    assert!(run("[1, 'a'].sortBy(v, v)").is_err());
}

#[test]
fn ranges_are_short() {
    let run = |source: &str| Expression::compile(source).unwrap().evaluate(&EvaluationScope::new([]));
    assert_eq!(run("lists.range(3).size()"), Ok(CelValue::Int(3)));
    assert!(run("lists.range(1000000000)").is_err());
}

proptest! {
    /// No text makes the parser or the evaluation panic.
    #[test]
    fn nothing_breaks(source in "[a-z0-9+*/.,:?!&|<>=(){}'\\[\\] -]{0,40}") {
        if let Ok(expression) = Expression::compile(&source) {
            let value = json!({"a": [1, "x", null]});
            expression.cost(&[("a", &value)]);
            let _ = expression.evaluate(&EvaluationScope::new([("a", plain(&value))]));
        }
    }
}

/// Runs a rule like validation: the cost first.
fn run_bounded(source: &str, value: &Value) -> Result<CelValue, String> {
    let expression = Expression::compile(source).unwrap();
    if expression.cost(&[("self", value)]) > MAX_EVALUATION_COST {
        return Err("refused by its cost".to_owned());
    }
    expression.evaluate(&EvaluationScope::new([("self", plain(value))])).map_err(|failure| failure.to_string())
}

#[test]
fn chain_of_growing_functions_is_stopped_before_it_allocates() {
    let text = json!({ "s": "a".repeat(2_000), "list": ["ab", "cd"] });
    let chains = [
        r#"self.s.replace("a", "aaaaaaaaaa").replace("a", "aaaaaaaaaa").replace("a", "aaaaaaaaaa").replace("a", "aaaaaaaaaa").size() > 0"#,
        r#"[self.s, self.s].join(self.s).split("a").join(self.s).split("a").join(self.s).size() > 0"#,
        r#"self.s.split("").join(self.s).split("").size() > 0"#,
        r#"self.s.split("").join(self.s).findAll("a").size() > 0"#,
        r#"'%s%s%s%s'.format([self.s.split("").join(self.s), self.s.split("").join(self.s), self.s.split("").join(self.s), self.s.split("").join(self.s)]).size() > 0"#,
        r#"'%.60000f'.format([1.0]).size() > 0"#,
        r#"base64.encode(bytes(self.s.split("").join(self.s).replace("a", "aaa"))).size() > 0"#,
        r#"strings.quote(self.s.split("").join(self.s).replace("a", "\"\"\"")).size() > 0"#,
        // An operator that absorbs errors does not hide it.
        r#"self.s.split("").join(self.s).replace("a", "aaa").size() > 0 || true"#,
    ];
    for chain in chains {
        let result = run_bounded(chain, &text);
        assert!(result.is_err(), "{chain}: {result:?}");
    }
}

#[test]
fn quadratic_functions_cost_what_they_compare() {
    let list: Vec<String> = (0..20_000).map(|n| format!("item-{n}")).collect();
    let value = json!({ "a": list, "s": "a".repeat(500_000), "t": format!("{}b", "a".repeat(200_000)) });
    for rule in [
        "sets.contains(self.a, self.a)",
        "sets.equivalent(self.a, self.a)",
        "sets.intersects(self.a, self.a.map(x, x + '!'))",
        "self.a.distinct().size() > 0",
        "self.s.indexOf(self.t) < 0",
        "self.s.lastIndexOf(self.t) < 0",
        "self.a.all(x, x.matches(x + '(a|b){1,50}'))",
    ] {
        assert_eq!(run_bounded(rule, &value).unwrap_err(), "refused by its cost", "{rule}");
    }
}

#[test]
fn arguments_are_evaluated_once() {
    // Each library call would evaluate its argument twice, so that this would take 2^60 steps.
    for (start, end) in [("ip(", ".string())"), ("max(", ", 1)"), ("min(", ", 1)")] {
        let inner = if start == "ip(" { "'10.0.0.1'" } else { "1" };
        let nested = format!("{}{inner}{}", start.repeat(30), end.repeat(30).replacen(".string()", "", 1));
        let _ = run_bounded(&nested, &json!({}));
    }
}

#[test]
fn ordinary_use_of_growing_functions_goes_on() {
    let value = json!({ "s": "a-b-c", "list": ["x", "y"], "url": "https://example.com/a b?x=1&y=2" });
    for rule in [
        "self.s.replace('-', '+') == 'a+b+c' && self.s.replace('-', '', 1) == 'ab-c'",
        "self.s.split('-') == ['a', 'b', 'c'] && self.s.split('-', 2) == ['a', 'b-c'] && self.s.split('-').join('') == 'abc'",
        "self.list.join(', ') == 'x, y' && ['a'].join() == 'a'",
        "'%s has %d, %.2f'.format([self.s, 3, 1.5]) == 'a-b-c has 3, 1.50'",
        "base64.encode(b'hello') == 'aGVsbG8=' && string(base64.decode('aGVsbG8=')) == 'hello'",
        r#"strings.quote('a"b') == '"a\\"b"'"#,
        "self.s.matches('^[a-z](-[a-z])*$') && self.s.find('[b-z]') == 'b' && self.s.findAll('[a-z]', 2) == ['a', 'b']",
        "sets.contains(self.list, ['x']) && sets.equivalent(self.list, ['y', 'x']) && sets.intersects(self.list, ['y'])",
        "[3, 1, 2].sort() == [1, 2, 3] && [1, 1].distinct() == [1] && [[1], [2]].flatten() == [1, 2] && [1, 2].reverse() == [2, 1]",
        "self.s.indexOf('b') == 2 && self.s.lastIndexOf('-') == 3 && self.s.substring(2, 3) == 'b' && self.s.charAt(0) == 'a'",
        "ip('10.0.0.1').string() == '10.0.0.1' && isIP('10.0.0.1') && cidr('10.0.0.0/8').containsIP('10.1.1.1')",
        "quantity('1Gi').isGreaterThan(quantity('1Mi')) && quantity('1').add(quantity('2')).compareTo(quantity('3')) == 0",
        "url('https://example.com/x?a=1').getHost() == 'example.com' && url('https://h/x?a=1').getQuery()['a'] == ['1']",
        "[1, 5, 3].max() == 5 && [1, 5, 3].min() == 1 && [1, 5, 3].sum() == 9 && math.greatest(1, 2) == 2",
        "'TacoCat'.lowerAscii() == 'tacocat' && ' x '.trim() == 'x' && jsonpatch.escapeKey('a/b~') == 'a~1b~0'",
        "semver('1.2.3').isLessThan(semver('1.3.0'))",
    ] {
        assert_eq!(run_bounded(rule, &value), Ok(CelValue::Bool(true)), "{rule}");
    }
}
