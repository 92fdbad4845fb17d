//! The report of data that was lost during shutdown.
//!
//! A collector that has ended cannot be queried, so the report is written where the kubelet reads it: the
//! termination message of its container, which becomes part of the pod's status. *Guaranteed*: at most
//! [`MAX_MESSAGE_BYTES`]; no message if nothing was lost. *Not done*: earlier losses are in `/status` and in
//! the metrics, as long as the collector runs.

use std::{collections::BTreeMap, fs::OpenOptions, io, io::Write as _, path::Path};

use serde::Serialize;

use crate::{core::DropReason, telemetry::TelemetryState};

/// The default path of a container's termination message. Outside of a pod there is no such file.
pub const TERMINATION_LOG: &str = "/dev/termination-log";
/// The kubelet reads no more.
const MAX_MESSAGE_BYTES: usize = 4096;

/// The losses, the largest first.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct TerminationReport {
    pub dropped: Vec<DroppedItems>,
    /// The number of further losses that did not fit.
    #[serde(skip_serializing_if = "is_zero")]
    pub left_out: usize,
}

fn is_zero(count: &usize) -> bool {
    *count == 0
}

/// The items that a pipeline lost for one reason.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct DroppedItems {
    pub items: u64,
    pub reason: &'static str,
    pub id: String,
    /// Tells pipelines with the same id apart, if the document set it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub uid: Option<String>,
    /// The uids of the pipelines in other collectors for which it carried data.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub carries: Vec<String>,
}

type LossKey = (String, Option<String>, Vec<String>, &'static str);

/// All losses so far, by pipeline and reason.
#[derive(Clone, Debug, Default)]
pub(super) struct LossTotals(BTreeMap<LossKey, u64>);

impl LossTotals {
    pub(super) fn snapshot(telemetry: &TelemetryState) -> Self {
        let registry = telemetry.registry();
        let running = telemetry.running();
        let mut all = BTreeMap::<LossKey, u64>::new();
        let present = running.pipelines.iter().map(|p| (&p.id, &p.uid, &p.carries, registry.pipeline(&p.id)));
        let ended = registry.last_ended();
        let ended = ended.iter().map(|p| (&p.id, &p.uid, &p.carries, p.stats.clone()));
        for (id, uid, carries, stats) in present.chain(ended) {
            for reason in DropReason::ALL {
                let of = (id.to_string(), uid.clone(), carries.clone(), reason.name());
                *all.entry(of).or_default() += stats.dropped_for(*reason);
            }
        }
        Self(all)
    }

    pub(super) fn report_until(&self, end: Self) -> TerminationReport {
        let since = |(of, items): (LossKey, u64)| {
            let items = items.saturating_sub(self.0.get(&of).copied().unwrap_or(0));
            let (id, uid, carries, reason) = of;
            (items > 0).then_some(DroppedItems { items, reason, id, uid, carries })
        };
        let mut dropped: Vec<DroppedItems> = end.0.into_iter().filter_map(since).collect();
        dropped.sort_by(|a, b| b.cmp(a));
        TerminationReport { dropped, left_out: 0 }
    }
}

impl TerminationReport {
    /// The JSON message for the kubelet; `None` if nothing was lost.
    fn message(mut self) -> Option<String> {
        while !self.dropped.is_empty() {
            let text = serde_json::to_string(&self).ok()?;
            if text.len() <= MAX_MESSAGE_BYTES {
                return Some(text);
            }
            self.dropped.pop();
            self.left_out += 1;
        }
        None
    }

    /// Writes the termination message to a file such as [`TERMINATION_LOG`], if it exists.
    ///
    /// # Errors
    /// If the file is there and cannot be written.
    pub fn write_to(self, path: &Path) -> io::Result<()> {
        let Some(message) = self.message() else { return Ok(()) };
        // The file is never created: without one, no kubelet reads it.
        match OpenOptions::new().write(true).truncate(true).open(path) {
            Ok(mut file) => file.write_all(message.as_bytes()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            Err(error) => Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn lost(id: &str, items: u64) -> DroppedItems {
        DroppedItems { items, reason: "shutdown", id: id.to_owned(), uid: Some("one".to_owned()), carries: Vec::new() }
    }

    #[test]
    fn report_names_only_what_was_lost_since() {
        let of = |id: &str| (id.to_owned(), Some("one".to_owned()), Vec::new(), "shutdown");
        let before = LossTotals(BTreeMap::from([(of("traces/a"), 5), (of("traces/b"), 1)]));
        let after = LossTotals(BTreeMap::from([(of("traces/a"), 7), (of("traces/b"), 1), (of("traces/c"), 9)]));
        let report = before.report_until(after);
        assert_eq!(report.dropped, [lost("traces/c", 9), lost("traces/a", 2)]);
        let text = r#"{"dropped":[{"items":9,"reason":"shutdown","id":"traces/c","uid":"one"},{"items":2,"reason":"shutdown","id":"traces/a","uid":"one"}]}"#;
        assert_eq!(report.message().as_deref(), Some(text));
    }

    #[test]
    fn message_of_many_pipelines_fits_and_says_that_some_are_missing() {
        let dropped = (0..200).map(|n| lost(&format!("traces/{n}"), 1000 - n)).collect();
        let text = TerminationReport { dropped, left_out: 0 }.message().unwrap();
        assert!(text.len() <= MAX_MESSAGE_BYTES && text.contains("traces/0\"") && text.contains("left_out"), "{text}");
    }

    #[test]
    fn message_is_left_only_where_somebody_reads_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("termination-log");
        let report = TerminationReport { dropped: vec![lost("traces/a", 1)], left_out: 0 };
        report.clone().write_to(&path).unwrap();
        assert!(!path.exists());
        fs::write(&path, "what was there before, and is longer than what comes".repeat(9)).unwrap();
        report.clone().write_to(&path).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), report.message().unwrap());
        TerminationReport::default().write_to(&path).unwrap();
        assert!(!fs::read_to_string(&path).unwrap().is_empty(), "nothing to say is not said");
    }
}
