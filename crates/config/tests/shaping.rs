//! `filter`, `attributes` and `resource`: accepted settings, and messages about refused ones.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

use kubewake_config::{
    DocumentErrors, FixedSources, RegexPattern, SecretString, load,
    model::{
        AttributeAction, AttributeMatch, AttributeValueSource, AttributesProcessor, ContextKey, ConvertedType,
        FilterProcessor, HashFunction, KeySelector, LibraryMatch, MatchProperties, ProcessorConfig, RecordSelection,
        SeverityNumber, SummaryLevel, TextMatcher, ValueMatch,
    },
};
use kubewake_otlp::{SetCondition, Value};

fn document(processors: &str, signal: &str, name: &str) -> String {
    let indented: String = processors.lines().map(|line| format!("  {line}\n")).collect();
    format!(
        "receivers:\n  otlp: {{protocols: {{grpc: {{include_metadata: true, auth: {{authenticator: bearertokenauth}}}}}}}}\n\
         extensions:\n  bearertokenauth: {{token: t}}\nprocessors:\n{indented}exporters:\n  nop:\nservice:\n  extensions: [bearertokenauth]\n  pipelines:\n    \
         {signal}: {{receivers: [otlp], processors: [{name}], exporters: [nop]}}\n"
    )
}

fn read(processors: &str, signal: &str) -> Result<ProcessorConfig, DocumentErrors> {
    let name = processors.split(':').next().unwrap();
    let sources = FixedSources::new().with_env("PORT", "8080").with_env("BAD", "s3cret(");
    let loaded = load(&document(processors, signal, name), &sources)?;
    assert!(loaded.warnings.is_empty(), "{:?}", loaded.warnings);
    Ok(loaded.document.processors.into_values().next().unwrap())
}

/// Asserts the path and message of each error, in order.
fn refused(processors: &str, signal: &str, expected: &[(&str, &str)]) {
    let errors = read(processors, signal).expect_err(processors);
    let paths: Vec<&str> = errors.problems().iter().map(|problem| problem.path.as_str()).collect();
    assert_eq!(paths, expected.iter().map(|(path, _)| *path).collect::<Vec<_>>(), "{processors}\n{errors}");
    for (problem, (_, words)) in errors.problems().iter().zip(expected) {
        assert!(problem.to_string().contains(words), "{processors}\nlacks {words:?}\n{problem}");
    }
    assert!(!errors.to_string().contains("s3cret"), "{errors}");
}

fn strict(texts: &[&str]) -> Option<TextMatcher> {
    Some(TextMatcher::strict(texts.iter().map(|text| (*text).to_owned()).collect()))
}

fn regexp(texts: &[&str]) -> Option<TextMatcher> {
    Some(TextMatcher::Regexp(texts.iter().map(|text| RegexPattern::new(text).unwrap()).collect()))
}

