use std::{collections::HashMap, sync::Arc};

use proptest::prelude::*;

use super::{CelType, TypeEnvironment, VariableDeclarations, admission_environment, check};

/// `self` is an object as in schemas.
fn environment() -> TypeEnvironment {
    let field = |name: &str, of: CelType| (name.to_owned(), of);
    let fields = vec![
        field("n", CelType::Int),
        field("s", CelType::String),
        field("list", CelType::list(CelType::String)),
        field("map", CelType::map(CelType::String, CelType::Int)),
        field("any", CelType::Dyn),
        field("inner", CelType::object("selfType.inner")),
    ];
    let structs = HashMap::from([
        (Arc::from("selfType"), fields),
        (Arc::from("selfType.inner"), vec![field("flag", CelType::Bool), field("at", CelType::Timestamp)]),
    ]);
    TypeEnvironment { variables: vec![field("self", CelType::object("selfType"))], structs }
}

fn problem(source: &str) -> String {
    check(source, &environment()).unwrap_err()
}

#[test]
fn expressions_have_the_types_of_cel() {
    let type_of = |source: &str| check(source, &environment()).unwrap().to_string();
    for (source, wanted) in [
        ("self.n + 1 > 2 && self.s.startsWith('a')", "bool"),
        ("self.list.map(x, size(x))", "list(int)"),
        ("self.list.filter(x, x != 'a')", "list(string)"),
        ("self.list.all(x, x in self.map) ? 1 : 2", "int"),
        ("self.map.exists(k, self.map[k] > 1)", "bool"),
        ("self.map.all(k, v, k.size() == v) && self.list.exists(i, v, v.size() == i)", "bool"),
        ("self.list.transformList(i, v, i)", "list(int)"),
        ("self.map.transformMap(k, v, v > 1, k)", "map(string, string)"),
        ("self.list.transformMapEntry(i, v, {v: i})", "map(string, int)"),
        ("self.list.sortBy(v, v.size())", "list(string)"),
        ("self.?inner.?flag.orValue(false)", "bool"),
        ("self.?n.optMap(n, n + 1)", "optional_type(int)"),
        ("has(self.inner.flag)", "bool"),
        ("self.any", "dyn"),
        ("self.any.x.y == 1", "bool"),
        ("self.inner == null", "bool"),
        ("self.inner.at > timestamp('2020-01-01T00:00:00Z')", "bool"),
        ("type(self.any) == string ? self.any.matches('^a$') : self.any < 5", "bool"),
        ("quantity('1').isLessThan(quantity(self.s))", "bool"),
        ("cidr('10.0.0.0/8').containsIP(ip(self.s))", "bool"),
        ("sets.contains(self.list, ['a'])", "bool"),
        ("[1, 2].sum() + [self.n].max()", "int"),
        ("'%s'.format([self.n])", "string"),
        ("{'a': [1]}", "map(string, list(int))"),
        ("[]", "list(dyn)"),
        ("self.n < 1.5 && 1u <= self.n", "bool"),
        ("duration('1h30m') > duration('0')", "bool"),
        ("optional.none().hasValue()", "bool"),
        ("[self.s, 'x'].join(',')", "string"),
        ("self.list[0]", "string"),
        ("url(self.s).getQuery()['a'].size()", "int"),
    ] {
        assert_eq!(type_of(source), wanted, "{source}");
    }
}

#[test]
fn problems_are_shown_where_they_stand() {
    assert_eq!(
        problem("self.n == 'x'"),
        "ERROR: <input>:1:8: found no matching overload for '_==_' applied to '(int, string)'\n | self.n == 'x'\n | .......^"
    );
    assert_eq!(
        problem("self.missing > 1"),
        "ERROR: <input>:1:5: undefined field 'missing'\n | self.missing > 1\n | ....^"
    );
    assert_eq!(
        problem("nothing"),
        "ERROR: <input>:1:1: undeclared reference to 'nothing' (in container '')\n | nothing\n | ^"
    );
    assert_eq!(
        problem("self.s.startsWith(1)"),
        "ERROR: <input>:1:18: found no matching overload for 'startsWith' applied to 'string.(int)'\n | self.s.startsWith(1)\n | .................^"
    );
    assert_eq!(
        problem("self.n.all(x, x > 1)"),
        "ERROR: <input>:1:5: expression of type 'int' cannot be range of a comprehension (must be list, map, or dynamic)\n | self.n.all(x, x > 1)\n | ....^"
    );
}

