//! How far the collectors on nodes are behind the logs that they read for a pipeline. Pure.
//!
//! Figures are rounded: each change of a message is a write of a status.

use std::collections::BTreeMap;

use kubewake_status::LogOutputReport;

use super::health_assessment::CollectorAnswer;

/// Below it a collector is not behind: backends take a moment.
const LAG_SECONDS: u64 = 60;
/// Nodes that a message names.
const MAX_NAMED_NODES: usize = 3;
/// The steps of ages in messages, oldest first.
const AGES: [(u64, &str); 4] = [(86_400, "a day"), (3_600, "an hour"), (600, "10 minutes"), (60, "a minute")];

/// What the collectors on nodes lag behind and have lost for the pipeline with this id; `None` if nothing.
pub(super) fn describe(id: &str, answers: &[CollectorAnswer]) -> Option<String> {
    let mut lagging = BTreeMap::<u64, Vec<(&str, u64)>>::new();
    let mut lost = 0_u64;
    for answer in answers {
        let receivers = answer.report.iter().flat_map(|report| report.log_files.values());
        let own = receivers.flat_map(|receiver| &receiver.outputs).filter(|output| output.pipeline == id);
        let worst = own.fold(LogOutputReport::default(), |worst, output| LogOutputReport {
            lag_bytes: worst.lag_bytes.saturating_add(output.lag_bytes),
            lag_seconds: worst.lag_seconds.max(output.lag_seconds),
            lost_bytes: worst.lost_bytes.saturating_add(output.lost_bytes),
            ..worst
        });
        lost = lost.saturating_add(worst.lost_bytes);
        if worst.lag_seconds >= LAG_SECONDS && worst.lag_bytes > 0 {
            let node = answer.node.as_deref().unwrap_or("unknown");
            lagging.entry(worst.lag_seconds).or_default().push((node, worst.lag_bytes));
        }
    }
    let mut parts = Vec::new();
    let nodes: Vec<(u64, &str, u64)> = lagging
        .into_iter()
        .rev()
        .flat_map(|(age, nodes)| nodes.into_iter().map(move |(node, bytes)| (age, node, bytes)))
        .collect();
    if !nodes.is_empty() {
        let named = nodes.iter().take(MAX_NAMED_NODES).map(|(age, node, bytes)| {
            format!("{node} by more than {} and {}", rounded_age(*age), rounded_bytes(*bytes))
        });
        let named = named.collect::<Vec<_>>().join(", ");
        let rest = nodes.len().saturating_sub(MAX_NAMED_NODES);
        let more = if rest > 0 { format!(" and {rest} more") } else { String::new() };
        parts.push(format!("nodes lag behind their logs: {named}{more}"));
    }
    if lost > 0 {
        parts.push(format!("{lost} bytes of logs were removed before they were delivered"));
    }
    (!parts.is_empty()).then(|| parts.join("; "))
}

fn rounded_age(seconds: u64) -> &'static str {
    AGES.iter().find(|(least, _)| seconds >= *least).map_or("a moment", |(_, words)| words)
}

/// The largest power of two that is not more.
fn rounded_bytes(bytes: u64) -> String {
    let power = bytes.checked_ilog2().unwrap_or_default();
    let unit = ["bytes", "KiB", "MiB", "GiB", "TiB"].get(power as usize / 10).copied().unwrap_or("PiB");
    format!("{} {unit}", 1_u64 << (power % 10))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::model::names::CollectorTier;

    fn answer(node: &str, outputs: Value) -> CollectorAnswer {
        let report = json!({"log_files": {"file_log/pods": {"logs": 1, "outputs": outputs}}});
        let report = Some(serde_json::from_value(report).unwrap());
        CollectorAnswer { tier: CollectorTier::Agent, node: Some(node.to_owned()), report }
    }

    fn output(pipeline: &str, bytes: u64, seconds: u64, lost: u64) -> Value {
        json!({"pipeline": pipeline, "exporter": "otlp_grpc/x", "lag_bytes": bytes, "lag_seconds": seconds, "lost_bytes": lost})
    }

    #[test]
    fn nodes_that_lag_are_named_with_rounded_figures_the_worst_first() {
        let id = "logs/backend";
        let quiet = answer("quiet", json!([output(id, 5, 3, 0), output("logs/other", 1 << 30, 9000, 7)]));
        assert_eq!(describe(id, std::slice::from_ref(&quiet)), None);
        let answers = [
            quiet,
            answer("late", json!([output(id, 3 << 20, 90, 0)])),
            answer("later", json!([output(id, 5 << 30, 4000, 11)])),
        ];
        assert_eq!(
            describe(id, &answers).unwrap(),
            "nodes lag behind their logs: later by more than an hour and 4 GiB, late by more than a minute and 2 MiB; \
             11 bytes of logs were removed before they were delivered"
        );
    }
}
