//! Policies. Each names its type, and has its settings in a field of that name.
//!
//! Settings that the Collector accepts although they make no sense cause a warning: a document that runs there
//! runs here.

mod composite;

use std::collections::HashSet;

use super::{PolicyRateLimit, SamplingPolicy, SamplingRule, TextValues};
use crate::{
    RegexPattern,
    decode::{Cursor, DecodeReport, FieldReader, new_finding, scalar},
    yaml::{NodeValue, YamlEntry},
};

const PLAIN_POLICY_TYPES: [&str; 12] = [
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

/// The parent of a policy, which determines the types that it may contain.
#[derive(Clone, Copy, PartialEq, Eq)]
enum PolicyParent {
    Top,
    And,
    Not,
    Composite,
}

impl PolicyParent {
    /// The allowed types that contain other policies.
    fn composed_types(self) -> &'static [&'static str] {
        match self {
            Self::Top => &["and", "not", "drop", "composite"],
            Self::And => &["not"],
            Self::Not => &[],
            Self::Composite => &["and"],
        }
    }

    fn describe(self) -> &'static str {
        match self {
            Self::Top => "`policies`",
            Self::And => "`and` or `drop`",
            Self::Not => "`not`",
            Self::Composite => "`composite`",
        }
    }
}

pub(super) fn policies(at: &Cursor<'_>, report: &DecodeReport) -> Option<Vec<SamplingPolicy>> {
    let policies = list(at, report, PolicyParent::Top)?;
    let mut seen = HashSet::new();
    for (_, twice) in policies.iter().filter(|(policy, _)| !seen.insert(&policy.name)) {
        let help = Some("metrics and spans identify policies by name".to_owned());
        report.error(twice, format!("duplicate policy name {}", twice.quote(text_of(twice))), help);
    }
    Some(policies.into_iter().map(|(policy, _)| policy).collect())
}

/// The policies of a list, each with the position of its name.
fn list<'a>(at: &Cursor<'a>, report: &DecodeReport, within: PolicyParent) -> Option<Vec<(SamplingPolicy, Cursor<'a>)>> {
    match at.items() {
        Some(items) => Some(items.filter_map(|item| policy(&item, report, within)).collect()),
        None => scalar::wrong_type(at, report, "a list", None),
    }
}

fn parts(at: &Cursor<'_>, report: &DecodeReport, name: &'static str, within: PolicyParent) -> Vec<SamplingPolicy> {
    let mut fields = FieldReader::new(at, report);
    let parts = fields.get(name, |at, report| list(at, report, within)).unwrap_or_default();
    if parts.is_empty() {
        fields.require(name, &format!("`{name}` must hold at least one policy"), None);
    }
    fields.finish();
    parts.into_iter().map(|(policy, _)| policy).collect()
}

fn policy<'a>(at: &Cursor<'a>, report: &DecodeReport, within: PolicyParent) -> Option<(SamplingPolicy, Cursor<'a>)> {
    let mut fields = FieldReader::new(at, report);
    let name = fields.text("name");
    if name.is_none() {
        fields.require("name", "a policy must have a `name`", None);
    }
    let place = fields.cursor_at("name");
    let kind = fields.text("type");
    if kind.is_none() {
        fields.require("type", "a policy must have a `type`", report.suggest("", &known(within), "known types"));
    }
    let rule = kind.and_then(|kind| rule(&mut fields, &kind, within));
    finish_fields(fields, within);
    Some((SamplingPolicy { name: name?, rule: rule? }, place))
}

fn known(within: PolicyParent) -> Vec<&'static str> {
    PLAIN_POLICY_TYPES.iter().chain(within.composed_types()).copied().collect()
}

fn rule(fields: &mut FieldReader<'_, '_>, kind: &str, within: PolicyParent) -> Option<SamplingRule> {
    let place = fields.cursor_at("type");
    let report = fields.report;
    if kind == "ottl_condition" {
        let help = "use `string_attribute`, `numeric_attribute`, `boolean_attribute` and `status_code`, combined with \
                    `and` and `not`";
        report.error(&place, "the policy type `ottl_condition` is not supported by this build", Some(help.into()));
        if let Some(at) = fields.find("ottl_condition") {
            show_conditions(&at, report);
        }
        return None;
    }
    if let Some(holder) = misplaced(kind, within).filter(|_| place.node.origin.is_none()) {
        let message = format!("a policy of type `{holder}` cannot be part of {}", within.describe());
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
    // Missing settings are at their defaults.
    let at = fields.find_even_empty(known_kind).unwrap_or_else(|| fields.at.absent(known_kind));
    settings(&at, report, known_kind)
}

/// The message for a type that is allowed elsewhere, but not here.
fn misplaced(kind: &str, within: PolicyParent) -> Option<&'static str> {
    let elsewhere = known(PolicyParent::Top).into_iter().find(|known| *known == kind);
    elsewhere.filter(|kind| !known(within).contains(kind))
}

