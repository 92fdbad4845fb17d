//! The validation of CRDs. The messages are those of a real kube-apiserver.

use serde_json::{Value, json};

use crate::{crd::DefinitionStrategy, registry::Strategy};

fn crd(spec: Value) -> Value {
    with_schema(json!({"type": "object", "properties": {"spec": spec}}))
}

fn with_schema(schema: Value) -> Value {
    json!({
        "metadata": {"name": "widgets.example.com"},
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": {"plural": "widgets", "kind": "Widget", "shortNames": ["wd"], "categories": ["all"]},
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": schema},
                "subresources": {"status": {}},
            }],
        },
    })
}

fn prepared(mut crd: Value) -> Value {
    DefinitionStrategy.default(&mut crd);
    DefinitionStrategy.prepare_create(&mut crd);
    crd
}

fn errors(crd: Value) -> Vec<String> {
    let mut errors = Vec::new();
    DefinitionStrategy.validate_create(&prepared(crd), &mut errors);
    let mut errors: Vec<String> = errors.iter().map(ToString::to_string).collect();
    errors.sort();
    errors
}

/// The errors of a field in the spec, without the path of the spec.
fn field_errors(field: Value) -> Vec<String> {
    let prefix = "spec.validation.openAPIV3Schema.properties[spec].properties[a]";
    let errors = errors(crd(json!({"type": "object", "properties": {"a": field}})));
    errors.iter().map(|error| error.strip_prefix(prefix).unwrap_or(error).to_owned()).collect()
}

#[test]
fn a_plain_crd_is_valid() {
    assert!(errors(crd(json!({"type": "object"}))).is_empty());
}

#[test]
fn the_name_is_plural_and_group() {
    let mut crd = crd(json!({"type": "object"}));
    crd["metadata"]["name"] = json!("wrong.example.com");
    let wanted = "metadata.name: Invalid value: \"wrong.example.com\": must be spec.names.plural+\".\"+spec.group";
    assert_eq!(errors(crd), [wanted]);
}

#[test]
fn exactly_one_version_is_stored() {
    let version = |name: &str, storage: bool| json!({"name": name, "served": true, "storage": storage, "schema": {"openAPIV3Schema": {"type": "object"}}});
    let shown = |name: &str, storage: bool| {
        format!(
            "{{\"Name\":\"{name}\",\"Served\":true,\"Storage\":{storage},\"Deprecated\":false,\"DeprecationWarning\":null,\
             \"Schema\":null,\"Subresources\":null,\"AdditionalPrinterColumns\":null,\"SelectableFields\":null}}"
        )
    };
    let mut none = crd(json!({"type": "object"}));
    none["spec"]["versions"] = json!([version("v1", false)]);
    let problem = "must have exactly one version marked as storage version";
    assert_eq!(
        errors(none),
        [
            format!("spec.versions: Invalid value: [{}]: {problem}", shown("v1", false)),
            "status.storedVersions: Invalid value: null: must have at least one stored version".to_owned(),
        ]
    );
    let mut two = crd(json!({"type": "object"}));
    two["spec"]["versions"] = json!([version("v1", true), version("v2", true)]);
    assert_eq!(
        errors(two),
        [
            format!("spec.versions: Invalid value: [{},{}]: {problem}", shown("v1", true), shown("v2", true)),
            "status.storedVersions: Invalid value: [\"v1\"]: must have the storage version v2".to_owned(),
        ]
    );
}

#[test]
fn every_version_has_a_schema() {
    let mut crd = crd(json!({"type": "object"}));
    crd["spec"]["versions"] = json!([{"name": "v1", "served": true, "storage": true}]);
    assert_eq!(errors(crd), ["spec.versions[0].schema.openAPIV3Schema: Required value"]);
}

#[test]
fn schemas_that_differ_are_told_by_version() {
    let mut crd = crd(json!({"type": "object"}));
    let other = json!({"name": "v2", "served": true, "storage": false, "schema": {"openAPIV3Schema": {}}});
    crd["spec"]["versions"].as_array_mut().unwrap().push(other);
    let wanted = "spec.versions[1].schema.openAPIV3Schema.type: Required value: must not be empty at the root";
    assert_eq!(errors(crd), [wanted]);
}