#[test]
fn each_problem_is_named() {
    for (source, wanted) in [
        ("self.n && true", "expected type 'bool' but found 'int'"),
        ("!self.n", "found no matching overload for '!_' applied to '(int)'"),
        ("self.n ? 1 : 2", "found no matching overload for '_?_:_' applied to '(int, int, int)'"),
        ("true ? 1 : 'a'", "found no matching overload for '_?_:_' applied to '(bool, int, string)'"),
        ("[1, 'a']", "expected type 'int' but found 'string'"),
        ("{'a': 1, 'b': 'c'}", "expected type 'int' but found 'string'"),
        ("self.n.field", "type 'int' does not support field selection"),
        ("self.nofunc()", "undeclared reference to 'nofunc' (in container '')"),
        ("nofunc(1)", "undeclared reference to 'nofunc' (in container '')"),
        ("self.n == null", "found no matching overload for '_==_' applied to '(int, null)'"),
        ("self.n in self.list", "found no matching overload for '@in' applied to '(int, list(string))'"),
        ("self.map[1]", "found no matching overload for '_[_]' applied to '(map(string, int), int)'"),
        ("self.s + 1", "found no matching overload for '_+_' applied to '(string, int)'"),
        ("self.inner == 1", "found no matching overload for '_==_' applied to '(selfType.inner, int)'"),
        ("size(self.n)", "found no matching overload for 'size' applied to '(int)'"),
        ("self.list.all(x, x)", "expected type 'bool' but found 'string'"),
        ("self.n.optMap(x, x)", "found no matching overload for 'hasValue' applied to 'int.()'"),
        ("self.s.matches('(')", "invalid matches argument"),
        ("duration('x') == duration('1s')", "invalid duration argument"),
        ("timestamp('x') == self.inner.at", "invalid timestamp argument"),
        ("Thing{a: 1} == 2", "undeclared reference to 'Thing' (in container '')"),
    ] {
        let found = problem(source);
        assert!(found.contains(wanted), "{source}: {found}");
    }
}

#[test]
fn all_problems_are_shown_in_their_order() {
    let found = problem("self.zz == 1 ||\n  aa && self.n");
    let lines: Vec<&str> = found.lines().filter(|line| line.starts_with("ERROR")).collect();
    assert_eq!(
        lines,
        [
            "ERROR: <input>:1:5: undefined field 'zz'",
            "ERROR: <input>:2:3: undeclared reference to 'aa' (in container '')",
            "ERROR: <input>:2:13: expected type 'bool' but found 'int'",
        ]
    );
    // Positions count characters, and a comment at the end changes nothing.
    assert!(problem("'äöü' == self.zz // why").starts_with("ERROR: <input>:1:14: undefined field 'zz'"));
}

#[test]
fn admission_requests_are_typed() {
    let with = admission_environment(VariableDeclarations { params: true, authorizer: true });
    let without = admission_environment(VariableDeclarations::default());
    for source in [
        "object.spec.replicas <= params.max",
        "authorizer.group('apps').resource('deployments').check('create').allowed()",
        "authorizer.requestResource.check('x').allowed()",
        "request.userInfo.groups.exists(g, g == 'x')",
        "namespaceObject.metadata.labels['a'] == 'b'",
    ] {
        assert_eq!(check(source, &with), Ok(CelType::Bool), "{source}");
    }
    for (source, wanted) in [
        ("params.max > 1", "undeclared reference to 'params'"),
        ("authorizer.path('/').check('get').allowed()", "undeclared reference to 'authorizer'"),
        ("request.opration == 'CREATE'", "undefined field 'opration'"),
        ("request.operation == 1", "'_==_' applied to '(string, int)'"),
    ] {
        let found = check(source, &without).unwrap_err();
        assert!(found.contains(wanted), "{source}: {found}");
    }
}

#[test]
fn types_that_double_with_every_step_end() {
    let doubling = format!("[1]{}.size() > 0", ".map(x, {string(x): x, 'a': x}['a']).map(x, [[x, x], [x]])".repeat(40));
    let _ = check(&doubling, &environment());
    let unknown = format!("[]{}.size() > 0", ".map(x, {x: x})".repeat(100));
    let _ = check(&unknown, &environment());
}

proptest! {
    /// Any text is checked or refused.
    #[test]
    fn nothing_breaks(source in "[a-z0-9+*/.,:?!&|<>=(){}'\\[\\] -]{0,40}") {
        let _ = check(&source, &environment());
    }
}

#[test]
fn macros_with_two_variables_are_checked() {
    for (source, wanted) in [
        ("self.list.all(i, v, v == 1)", "found no matching overload for '_==_' applied to '(string, int)'"),
        ("self.list.all(i, i, true)", "duplicate variable name: i"),
        ("self.list.all(i.x, v, true)", "argument must be a simple name"),
        ("self.n.exists(k, v, true)", "expression of type 'int' cannot be range of a comprehension"),
        ("self.list.all(i, v, i)", "expected type 'bool' but found 'int'"),
        ("self.list.sortBy(v, [v])", "found no matching overload for '@sortByAssociatedKeys'"),
    ] {
        let found = problem(source);
        assert!(found.contains(wanted), "{source}: {found}");
    }
}
