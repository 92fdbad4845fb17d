//! `file_log`: the lines of log files as records.
//!
//! The settings of the receiver with everything that is checked when a document is loaded: patterns of files, regular
//! expressions, the graph of [operators](operator), the [fields](record_field) and [expressions](expression) in them,
//! and [layouts of times](time_layout). `kubewake-log-operators` runs what is described here.
//!
//! *Guarantees*: a [`FileLogReceiver`] can be built without a further check of its settings, except that files and
//! directories may be missing. Everything in it is bounded. *Does not*: read files.

mod body_parsing;
mod byte_size;
mod criteria;
mod encode;
mod encoding;
pub mod expression;
mod glob;
mod lines;
pub mod operator;
pub mod record_field;
pub mod template;
pub mod time_layout;

#[cfg(test)]
mod tests;

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    time::Duration,
};

use kubewake_otlp::Signal;

pub use self::{
    body_parsing::BodyParsing,
    criteria::{FileOrdering, FileSort, FileSortKind},
    encoding::TextEncoding,
    expression::{Expression, ExpressionError},
    lines::{FileHeader, LongLineBehavior, MultilinePattern},
    operator::{OperatorConfig, OperatorGraph, OperatorKind},
    record_field::{FieldRoot, RecordField},
    template::TextTemplate,
    time_layout::TimeLayout,
};
use crate::{
    ComponentId,
    component::{ComponentSettings, ReceiverSettings},
    decode::{Cursor, DecodeReport, FieldReader, StorageUse, id, scalar},
    encode::YamlMap,
    sending,
    yaml::NodeValue,
};

/// `file_log`, also called `filelog`.
#[derive(Clone, Debug, PartialEq)]
pub struct FileLogReceiver {
    /// `include`: patterns of the files to read. Never empty.
    pub include: Vec<String>,
    /// `exclude`: patterns of files that are not read nevertheless.
    pub exclude: Vec<String>,
    /// `exclude_older_than`: files that were not modified for this long are not read.
    pub exclude_older_than: Option<Duration>,
    /// `ordering_criteria`: which of the files are read.
    pub ordering: Option<FileOrdering>,
    /// `start_at`: where a file is read from that is there at the first start.
    pub start_at: StartPosition,
    /// `poll_interval`: how often directories and files are looked at without a notification.
    pub poll_interval: Duration,
    /// `fingerprint_size`: the first bytes of a file that identify it.
    pub fingerprint_size: usize,
    /// `max_log_size`: the longest record in bytes.
    pub max_log_size: usize,
    /// `max_log_size_behavior`: what happens to longer ones.
    pub max_log_size_behavior: LongLineBehavior,
    /// `max_concurrent_files`: how many files are open at once.
    pub max_concurrent_files: usize,
    /// `encoding` of the files.
    pub encoding: TextEncoding,
    /// `multiline`: which lines begin or end a record; by default each line is one.
    pub multiline: Option<MultilinePattern>,
    /// `force_flush_period`: a last line without its end becomes a record when nothing was written for this long.
    /// `None`: never.
    pub force_flush_period: Option<Duration>,
    /// `preserve_leading_whitespaces`
    pub preserve_leading_whitespaces: bool,
    /// `preserve_trailing_whitespaces`
    pub preserve_trailing_whitespaces: bool,
    /// `include_file_name` and others: attributes that describe the file.
    pub file_attributes: FileAttributes,
    /// `storage`: the `file_storage` extension in whose directory positions are kept.
    pub storage: Option<ComponentId>,
    /// `compression` of the files.
    pub compression: FileCompression,
    /// `delete_after_read`: files are deleted when they were read to their end.
    pub delete_after_read: bool,
    /// `on_truncate`: what is read of a file that became shorter.
    pub on_truncate: TruncateBehavior,
    /// `header`: lines at the start of a file that describe it.
    pub header: Option<FileHeader>,
    /// `attributes` of every record.
    pub attributes: BTreeMap<String, TextTemplate>,
    /// `resource`: attributes of every resource.
    pub resource: BTreeMap<String, TextTemplate>,
    /// `operators`, which change each record in turn.
    pub operators: OperatorGraph,
    /// `body_parsing`: what is read from lines that are JSON objects.
    pub body_parsing: BodyParsing,
    /// `join_stack_traces`: the lines of a stack trace are one record. Only for logs of containers.
    pub joins_stack_traces: bool,
    /// `link_directories`: symbolic links are followed only into these directories. `None`: wherever they lead, as in
    /// the Collector.
    pub link_directories: Option<Vec<PathBuf>>,
}