#[test]
fn schemas_are_structural() {
    let root = with_schema(json!({"properties": {"spec": {"type": "object"}}}));
    let wanted = "spec.validation.openAPIV3Schema.type: Required value: must not be empty at the root";
    assert_eq!(errors(root), [wanted]);
    assert_eq!(field_errors(json!({})), [".type: Required value: must not be empty for specified object fields"]);
    let both = json!({"type": "object", "additionalProperties": true, "properties": {"x": {"type": "string"}}});
    assert!(field_errors(both).is_empty());
    let list = json!({"type": "array"});
    assert_eq!(field_errors(list), [".items: Required value: must be specified"]);
    let pattern = field_errors(json!({"type": "string", "pattern": "("}));
    assert!(
        pattern[0].starts_with(".pattern: Invalid value: \"(\": must be a valid regular expression, but isn't: "),
        "{pattern:?}"
    );
}

#[test]
fn alternatives_only_restrict_values() {
    let typed = crd(json!({"type": "object", "anyOf": [{"properties": {"zz": {"type": "string"}}}]}));
    let schema = "spec.validation.openAPIV3Schema.properties[spec]";
    let nested = format!("{schema}.anyOf[0].properties[zz]");
    assert_eq!(errors(typed), [format!("{nested}.type: Forbidden: must be empty to be structural")]);
    let elsewhere =
        with_schema(json!({"type": "object", "required": ["spec"], "properties": {"spec": {"type": "object"}},
        "not": {"properties": {"zz": {"minimum": 1}}}}));
    let found = errors(elsewhere);
    let root = "spec.validation.openAPIV3Schema";
    let wanted = format!("{root}.properties[zz]: Required value: because it is defined in {root}.not.properties[zz]");
    assert!(found.contains(&wanted), "{found:?}");
    let either = json!({"x-kubernetes-int-or-string": true, "anyOf": [{"type": "integer"}, {"type": "string"}]});
    assert!(field_errors(either).is_empty());
}

#[test]
fn some_keywords_are_forbidden() {
    assert_eq!(field_errors(json!({"$ref": "#/x"})), [".$ref: Forbidden: $ref is not supported"]);
    assert_eq!(
        field_errors(json!({"type": "array", "uniqueItems": true, "items": {"type": "string"}})),
        [".uniqueItems: Forbidden: uniqueItems cannot be set to true since the runtime complexity becomes quadratic"]
    );
    let meta = json!({"type": "object", "properties": {"metadata": {"type": "object", "properties": {"labels": {"type": "object"}}}}});
    assert_eq!(
        errors(with_schema(meta)),
        [
            "spec.validation.openAPIV3Schema.properties[metadata]: Forbidden: must not specify anything other than name and \
          generateName, but metadata is implicitly specified"
        ]
    );
}

#[test]
fn defaults_fit_their_schema() {
    assert_eq!(
        field_errors(json!({"type": "integer", "default": "x"})),
        [".default: Invalid value: \"string\":  in body must be of type integer: \"string\""]
    );
    let unknown = json!({"type": "object", "properties": {"c": {"type": "string"}}, "default": {"zz": 1}});
    assert_eq!(field_errors(unknown), [".default: Invalid value: {\"zz\":1}: must not have unknown fields"]);
    let rule = json!({"type": "integer", "default": 0, "x-kubernetes-validations": [{"rule": "self > 0", "message": "positive"}]});
    assert_eq!(field_errors(rule), [".default: Invalid value: 0: positive"]);
}

#[test]
fn lists_have_keys() {
    let items = json!({"type": "object", "properties": {"k": {"type": "string"}}});
    assert_eq!(
        field_errors(json!({"type": "array", "x-kubernetes-list-type": "map", "items": items})),
        [".x-kubernetes-list-map-keys: Required value: must not be empty if x-kubernetes-list-type is map"]
    );
    assert_eq!(
        field_errors(json!({"type": "array", "x-kubernetes-list-type": "set", "items": items})),
        [
            ".items.x-kubernetes-map-type: Invalid value: null: must be atomic as item of a list with x-kubernetes-list-type=set"
        ]
    );
    assert_eq!(
        field_errors(
            json!({"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"], "items": items})
        ),
        [
            ".items.properties[k].default: Required value: this property is in x-kubernetes-list-map-keys, so it must have a default or \
          be a required property"
        ]
    );
}

fn rule_errors(rule: Value) -> Vec<String> {
    let field =
        json!({"type": "object", "properties": {"size": {"type": "integer"}}, "x-kubernetes-validations": [rule]});
    field_errors(field)
}

