//! Policies. Each names its type, and has its settings under a field of that name.
//!
//! Settings that the Collector takes and that cannot be meant are taken with a warning: a document that runs there runs here.

mod composite;

use std::collections::HashSet;

use crate::{
    Pattern,
    decode::{
        cursor::Cursor,
        fields::Fields,
        report::{Report, finding},
        scalar,
    },
    model::{Allowed, SamplingPolicy, SamplingRule, TextValues},
    yaml::{Entry, Value},
};

/// Types that stand anywhere.
const PLAIN: [&str; 12] = [
    "always_sample",
    "latency",
    "numeric_attribute",
    "probabilistic",
    "status_code",
    "string_attribute",
    "rate_limiting",
    "bytes_limiting",
    "span_count",
    "trace_state",
    "trace_flags",
    "boolean_attribute",
];

/// Where a policy stands, and so which others it may hold.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Within {
    Top,
    /// Of `and` and `drop`.
    And,
    Not,
    Composite,
}

impl Within {
    /// The types that hold others and may stand here.
    fn holders(self) -> &'static [&'static str] {
        match self {
            Self::Top => &["and", "not", "drop", "composite"],
            Self::And => &["not"],
            Self::Not => &[],
            Self::Composite => &["and"],
        }
    }

    fn words(self) -> &'static str {
        match self {
            Self::Top => "`policies`",
            Self::And => "`and` or `drop`",
            Self::Not => "`not`",
            Self::Composite => "`composite`",
        }
    }
}

/// `policies`
pub(super) fn policies(at: &Cursor<'_>, report: &Report) -> Option<Vec<SamplingPolicy>> {
    let policies = list(at, report, Within::Top)?;
    let mut seen = HashSet::new();
    for (_, twice) in policies.iter().filter(|(policy, _)| !seen.insert(&policy.name)) {
        let help = Some("counters and spans tell policies apart by their names".to_owned());
        report.error(twice, format!("duplicate policy name {}", twice.quote(text_of(twice))), help);
    }
    Some(policies.into_iter().map(|(policy, _)| policy).collect())
}

/// The policies of a list, each with the place of its name.
fn list<'a>(at: &Cursor<'a>, report: &Report, within: Within) -> Option<Vec<(SamplingPolicy, Cursor<'a>)>> {
    match at.items() {
        Some(items) => Some(items.filter_map(|item| policy(&item, report, within)).collect()),
        None => scalar::wrong_type(at, report, "a list", None),
    }
}

fn parts(at: &Cursor<'_>, report: &Report, name: &'static str, within: Within) -> Vec<SamplingPolicy> {
    let mut fields = Fields::of(at, report);
    let parts = fields.get(name, |at, report| list(at, report, within)).unwrap_or_default();
    if parts.is_empty() {
        fields.require(name, &format!("`{name}` must hold at least one policy"), None);
    }
    fields.finish();
    parts.into_iter().map(|(policy, _)| policy).collect()
}

fn policy<'a>(at: &Cursor<'a>, report: &Report, within: Within) -> Option<(SamplingPolicy, Cursor<'a>)> {
    let mut fields = Fields::of(at, report);
    let name = fields.text("name");
    if name.is_none() {
        fields.require("name", "a policy must have a `name`", None);
    }
    let place = fields.place("name");
    let kind = fields.text("type");
    if kind.is_none() {
        fields.require("type", "a policy must have a `type`", report.suggest("", &known(within), "known types"));
    }
    let rule = kind.and_then(|kind| rule(&mut fields, &kind, within));
    others(fields, within);
    Some((SamplingPolicy { name: name?, rule: rule? }, place))
}

fn known(within: Within) -> Vec<&'static str> {
    PLAIN.iter().chain(within.holders()).copied().collect()
}