/// `start_at`
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum StartPosition {
    Beginning,
    #[default]
    End,
}

/// `on_truncate`
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum TruncateBehavior {
    /// `ignore`: nothing, until the file is as long as before.
    #[default]
    Ignore,
    /// `read_whole_file`
    ReadWholeFile,
    /// `read_new`: what is written after the truncation.
    ReadNew,
}

/// `compression`
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum FileCompression {
    /// Files are read as they are.
    #[default]
    None,
    /// `gzip`: all files are compressed.
    Gzip,
    /// `auto`: files whose names end in `.gz` are.
    Auto,
}

/// Which attributes of its file a record gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileAttributes {
    /// `log.file.name`
    pub name: bool,
    /// `log.file.path`
    pub path: bool,
    /// `log.file.name_resolved`
    pub name_resolved: bool,
    /// `log.file.path_resolved`
    pub path_resolved: bool,
    /// `log.file.owner.name`
    pub owner_name: bool,
    /// `log.file.owner.group.name`
    pub owner_group_name: bool,
    /// `log.file.permissions`
    pub permissions: bool,
    /// `log.file.record_number`
    pub record_number: bool,
    /// `log.file.record_offset`
    pub record_offset: bool,
}

impl Default for FileAttributes {
    fn default() -> Self {
        Self {
            name: true,
            path: false,
            name_resolved: false,
            path_resolved: false,
            owner_name: false,
            owner_group_name: false,
            permissions: false,
            record_number: false,
            record_offset: false,
        }
    }
}

impl Default for FileLogReceiver {
    fn default() -> Self {
        Self {
            include: Vec::new(),
            exclude: Vec::new(),
            exclude_older_than: None,
            ordering: None,
            start_at: StartPosition::default(),
            poll_interval: Duration::from_millis(200),
            fingerprint_size: 1000,
            max_log_size: 1 << 20,
            max_log_size_behavior: LongLineBehavior::default(),
            max_concurrent_files: 1024,
            encoding: TextEncoding::default(),
            multiline: None,
            force_flush_period: Some(Duration::from_millis(500)),
            preserve_leading_whitespaces: false,
            preserve_trailing_whitespaces: false,
            file_attributes: FileAttributes::default(),
            storage: None,
            compression: FileCompression::default(),
            delete_after_read: false,
            on_truncate: TruncateBehavior::default(),
            header: None,
            attributes: BTreeMap::new(),
            resource: BTreeMap::new(),
            operators: OperatorGraph::default(),
            body_parsing: BodyParsing::default(),
            joins_stack_traces: false,
            link_directories: None,
        }
    }
}

/// The least `fingerprint_size` in bytes, as in the Collector.
const MIN_FINGERPRINT_BYTES: u64 = 16;
/// The greatest `fingerprint_size` in bytes: each file that is known takes this much memory.
const MAX_FINGERPRINT_BYTES: u64 = 1 << 20;
/// The greatest `max_log_size` in bytes: a record has to fit into a request.
const MAX_LOG_BYTES: u64 = 64 << 20;
/// The greatest `max_concurrent_files`: more open files than a process may usually have.
const MAX_OPEN_FILES: i64 = 1 << 20;
/// The least `poll_interval`, below which polling would be all that the process does.
const MIN_POLL_INTERVAL: Duration = Duration::from_millis(1);

const START_POSITIONS: [(&str, StartPosition); 2] =
    [("beginning", StartPosition::Beginning), ("end", StartPosition::End)];
const COMPRESSIONS: [(&str, FileCompression); 3] =
    [("", FileCompression::None), ("gzip", FileCompression::Gzip), ("auto", FileCompression::Auto)];
const TRUNCATE_BEHAVIORS: [(&str, TruncateBehavior); 3] = [
    ("ignore", TruncateBehavior::Ignore),
    ("read_whole_file", TruncateBehavior::ReadWholeFile),
    ("read_new", TruncateBehavior::ReadNew),
];

