//! Record matching for `include` and `exclude` rules.
//!
//! Fields are read in place. The match of a resource is computed once for consecutive records of its entry, and
//! the match of a metric once for all its points.

use std::io::Write;

use kubewake_config::model::{AttributeMatch, LibraryMatch, MatchProperties, SeverityNumber, TextMatcher, ValueMatch};
use kubewake_otlp::{
    Value,
    view::{AnyValue, AttributesView, LogRecord, Metric, RecordRef, RecordView, Resource, Scope, Span},
};

/// Matches the records of one request, in order.
pub(crate) struct RecordMatcher<'m> {
    rule: &'m MatchProperties,
    resource: MatchCache,
    record: MatchCache,
}

/// The last result, and the bytes of the request that it belongs to.
#[derive(Default)]
struct MatchCache(Option<(usize, bool)>);

impl MatchCache {
    fn get_or_find(&mut self, about: &[u8], find: impl FnOnce() -> bool) -> bool {
        let place = about.as_ptr().addr();
        match self.0 {
            Some((last, answer)) if last == place && !about.is_empty() => answer,
            _ => self.0.insert((place, find())).1,
        }
    }
}

impl<'m> RecordMatcher<'m> {
    pub(crate) fn new(rule: &'m MatchProperties) -> Self {
        Self { rule, resource: MatchCache::default(), record: MatchCache::default() }
    }

    /// Whether the record meets all conditions of the rule.
    pub(crate) fn matches(&mut self, record: &RecordRef<'_>) -> bool {
        let rule = self.rule;
        self.resource.get_or_find(record.resource_entry(), || resource_matches(rule, record.resource()))
            && self.record.get_or_find(record.as_bytes(), || record_matches(rule, record))
    }
}

fn resource_matches(rule: &MatchProperties, resource: Resource<'_>) -> bool {
    rule.services.as_ref().is_none_or(|services| service_matches(services, resource))
        && attributes_match(&rule.resources, resource.attributes())
}

/// Matches the service name. As in the Collector, a resource without a service has a name, too.
fn service_matches(services: &TextMatcher, resource: Resource<'_>) -> bool {
    match resource.attributes().get("service.name") {
        Some(name) => services.matches(&name.to_text()),
        None => services.matches(b"<nil-service-name>"),
    }
}

fn record_matches(rule: &MatchProperties, record: &RecordRef<'_>) -> bool {
    let libraries = &rule.libraries;
    (libraries.is_empty() || libraries.iter().any(|library| library_matches(library, record.scope())))
        && match record.view() {
            RecordView::Span(span) => span_matches(rule, span),
            RecordView::Log(record) => log_matches(rule, record),
            RecordView::Metric(metric) => metric_matches(rule, metric),
        }
}

fn library_matches(library: &LibraryMatch, scope: Scope<'_>) -> bool {
    library.name.matches(scope.name())
        && library.version.as_ref().is_none_or(|version| version.matches(scope.version()))
}

fn span_matches(rule: &MatchProperties, span: Span<'_>) -> bool {
    let kind = || match span.kind() {
        0 => "SPAN_KIND_UNSPECIFIED",
        1 => "SPAN_KIND_INTERNAL",
        2 => "SPAN_KIND_SERVER",
        3 => "SPAN_KIND_CLIENT",
        4 => "SPAN_KIND_PRODUCER",
        5 => "SPAN_KIND_CONSUMER",
        _ => "",
    };
    let status = || match span.status().code() {
        0 => "STATUS_CODE_UNSET",
        1 => "STATUS_CODE_OK",
        2 => "STATUS_CODE_ERROR",
        _ => "",
    };
    rule.span_names.as_ref().is_none_or(|names| names.matches(span.name()))
        && rule.span_kinds.as_ref().is_none_or(|kinds| kinds.matches(kind().as_bytes()))
        && rule.status_codes.as_ref().is_none_or(|codes| codes.matches(status().as_bytes()))
        && attributes_match(&rule.attributes, span.attributes())
}