fn rule(fields: &mut Fields<'_, '_>, kind: &str, within: Within) -> Option<SamplingRule> {
    let place = fields.place("type");
    let report = fields.report;
    if kind == "ottl_condition" {
        let help = "conditions in OTTL come later; `string_attribute`, `numeric_attribute`, `boolean_attribute` and \
                    `status_code`, joined by `and` and `not`, say most of what they are used for";
        report.error(&place, "the policy type `ottl_condition` is not supported by this build", Some(help.into()));
        if let Some(at) = fields.find("ottl_condition") {
            show_conditions(&at, report);
        }
        return None;
    }
    if let Some(holder) = misplaced(kind, within).filter(|_| place.node.origin.is_none()) {
        let message = format!("a policy of type `{holder}` cannot be part of {}", within.words());
        report.error(&place, message, Some(misplaced_help(holder, within)));
        fields.find_even_empty(holder);
        return None;
    }
    let Some(known_kind) = known(within).into_iter().find(|known| *known == kind) else {
        let shown = if place.node.origin.is_none() { kind } else { "" };
        let help = report.suggest(shown, &known(within), "known types");
        report.error(&place, format!("unknown sampling policy type {}", place.quote(kind)), help);
        return None;
    };
    // Settings that are not there are at their defaults.
    let at = fields.find_even_empty(known_kind).unwrap_or_else(|| fields.at.absent(known_kind));
    settings(&at, report, known_kind)
}

/// A type that stands elsewhere, and not here.
fn misplaced(kind: &str, within: Within) -> Option<&'static str> {
    let elsewhere = known(Within::Top).into_iter().find(|known| *known == kind);
    elsewhere.filter(|kind| !known(within).contains(kind))
}

fn misplaced_help(holder: &str, within: Within) -> String {
    let types = known(within).join(", ");
    match (holder, within) {
        // All of both must match.
        ("and", Within::And) => format!("put its sub-policies beside the others; types that may stand here: {types}"),
        _ => format!("types that may stand here: {types}"),
    }
}

/// Conditions are no secrets: whoever has to write them in another way should see which they are.
fn show_conditions(at: &Cursor<'_>, report: &Report) {
    let mut fields = Fields::of(at, report);
    let lists = ["span", "spanevent"].map(|name| fields.find(name));
    for list in lists.iter().flatten() {
        list.items().into_iter().flatten().for_each(|condition| report.is_public(&condition));
    }
}

fn settings(at: &Cursor<'_>, report: &Report, kind: &str) -> Option<SamplingRule> {
    match kind {
        "and" => return Some(SamplingRule::And(parts(at, report, "and_sub_policy", Within::And))),
        "drop" => return Some(drop_rule(at, report)),
        "composite" => return composite::composite(at, report),
        _ => {}
    }
    let mut fields = Fields::of(at, report);
    let rule = match kind {
        "always_sample" => Some(SamplingRule::Always),
        "trace_flags" => Some(SamplingRule::TraceFlags),
        "latency" => Some(latency(&mut fields)),
        "numeric_attribute" => Some(numeric(&mut fields)),
        "probabilistic" => Some(probabilistic(&mut fields)),
        "status_code" => status(&mut fields),
        "string_attribute" => text(&mut fields),
        "rate_limiting" => Some(SamplingRule::RateLimiting(allowed(&mut fields, "spans_per_second"))),
        "bytes_limiting" => Some(SamplingRule::BytesLimiting(allowed(&mut fields, "bytes_per_second"))),
        "span_count" => Some(span_count(&mut fields)),
        "trace_state" => Some(SamplingRule::TraceState { key: key(&mut fields), values: values(&mut fields) }),
        "boolean_attribute" => Some(SamplingRule::Boolean {
            key: key(&mut fields),
            value: fields.flag("value"),
            invert: fields.flag("invert_match"),
        }),
        // The one that is left.
        _ => not(&mut fields),
    };
    fields.finish();
    rule
}

fn drop_rule(at: &Cursor<'_>, report: &Report) -> SamplingRule {
    let rule = SamplingRule::Drop(parts(at, report, "drop_sub_policy", Within::And));
    if !rule.salts().is_empty() {
        let message = "`drop` drops a share of the traces, and those that are left do not say that they stand for more than themselves";
        let help = "where counts matter, keep the other share by `probabilistic` instead of dropping this one";
        report.warning(at, message, Some(help.into()));
    }
    rule
}