impl ComponentSettings for FileLogReceiver {
    fn decode(at: &Cursor<'_>, report: &DecodeReport) -> Option<Self> {
        let default = Self::default();
        let mut fields = FieldReader::new(at, report);
        let receiver = Self {
            include: glob::patterns(&mut fields, "include"),
            exclude: glob::patterns(&mut fields, "exclude"),
            exclude_older_than: fields.get("exclude_older_than", scalar::duration).filter(|age| !age.is_zero()),
            ordering: fields.get("ordering_criteria", criteria::ordering).flatten(),
            start_at: fields
                .get_or("start_at", default.start_at, |at, report| scalar::keyword(at, report, &START_POSITIONS)),
            poll_interval: fields.get_or("poll_interval", default.poll_interval, poll_interval),
            fingerprint_size: fields.get_or("fingerprint_size", default.fingerprint_size, |at, report| {
                byte_size::read_in_range(at, report, MIN_FINGERPRINT_BYTES, MAX_FINGERPRINT_BYTES)
            }),
            max_log_size: fields.get_or("max_log_size", default.max_log_size, |at, report| {
                byte_size::read_in_range(at, report, 1, MAX_LOG_BYTES)
            }),
            max_log_size_behavior: fields.get_or(
                "max_log_size_behavior",
                default.max_log_size_behavior,
                |at, report| scalar::keyword(at, report, &lines::LONG_LINE_BEHAVIORS),
            ),
            max_concurrent_files: fields.get_or("max_concurrent_files", default.max_concurrent_files, open_files),
            encoding: fields.get_or("encoding", default.encoding, encoding::decode),
            multiline: fields.get("multiline", lines::multiline).flatten(),
            force_flush_period: match fields.get("force_flush_period", scalar::loose_duration) {
                None => default.force_flush_period,
                Some(period) => Some(period).filter(|period| !period.is_zero()),
            },
            preserve_leading_whitespaces: fields.flag("preserve_leading_whitespaces"),
            preserve_trailing_whitespaces: fields.flag("preserve_trailing_whitespaces"),
            file_attributes: file_attributes(&mut fields),
            storage: fields.get("storage", storage),
            compression: fields.get_or("compression", default.compression, compression),
            delete_after_read: fields.flag("delete_after_read"),
            on_truncate: fields.get_or("on_truncate", default.on_truncate, |at, report| {
                scalar::keyword(at, report, &TRUNCATE_BEHAVIORS)
            }),
            header: fields.get("header", lines::header),
            attributes: fields.get("attributes", template::map).unwrap_or_default(),
            resource: fields.get("resource", template::map).unwrap_or_default(),
            operators: fields.get("operators", operator::graph).unwrap_or_default(),
            body_parsing: fields.get("body_parsing", body_parsing::decode).unwrap_or_default(),
            joins_stack_traces: fields.flag("join_stack_traces"),
            link_directories: fields.get("link_directories", link_directories),
        };
        read_without_effect(&mut fields);
        check_together(&fields, &receiver);
        fields.finish();
        Some(receiver)
    }

    fn encode(&self) -> YamlMap {
        encode::settings(self)
    }

    fn public_fields() -> &'static [&'static str] {
        &["include", "exclude", "start_at", "operators", "multiline", "storage"]
    }
}

impl ReceiverSettings for FileLogReceiver {
    fn signals(&self) -> &'static [Signal] {
        &[Signal::Logs]
    }

    fn storage_extension_id(&self) -> Option<&ComponentId> {
        self.storage.as_ref()
    }
}