fn misplaced_help(holder: &str, within: PolicyParent) -> String {
    let types = known(within).join(", ");
    match (holder, within) {
        // All policies of a nested `and` must match, so these can be moved into the outer one.
        ("and", PolicyParent::And) => {
            format!("move its sub-policies up into the list that holds it; allowed types: {types}")
        }
        _ => format!("allowed types: {types}"),
    }
}

/// Shows conditions in lines of messages: they are no secrets, and users have to rewrite them.
fn show_conditions(at: &Cursor<'_>, report: &DecodeReport) {
    let mut fields = FieldReader::new(at, report);
    let lists = ["span", "spanevent"].map(|name| fields.find(name));
    for list in lists.iter().flatten() {
        list.items().into_iter().flatten().for_each(|condition| report.mark_public(&condition));
    }
}

fn settings(at: &Cursor<'_>, report: &DecodeReport, kind: &str) -> Option<SamplingRule> {
    match kind {
        "and" => return Some(SamplingRule::And(parts(at, report, "and_sub_policy", PolicyParent::And))),
        "drop" => return Some(drop_rule(at, report)),
        "composite" => return composite::composite(at, report),
        _ => {}
    }
    let mut fields = FieldReader::new(at, report);
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
        // Only `not` is left.
        _ => not(&mut fields),
    };
    fields.finish();
    rule
}

fn drop_rule(at: &Cursor<'_>, report: &DecodeReport) -> SamplingRule {
    let rule = SamplingRule::Drop(parts(at, report, "drop_sub_policy", PolicyParent::And));
    if !rule.salts().is_empty() {
        let message = "`drop` drops a share of the traces, but the sampling probability of the kept traces does not \
                       account for it";
        let help = "for correct counts keep the other share with `probabilistic` instead";
        report.warning(at, message, Some(help.into()));
    }
    rule
}

fn int32(at: &Cursor<'_>, report: &DecodeReport) -> Option<i64> {
    scalar::integer_in_range(at, report, i32::MIN.into(), i32::MAX.into())
}

/// Warns about a setting, unless it was reported already.
fn warn_setting(fields: &FieldReader<'_, '_>, name: &str, message: &str) {
    if !fields.failed(name) {
        let place = if fields.has(name) { fields.cursor_at(name) } else { fields.at.absent(name) };
        fields.report.warning(&place, message, None);
    }
}

/// The name of an attribute or of an entry.
fn key(fields: &mut FieldReader<'_, '_>) -> String {
    let key = fields.text("key").unwrap_or_default();
    if key.is_empty() {
        warn_setting(fields, "key", "`key` is missing: no attribute has an empty name");
    }
    key
}

fn values(fields: &mut FieldReader<'_, '_>) -> Vec<String> {
    let values = fields.get("values", scalar::texts).unwrap_or_default();
    if values.is_empty() {
        warn_setting(fields, "values", "`values` is empty: no trace matches");
    }
    values
}

/// An upper bound of zero means none; the lower bound always applies.
fn latency(fields: &mut FieldReader<'_, '_>) -> SamplingRule {
    let threshold = fields.get_or("threshold_ms", 0, scalar::integer);
    let upper = fields.get_or("upper_threshold_ms", 0, scalar::integer);
    if upper != 0 && upper <= threshold {
        let message = "`upper_threshold_ms` is not above `threshold_ms`: no trace matches";
        warn_setting(fields, "upper_threshold_ms", message);
    } else if threshold <= 0 && upper == 0 {
        warn_setting(fields, "threshold_ms", "without a positive `threshold_ms` every trace matches");
    }
    SamplingRule::Latency { threshold, upper }
}

fn span_count(fields: &mut FieldReader<'_, '_>) -> SamplingRule {
    let min = fields.get_or("min_spans", 0, int32);
    let max = fields.get_or("max_spans", 0, int32);
    if max != 0 && max < min.max(1) {
        warn_setting(fields, "max_spans", "`max_spans` is below `min_spans`, or negative: no trace matches");
    } else if min <= 0 && max == 0 {
        warn_setting(fields, "min_spans", "neither `min_spans` nor `max_spans` is positive: every trace matches");
    }
    SamplingRule::SpanCount { min, max }
}

/// The Collector treats a bound of zero as not set.
fn numeric(fields: &mut FieldReader<'_, '_>) -> SamplingRule {
    let mut bound = |name| fields.get_or(name, 0, scalar::integer);
    let min = bound("min_value");
    let max = bound("max_value");
    if min == 0 && max == 0 {
        let message = "`min_value` and `max_value` are zero, which means not set: any number matches";
        fields.report.warning(&fields.at, message, None);
    } else if min != 0 && max != 0 && min > max {
        warn_setting(fields, "max_value", "`max_value` is below `min_value`: no number matches");
    }
    SamplingRule::Numeric {
        key: key(fields),
        min: if min == 0 { i64::MIN } else { min },
        max: if max == 0 { i64::MAX } else { max },
        invert: fields.flag("invert_match"),
    }
}

