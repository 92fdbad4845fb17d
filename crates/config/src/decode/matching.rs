//! `include` and `exclude`.

use kubewake_otlp::{Signal, Value};

use super::{cursor::Cursor, fields::Fields, report::Report, scalar, value};
use crate::model::{AttributeMatch, Library, Match, SeverityNumber, Texts, ValueMatch};

/// How texts are compared.
#[derive(Clone, Copy, PartialEq, Eq)]
enum MatchType {
    Strict,
    Regexp,
}

const SPAN_KINDS: [&str; 5] =
    ["SPAN_KIND_INTERNAL", "SPAN_KIND_SERVER", "SPAN_KIND_CLIENT", "SPAN_KIND_PRODUCER", "SPAN_KIND_CONSUMER"];

const STATUS_CODES: [&str; 3] = ["STATUS_CODE_UNSET", "STATUS_CODE_OK", "STATUS_CODE_ERROR"];

/// The properties that `attributes` and the spans of `filter` have.
pub(crate) fn properties(at: &Cursor<'_>, report: &Report) -> Option<Match> {
    let mut reader = Reader::of(at, report);
    let found = Match {
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
    if found == Match::default() && !reader.fields.any_failed() {
        let help = "name what to match, for instance `services`, `attributes` or `resources`";
        report.error(at, format!("`{}` says nothing to match", at.name()), Some(help.into()));
    }
    reader.finish();
    Some(found)
}

/// As [`properties`], where only those of spans make sense.
pub(crate) fn span_properties(at: &Cursor<'_>, report: &Report) -> Option<Match> {
    let found = properties(at, report)?;
    if let Some(field) = found.out_of_place(Signal::Traces) {
        report.error(&Fields::of(at, report).place(field), format!("`{field}` says nothing about spans"), None);
    }
    Some(found)
}

/// The properties of logs in `filter`. Without any there is nothing to go by, and no match.
pub(crate) fn log_properties(at: &Cursor<'_>, report: &Report) -> Option<Match> {
    let mut reader = Reader::of(at, report);
    let found = Match {
        services: reader.texts("services"),
        bodies: reader.texts("bodies"),
        severity_texts: reader.texts("severity_texts"),
        severity_number: reader.fields.get("severity_number", severity_number),
        attributes: reader.attributes("record_attributes"),
        resources: reader.attributes("resource_attributes"),
        ..Match::default()
    };
    reader.finish();
    Some(found).filter(|found| *found != Match::default())
}

/// The properties of metrics in `filter`. Without any there is nothing to go by, and no match.
pub(crate) fn metric_properties(at: &Cursor<'_>, report: &Report) -> Option<Match> {
    let mut reader = Reader::of(at, report);
    let found = Match {
        services: reader.texts("services"),
        metric_names: reader.texts("metric_names"),
        resources: reader.attributes("resource_attributes"),
        ..Match::default()
    };
    reader.fields.unsupported(&["expressions"]);
    reader.finish();
    Some(found).filter(|found| *found != Match::default())
}

/// `regexp`: matching needs no cache here, it takes less time than looking into one.
pub(crate) fn cache(at: &Cursor<'_>, report: &Report) -> Option<()> {
    let mut fields = Fields::of(at, report);
    fields.idle(&["cacheenabled"], scalar::boolean);
    fields.idle(&["cachemaxnumentries"], scalar::u32);
    fields.finish();
    Some(())
}

struct Reader<'a, 'r> {
    fields: Fields<'a, 'r>,
    match_type: Option<MatchType>,
    /// Something is there that is compared in one way or the other.
    compares: bool,
}

impl<'a, 'r> Reader<'a, 'r> {
    fn of(at: &Cursor<'a>, report: &'r Report) -> Self {
        let mut fields = Fields::of(at, report);
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

    /// Texts of which one must match; nothing is no condition.
    fn texts(&mut self, name: &'static str) -> Option<Texts> {
        let at = self.fields.find(name)?;
        let texts = texts(&at, self.fields.report, self.match_type)?;
        self.compares |= texts.is_some();
        texts
    }

    /// As [`Reader::texts`], where only a few words make sense. They may be written without `prefix`.
    fn words(&mut self, name: &'static str, known: &[&str], prefix: &str) -> Option<Texts> {
        let at = self.fields.find(name)?;
        let found = texts(&at, self.fields.report, self.match_type)??;
        self.compares = true;
        let Texts::Strict(words) = found else { return Some(found) };
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
        Some(Texts::strict(meant))
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

    fn libraries(&mut self) -> Vec<Library> {
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

fn match_type(at: &Cursor<'_>, report: &Report) -> Option<MatchType> {
    if matches!(&at.node.value, crate::yaml::Value::String(text) if text == "expr") {
        report.is_public(at);
        let help = "use `strict` or `regexp`";
        report.error(at, "`match_type: expr` is not supported by this build", Some(help.into()));
        return None;
    }
    scalar::keyword(at, report, &[("strict", MatchType::Strict), ("regexp", MatchType::Regexp)])
}

/// A list of texts; the inner `None` if it is empty. Each of them may be wrong by itself.
fn texts(at: &Cursor<'_>, report: &Report, match_type: Option<MatchType>) -> Option<Option<Texts>> {
    let all: Vec<(Cursor<'_>, String)> = match at.items() {
        Some(items) => items.filter_map(|item| scalar::text(&item, report).map(|text| (item, text))).collect(),
        None => scalar::texts(at, report)?.into_iter().map(|text| (at.clone(), text)).collect(),
    };
    if all.is_empty() {
        return Some(None);
    }
    Some(Some(match match_type {
        Some(MatchType::Regexp) => {
            Texts::Regexp(all.iter().filter_map(|(at, text)| value::compile(at, report, text)).collect())
        }
        _ => Texts::strict(all.into_iter().map(|(_, text)| text).collect()),
    }))
}

fn text(at: &Cursor<'_>, report: &Report, match_type: Option<MatchType>) -> Option<Texts> {
    let text = scalar::text(at, report)?;
    Some(match match_type {
        Some(MatchType::Regexp) => Texts::Regexp(vec![value::compile(at, report, &text)?]),
        _ => Texts::strict(vec![text]),
    })
}

fn attribute(at: &Cursor<'_>, report: &Report, match_type: Option<MatchType>) -> Option<AttributeMatch> {
    let mut fields = Fields::of(at, report);
    let key = fields.text("key");
    if key.is_none() {
        fields.require("key", "`key` must not be empty", None);
    }
    let wanted = fields.find("value").map(|at| match (value::value(&at, report), match_type) {
        (Some(Value::String(text)), Some(MatchType::Regexp)) => {
            report.is_public(&at);
            value::compile(&at, report, &text).map(ValueMatch::Regexp)
        }
        (Some(_), Some(MatchType::Regexp)) => {
            let help = "put it in quotes: its text is what is compared";
            report.error(&at, "a regular expression must be text", Some(help.into()));
            None
        }
        (value, _) => value.map(ValueMatch::Equal),
    });
    fields.finish();
    Some(AttributeMatch { key: key?, value: wanted.unwrap_or(Some(ValueMatch::Any))? })
}

fn library(at: &Cursor<'_>, report: &Report, match_type: Option<MatchType>) -> Option<Library> {
    let mut fields = Fields::of(at, report);
    let name = fields.get("name", |at, report| text(at, report, match_type));
    let version = fields.get("version", |at, report| text(at, report, match_type));
    if name.is_none() {
        fields.require("name", "`name` is missing", None);
    }
    fields.finish();
    Some(Library { name: name?, version })
}

/// The names of severities; the number of each is one more than its place.
const SEVERITIES: [&str; 24] = [
    "TRACE", "TRACE2", "TRACE3", "TRACE4", "DEBUG", "DEBUG2", "DEBUG3", "DEBUG4", "INFO", "INFO2", "INFO3", "INFO4",
    "WARN", "WARN2", "WARN3", "WARN4", "ERROR", "ERROR2", "ERROR3", "ERROR4", "FATAL", "FATAL2", "FATAL3", "FATAL4",
];

fn severity_number(at: &Cursor<'_>, report: &Report) -> Option<SeverityNumber> {
    let mut fields = Fields::of(at, report);
    let min = fields.get("min", severity).unwrap_or(0);
    let match_undefined = fields.flag("match_undefined");
    fields.finish();
    Some(SeverityNumber { min, match_undefined })
}

/// A severity by its name, in upper or lower case, or by its number.
fn severity(at: &Cursor<'_>, report: &Report) -> Option<i32> {
    if matches!(at.node.value, crate::yaml::Value::Int(_)) {
        return scalar::within(at, report, 0, 24).and_then(|number| number.try_into().ok());
    }
    let text = scalar::text(at, report)?;
    let by_name = SEVERITIES.iter().position(|name| name.eq_ignore_ascii_case(&text)).map(|place| place + 1);
    let number = by_name.or_else(|| text.parse().ok().filter(|number| (1..=24).contains(number)));
    if number.is_none() {
        let help = report.suggest(&text, &SEVERITIES, "known severities");
        report.error(at, format!("{} is no severity", at.subject(&text)), help);
    }
    number.and_then(|number| number.try_into().ok())
}
