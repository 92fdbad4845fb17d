//! `include` and `exclude`.

use kubewake_otlp::{Signal, Value};

use super::{AttributeMatch, LibraryMatch, MatchProperties, SeverityNumber, TextMatcher, ValueMatch};
use crate::decode::{Cursor, DecodeReport, FieldReader, scalar, value};

#[derive(Clone, Copy, PartialEq, Eq)]
enum PropertyMatchType {
    Strict,
    Regexp,
}

const SPAN_KINDS: [&str; 5] =
    ["SPAN_KIND_INTERNAL", "SPAN_KIND_SERVER", "SPAN_KIND_CLIENT", "SPAN_KIND_PRODUCER", "SPAN_KIND_CONSUMER"];

const STATUS_CODES: [&str; 3] = ["STATUS_CODE_UNSET", "STATUS_CODE_OK", "STATUS_CODE_ERROR"];

/// The properties that `attributes` and the spans of `filter` have.
pub(crate) fn properties(at: &Cursor<'_>, report: &DecodeReport) -> Option<MatchProperties> {
    let mut reader = PropertyReader::new(at, report);
    let found = MatchProperties {
        services: reader.texts("services"),
        span_names: reader.texts("span_names"),
        span_kinds: reader.words("span_kinds", &SPAN_KINDS, ""),
        status_codes: reader.words("status_codes", &STATUS_CODES, "STATUS_CODE_"),
        bodies: reader.texts("log_bodies"),
        severity_texts: reader.texts("log_severity_texts"),
        severity_number: reader.fields.get("log_severity_number", severity_number),
        metric_names: reader.texts("metric_names"),
        attributes: reader.attributes("attributes"),
        resources: reader.attributes("resources"),
        libraries: reader.libraries(),
    };
    if found == MatchProperties::default() && !reader.fields.any_failed() {
        let help = "set at least one condition, for instance `services`, `attributes` or `resources`";
        report.error(at, format!("`{}` has no conditions", at.name()), Some(help.into()));
    }
    reader.finish();
    Some(found)
}

/// As [`properties`], but only with those that apply to spans.
pub(crate) fn span_properties(at: &Cursor<'_>, report: &DecodeReport) -> Option<MatchProperties> {
    let found = properties(at, report)?;
    if let Some(field) = found.unsupported_condition(Signal::Traces) {
        report.error(
            &FieldReader::new(at, report).cursor_at(field),
            format!("`{field}` does not apply to spans"),
            None,
        );
    }
    Some(found)
}

/// The properties of logs in `filter`. Without any nothing matches.
pub(crate) fn log_properties(at: &Cursor<'_>, report: &DecodeReport) -> Option<MatchProperties> {
    let mut reader = PropertyReader::new(at, report);
    let found = MatchProperties {
        services: reader.texts("services"),
        bodies: reader.texts("bodies"),
        severity_texts: reader.texts("severity_texts"),
        severity_number: reader.fields.get("severity_number", severity_number),
        attributes: reader.attributes("record_attributes"),
        resources: reader.attributes("resource_attributes"),
        ..MatchProperties::default()
    };
    reader.finish();
    Some(found).filter(|found| *found != MatchProperties::default())
}

/// The properties of metrics in `filter`. Without any nothing matches.
pub(crate) fn metric_properties(at: &Cursor<'_>, report: &DecodeReport) -> Option<MatchProperties> {
    let mut reader = PropertyReader::new(at, report);
    let found = MatchProperties {
        services: reader.texts("services"),
        metric_names: reader.texts("metric_names"),
        resources: reader.attributes("resource_attributes"),
        ..MatchProperties::default()
    };
    reader.fields.unsupported(&["expressions"]);
    reader.finish();
    Some(found).filter(|found| *found != MatchProperties::default())
}

/// The cache of `regexp`, which has no effect: matching takes less time than a lookup.
pub(crate) fn cache(at: &Cursor<'_>, report: &DecodeReport) -> Option<()> {
    let mut fields = FieldReader::new(at, report);
    fields.accept_without_effect(&["cacheenabled"], scalar::boolean);
    fields.accept_without_effect(&["cachemaxnumentries"], scalar::u32);
    fields.finish();
    Some(())
}