#[test]
fn every_property_of_a_filter_is_understood() {
    let filter = read(
        "filter:
  error_mode: ignore
  spans:
    include:
      match_type: strict
      services: [a, b]
      span_kinds: [SPAN_KIND_SERVER]
      status_codes: [ERROR, STATUS_CODE_OK]
      attributes:
        - {key: env, value: dev}
        - {key: port, value: 8080}
        - {key: any}
      resources: [{key: host, value: [1, 2.5, true, {k: v}]}]
      libraries: [{name: lib, version: ''}, {name: other}]
    exclude:
      match_type: regexp
      regexp: {cacheenabled: true, cachemaxnumentries: 1000}
      span_names: ['^/health', 'a{2}']
  logs:
    include:
      match_type: regexp
      severity_number: {min: warn, match_undefined: true}
      bodies: [x]
      severity_texts: ['ERR.*']
      record_attributes: [{key: a, value: '^b$'}]
      resource_attributes: [{key: c}]
    exclude: {}
  metrics:
    regexp: {cacheenabled: false}
    include: {match_type: strict, metric_names: [m], resource_attributes: [{key: r}]}
    exclude: {match_type: regexp, metric_names: [n], resource_attributes: [{key: s, value: t}]}",
        "traces",
    )
    .unwrap();
    let equal = |key: &str, value: Value| AttributeMatch { key: key.into(), value: ValueMatch::Equal(value) };
    let any = |key: &str| AttributeMatch { key: key.into(), value: ValueMatch::Any };
    let like = |key: &str, value: &str| AttributeMatch {
        key: key.into(),
        value: ValueMatch::Regexp(RegexPattern::new(value).unwrap()),
    };
    let host =
        Value::Array(vec![1.into(), 2.5.into(), true.into(), Value::KeyValueList(vec![("k".into(), "v".into())])]);
    let expected = FilterProcessor {
        spans: RecordSelection {
            include: vec![MatchProperties {
                services: strict(&["a", "b"]),
                span_kinds: strict(&["SPAN_KIND_SERVER"]),
                status_codes: strict(&["STATUS_CODE_ERROR", "STATUS_CODE_OK"]),
                attributes: vec![equal("env", "dev".into()), equal("port", 8080.into()), any("any")],
                resources: vec![equal("host", host)],
                libraries: vec![
                    LibraryMatch { name: strict(&["lib"]).unwrap(), version: strict(&[""]) },
                    LibraryMatch { name: strict(&["other"]).unwrap(), version: None },
                ],
                ..MatchProperties::default()
            }],
            exclude: vec![MatchProperties { span_names: regexp(&["^/health", "a{2}"]), ..MatchProperties::default() }],
        },
        logs: RecordSelection {
            include: vec![MatchProperties {
                severity_number: Some(SeverityNumber { min: 13, match_undefined: true }),
                bodies: regexp(&["x"]),
                severity_texts: regexp(&["ERR.*"]),
                attributes: vec![like("a", "^b$")],
                resources: vec![any("c")],
                ..MatchProperties::default()
            }],
            exclude: vec![],
        },
        metrics: RecordSelection {
            include: vec![MatchProperties {
                metric_names: strict(&["m"]),
                resources: vec![any("r")],
                ..MatchProperties::default()
            }],
            exclude: vec![
                MatchProperties { metric_names: regexp(&["n"]), ..MatchProperties::default() },
                MatchProperties { resources: vec![like("s", "t")], ..MatchProperties::default() },
            ],
        },
    };
    assert_eq!(filter, ProcessorConfig::Filter(Box::new(expected)));
}

#[test]
fn a_list_of_conditions_is_met_by_one_of_them() {
    let filter = read(
        "filter/x:
  spans:
    include: [{match_type: strict, span_names: [a]}, {match_type: regexp, services: [b]}]
  logs:
    exclude: [{match_type: strict, services: [c], bodies: [d]}]
  metrics:
    exclude:
      - {match_type: strict, metric_names: [e], services: [f]}
      - {match_type: strict, metric_names: [g]}",
        "traces",
    )
    .unwrap();
    let expected = FilterProcessor {
        spans: RecordSelection {
            include: vec![
                MatchProperties { span_names: strict(&["a"]), ..MatchProperties::default() },
                MatchProperties { services: regexp(&["b"]), ..MatchProperties::default() },
            ],
            exclude: vec![],
        },
        logs: RecordSelection {
            include: vec![],
            exclude: vec![MatchProperties {
                services: strict(&["c"]),
                bodies: strict(&["d"]),
                ..MatchProperties::default()
            }],
        },
        metrics: RecordSelection {
            include: vec![],
            exclude: vec![
                MatchProperties {
                    metric_names: strict(&["e"]),
                    services: strict(&["f"]),
                    ..MatchProperties::default()
                },
                MatchProperties { metric_names: strict(&["g"]), ..MatchProperties::default() },
            ],
        },
    };
    assert_eq!(filter, ProcessorConfig::Filter(Box::new(expected)));
}