fn int32(at: &Cursor<'_>, report: &Report) -> Option<i64> {
    scalar::within(at, report, i32::MIN.into(), i32::MAX.into())
}

/// Warns of a setting, unless it was reported already.
fn doubt(fields: &Fields<'_, '_>, name: &str, message: &str) {
    if !fields.failed(name) {
        let place = if fields.has(name) { fields.place(name) } else { fields.at.absent(name) };
        fields.report.warning(&place, message, None);
    }
}

/// The name of an attribute or of an entry.
fn key(fields: &mut Fields<'_, '_>) -> String {
    let key = fields.text("key").unwrap_or_default();
    if key.is_empty() {
        doubt(fields, "key", "`key` is missing, and nothing has an empty name");
    }
    key
}

fn values(fields: &mut Fields<'_, '_>) -> Vec<String> {
    let values = fields.get("values", scalar::texts).unwrap_or_default();
    if values.is_empty() {
        doubt(fields, "values", "there are no `values`, so that none matches");
    }
    values
}

/// An upper bound of zero is none, and a lower one is always there.
fn latency(fields: &mut Fields<'_, '_>) -> SamplingRule {
    let threshold = fields.get_or("threshold_ms", 0, scalar::integer);
    let upper = fields.get_or("upper_threshold_ms", 0, scalar::integer);
    if upper != 0 && upper <= threshold {
        let message = "`upper_threshold_ms` is not above `threshold_ms`, so that no trace matches";
        doubt(fields, "upper_threshold_ms", message);
    } else if threshold <= 0 && upper == 0 {
        doubt(fields, "threshold_ms", "without a positive `threshold_ms` every trace matches");
    }
    SamplingRule::Latency { threshold, upper }
}

fn span_count(fields: &mut Fields<'_, '_>) -> SamplingRule {
    let (min, max) = (fields.get_or("min_spans", 0, int32), fields.get_or("max_spans", 0, int32));
    if max != 0 && max < min.max(1) {
        doubt(fields, "max_spans", "`max_spans` is below `min_spans`, or negative, so that no trace matches");
    } else if min <= 0 && max == 0 {
        doubt(fields, "min_spans", "neither `min_spans` nor `max_spans` is positive: every trace matches");
    }
    SamplingRule::SpanCount { min, max }
}

/// The Collector takes a bound of zero for one that is not set.
fn numeric(fields: &mut Fields<'_, '_>) -> SamplingRule {
    let mut bound = |name| fields.get_or(name, 0, scalar::integer);
    let (min, max) = (bound("min_value"), bound("max_value"));
    if min == 0 && max == 0 {
        let message = "neither `min_value` nor `max_value` is set, and zero is not set: any number matches";
        fields.report.warning(&fields.at, message, None);
    } else if min != 0 && max != 0 && min > max {
        doubt(fields, "max_value", "`max_value` is below `min_value`, so that no number lies between");
    }
    SamplingRule::Numeric {
        key: key(fields),
        min: if min == 0 { i64::MIN } else { min },
        max: if max == 0 { i64::MAX } else { max },
        invert: fields.flag("invert_match"),
    }
}

fn probabilistic(fields: &mut Fields<'_, '_>) -> SamplingRule {
    let percentage = fields.get_or("sampling_percentage", 0.0, scalar::float);
    let place = fields.place("sampling_percentage");
    if percentage.is_nan() {
        fields.report.error(
            &place,
            "`sampling_percentage` must be a number",
            Some("0 drops all, 100 keeps all".into()),
        );
    } else if !(0.0..=100.0).contains(&percentage) {
        let message =
            "`sampling_percentage` is not between 0 and 100; what is below keeps nothing, what is above everything";
        fields.report.warning(&place, message, None);
    } else if percentage == 0.0 {
        doubt(fields, "sampling_percentage", "at a `sampling_percentage` of 0 no trace is kept");
    }
    SamplingRule::Probabilistic { salt: fields.text("hash_salt").unwrap_or_default(), percentage }
}

const STATUS_CODES: [(&str, i32); 3] = [("UNSET", 0), ("OK", 1), ("ERROR", 2)];

