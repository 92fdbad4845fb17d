//! Settings that exporters share: timeout, retry and queue.

use std::time::Duration;

use crate::{
    decode::{Cursor, DecodeReport, FieldReader, scalar},
    encode::{self, YamlMap},
};

#[derive(Clone, Debug, PartialEq)]
pub struct RetryConfig {
    pub initial_interval: Duration,
    /// `randomization_factor`, 0 to 1
    pub randomization_factor: f64,
    pub multiplier: f64,
    pub max_interval: Duration,
    /// `max_elapsed_time`; `None`: never gives up.
    pub max_elapsed_time: Option<Duration>,
}

impl Default for RetryConfig {
    fn default() -> Self {
        Self {
            initial_interval: Duration::from_secs(5),
            randomization_factor: 0.5,
            multiplier: 1.5,
            max_interval: Duration::from_secs(30),
            max_elapsed_time: Some(Duration::from_secs(300)),
        }
    }
}

/// The unit of sizes in a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum QueueSizer {
    /// Requests as they are sent on: batches.
    #[default]
    Requests,
    /// Spans, data points, log records.
    Items,
    /// Bytes of OTLP.
    Bytes,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueueConfig {
    /// `num_consumers`: how many requests are under way at once.
    pub num_consumers: u32,
    pub queue_size: u64,
    pub sizer: QueueSizer,
    /// `block_on_overflow`: a sender waits for room instead of being refused.
    pub block_on_overflow: bool,
    /// `wait_for_result`: a sender is answered when its data was delivered.
    pub wait_for_result: bool,
    pub batch: Option<QueueBatch>,
}

