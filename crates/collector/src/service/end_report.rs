//! What was lost while a collector ended.
//!
//! Nobody can ask a collector that has ended, so its last words are written where the kubelet reads them: the termination message of its container, which becomes
//! part of the pod's status. *Guaranteed*: at most [`MAX_MESSAGE_BYTES`]; nothing where nothing was lost. *Not done*: what was lost before is in `/status`
//! and in the metrics, as long as there was somebody to ask.

use std::{collections::BTreeMap, fs::OpenOptions, io, io::Write as _, path::Path};

use kubewake_config::mounted;
use serde::Serialize;

use crate::{core::DropReason, telemetry::Telemetry};

/// Where a kubelet looks for the last words of a container, unless the container says otherwise. Where nobody looks there is no such file.
const TERMINATION_LOG: &str = "/dev/termination-log";
/// A kubelet reads no more.
const MAX_MESSAGE_BYTES: usize = 4096;

/// What was lost, the most first.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct EndReport {
    /// By pipeline and reason.
    pub dropped: Vec<Lost>,
    /// So many more had no room here.
    #[serde(skip_serializing_if = "is_zero")]
    pub left_out: usize,
}

fn is_zero(count: &usize) -> bool {
    *count == 0
}

/// What a pipeline lost for one reason.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Lost {
    /// How many items.
    pub items: u64,
    /// Why.
    pub reason: &'static str,
    /// The pipeline's id.
    pub id: String,
    /// Which one it was of all that have had its id, if the document said so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub uid: Option<String>,
    /// The uids of the pipelines elsewhere for which it carried data.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub carries: Vec<String>,
}

type Of = (String, Option<String>, Vec<String>, &'static str);

/// All that was lost so far, by pipeline and reason.
#[derive(Clone, Debug, Default)]
pub(super) struct Losses(BTreeMap<Of, u64>);

impl Losses {
    pub(super) fn so_far(telemetry: &Telemetry) -> Self {
        let (registry, running) = (telemetry.registry(), telemetry.running());
        let mut all = BTreeMap::<Of, u64>::new();
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

    /// What was lost since.
    pub(super) fn until(&self, end: Self) -> EndReport {
        let since = |(of, items): (Of, u64)| {
            let items = items.saturating_sub(self.0.get(&of).copied().unwrap_or(0));
            let (id, uid, carries, reason) = of;
            (items > 0).then_some(Lost { items, reason, id, uid, carries })
        };
        let mut dropped: Vec<Lost> = end.0.into_iter().filter_map(since).collect();
        dropped.sort_by(|a, b| b.cmp(a));
        EndReport { dropped, left_out: 0 }
    }
}

impl EndReport {
    /// As a kubelet reads it; nothing, if nothing was lost.
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

    /// Leaves it to the kubelet, if there is one that looks.
    ///
    /// # Errors
    /// If the file is there and cannot be written.
    pub fn leave(self) -> io::Result<()> {
        self.leave_at(&mounted(Path::new(TERMINATION_LOG)))
    }

    fn leave_at(self, path: &Path) -> io::Result<()> {
        let Some(message) = self.message() else { return Ok(()) };
        // It is never made: where there is none nobody reads it.
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

    fn lost(id: &str, items: u64) -> Lost {
        Lost { items, reason: "shutdown", id: id.to_owned(), uid: Some("one".to_owned()), carries: Vec::new() }
    }

    #[test]
    fn report_names_only_what_was_lost_since() {
        let of = |id: &str| (id.to_owned(), Some("one".to_owned()), Vec::new(), "shutdown");
        let before = Losses(BTreeMap::from([(of("traces/a"), 5), (of("traces/b"), 1)]));
        let after = Losses(BTreeMap::from([(of("traces/a"), 7), (of("traces/b"), 1), (of("traces/c"), 9)]));
        let report = before.until(after);
        assert_eq!(report.dropped, [lost("traces/c", 9), lost("traces/a", 2)]);
        let text = r#"{"dropped":[{"items":9,"reason":"shutdown","id":"traces/c","uid":"one"},{"items":2,"reason":"shutdown","id":"traces/a","uid":"one"}]}"#;
        assert_eq!(report.message().as_deref(), Some(text));
    }

    #[test]
    fn message_of_many_pipelines_fits_and_says_that_some_are_missing() {
        let dropped = (0..200).map(|n| lost(&format!("traces/{n}"), 1000 - n)).collect();
        let text = EndReport { dropped, left_out: 0 }.message().unwrap();
        assert!(text.len() <= MAX_MESSAGE_BYTES && text.contains("traces/0\"") && text.contains("left_out"), "{text}");
    }

    #[test]
    fn message_is_left_only_where_somebody_reads_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("termination-log");
        let report = EndReport { dropped: vec![lost("traces/a", 1)], left_out: 0 };
        report.clone().leave_at(&path).unwrap();
        assert!(!path.exists());
        fs::write(&path, "what was there before, and is longer than what comes".repeat(9)).unwrap();
        report.clone().leave_at(&path).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), report.message().unwrap());
        EndReport::default().leave_at(&path).unwrap();
        assert!(!fs::read_to_string(&path).unwrap().is_empty(), "nothing to say is not said");
    }
}