fn probabilistic(fields: &mut FieldReader<'_, '_>) -> SamplingRule {
    let percentage = fields.get_or("sampling_percentage", 0.0, scalar::float);
    let place = fields.cursor_at("sampling_percentage");
    if percentage.is_nan() {
        fields.report.error(
            &place,
            "`sampling_percentage` must be a number",
            Some("0 drops all, 100 keeps all".into()),
        );
    } else if !(0.0..=100.0).contains(&percentage) {
        let message =
            "`sampling_percentage` is not between 0 and 100; a value below 0 keeps no traces, a value above 100 all";
        fields.report.warning(&place, message, None);
    } else if percentage == 0.0 {
        warn_setting(fields, "sampling_percentage", "at a `sampling_percentage` of 0 no trace is kept");
    }
    SamplingRule::Probabilistic { salt: fields.text("hash_salt").unwrap_or_default(), percentage }
}

pub(super) const STATUS_CODES: [(&str, i32); 3] = [("UNSET", 0), ("OK", 1), ("ERROR", 2)];

fn status(fields: &mut FieldReader<'_, '_>) -> Option<SamplingRule> {
    let report = fields.report;
    let place = fields.cursor_at("status_codes");
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

fn text(fields: &mut FieldReader<'_, '_>) -> Option<SamplingRule> {
    let place = fields.cursor_at("values");
    let values = values(fields);
    // Expressions need no cache: they are matched as fast as they are looked up.
    fields.accept_without_effect(&["cache_max_size"], scalar::integer);
    let values = if fields.flag("enabled_regex_matching") {
        let compile = |text: &String| match RegexPattern::new(text) {
            Ok(pattern) => Some(pattern),
            Err(error) => {
                let message = format!("invalid regular expression {}: {error}", place.quote(text));
                fields.report.error(&place, message, None);
                None
            }
        };
        TextValues::Patterns(values.iter().filter_map(compile).collect())
    } else {
        TextValues::Exact(values)
    };
    let key = key(fields);
    Some(SamplingRule::Text { key, values, invert: fields.flag("invert_match") })
}

/// The burst is twice the rate unless it is set.
fn allowed(fields: &mut FieldReader<'_, '_>, rate: &'static str) -> PolicyRateLimit {
    let per_second = fields.get_or(rate, 0, scalar::integer);
    let burst = fields.get_or("burst_capacity", 0, scalar::integer);
    if per_second <= 0 && burst <= 0 {
        warn_setting(fields, rate, &format!("`{rate}` is not positive: no trace is kept"));
    } else if burst < 0 {
        warn_setting(
            fields,
            "burst_capacity",
            "a negative `burst_capacity` means not set: the burst is twice the rate",
        );
    }
    PolicyRateLimit { per_second, burst: if burst > 0 { burst } else { per_second.saturating_mul(2) } }
}

fn not(fields: &mut FieldReader<'_, '_>) -> Option<SamplingRule> {
    let part = fields.find("not_sub_policy");
    if part.is_none() {
        fields.require("not_sub_policy", "`not` must have a `not_sub_policy`", None);
    }
    let (part, _) = policy(&part?, fields.report, PolicyParent::Not)?;
    Some(SamplingRule::Not(Box::new(part)))
}

/// Handles the remaining fields of a policy: settings of other types or of extensions, which are maps, have no
/// effect; all others are unknown.
fn finish_fields(mut fields: FieldReader<'_, '_>, within: PolicyParent) {
    let others: Vec<&'static str> = known(within);
    for name in others.into_iter().chain(["ottl_condition"]) {
        fields.warn_ineffective(name, "the policy is of another type", |_, _| Some(()));
    }
    let NodeValue::Map(entries) = &fields.at.node.value else { return };
    let known = fields.known().to_vec();
    let strange = |entry: &&YamlEntry| !known.contains(&entry.key.text.as_str());
    for entry in entries.iter().filter(strange) {
        // Any value but a map is an unknown field.
        if matches!(entry.value.value, NodeValue::Map(_)) {
            let path = fields.at.join(&entry.key.text);
            let name = crate::problem::label(&entry.key.text);
            let help = fields.report.suggest(&entry.key.text, &known, "known fields");
            let message = format!("`{name}` has no effect: no such policy type is known");
            fields.report.add_warning(new_finding(path, entry.key.span, message, help));
            fields.accept_any(&entry.key.text);
        }
    }
    fields.finish();
}

/// The text of a scalar, for messages.
fn text_of<'a>(at: &Cursor<'a>) -> &'a str {
    match &at.node.value {
        NodeValue::String(text) => text,
        _ => "",
    }
}