struct PropertyReader<'a, 'r> {
    fields: FieldReader<'a, 'r>,
    match_type: Option<PropertyMatchType>,
    /// Whether there is a condition that `match_type` applies to.
    compares: bool,
}

impl<'a, 'r> PropertyReader<'a, 'r> {
    fn new(at: &Cursor<'a>, report: &'r DecodeReport) -> Self {
        let mut fields = FieldReader::new(at, report);
        let match_type = fields.get("match_type", match_type);
        fields.get("regexp", cache);
        Self { fields, match_type, compares: false }
    }

    fn finish(self) {
        if self.compares && self.match_type.is_none() {
            let help = "write `match_type: strict` or `match_type: regexp`";
            self.fields.require("match_type", "`match_type` is missing", Some(help.into()));
        }
        self.fields.finish();
    }

    /// A list of texts of which one must match; an empty one is no condition.
    fn texts(&mut self, name: &'static str) -> Option<TextMatcher> {
        let at = self.fields.find(name)?;
        let texts = texts(&at, self.fields.report, self.match_type)?;
        self.compares |= texts.is_some();
        texts
    }

    /// As [`PropertyReader::texts`], for a closed set of words, which may be written without `prefix`.
    fn words(&mut self, name: &'static str, known: &[&str], prefix: &str) -> Option<TextMatcher> {
        let at = self.fields.find(name)?;
        let found = texts(&at, self.fields.report, self.match_type)??;
        self.compares = true;
        let TextMatcher::Strict(words) = found else { return Some(found) };
        let mut meant = Vec::new();
        for word in words {
            match known.iter().find(|one| **one == word || one.strip_prefix(prefix) == Some(&word)) {
                Some(one) => meant.push((*one).to_owned()),
                None => {
                    let help = self.fields.report.suggest(&word, known, "known values");
                    self.fields.report.error(&at, format!("unknown value in `{name}`: {}", at.quote(&word)), help);
                }
            }
        }
        Some(TextMatcher::strict(meant))
    }

    /// Attributes that must all be there.
    fn attributes(&mut self, name: &'static str) -> Vec<AttributeMatch> {
        let Some(at) = self.fields.find(name) else { return Vec::new() };
        let report = self.fields.report;
        let Some(items) = at.items() else {
            scalar::wrong_type::<()>(&at, report, "a list", Some("write `- key: …` for each".into()));
            return Vec::new();
        };
        let found: Vec<_> = items.filter_map(|item| attribute(&item, report, self.match_type)).collect();
        self.compares |= found.iter().any(|attribute| attribute.value != ValueMatch::Any);
        found
    }

    fn libraries(&mut self) -> Vec<LibraryMatch> {
        let Some(at) = self.fields.find("libraries") else { return Vec::new() };
        let report = self.fields.report;
        let Some(items) = at.items() else {
            scalar::wrong_type::<()>(&at, report, "a list", Some("write `- name: …` for each".into()));
            return Vec::new();
        };
        let found: Vec<_> = items.filter_map(|item| library(&item, report, self.match_type)).collect();
        self.compares |= !found.is_empty();
        found
    }
}

fn match_type(at: &Cursor<'_>, report: &DecodeReport) -> Option<PropertyMatchType> {
    if matches!(&at.node.value, crate::yaml::NodeValue::String(text) if text == "expr") {
        report.mark_public(at);
        let help = "use `strict` or `regexp`";
        report.error(at, "`match_type: expr` is not supported by this build", Some(help.into()));
        return None;
    }
    scalar::keyword(at, report, &[("strict", PropertyMatchType::Strict), ("regexp", PropertyMatchType::Regexp)])
}