#[test]
fn rules_compile() {
    let undefined = rule_errors(json!({"rule": "self.sise > 1 && self.size < 3"}));
    assert_eq!(
        undefined,
        [
            ".x-kubernetes-validations[0].rule: Invalid value: {\"Rule\":\"self.sise \\u003e 1 \\u0026\\u0026 self.size \\u003c \
          3\",\"Message\":\"\",\"MessageExpression\":\"\",\"Reason\":null,\"FieldPath\":\"\",\"OptionalOldSelf\":null}: compilation \
          failed: ERROR: <input>:1:5: undefined field 'sise'\n | self.sise > 1 && self.size < 3\n | ....^"
        ]
    );
    let unknown = rule_errors(json!({"rule": "this.size > 1"}));
    assert!(
        unknown[0]
            .ends_with("ERROR: <input>:1:1: undeclared reference to 'this' (in container '')\n | this.size > 1\n | ^")
    );
    let syntax = rule_errors(json!({"rule": "self.size >"}));
    assert!(syntax[0].contains("compilation failed: ERROR: <input>:1:"), "{syntax:?}");
    let kind = rule_errors(json!({"rule": "self.size"}));
    assert!(kind[0].ends_with("cel expression must evaluate to a bool"));
    assert!(rule_errors(json!({"rule": "has(self.size)"})).is_empty());
    assert!(
        rule_errors(json!({"rule": "self.size > 1", "messageExpression": "'too small: ' + string(self.size)"}))
            .is_empty()
    );
}

#[test]
fn rules_are_well_formed() {
    let at = |field: &str| format!(".x-kubernetes-validations[0].{field}");
    assert_eq!(rule_errors(json!({"rule": " "})), [format!("{}: Required value: rule is not specified", at("rule"))]);
    let path = json!({"rule": "true", "fieldPath": ".nope"});
    assert_eq!(rule_errors(path), [format!("{}: Invalid value: \".nope\": must be a valid path", at("fieldPath"))]);
    let reason = rule_errors(json!({"rule": "true", "reason": "Because"}));
    assert!(
        reason[0].starts_with(&format!("{}: Unsupported value: \"Because\": supported values: ", at("reason"))),
        "{reason:?}"
    );
    let optional = json!({"rule": "self.size > 0", "optionalOldSelf": true});
    let wanted =
        format!("{}: Invalid value: true: may not be set if oldSelf is not used in rule", at("optionalOldSelf"));
    assert_eq!(rule_errors(optional), [wanted]);
}

#[test]
fn old_values_must_be_found_again() {
    let items = json!({"type": "integer", "x-kubernetes-validations": [{"rule": "self == oldSelf"}]});
    let found = field_errors(json!({"type": "array", "items": items}));
    let within = "spec.validation.openAPIV3Schema.properties[spec].properties[a]";
    assert_eq!(
        found,
        [format!(
            ".items.x-kubernetes-validations[0].rule: Invalid value: \"self == oldSelf\": oldSelf cannot be used on the \
             uncorrelatable portion of the schema within {within}"
        )]
    );
}

#[test]
fn scope_and_kind_are_fixed_once_established() {
    let mut old = prepared(crd(json!({"type": "object"})));
    old["status"] = crate::crd::names::status(&old, [], "2026-01-01T00:00:00Z").unwrap();
    let mut new = old.clone();
    new["spec"]["scope"] = json!("Cluster");
    DefinitionStrategy.prepare_update(&mut new, &old, "");
    assert_eq!(new["metadata"]["generation"], 2);
    let mut errors = Vec::new();
    DefinitionStrategy.validate_update(&new, &old, "", &mut errors);
    assert_eq!(
        errors.iter().map(ToString::to_string).collect::<Vec<_>>(),
        ["spec.scope: Invalid value: \"Cluster\": field is immutable"]
    );
}

#[test]
fn paths_of_scale_and_columns_are_checked() {
    let mut crd = crd(json!({"type": "object"}));
    crd["spec"]["versions"][0]["subresources"] =
        json!({"scale": {"specReplicasPath": ".status.x", "statusReplicasPath": ""}});
    crd["spec"]["versions"][0]["additionalPrinterColumns"] = json!([{"name": "A", "type": "text", "jsonPath": "spec"}]);
    crd["spec"]["versions"][0]["selectableFields"] = json!([{"jsonPath": ".spec.nope"}]);
    assert_eq!(
        errors(crd),
        [
            "spec.additionalPrinterColumns[0].JSONPath: Invalid value: \"spec\": must be a simple json path starting with .",
            "spec.additionalPrinterColumns[0].type: Invalid value: \"text\": must be one of boolean,date,integer,number,string",
            "spec.selectableFields[0].jsonPath: Invalid value: \".spec.nope\": is an invalid path: does not refer to a valid field",
            "spec.subresources.scale.specReplicasPath: Invalid value: \".status.x\": should be a json path under .spec",
            "spec.subresources.scale.statusReplicasPath: Required value",
        ]
    );
}

