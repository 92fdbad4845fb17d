//! `batch`.

use std::{collections::HashSet, time::Duration};

use kubewake_otlp::Signal;

use crate::{
    component::{ComponentSettings, ProcessorSettings},
    decode::{Cursor, DecodeReport, FieldReader, scalar},
    encode::YamlMap,
};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BatchProcessor {
    /// `timeout`: a batch leaves this long after its first item; zero: at once.
    pub timeout: Duration,
    /// `send_batch_size`, in items: a batch of this size leaves; zero: only by time.
    pub send_batch_size: u32,
    /// `send_batch_max_size`, in items: a larger one is cut; zero: never.
    pub send_batch_max_size: u32,
    /// `metadata_keys`: one batch for each combination of these headers' values.
    pub metadata_keys: Vec<String>,
    /// `metadata_cardinality_limit`: how many combinations there may be at once.
    pub metadata_cardinality_limit: u32,
}

impl Default for BatchProcessor {
    fn default() -> Self {
        Self {
            timeout: Duration::from_millis(200),
            send_batch_size: 8192,
            send_batch_max_size: 0,
            metadata_keys: Vec::new(),
            metadata_cardinality_limit: 1000,
        }
    }
}

impl ComponentSettings for BatchProcessor {
    fn decode(at: &Cursor<'_>, report: &DecodeReport) -> Option<Self> {
        let default = BatchProcessor::default();
        let mut fields = FieldReader::new(at, report);
        let batch = BatchProcessor {
            timeout: fields.get_or("timeout", default.timeout, scalar::duration),
            send_batch_size: fields.get_or("send_batch_size", default.send_batch_size, scalar::u32),
            send_batch_max_size: fields.get_or("send_batch_max_size", default.send_batch_max_size, scalar::u32),
            metadata_keys: fields.get("metadata_keys", metadata_keys).unwrap_or_default(),
            metadata_cardinality_limit: fields.get_or(
                "metadata_cardinality_limit",
                default.metadata_cardinality_limit,
                scalar::u32,
            ),
        };
        if batch.send_batch_max_size > 0 && batch.send_batch_max_size < batch.send_batch_size {
            let max = batch.send_batch_max_size;
            let size = batch.send_batch_size;
            let message = format!("`send_batch_max_size` ({max}) is less than `send_batch_size` ({size})");
            let help = fields.has("send_batch_size").then_some("raise the one or lower the other");
            let help = help.unwrap_or("`send_batch_size` is 8192 by default: set it, too");
            report.error(&fields.cursor_at("send_batch_max_size"), message, Some(help.into()));
        }
        fields.finish();
        Some(batch)
    }

    fn encode(&self) -> YamlMap {
        let default = Self::default();
        let limit = "metadata_cardinality_limit";
        YamlMap::default()
            .with_changed("timeout", self.timeout, default.timeout)
            .with_changed("send_batch_size", self.send_batch_size, default.send_batch_size)
            .with_changed("send_batch_max_size", self.send_batch_max_size, default.send_batch_max_size)
            .with_list("metadata_keys", &self.metadata_keys)
            .with_changed(limit, self.metadata_cardinality_limit, default.metadata_cardinality_limit)
    }
}

impl ProcessorSettings for BatchProcessor {
    fn signals(&self) -> &'static [Signal] {
        &Signal::ALL
    }
}

/// Names of headers in lower case, without duplicates.
pub(crate) fn metadata_keys(at: &Cursor<'_>, report: &DecodeReport) -> Option<Vec<String>> {
    let keys: Vec<String> = scalar::texts(at, report)?.iter().map(|key| key.to_lowercase()).collect();
    let mut seen = HashSet::new();
    if let Some(twice) = keys.iter().find(|key| !seen.insert(*key)) {
        report.error(
            at,
            format!("`metadata_keys` contains {} twice; keys are case-insensitive", at.quote(twice)),
            None,
        );
        return None;
    }
    Some(keys)
}