#[test]
fn every_action_is_understood() {
    let attributes = read(
        "attributes/x:
  include: {match_type: regexp, log_bodies: [a], log_severity_number: {min: 9}, log_severity_texts: [b]}
  exclude: {match_type: strict, libraries: [{name: lib}]}
  actions:
    - {key: a, value: '${env:PORT}', action: insert}
    - {key: b, from_attribute: a, default_value: none, action: update}
    - {key: c, from_context: metadata.X-Tenant, action: UPSERT}
    - {key: d, from_context: client.address, action: upsert}
    - {key: e, from_context: auth.subject, action: upsert}
    - {key: f, default_value: 1.5, action: upsert}
    - {key: g, action: delete}
    - {pattern: '^h\\.', action: delete}
    - {key: i, pattern: j, action: hash}
    - {key: k, pattern: '^/(?P<kind>.*)/', action: extract}
    - {key: l, converted_type: int, action: convert}
    - {key: m, from_attribute: old, action: rename}",
        "logs",
    )
    .unwrap();
    let set = |key: &str, when, from, default| AttributeAction::Set { key: key.into(), when, from, default };
    let context = |key: &str, context| set(key, SetCondition::Always, AttributeValueSource::Context(context), None);
    let pattern = |text: &str| RegexPattern::new(text).unwrap();
    let expected = AttributesProcessor {
        include: Some(MatchProperties {
            bodies: regexp(&["a"]),
            severity_number: Some(SeverityNumber { min: 9, match_undefined: false }),
            severity_texts: regexp(&["b"]),
            ..MatchProperties::default()
        }),
        exclude: Some(MatchProperties {
            libraries: vec![LibraryMatch { name: strict(&["lib"]).unwrap(), version: None }],
            ..MatchProperties::default()
        }),
        actions: vec![
            set("a", SetCondition::Absent, AttributeValueSource::Value(8080.into()), None),
            set("b", SetCondition::Present, AttributeValueSource::Attribute("a".into()), Some("none".into())),
            context("c", ContextKey::Metadata("x-tenant".into())),
            context("d", ContextKey::ClientAddress),
            context("e", ContextKey::Auth("subject".into())),
            set("f", SetCondition::Always, AttributeValueSource::Nothing, Some(1.5.into())),
            AttributeAction::Delete(KeySelector { key: Some("g".into()), pattern: None }),
            AttributeAction::Delete(KeySelector { key: None, pattern: Some(pattern(r"^h\.")) }),
            AttributeAction::Hash(KeySelector { key: Some("i".into()), pattern: Some(pattern("j")) }),
            AttributeAction::Extract { key: "k".into(), pattern: pattern("^/(?P<kind>.*)/") },
            AttributeAction::Convert { key: "l".into(), to: ConvertedType::Int },
            AttributeAction::Rename { from: "old".into(), to: "m".into() },
        ],
    };
    assert_eq!(attributes, ProcessorConfig::Attributes(Box::new(expected)));
}

