//! `filter`: which records are dropped.

use kubewake_otlp::Signal;

use crate::{
    component::{ComponentSettings, ProcessorSettings},
    decode::{Cursor, DecodeReport, FieldReader, scalar},
    encode::YamlMap,
    matching::{self, MatchProperties, PropertyNames},
};

/// `filter`
///
/// Without `include` every record is kept, otherwise only records that match one of it. Records that match one
/// of `exclude` are always dropped.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FilterProcessor {
    pub spans: RecordSelection,
    pub metrics: RecordSelection,
    pub logs: RecordSelection,
}

/// The records to keep, and exceptions from these.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RecordSelection {
    pub include: Vec<MatchProperties>,
    /// `exclude`. For metrics a name and a resource attribute each exclude by themselves.
    pub exclude: Vec<MatchProperties>,
}

impl ComponentSettings for FilterProcessor {
    fn decode(at: &Cursor<'_>, report: &DecodeReport) -> Option<Self> {
        let mut fields = FieldReader::new(at, report);
        // `error_mode` applies to failing statements. Conditions here cannot fail.
        fields.get("error_mode", |at, report| {
            scalar::keyword_any_case(at, report, &[("ignore", ()), ("silent", ()), ("propagate", ())])
        });
        let filter = FilterProcessor {
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
                let mut fields = FieldReader::new(at, report);
                refuse_statements(&mut fields, contexts);
                fields.finish();
                Some(())
            });
        }
        refuse_statements(
            &mut fields,
            &["trace_conditions", "metric_conditions", "log_conditions", "profile_conditions"],
        );
        fields.finish();
        Some(filter)
    }

    fn encode(&self) -> YamlMap {
        YamlMap::default()
            .with_section("spans", self.spans.encode(&PropertyNames::ALL_SIGNALS))
            .with_section("metrics", self.metrics.encode(&PropertyNames::ONE_SIGNAL))
            .with_section("logs", self.logs.encode(&PropertyNames::ONE_SIGNAL))
    }
}

impl ProcessorSettings for FilterProcessor {
    fn signals(&self) -> &'static [Signal] {
        &Signal::ALL
    }
}

impl RecordSelection {
    fn encode(&self, names: &PropertyNames) -> YamlMap {
        YamlMap::default()
            .with_list("include", self.include.iter().map(|one| one.encode(names)))
            .with_list("exclude", self.exclude.iter().map(|one| one.encode(names)))
    }
}

fn selection(
    at: &Cursor<'_>,
    report: &DecodeReport,
    statements: &[&'static str],
    read: fn(&Cursor<'_>, &DecodeReport) -> Option<MatchProperties>,
) -> RecordSelection {
    let mut fields = FieldReader::new(at, report);
    let selection = RecordSelection {
        include: any_of_conditions(&mut fields, "include", read),
        exclude: any_of_conditions(&mut fields, "exclude", read),
    };
    refuse_statements(&mut fields, statements);
    fields.finish();
    selection
}

/// One set of conditions, or a list of sets of which one must match. Only this program accepts the list.
fn any_of_conditions(
    fields: &mut FieldReader<'_, '_>,
    name: &'static str,
    read: fn(&Cursor<'_>, &DecodeReport) -> Option<MatchProperties>,
) -> Vec<MatchProperties> {
    let Some(at) = fields.find(name) else { return Vec::new() };
    match at.items() {
        Some(items) => items.filter_map(|item| read(&item, fields.report)).collect(),
        None => read(&at, fields.report).into_iter().collect(),
    }
}

fn metrics(at: &Cursor<'_>, report: &DecodeReport) -> Option<RecordSelection> {
    let mut fields = FieldReader::new(at, report);
    fields.get("regexp", matching::cache);
    let is_list = fields.cursor_at("exclude").items().is_some();
    let exclude = any_of_conditions(&mut fields, "exclude", matching::metric_properties);
    let selection = RecordSelection {
        include: any_of_conditions(&mut fields, "include", matching::metric_properties),
        exclude: if is_list { exclude } else { exclude.into_iter().flat_map(split_conditions).collect() },
    };
    refuse_statements(&mut fields, &["resource", "metric", "datapoint"]);
    fields.finish();
    Some(selection)
}

/// The Collector drops metrics whose name or whose resource matches: each condition excludes by itself.
fn split_conditions(exclude: MatchProperties) -> impl Iterator<Item = MatchProperties> {
    let MatchProperties { services, metric_names, resources, .. } = exclude;
    let by_name = MatchProperties { metric_names, ..MatchProperties::default() };
    let by_resource = MatchProperties { services, resources, ..MatchProperties::default() };
    [by_name, by_resource].into_iter().filter(|one| *one != MatchProperties::default())
}

/// Refuses conditions in OTTL, each at its position.
fn refuse_statements(fields: &mut FieldReader<'_, '_>, names: &[&'static str]) {
    for name in names {
        let Some(at) = fields.find(name) else { continue };
        let refuse = |at: &Cursor<'_>| {
            fields.report.mark_public(at);
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

/// Visits one statement, or several of them in a map under `conditions`.
fn statements(at: &Cursor<'_>, refuse: &impl Fn(&Cursor<'_>)) {
    let crate::yaml::NodeValue::Map(entries) = &at.node.value else { return refuse(at) };
    let conditions = entries.iter().find(|entry| entry.key.text == "conditions").map(|entry| at.entry(entry));
    match conditions.as_ref().and_then(|at| at.items()) {
        Some(items) => items.for_each(|item| refuse(&item)),
        None => refuse(at),
    }
}
