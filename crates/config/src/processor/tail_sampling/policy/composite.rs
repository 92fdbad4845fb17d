//! `composite`: policies that share a rate.

use super::{PolicyParent, list, warn_setting};
use crate::{
    decode::{Cursor, DecodeReport, FieldReader, scalar},
    processor::tail_sampling::{CompositePart, SamplingPolicy, SamplingRule},
};

pub(super) fn composite(at: &Cursor<'_>, report: &DecodeReport) -> Option<SamplingRule> {
    let mut fields = FieldReader::new(at, report);
    let max_total = fields.get_or("max_total_spans_per_second", 0, scalar::integer);
    let order = fields.get("policy_order", scalar::texts).unwrap_or_default();
    let parts =
        fields.get("composite_sub_policy", |at, report| list(at, report, PolicyParent::Composite)).unwrap_or_default();
    let shares = fields.get("rate_allocation", shares).unwrap_or_default();
    let parts: Vec<SamplingPolicy> = parts.into_iter().map(|(policy, _)| policy).collect();
    if max_total <= 0 {
        let name = "max_total_spans_per_second";
        warn_setting(&fields, name, &format!("`{name}` is not positive: no trace is kept"));
    }
    if parts.is_empty() {
        warn_setting(&fields, "composite_sub_policy", "`composite_sub_policy` is empty: no trace is kept");
    } else if !fields.failed("composite_sub_policy") {
        if !order.is_empty() && order.iter().ne(parts.iter().map(|part| &part.name)) {
            let message = "`policy_order` has no effect: the different order of `composite_sub_policy` applies";
            report.warning(&fields.cursor_at("policy_order"), message, None);
        }
        check_shares(&fields, &parts, &shares);
    }
    fields.finish();
    let percent =
        |part: &SamplingPolicy| shares.iter().rfind(|share| share.policy == part.name).map(|share| share.percent);
    let parts = parts.into_iter().map(|policy| CompositePart { percent: percent(&policy), policy });
    Some(SamplingRule::Composite { max_total, parts: parts.collect() })
}

struct PolicyShare<'a> {
    policy: String,
    percent: i64,
    place: Cursor<'a>,
}

fn shares<'a>(at: &Cursor<'a>, report: &DecodeReport) -> Option<Vec<PolicyShare<'a>>> {
    let Some(items) = at.items() else { return scalar::wrong_type(at, report, "a list", None) };
    let share = |item: Cursor<'a>| {
        let mut fields = FieldReader::new(&item, report);
        let policy = fields.text("policy").unwrap_or_default();
        let percent = fields.get_or("percent", 0, scalar::integer);
        if percent <= 0 {
            warn_setting(&fields, "percent", "a `percent` that is not positive means an equal share of the rate");
        }
        let place = fields.cursor_at("policy");
        fields.finish();
        PolicyShare { policy, percent, place }
    };
    Some(items.map(share).collect())
}

/// Checks that policies and their shares match.
fn check_shares(fields: &FieldReader<'_, '_>, parts: &[SamplingPolicy], shares: &[PolicyShare<'_>]) {
    let report = fields.report;
    for part in parts.iter().filter(|part| !shares.iter().any(|share| share.policy == part.name)) {
        let place = fields.cursor_at("rate_allocation");
        let message =
            format!("the policy {} has no share in `rate_allocation` and keeps no traces", place.quote(&part.name));
        report.warning(&place, message, None);
    }
    for (index, share) in shares.iter().enumerate() {
        let place = &share.place;
        let name = share.place.quote(&share.policy);
        if !parts.iter().any(|part| part.name == share.policy) {
            let known: Vec<&str> = parts.iter().map(|part| part.name.as_str()).collect();
            let help = report.suggest(&share.policy, &known, "policies here");
            report.warning(place, format!("`composite_sub_policy` has no policy {name}"), help);
        } else if shares.iter().skip(index + 1).any(|later| later.policy == share.policy) {
            report.warning(place, format!("the policy {name} has another share below, which applies instead"), None);
        }
    }
    let total = shares.iter().fold(0_i64, |sum, share| sum.saturating_add(share.percent.max(0)));
    if total > 100 {
        let message = format!("`rate_allocation` allocates {total} % of `max_total_spans_per_second`");
        report.warning(&fields.cursor_at("rate_allocation"), message, None);
    }
}