/// Reads a list of texts; the inner `None` if it is empty. Each of them is checked by itself.
fn texts(at: &Cursor<'_>, report: &DecodeReport, match_type: Option<PropertyMatchType>) -> Option<Option<TextMatcher>> {
    let all: Vec<(Cursor<'_>, String)> = match at.items() {
        Some(items) => items.filter_map(|item| scalar::text(&item, report).map(|text| (item, text))).collect(),
        None => scalar::texts(at, report)?.into_iter().map(|text| (at.clone(), text)).collect(),
    };
    if all.is_empty() {
        return Some(None);
    }
    Some(Some(match match_type {
        Some(PropertyMatchType::Regexp) => {
            TextMatcher::Regexp(all.iter().filter_map(|(at, text)| value::compile(at, report, text)).collect())
        }
        _ => TextMatcher::strict(all.into_iter().map(|(_, text)| text).collect()),
    }))
}

fn text(at: &Cursor<'_>, report: &DecodeReport, match_type: Option<PropertyMatchType>) -> Option<TextMatcher> {
    let text = scalar::text(at, report)?;
    Some(match match_type {
        Some(PropertyMatchType::Regexp) => TextMatcher::Regexp(vec![value::compile(at, report, &text)?]),
        _ => TextMatcher::strict(vec![text]),
    })
}

fn attribute(at: &Cursor<'_>, report: &DecodeReport, match_type: Option<PropertyMatchType>) -> Option<AttributeMatch> {
    let mut fields = FieldReader::new(at, report);
    let key = fields.text("key");
    if key.is_none() {
        fields.require("key", "`key` must not be empty", None);
    }
    let wanted = fields.find("value").map(|at| match (value::value(&at, report), match_type) {
        (Some(Value::String(text)), Some(PropertyMatchType::Regexp)) => {
            report.mark_public(&at);
            value::compile(&at, report, &text).map(ValueMatch::Regexp)
        }
        (Some(_), Some(PropertyMatchType::Regexp)) => {
            let help = "put the value in quotes: its text is compared";
            report.error(&at, "a regular expression must be text", Some(help.into()));
            None
        }
        (value, _) => value.map(ValueMatch::Equal),
    });
    fields.finish();
    Some(AttributeMatch { key: key?, value: wanted.unwrap_or(Some(ValueMatch::Any))? })
}

fn library(at: &Cursor<'_>, report: &DecodeReport, match_type: Option<PropertyMatchType>) -> Option<LibraryMatch> {
    let mut fields = FieldReader::new(at, report);
    let name = fields.get("name", |at, report| text(at, report, match_type));
    let version = fields.get("version", |at, report| text(at, report, match_type));
    if name.is_none() {
        fields.require("name", "`name` is missing", None);
    }
    fields.finish();
    Some(LibraryMatch { name: name?, version })
}

/// The names of severities; the severity number is the index plus one.
pub(super) const SEVERITY_NAMES: [&str; 24] = [
    "TRACE", "TRACE2", "TRACE3", "TRACE4", "DEBUG", "DEBUG2", "DEBUG3", "DEBUG4", "INFO", "INFO2", "INFO3", "INFO4",
    "WARN", "WARN2", "WARN3", "WARN4", "ERROR", "ERROR2", "ERROR3", "ERROR4", "FATAL", "FATAL2", "FATAL3", "FATAL4",
];

fn severity_number(at: &Cursor<'_>, report: &DecodeReport) -> Option<SeverityNumber> {
    let mut fields = FieldReader::new(at, report);
    let min = fields.get("min", severity).unwrap_or(0);
    let match_undefined = fields.flag("match_undefined");
    fields.finish();
    Some(SeverityNumber { min, match_undefined })
}

/// Parses a severity by its name in any case, or by its number.
fn severity(at: &Cursor<'_>, report: &DecodeReport) -> Option<i32> {
    if matches!(at.node.value, crate::yaml::NodeValue::Int(_)) {
        return scalar::integer_in_range(at, report, 0, 24).and_then(|number| number.try_into().ok());
    }
    let text = scalar::text(at, report)?;
    let by_name = SEVERITY_NAMES.iter().position(|name| name.eq_ignore_ascii_case(&text)).map(|place| place + 1);
    let number = by_name.or_else(|| text.parse().ok().filter(|number| (1..=24).contains(number)));
    if number.is_none() {
        let help = report.suggest(&text, &SEVERITY_NAMES, "known severities");
        report.error(at, format!("{} is not a severity", at.subject(&text)), help);
    }
    number.and_then(|number| number.try_into().ok())
}