#[test]
fn community_groups_need_an_approval() {
    let mut crd = crd(json!({"type": "object"}));
    crd["metadata"]["name"] = json!("widgets.x.k8s.io");
    crd["spec"]["group"] = json!("x.k8s.io");
    assert!(
        errors(crd.clone())[0]
            .starts_with("metadata.annotations[api-approved.kubernetes.io]: Required value: protected groups")
    );
    crd["metadata"]["annotations"] = json!({"api-approved.kubernetes.io": "unapproved, experimental"});
    assert!(errors(crd).is_empty());
}

#[test]
fn conversion_by_webhook_needs_one() {
    let mut crd = crd(json!({"type": "object"}));
    crd["spec"]["conversion"] = json!({"strategy": "Webhook"});
    assert_eq!(
        errors(crd),
        [
            "spec.conversion.conversionReviewVersions: Required value",
            "spec.conversion.webhookClientConfig: Required value: required when strategy is set to Webhook",
        ]
    );
}

proptest::proptest! {
    /// No CRD makes the validation panic.
    #[test]
    fn nothing_breaks(seed in crate::crd::validate::tests::any_json()) {
        let _ = errors(with_schema(seed.clone()));
        let _ = errors(crd(seed.clone()));
        let _ = errors(json!({"metadata": {"name": "x"}, "spec": seed}));
    }
}

/// The errors of a rule on the field `a`, without the path of its rules.
fn field_rule_errors(mut field: Value, rule: Value) -> Vec<String> {
    field["x-kubernetes-validations"] = json!([rule]);
    let errors = field_errors(field);
    errors.iter().map(|error| error.trim_start_matches(".x-kubernetes-validations[0].").to_owned()).collect()
}

const ADVICE: &str = "(try simplifying the rule, or adding maxItems, maxProperties, and maxLength where arrays, maps, and \
                      strings are declared)";

#[test]
fn rule_whose_worst_case_costs_too_much_is_refused() {
    let list = |max_items: Value, max_length: Value| {
        let mut list = json!({"type": "array", "items": {"type": "string"}});
        if !max_items.is_null() {
            list["maxItems"] = max_items;
        }
        if !max_length.is_null() {
            list["items"]["maxLength"] = max_length;
        }
        list
    };
    let quadratic = json!({"rule": "self.all(x, self.all(y, x == y))"});
    let refused = field_rule_errors(list(Value::Null, Value::Null), quadratic.clone());
    let wanted = format!("rule: Forbidden: estimated rule cost exceeds budget by factor of more than 100x {ADVICE}");
    assert!(refused.contains(&wanted), "{refused:?}");
    assert_eq!(field_rule_errors(list(json!(10), json!(10)), quadratic), [""; 0]);
    let regex = json!({"rule": "self.all(x, x.matches('^[a-z]+$'))"});
    let refused = field_rule_errors(list(Value::Null, Value::Null), regex.clone());
    assert!(refused.iter().any(|error| error.contains("estimated rule cost exceeds budget")), "{refused:?}");
    assert_eq!(field_rule_errors(list(json!(100), json!(100)), regex), [""; 0]);
    let plain = json!({"rule": "self.size() < 3"});
    assert_eq!(field_rule_errors(list(Value::Null, Value::Null), plain), [""; 0]);
}

#[test]
fn rules_that_cost_too_much_together_are_named() {
    // Each of them costs about 6 million of the limit of 10 million, and together they exceed 100 million.
    let mut list = json!({"type": "array", "maxItems": 560, "items": {"type": "string", "maxLength": 30}});
    let rule = json!({"rule": "self.all(x, self.exists(y, y == x)) || self.size() > 3"});
    list["x-kubernetes-validations"] = json!(vec![rule; 20]);
    let refused = field_errors(list);
    let why = "Forbidden: contributed to estimated rule cost total exceeding cost limit for entire \
               OpenAPIv3 schema";
    assert!(!refused.iter().any(|error| error.contains("estimated rule cost exceeds")), "{refused:?}");
    assert_eq!(refused.iter().filter(|error| error.ends_with(why)).count(), 4, "{refused:?}");
    let total = "x-kubernetes-validations estimated rule cost total for entire OpenAPIv3 schema \
                 exceeds budget by factor of";
    assert!(refused.iter().any(|error| error.contains(total)), "{refused:?}");
}