/// Reads the settings whose purpose is met without them, or that have none here.
fn read_without_effect(fields: &mut FieldReader<'_, '_>) {
    // The size of the first buffer, hints for the page cache, and polls that can be skipped are matters of speed.
    fields.accept_without_effect(&["initial_buffer_size"], |at, report| {
        byte_size::read_in_range(at, report, 0, u64::MAX)
    });
    fields.accept_without_effect(&["file_cache_advise", "skip_unmodified_files"], scalar::boolean);
    // Reading is fair between files, so that nothing has to wait for the next poll, and the positions of files that
    // went away are kept.
    fields.accept_without_effect(&["max_batches", "polls_to_archive"], |at, report| {
        scalar::integer_in_range(at, report, 0, i64::MAX)
    });
    if fields.get("acquire_fs_lock", scalar::boolean) == Some(true) {
        let message = "`acquire_fs_lock` has no effect: files are read without a lock";
        fields.report.warning(&fields.cursor_at("acquire_fs_lock"), message, None);
    }
    // What an exporter could not deliver is read again, whatever the settings are.
    sending::optional_retry(fields);
}

/// Checks that concern several fields.
fn check_together(fields: &FieldReader<'_, '_>, receiver: &FileLogReceiver) {
    if receiver.include.is_empty() {
        fields.require("include", "`include` must list at least one pattern", None);
    }
    if receiver.start_at == StartPosition::End && !fields.failed("start_at") {
        let needs_beginning =
            [("delete_after_read", receiver.delete_after_read), ("header", receiver.header.is_some())];
        for (name, _) in needs_beginning.iter().filter(|(_, is_set)| *is_set) {
            let message = format!("`{name}` cannot be used with `start_at: end`");
            fields.report.error(&fields.cursor_at(name), message, Some("set `start_at: beginning`".into()));
        }
    }
}

fn poll_interval(at: &Cursor<'_>, report: &DecodeReport) -> Option<Duration> {
    let interval = scalar::duration(at, report)?;
    if interval >= MIN_POLL_INTERVAL {
        return Some(interval);
    }
    report.error(at, format!("`poll_interval` must be at least {MIN_POLL_INTERVAL:?}"), None);
    None
}

fn open_files(at: &Cursor<'_>, report: &DecodeReport) -> Option<usize> {
    scalar::integer_in_range(at, report, 1, MAX_OPEN_FILES).and_then(|count| count.try_into().ok())
}

/// `compression`. As in the Collector files are read as they are if the word is unknown, here with a warning.
fn compression(at: &Cursor<'_>, report: &DecodeReport) -> Option<FileCompression> {
    let word = scalar::text(at, report)?;
    let known = COMPRESSIONS.iter().find(|(name, _)| *name == word).map(|(_, compression)| *compression);
    if known.is_none() {
        let message = format!("unknown `compression` {}: files are read as they are", at.quote(&word));
        report.warning(at, message, Some("known values: gzip, auto".into()));
    }
    Some(known.unwrap_or_default())
}

fn file_attributes(fields: &mut FieldReader<'_, '_>) -> FileAttributes {
    FileAttributes {
        name: fields.get_or("include_file_name", true, scalar::boolean),
        path: fields.flag("include_file_path"),
        name_resolved: fields.flag("include_file_name_resolved"),
        path_resolved: fields.flag("include_file_path_resolved"),
        owner_name: fields.flag("include_file_owner_name"),
        owner_group_name: fields.flag("include_file_owner_group_name"),
        permissions: fields.flag("include_file_permissions"),
        record_number: fields.flag("include_file_record_number"),
        record_offset: fields.flag("include_file_record_offset"),
    }
}

/// `link_directories`: absolute paths. An empty list means that no link is followed.
fn link_directories(at: &Cursor<'_>, report: &DecodeReport) -> Option<Vec<PathBuf>> {
    let Some(items) = at.items() else { return scalar::wrong_type(at, report, "a list", None) };
    let directory = |item: Cursor<'_>| {
        let text = scalar::text(&item, report)?;
        if !text.starts_with('/') {
            report.error(&item, format!("{} is not an absolute path", item.subject(&text)), None);
            return None;
        }
        Some(report.locate(Path::new(&text)))
    };
    Some(items.filter_map(directory).collect())
}

/// `storage`: the id of an extension, which is checked after the whole document was read.
fn storage(at: &Cursor<'_>, report: &DecodeReport) -> Option<ComponentId> {
    if matches!(&at.node.value, NodeValue::String(text) if text.is_empty()) {
        return None;
    }
    let id = id::reference(at, report)?;
    report.add_storage_use(StorageUse { id: id.clone(), path: at.path().to_owned(), span: at.span() });
    Some(id)
}