#[test]
fn all_that_is_wrong_with_actions_is_said_at_once() {
    refused(
        "resource:
  attributes:
    - {value: x, action: insert}
    - {key: a, action: insert}
    - {key: a, value: x, from_attribute: b, action: upsert}
    - {key: a, action: delete, value: x}
    - {action: hash}
    - {key: a, action: extract}
    - {key: a, action: extract, pattern: '(x)'}
    - {key: a, action: extract, pattern: 'x'}
    - {key: a, action: extract, pattern: '(?P<x>'}
    - {key: a, action: convert}
    - {key: a, action: convert, converted_type: float}
    - {key: a, action: rename}
    - {key: a, action: upset, value: x}
    - {key: a, value: x}
    - {key: a, pattern: '${env:BAD}', action: delete}
    - {key: a, value: x, action: insert, colour: red}",
        "traces",
        &[
            ("processors::resource::attributes::0::key", "`key` is missing"),
            ("processors::resource::attributes::1::value", "has no value to set"),
            ("processors::resource::attributes::2::from_attribute", "more than one source"),
            ("processors::resource::attributes::3::value", "`delete` does not use `value`"),
            ("processors::resource::attributes::4::key", "`key` or `pattern`"),
            ("processors::resource::attributes::5::pattern", "`pattern` is missing"),
            ("processors::resource::attributes::6::pattern", "needs a name"),
            ("processors::resource::attributes::7::pattern", "needs a name"),
            (
                "processors::resource::attributes::8::pattern",
                "\"(?P<x>\" is not a valid regular expression: unclosed group",
            ),
            ("processors::resource::attributes::9::converted_type", "`converted_type` is missing"),
            ("processors::resource::attributes::10::converted_type", "known values: double, int, string"),
            ("processors::resource::attributes::11::from_attribute", "`from_attribute` is missing"),
            ("processors::resource::attributes::12::action", "did you mean `upsert`?"),
            ("processors::resource::attributes::13::action", "`action` is missing"),
            (
                "processors::resource::attributes::14::pattern",
                "the value of ${env:BAD} is not a valid regular expression",
            ),
            ("processors::resource::attributes::15::colour", "unknown field `colour`"),
        ],
    );
    refused("resource: {}", "traces", &[("processors::resource::attributes", "at least one action")]);
    refused("attributes: {actions: []}", "traces", &[("processors::attributes::actions", "at least one action")]);
    refused("attributes: {actions: x}", "traces", &[("processors::attributes::actions", "must be a list")]);
}

#[test]
fn all_that_is_wrong_with_a_match_is_said_at_once() {
    refused(
        "filter:
  spans:
    include:
      services: [a]
    exclude:
      match_type: regexp
      span_names: ['ok', '(', '[']
      attributes: [{key: a, value: 5}, {value: x}]
      metric_names: [m]
  metrics:
    include: {match_type: expr, expressions: ['x']}
    exclude: {match_type: rexegp, metric_names: [m]}
  logs:
    include: {match_type: strict, severity_number: {min: loud}, libraries: [{name: a}]}",
        "traces",
        &[
            ("processors::filter::spans::include::match_type", "`match_type` is missing"),
            ("processors::filter::spans::exclude::span_names::1", "unclosed group"),
            ("processors::filter::spans::exclude::span_names::2", "unclosed character class"),
            ("processors::filter::spans::exclude::attributes::0::value", "must be text"),
            ("processors::filter::spans::exclude::attributes::1::key", "`key` must not be empty"),
            ("processors::filter::spans::exclude::metric_names", "does not apply to spans"),
            ("processors::filter::metrics::include::match_type", "not supported"),
            ("processors::filter::metrics::include::expressions", "not supported"),
            ("processors::filter::metrics::exclude::match_type", "did you mean `regexp`?"),
            ("processors::filter::logs::include::severity_number::min", "\"loud\" is not a severity"),
            ("processors::filter::logs::include::libraries", "unknown field"),
        ],
    );
    refused(
        "filter: {error_mode: shrug, spans: {include: {match_type: strict, span_kinds: [SERVER]}, exclude: {match_type: strict}}}",
        "traces",
        &[
            ("processors::filter::error_mode", "shrug"),
            ("processors::filter::spans::include::span_kinds", "SPAN_KIND_SERVER"),
            ("processors::filter::spans::exclude", "has no conditions"),
        ],
    );
}

#[test]
fn statements_are_refused_each_where_it_stands() {
    let ottl = "statements in OTTL are not supported by this build";
    refused(
        "filter:
  traces:
    span:
      - name == \"x\"
      - kind == 1
    spanevent: ['name == \"y\"']
  metrics:
    datapoint: ['value == 1']
  logs:
    log_record: ['body == \"\"']
  trace_conditions:
    - span.name == \"a\"
  log_conditions:
    - context: log
      conditions:
        - body == \"a\"
        - body == \"b\"",
        "traces",
        &[
            ("processors::filter::traces::span::0", ottl),
            ("processors::filter::traces::span::1", ottl),
            ("processors::filter::traces::spanevent::0", ottl),
            ("processors::filter::metrics::datapoint::0", ottl),
            ("processors::filter::logs::log_record::0", ottl),
            ("processors::filter::trace_conditions::0", ottl),
            ("processors::filter::log_conditions::0::conditions::0", ottl),
            ("processors::filter::log_conditions::0::conditions::1", ottl),
        ],
    );
}