#[test]
fn rule_of_another_type_is_refused() {
    let wrong = "cel expression must evaluate to a bool";
    for (field, rule) in [
        (json!({"type": "integer"}), "self + 1"),
        (json!({"type": "string", "maxLength": 10}), "self + 'x'"),
        (json!({"type": "string", "maxLength": 10}), "self.size()"),
        (json!({"type": "array", "maxItems": 3, "items": {"type": "integer"}}), "self.map(x, x + 1)"),
        (json!({"type": "array", "maxItems": 3, "items": {"type": "integer"}}), "self[0]"),
    ] {
        let refused = field_rule_errors(field, json!({"rule": rule}));
        assert!(refused.len() == 1 && refused[0].ends_with(wrong), "{rule}: {refused:?}");
    }
    let text = json!({"type": "string", "maxLength": 10});
    let refused = field_rule_errors(text, json!({"rule": "self != ''", "messageExpression": "self.size() + 1"}));
    assert!(refused.len() == 1 && refused[0].ends_with("messageExpression must evaluate to a string"), "{refused:?}");
}

#[test]
fn rule_is_checked_against_the_types_of_its_schema() {
    let shown = |rule: &str| {
        let shown = rule.replace('&', "\\u0026").replace('<', "\\u003c").replace('>', "\\u003e");
        format!(
            "rule: Invalid value: {{\"Rule\":\"{shown}\",\"Message\":\"\",\"MessageExpression\":\"\",\"Reason\":null,\
             \"FieldPath\":\"\",\"OptionalOldSelf\":null}}: "
        )
    };
    let number = json!({"type": "integer"});
    let refused = field_rule_errors(number.clone(), json!({"rule": "self == 'x'"}));
    let why = "compilation failed: ERROR: <input>:1:6: found no matching overload for '_==_' applied to '(int, string)'\n \
               | self == 'x'\n | .....^";
    assert_eq!(refused, [format!("{}{why}", shown("self == 'x'"))]);
    let either = json!({"x-kubernetes-int-or-string": true});
    for (field, rule, wanted) in [
        (&number, "self.missing > 1", "type 'int' does not support field selection"),
        (&number, "nothing", "undeclared reference to 'nothing' (in container '')"),
        (&number, "self", "cel expression must evaluate to a bool"),
        // A value of any type is not a bool.
        (&either, "self", "cel expression must evaluate to a bool"),
        (&json!({"type": "object", "properties": {"n": {"type": "integer"}}}), "self.m > 1", "undefined field 'm'"),
        (&json!({"type": "string", "format": "date-time"}), "self > 'x'", "applied to '(timestamp, string)'"),
        (&json!({"type": "string", "maxLength": 9}), "self.size() > '1'", "'_>_' applied to '(int, string)'"),
        (
            &json!({"type": "object", "additionalProperties": {"type": "string"}, "maxProperties": 2}),
            "self['a'] > 1",
            "applied to '(string, int)'",
        ),
    ] {
        let refused = field_rule_errors(field.clone(), json!({"rule": rule}));
        assert!(refused.len() == 1 && refused[0].contains(wanted), "{rule}: {refused:?}");
    }
    for (field, rule) in [
        (&either, "type(self) == int ? self > 1 : self.endsWith('%')"),
        (&json!({"type": "object", "properties": {"a-b": {"type": "integer"}}}), "self.a__dash__b > 1"),
        (
            &json!({"type": "object", "properties": {"x": {"type": "string", "maxLength": 5}}}),
            "!has(self.x) || self.x != ''",
        ),
        (&number, "self >= oldSelf"),
    ] {
        assert_eq!(field_rule_errors(field.clone(), json!({"rule": rule})), [""; 0], "{rule}");
    }
    let optional = json!({"rule": "!oldSelf.hasValue() || self >= oldSelf.value()", "optionalOldSelf": true});
    assert_eq!(field_rule_errors(number, optional), [""; 0]);
}