fn status(fields: &mut Fields<'_, '_>) -> Option<SamplingRule> {
    let report = fields.report;
    let place = fields.place("status_codes");
    let words = fields.get("status_codes", scalar::texts).unwrap_or_default();
    if words.is_empty() {
        let help = Some("OK, ERROR or UNSET".to_owned());
        fields.require("status_codes", "`status_codes` must name at least one status code", help);
    }
    let code = |word: &String| {
        let known = STATUS_CODES.iter().find(|(name, _)| name == word).map(|(_, code)| *code);
        if known.is_none() {
            let names = STATUS_CODES.map(|(name, _)| name);
            let help = report.suggest(&word.to_uppercase(), &names, "known status codes");
            report.error(&place, format!("unknown status code {}", place.quote(word)), help);
        }
        known
    };
    Some(SamplingRule::Status { codes: words.iter().filter_map(code).collect() })
}

fn text(fields: &mut Fields<'_, '_>) -> Option<SamplingRule> {
    let place = fields.place("values");
    let values = values(fields);
    // Expressions are matched as fast as they are looked up.
    fields.idle(&["cache_max_size"], scalar::integer);
    let values = match fields.flag("enabled_regex_matching") {
        false => TextValues::Exact(values),
        true => {
            let compile = |text: &String| match Pattern::new(text) {
                Ok(pattern) => Some(pattern),
                Err(error) => {
                    let message = format!("invalid regular expression {}: {error}", place.quote(text));
                    fields.report.error(&place, message, None);
                    None
                }
            };
            TextValues::Patterns(values.iter().filter_map(compile).collect())
        }
    };
    let key = key(fields);
    Some(SamplingRule::Text { key, values, invert: fields.flag("invert_match") })
}

/// Twice the rate can come at once, unless it is said otherwise.
fn allowed(fields: &mut Fields<'_, '_>, rate: &'static str) -> Allowed {
    let per_second = fields.get_or(rate, 0, scalar::integer);
    let burst = fields.get_or("burst_capacity", 0, scalar::integer);
    if per_second <= 0 && burst <= 0 {
        doubt(fields, rate, &format!("`{rate}` is not positive, so that no trace is kept"));
    } else if burst < 0 {
        doubt(
            fields,
            "burst_capacity",
            "a negative `burst_capacity` is taken for none: twice the rate can come at once",
        );
    }
    Allowed { per_second, burst: if burst > 0 { burst } else { per_second.saturating_mul(2) } }
}

fn not(fields: &mut Fields<'_, '_>) -> Option<SamplingRule> {
    let part = fields.find("not_sub_policy");
    if part.is_none() {
        fields.require("not_sub_policy", "`not` must have a `not_sub_policy`", None);
    }
    let (part, _) = policy(&part?, fields.report, Within::Not)?;
    Some(SamplingRule::Not(Box::new(part)))
}

/// What else a policy says: settings of another type, or of an extension, have no effect; they are maps. The rest is unknown.
fn others(mut fields: Fields<'_, '_>, within: Within) {
    let others: Vec<&'static str> = known(within);
    for name in others.into_iter().chain(["ottl_condition"]) {
        fields.ineffective(name, "the policy is of another type", |_, _| Some(()));
    }
    let Value::Map(entries) = &fields.at.node.value else { return };
    let known = fields.known().to_vec();
    let strange = |entry: &&Entry| !known.contains(&entry.key.text.as_str());
    for entry in entries.iter().filter(strange) {
        // Anything but a map is a field that nobody knows.
        if matches!(entry.value.value, Value::Map(_)) {
            let (path, name) = (fields.at.join(&entry.key.text), crate::problem::label(&entry.key.text));
            let help = fields.report.suggest(&entry.key.text, &known, "known fields");
            let message = format!("`{name}` has no effect: no such policy type is known");
            fields.report.add_warning(finding(path, entry.key.span, message, help));
            fields.skip(&entry.key.text);
        }
    }
    fields.finish();
}

/// The text of a scalar, for messages.
fn text_of<'a>(at: &Cursor<'a>) -> &'a str {
    match &at.node.value {
        Value::String(text) => text,
        _ => "",
    }
}