#[test]
fn a_statement_is_shown_unless_it_may_hold_a_secret() {
    let text = "receivers: {otlp: {protocols: {grpc: }}}
processors:
  filter:
    traces:
      span:
        - 'attributes[\"http.route\"] == \"/healthz\"'
        - 'attributes[\"url\"] == \"http://me:s3cret@host\"'
        - ${env:CONDITION}
exporters: {nop: }
service: {pipelines: {traces: {receivers: [otlp], processors: [filter], exporters: [nop]}}}
";
    let errors = load(text, &FixedSources::new().with_env("CONDITION", "s3cret")).unwrap_err();
    let shown = errors.to_string();
    assert_eq!(errors.problems().len(), 3, "{shown}");
    assert!(shown.contains("6 |         - 'attributes[\"http.route\"] == \"/healthz\"'\n"), "{shown}");
    assert!(shown.contains("7 |         - '***'\n") && shown.contains("8 |         - ${env:CONDITION}\n"), "{shown}");
    assert!(!shown.contains("s3cret"), "{shown}");
}

#[test]
fn a_match_must_fit_the_pipelines_that_it_is_in() {
    let by_name = "attributes: {include: {match_type: strict, span_names: [a]}, actions: [{key: a, action: delete}]}";
    assert!(read(by_name, "traces").is_ok());
    let path = "service::pipelines::logs::processors";
    refused(by_name, "logs", &[(path, "matches by `span_names`, which logs do not have")]);
    let by_resource =
        "attributes: {exclude: {match_type: strict, resources: [{key: a}]}, actions: [{key: a, action: delete}]}";
    for signal in ["traces", "logs", "metrics"] {
        assert!(read(by_resource, signal).is_ok());
    }
}

#[test]
fn what_the_documentation_shows_is_taken() {
    let page = include_str!("../../../docs/processors.md");
    let mut shown = 0;
    for block in page.split("```yaml\n").skip(1).map(|rest| rest.split("```").next().unwrap()) {
        let names: Vec<&str> =
            block.lines().filter_map(|line| line.strip_prefix("  ").filter(|name| !name.starts_with(' '))).collect();
        let names = names.iter().map(|name| name.trim_end_matches(':')).collect::<Vec<_>>().join(", ");
        let text = format!(
            "receivers: {{otlp: {{protocols: {{grpc: {{include_metadata: true}}}}}}}}\n{block}exporters: {{nop: }}\nservice:\n  pipelines:\n    \
             traces: {{receivers: [otlp], processors: [{names}], exporters: [nop]}}\n"
        );
        let loaded = load(&text, &FixedSources::new()).unwrap_or_else(|errors| panic!("{errors}"));
        assert!(loaded.warnings.is_empty(), "{:?}", loaded.warnings);
        shown += 1;
    }
    assert!(shown >= 3);
}

#[test]
fn redaction_is_understood_and_its_key_is_a_secret() {
    let ProcessorConfig::Redaction(found) = read("redaction: {allowed_keys: [id]}", "logs").unwrap() else { panic!() };
    assert_eq!((found.allow_all_keys, found.hash_function, found.summary), (false, None, SummaryLevel::Silent));
    let key = "k".repeat(32);
    let hmac =
        format!("redaction: {{allowed_keys: [id], hash_function: HMAC-SHA256, hmac_key: {key}, summary: debug}}");
    let ProcessorConfig::Redaction(found) = read(&hmac, "logs").unwrap() else { panic!() };
    assert_eq!(found.hash_function, Some(HashFunction::HmacSha256(SecretString::new(key.clone()))));
    assert!(!format!("{found:?}").contains(&key));
    refused(
        "redaction:
  blocked_values: ['ok', '(']
  hash_function: hmac-sha512
  hmac_key: s3cret
  summary: loud
  url_sanitizer: {enabled: true}
  db_sanitizer: {enabled: false}",
        "traces",
        &[
            ("processors::redaction::blocked_values::1", "unclosed group"),
            ("processors::redaction::hmac_key", "at least 64 bytes"),
            ("processors::redaction::summary", "known values: debug, info, silent"),
            ("processors::redaction::url_sanitizer", "not supported"),
        ],
    );
    refused("redaction: {hash_function: hmac-sha256}", "traces", &[("processors::redaction::hmac_key", "is missing")]);
    refused("redaction: {hash_function: rot13}", "traces", &[("processors::redaction::hash_function", "rot13")]);
}