impl Default for QueueConfig {
    fn default() -> Self {
        Self {
            num_consumers: 10,
            queue_size: 1000,
            sizer: QueueSizer::Requests,
            block_on_overflow: false,
            wait_for_result: false,
            batch: None,
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueueBatch {
    pub flush_timeout: Duration,
    pub min_size: u64,
    pub max_size: u64,
    /// `sizer`: items or bytes.
    pub sizer: QueueSizer,
}

/// `timeout`; zero is no limit.
pub(crate) fn timeout(fields: &mut FieldReader<'_, '_>, default: Duration) -> Option<Duration> {
    Some(fields.get_or("timeout", default, scalar::duration)).filter(|timeout| !timeout.is_zero())
}

/// `retry_on_failure`; `None` when it is switched off.
pub(crate) fn retry(fields: &mut FieldReader<'_, '_>) -> Option<RetryConfig> {
    match fields.find("retry_on_failure") {
        None => Some(RetryConfig::default()),
        Some(at) => configured_retry(&at, fields.report),
    }
}

/// `retry_on_failure` that is off unless it is there.
pub(crate) fn optional_retry(fields: &mut FieldReader<'_, '_>) -> Option<RetryConfig> {
    let at = fields.find_even_empty("retry_on_failure")?;
    configured_retry(&at, fields.report)
}

fn configured_retry(at: &Cursor<'_>, report: &DecodeReport) -> Option<RetryConfig> {
    let default = RetryConfig::default();
    let mut fields = FieldReader::new(at, report);
    let enabled = fields.enabled();
    if !enabled {
        // For a section that is switched off the Collector checks only the types of values.
        let durations = ["initial_interval", "max_interval", "max_elapsed_time"];
        fields.accept_without_effect(&durations, scalar::nanoseconds);
        fields.accept_without_effect(&["randomization_factor", "multiplier"], scalar::float);
        fields.finish();
        return None;
    }
    let before = report.errors();
    let elapsed = fields.get("max_elapsed_time", scalar::duration);
    let retry = RetryConfig {
        initial_interval: fields.get_or("initial_interval", default.initial_interval, scalar::duration),
        randomization_factor: fields.get_or("randomization_factor", default.randomization_factor, |at, report| {
            float_in_range(at, report, 0.0..=1.0, "must be between 0 and 1")
        }),
        multiplier: fields.get_or("multiplier", default.multiplier, |at, report| {
            float_in_range(at, report, 0.0..=f64::MAX, "must not be negative")
        }),
        max_interval: fields.get_or("max_interval", default.max_interval, scalar::duration),
        max_elapsed_time: elapsed.or(default.max_elapsed_time).filter(|elapsed| !elapsed.is_zero()),
    };
    if report.errors() == before {
        check_retry_intervals(&fields, &retry);
    }
    fields.finish();
    Some(retry)
}

fn float_in_range(
    at: &Cursor<'_>,
    report: &DecodeReport,
    range: std::ops::RangeInclusive<f64>,
    rule: &str,
) -> Option<f64> {
    let value = scalar::float(at, report)?;
    if range.contains(&value) {
        return Some(value);
    }
    report.error(at, format!("`{}` {rule}", at.name()), None);
    None
}

fn check_retry_intervals(fields: &FieldReader<'_, '_>, retry: &RetryConfig) {
    let Some(elapsed) = retry.max_elapsed_time else { return };
    for (name, interval) in [("initial_interval", retry.initial_interval), ("max_interval", retry.max_interval)] {
        if elapsed < interval {
            let message = format!("`max_elapsed_time` ({elapsed:?}) is less than `{name}` ({interval:?})");
            let help = if fields.has(name) {
                "raise the one or lower the other".to_owned()
            } else {
                format!("`{name}` is {interval:?} by default: set it, too")
            };
            let place = ["max_elapsed_time", name].into_iter().find(|name| fields.has(name)).unwrap_or(name);
            fields.report.error(&fields.cursor_at(place), message, Some(help));
        }
    }
}

const SIZERS: [(&str, QueueSizer); 3] =
    [("requests", QueueSizer::Requests), ("items", QueueSizer::Items), ("bytes", QueueSizer::Bytes)];

fn sizer(at: &Cursor<'_>, report: &DecodeReport) -> Option<QueueSizer> {
    scalar::keyword(at, report, &SIZERS)
}

/// `sending_queue`; `None` when it is switched off.
pub(crate) fn queue(fields: &mut FieldReader<'_, '_>) -> Option<QueueConfig> {
    match fields.find("sending_queue") {
        None => Some(QueueConfig::default()),
        Some(at) => configured_queue(&at, fields.report),
    }
}

/// `sending_queue` that is off unless it is there.
pub(crate) fn optional_queue(fields: &mut FieldReader<'_, '_>) -> Option<QueueConfig> {
    let at = fields.find_even_empty("sending_queue")?;
    configured_queue(&at, fields.report)
}

fn configured_queue(at: &Cursor<'_>, report: &DecodeReport) -> Option<QueueConfig> {
    let default = QueueConfig::default();
    let mut fields = FieldReader::new(at, report);
    let enabled = fields.enabled();
    if !enabled {
        skip_queue(fields);
        return None;
    }
    let storage = fields.find("storage");
    if let Some(at) = &storage {
        report.mark_public(at);
        let help = "remove it: the queue is in memory";
        report.error(at, "`storage` is not supported by this build", Some(help.into()));
    }
    let explicit_sizer = fields.get("sizer", sizer);
    let consumers = fields.get("num_consumers", |at, report| scalar::integer_in_range(at, report, 1, u32::MAX.into()));
    let size = fields.get("queue_size", |at, report| scalar::integer_in_range(at, report, 1, i64::MAX));
    let queue = QueueConfig {
        num_consumers: consumers.and_then(|value| value.try_into().ok()).unwrap_or(default.num_consumers),
        queue_size: size.map_or(default.queue_size, i64::unsigned_abs),
        sizer: explicit_sizer.unwrap_or(default.sizer),
        block_on_overflow: fields.flag("block_on_overflow"),
        wait_for_result: fields.flag("wait_for_result"),
        batch: fields.find_even_empty("batch").and_then(|at| batch(&at, report, explicit_sizer)),
    };
    if let Some(batch) =
        queue.batch.as_ref().filter(|batch| batch.sizer == queue.sizer && batch.sizer != QueueSizer::Requests)
        && batch.min_size > queue.queue_size
    {
        let message = format!("`min_size` ({}) is greater than `queue_size` ({})", batch.min_size, queue.queue_size);
        report.error(&fields.cursor_at("batch"), message, Some("raise `queue_size` or lower `min_size`".into()));
    }
    fields.finish();
    Some(queue)
}

fn skip_queue(mut fields: FieldReader<'_, '_>) {
    fields.accept_without_effect(&["num_consumers", "queue_size"], scalar::integer);
    fields.accept_without_effect(&["block_on_overflow", "wait_for_result"], scalar::boolean);
    fields.accept_without_effect(&["sizer"], sizer);
    fields.accept_without_effect(&["storage"], scalar::text);
    if let Some(at) = fields.find("batch") {
        batch(&at, fields.report, None);
    }
    fields.finish();
}

/// `batch`, which uses the queue's sizer unless it has its own.
fn batch(at: &Cursor<'_>, report: &DecodeReport, queue_sizer: Option<QueueSizer>) -> Option<QueueBatch> {
    let mut fields = FieldReader::new(at, report);
    let enabled = fields.enabled();
    let own_sizer = fields.get("sizer", sizer);
    let inherited = queue_sizer.filter(|_| !at.node.is_absent());
    let chosen = own_sizer.or(inherited).unwrap_or(QueueSizer::Items);
    if chosen == QueueSizer::Requests {
        let place = if own_sizer.is_some() { fields.cursor_at("sizer") } else { at.clone() };
        report.error(
            &place,
            "`batch` counts items or bytes, not requests",
            Some("set its `sizer` to items or bytes".into()),
        );
    }
    let flush = fields.get("flush_timeout", scalar::duration);
    if flush.is_some_and(|flush| flush.is_zero()) {
        report.error(&fields.cursor_at("flush_timeout"), "`flush_timeout` must be positive", None);
    }
    let size = |at: &Cursor<'_>, report: &DecodeReport| {
        scalar::integer_in_range(at, report, 0, i64::MAX).map(i64::unsigned_abs)
    };
    let batch = QueueBatch {
        flush_timeout: flush.unwrap_or(Duration::from_millis(200)),
        min_size: fields.get_or("min_size", 8192, size),
        max_size: fields.get_or("max_size", 0, size),
        sizer: chosen,
    };
    if batch.max_size > 0 && batch.max_size < batch.min_size {
        let message = format!("`max_size` ({}) is less than `min_size` ({})", batch.max_size, batch.min_size);
        let help = (!fields.has("min_size")).then(|| "`min_size` is 8192 by default: set it, too".to_owned());
        report.error(&fields.cursor_at("max_size"), message, help);
    }
    if let Some(at) = fields.find("partition") {
        let mut partition = FieldReader::new(&at, report);
        partition.unsupported(&["metadata_keys"]);
        partition.finish();
    }
    fields.finish();
    enabled.then_some(batch)
}

impl RetryConfig {
    pub(crate) fn encode(&self) -> YamlMap {
        let default = Self::default();
        let elapsed = |retry: &Self| retry.max_elapsed_time.unwrap_or_default();
        YamlMap::default()
            .with_changed("initial_interval", self.initial_interval, default.initial_interval)
            .with_changed("randomization_factor", self.randomization_factor, default.randomization_factor)
            .with_changed("multiplier", self.multiplier, default.multiplier)
            .with_changed("max_interval", self.max_interval, default.max_interval)
            .with_changed("max_elapsed_time", elapsed(self), elapsed(&default))
    }
}

impl QueueConfig {
    pub(crate) fn encode(&self) -> YamlMap {
        let default = Self::default();
        let sizer = Some(self.sizer).filter(|sizer| *sizer != default.sizer);
        YamlMap::default()
            .with_optional("sizer", sizer.map(|sizer| encode::keyword(&SIZERS, &sizer)))
            .with_changed("queue_size", self.queue_size, default.queue_size)
            .with_changed("num_consumers", self.num_consumers, default.num_consumers)
            .with_flag("block_on_overflow", self.block_on_overflow)
            .with_flag("wait_for_result", self.wait_for_result)
            .with_optional("batch", self.batch.as_ref().map(|batch| batch.encode(sizer)))
    }
}

impl QueueBatch {
    /// The fields of a batch, which inherits the sizer that its queue sets.
    fn encode(&self, queue_sizer: Option<QueueSizer>) -> YamlMap {
        let own = Some(self.sizer).filter(|sizer| *sizer != queue_sizer.unwrap_or(QueueSizer::Items));
        YamlMap::default()
            .with_optional("sizer", own.map(|sizer| encode::keyword(&SIZERS, &sizer)))
            .with_changed("flush_timeout", self.flush_timeout, Duration::from_millis(200))
            .with_changed("min_size", self.min_size, 8192)
            .with_changed("max_size", self.max_size, 0)
    }
}

/// A section that is there by default.
fn with_default_section(map: YamlMap, key: &str, section: Option<YamlMap>) -> YamlMap {
    match section {
        Some(section) => map.with_section(key, section),
        None => map.with_field(key, YamlMap::default().with_field("enabled", false)),
    }
}

/// Adds `timeout`, `retry_on_failure` and `sending_queue`.
pub(crate) fn encode(
    map: YamlMap,
    timeout: Option<Duration>,
    default_timeout: Duration,
    retry: Option<&RetryConfig>,
    queue: Option<&QueueConfig>,
) -> YamlMap {
    let map = map.with_changed("timeout", timeout.unwrap_or_default(), default_timeout);
    let map = with_default_section(map, "retry_on_failure", retry.map(RetryConfig::encode));
    with_default_section(map, "sending_queue", queue.map(QueueConfig::encode))
}
