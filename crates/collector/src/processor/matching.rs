//! Whether a record is one of those that `include` or `exclude` mean.
//!
//! Everything is read where it stands. What is said about a resource is found out once for all records of its entry that come one after another,
//! and what is said about a metric once for all its points.

use std::io::Write;

use kubewake_config::model::{AttributeMatch, Library, Match, SeverityNumber, Texts, ValueMatch};
use kubewake_otlp::{
    Value,
    view::{AnyValue, Attributes, LogRecord, Metric, RecordRef, RecordView, Resource, Scope, Span},
};

/// Matches the records of one request, in order.
pub(crate) struct Matcher<'m> {
    rule: &'m Match,
    resource: Remembered,
    record: Remembered,
}

/// The last answer, and which bytes of the request it is about.
#[derive(Default)]
struct Remembered(Option<(usize, bool)>);

impl Remembered {
    fn get(&mut self, about: &[u8], find: impl FnOnce() -> bool) -> bool {
        let place = about.as_ptr().addr();
        match self.0 {
            Some((last, answer)) if last == place && !about.is_empty() => answer,
            _ => self.0.insert((place, find())).1,
        }
    }
}

impl<'m> Matcher<'m> {
    pub(crate) fn new(rule: &'m Match) -> Self {
        Self { rule, resource: Remembered::default(), record: Remembered::default() }
    }

    /// Whether the record has all that the rule asks for.
    pub(crate) fn matches(&mut self, record: &RecordRef<'_>) -> bool {
        let rule = self.rule;
        self.resource.get(record.resource_entry(), || resource_matches(rule, record.resource()))
            && self.record.get(record.as_bytes(), || record_matches(rule, record))
    }
}

fn resource_matches(rule: &Match, resource: Resource<'_>) -> bool {
    rule.services.as_ref().is_none_or(|services| service_matches(services, resource))
        && attributes_match(&rule.resources, resource.attributes())
}

/// A resource without a service has a name, too, in the Collector.
fn service_matches(services: &Texts, resource: Resource<'_>) -> bool {
    match resource.attributes().get("service.name") {
        Some(name) => services.matches(&name.to_text()),
        None => services.matches(b"<nil-service-name>"),
    }
}

fn record_matches(rule: &Match, record: &RecordRef<'_>) -> bool {
    let libraries = &rule.libraries;
    (libraries.is_empty() || libraries.iter().any(|library| library_matches(library, record.scope())))
        && match record.view() {
            RecordView::Span(span) => span_matches(rule, span),
            RecordView::Log(record) => log_matches(rule, record),
            RecordView::Metric(metric) => metric_matches(rule, metric),
        }
}

fn library_matches(library: &Library, scope: Scope<'_>) -> bool {
    library.name.matches(scope.name())
        && library.version.as_ref().is_none_or(|version| version.matches(scope.version()))
}

fn span_matches(rule: &Match, span: Span<'_>) -> bool {
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

fn log_matches(rule: &Match, record: LogRecord<'_>) -> bool {
    rule.severity_number.as_ref().is_none_or(|wanted| severity_matches(wanted, record.severity_number()))
        && rule.severity_texts.as_ref().is_none_or(|texts| texts.matches(record.severity_text()))
        && rule.bodies.as_ref().is_none_or(|bodies| bodies.matches(&record.body().to_text()))
        && attributes_match(&rule.attributes, record.attributes())
}

fn severity_matches(wanted: &SeverityNumber, severity: i32) -> bool {
    if severity == 0 { wanted.match_undefined } else { severity >= wanted.min }
}

fn metric_matches(rule: &Match, metric: Metric<'_>) -> bool {
    rule.metric_names.as_ref().is_none_or(|names| names.matches(metric.name()))
}

fn attributes_match(wanted: &[AttributeMatch], attributes: Attributes<'_>) -> bool {
    wanted.iter().all(|one| attributes.get(&one.key).is_some_and(|value| value_matches(&one.value, value)))
}

fn value_matches(wanted: &ValueMatch, value: AnyValue<'_>) -> bool {
    match (wanted, value) {
        (ValueMatch::Any, _) => true,
        (ValueMatch::Equal(wanted), value) => is_equal(wanted, value),
        (ValueMatch::Regexp(pattern), AnyValue::String(text)) => pattern.is_match(text),
        (ValueMatch::Regexp(pattern), AnyValue::Bool(value)) => {
            written(format_args!("{value}"), |t| pattern.is_match(t))
        }
        (ValueMatch::Regexp(pattern), AnyValue::Int(value)) => {
            written(format_args!("{value}"), |t| pattern.is_match(t))
        }
        (ValueMatch::Regexp(pattern), AnyValue::Double(value)) => match value {
            f64::INFINITY => pattern.is_match(b"+Inf"),
            f64::NEG_INFINITY => pattern.is_match(b"-Inf"),
            value => written(format_args!("{value}"), |text| pattern.is_match(text)),
        },
        (ValueMatch::Regexp(_), _) => false,
    }
}

/// Shows a number as text without an allocation.
fn written(text: std::fmt::Arguments<'_>, look: impl FnOnce(&[u8]) -> bool) -> bool {
    // The longest number is the smallest double, with 1074 digits behind the point, of which the first 323 are zeroes.
    let mut buffer = [0; 352];
    let mut rest = buffer.as_mut_slice();
    let whole = rest.write_fmt(text).is_ok();
    let left = rest.len();
    whole && look(buffer.get(..buffer.len() - left).unwrap_or_default())
}

/// Whether a value is of the same type and the same. Maps are, whatever the order of their keys.
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