/// The warnings of a document with these receivers and processors in one pipeline.
fn warnings(receivers: &str, processors: &[&str]) -> Vec<String> {
    let names: Vec<&str> = processors.iter().filter_map(|text| text.split(':').next()).collect();
    let text = format!(
        "receivers:\n  {receivers}\nprocessors:\n  {}\nexporters:\n  nop:\nextensions:\n  bearertokenauth: {{token: t}}\n\
         service:\n  extensions: [bearertokenauth]\n  pipelines:\n    traces: {{receivers: [otlp], processors: [{}], exporters: [nop]}}\n",
        processors.join("\n  "),
        names.join(", "),
    );
    let loaded = load(&text, &FixedSources::new()).unwrap_or_else(|errors| panic!("{text}\n{errors}"));
    loaded.warnings.iter().map(ToString::to_string).collect()
}

#[test]
fn a_value_from_the_context_that_no_request_has_is_said() {
    let plain = "otlp: {protocols: {grpc: , http: }}";
    let headers = "otlp: {protocols: {grpc: , http: {include_metadata: true}}}";
    let known = "otlp: {protocols: {grpc: {auth: {authenticator: bearertokenauth}}, http: }}";
    let from =
        |context: &str| format!("attributes: {{actions: [{{action: insert, key: k, from_context: {context}}}]}}");
    for (receiver, context, words) in [
        (plain, "metadata.tenant", Some("no receiver of the pipelines keeps the request headers")),
        (plain, "tenant", Some("no receiver of the pipelines keeps the request headers")),
        (known, "metadata.tenant", Some("no receiver of the pipelines keeps the request headers")),
        (headers, "metadata.tenant", None),
        (plain, "client.address", None),
        (plain, "auth.subject", Some("no receiver of the pipelines has an authenticator")),
        (known, "auth.subject", None),
        (known, "auth.tenant", Some("authenticators do not provide this attribute")),
    ] {
        let found = warnings(receiver, &[&from(context)]);
        match words {
            None => assert_eq!(found, [""; 0], "{context}"),
            Some(words) => assert!(found.len() == 1 && found[0].contains(words), "{context}\n{found:?}"),
        }
    }
    let sampler = "tail_sampling: {policies: [{name: all, type: always_sample}]}";
    let found = warnings(headers, &[sampler, &from("client.address")]);
    assert!(found.len() == 1 && found[0].contains("put this processor before `tail_sampling`"), "{found:?}");
    assert_eq!(warnings(headers, &[&from("client.address"), sampler]), [""; 0]);
}

#[test]
fn redaction_of_everything_or_of_nothing_is_said() {
    let plain = "otlp: {protocols: {grpc: }}";
    for (settings, words) in [
        ("redaction: {}", Some("the processor removes every attribute")),
        ("redaction: {blocked_values: ['4[0-9]{12}']}", Some("the processor removes every attribute")),
        ("redaction: {allow_all_keys: true}", Some("the processor redacts nothing")),
        ("redaction: {allow_all_keys: true, blocked_values: ['4[0-9]{12}']}", None),
        ("redaction: {allowed_keys: [id]}", None),
    ] {
        let found = warnings(plain, &[settings]);
        match words {
            None => assert_eq!(found, [""; 0], "{settings}"),
            Some(words) => assert!(found.len() == 1 && found[0].contains(words), "{settings}\n{found:?}"),
        }
    }
}