fn log_matches(rule: &MatchProperties, record: LogRecord<'_>) -> bool {
    rule.severity_number.as_ref().is_none_or(|wanted| severity_matches(wanted, record.severity_number()))
        && rule.severity_texts.as_ref().is_none_or(|texts| texts.matches(record.severity_text()))
        && rule.bodies.as_ref().is_none_or(|bodies| bodies.matches(&record.body().to_text()))
        && attributes_match(&rule.attributes, record.attributes())
}

fn severity_matches(wanted: &SeverityNumber, severity: i32) -> bool {
    if severity == 0 { wanted.match_undefined } else { severity >= wanted.min }
}

fn metric_matches(rule: &MatchProperties, metric: Metric<'_>) -> bool {
    rule.metric_names.as_ref().is_none_or(|names| names.matches(metric.name()))
}

fn attributes_match(wanted: &[AttributeMatch], attributes: AttributesView<'_>) -> bool {
    wanted.iter().all(|one| attributes.get(&one.key).is_some_and(|value| value_matches(&one.value, value)))
}

fn value_matches(wanted: &ValueMatch, value: AnyValue<'_>) -> bool {
    match (wanted, value) {
        (ValueMatch::Any, _) => true,
        (ValueMatch::Equal(wanted), value) => is_equal(wanted, value),
        (ValueMatch::Regexp(pattern), AnyValue::String(text)) => pattern.is_match(text),
        (ValueMatch::Regexp(pattern), AnyValue::Bool(value)) => {
            match_formatted(format_args!("{value}"), |t| pattern.is_match(t))
        }
        (ValueMatch::Regexp(pattern), AnyValue::Int(value)) => {
            match_formatted(format_args!("{value}"), |t| pattern.is_match(t))
        }
        (ValueMatch::Regexp(pattern), AnyValue::Double(value)) => match value {
            f64::INFINITY => pattern.is_match(b"+Inf"),
            f64::NEG_INFINITY => pattern.is_match(b"-Inf"),
            value => match_formatted(format_args!("{value}"), |text| pattern.is_match(text)),
        },
        (ValueMatch::Regexp(_), _) => false,
    }
}

/// Formats a number without an allocation, and matches the text.
fn match_formatted(text: std::fmt::Arguments<'_>, look: impl FnOnce(&[u8]) -> bool) -> bool {
    // The longest number is the smallest double, with 1074 digits behind the point, of which the first 323 are
    // zeroes.
    let mut buffer = [0; 352];
    let mut rest = buffer.as_mut_slice();
    let whole = rest.write_fmt(text).is_ok();
    let left = rest.len();
    whole && look(buffer.get(..buffer.len() - left).unwrap_or_default())
}

/// Whether a value has the same type and content. Maps are equal whatever the order of their keys.
fn is_equal(wanted: &Value, value: AnyValue<'_>) -> bool {
    match (wanted, value) {
        (Value::String(wanted), AnyValue::String(text)) => wanted.as_bytes() == text,
        (Value::Bool(wanted), AnyValue::Bool(value)) => *wanted == value,
        (Value::Int(wanted), AnyValue::Int(value)) => *wanted == value,
        (Value::Double(wanted), AnyValue::Double(value)) => *wanted == value,
        (Value::Bytes(wanted), AnyValue::Bytes(bytes)) => wanted == bytes,
        (Value::Array(wanted), AnyValue::Array(values)) => {
            values.count() == wanted.len()
                && wanted.iter().zip(values).all(|(wanted, content)| is_equal(wanted, AnyValue::new(content)))
        }
        (Value::KeyValueList(wanted), AnyValue::KeyValueList(pairs)) => {
            let has = |key: &str, wanted: &Value| {
                let mut pairs = pairs;
                pairs.find(|pair| pair.key() == key.as_bytes()).is_some_and(|pair| is_equal(wanted, pair.value()))
            };
            pairs.count() == wanted.len() && wanted.iter().all(|(key, wanted)| has(key, wanted))
        }
        _ => false,
    }
}
