//! `filter`

use super::{cursor::Cursor, fields::Fields, matching, report::Report, scalar};
use crate::model::{Filter, Match, Processor, Selection};

/// `filter`
pub(crate) fn filter(at: &Cursor<'_>, report: &Report) -> Option<Processor> {
    let mut fields = Fields::of(at, report);
    // It says what to do when a statement fails. What is here cannot.
    fields.get("error_mode", |at, report| {
        scalar::keyword_any_case(at, report, &[("ignore", ()), ("silent", ()), ("propagate", ())])
    });
    let filter = Filter {
        spans: fields
            .get("spans", |at, report| Some(selection(at, report, &[], matching::span_properties)))
            .unwrap_or_default(),
        metrics: fields.get("metrics", metrics).unwrap_or_default(),
        logs: fields
            .get("logs", |at, report| {
                Some(selection(at, report, &["resource", "log_record"], matching::log_properties))
            })
            .unwrap_or_default(),
    };
    for (section, contexts) in
        [("traces", &["resource", "span", "spanevent"][..]), ("profiles", &["resource", "profile"])]
    {
        fields.get(section, |at, report| {
            let mut fields = Fields::of(at, report);
            refuse_statements(&mut fields, contexts);
            fields.finish();
            Some(())
        });
    }
    refuse_statements(&mut fields, &["trace_conditions", "metric_conditions", "log_conditions", "profile_conditions"]);
    fields.finish();
    Some(Processor::Filter(Box::new(filter)))
}

fn selection(
    at: &Cursor<'_>,
    report: &Report,
    statements: &[&'static str],
    read: fn(&Cursor<'_>, &Report) -> Option<Match>,
) -> Selection {
    let mut fields = Fields::of(at, report);
    let selection =
        Selection { include: any(&mut fields, "include", read), exclude: any(&mut fields, "exclude", read) };
    refuse_statements(&mut fields, statements);
    fields.finish();
    selection
}

/// One set of conditions, or a list of them of which one must be met. The list is ours.
fn any(fields: &mut Fields<'_, '_>, name: &'static str, read: fn(&Cursor<'_>, &Report) -> Option<Match>) -> Vec<Match> {
    let Some(at) = fields.find(name) else { return Vec::new() };
    match at.items() {
        Some(items) => items.filter_map(|item| read(&item, fields.report)).collect(),
        None => read(&at, fields.report).into_iter().collect(),
    }
}

fn metrics(at: &Cursor<'_>, report: &Report) -> Option<Selection> {
    let mut fields = Fields::of(at, report);
    fields.get("regexp", matching::cache);
    let is_list = fields.place("exclude").items().is_some();
    let exclude = any(&mut fields, "exclude", matching::metric_properties);
    let selection = Selection {
        include: any(&mut fields, "include", matching::metric_properties),
        exclude: if is_list { exclude } else { exclude.into_iter().flat_map(apart).collect() },
    };
    refuse_statements(&mut fields, &["resource", "metric", "datapoint"]);
    fields.finish();
    Some(selection)
}

/// The Collector drops metrics by their names, and those of resources, each by itself.
fn apart(exclude: Match) -> impl Iterator<Item = Match> {
    let Match { services, metric_names, resources, .. } = exclude;
    let by_name = Match { metric_names, ..Match::default() };
    let by_resource = Match { services, resources, ..Match::default() };
    [by_name, by_resource].into_iter().filter(|one| *one != Match::default())
}

/// Conditions in OTTL, each where it stands.
fn refuse_statements(fields: &mut Fields<'_, '_>, names: &[&'static str]) {
    for name in names {
        let Some(at) = fields.find(name) else { continue };
        let refuse = |at: &Cursor<'_>| {
            fields.report.is_public(at);
            let message = "statements in OTTL are not supported by this build";
            let help = "match with `include` and `exclude` of `spans`, `metrics` or `logs`";
            fields.report.error(at, message, Some(help.into()));
        };
        match at.items() {
            Some(items) => items.for_each(|item| statements(&item, &refuse)),
            None => refuse(&at),
        }
    }
}

/// One statement, or a map with several of them under `conditions`.
fn statements(at: &Cursor<'_>, refuse: &impl Fn(&Cursor<'_>)) {
    let crate::yaml::Value::Map(entries) = &at.node.value else { return refuse(at) };
    let conditions = entries.iter().find(|entry| entry.key.text == "conditions").map(|entry| at.entry(entry));
    match conditions.as_ref().and_then(|at| at.items()) {
        Some(items) => items.for_each(|item| refuse(&item)),
        None => refuse(at),
    }
}
