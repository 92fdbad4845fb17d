//! From the settings of the document to those of the files, the lines and the records.

use std::{collections::BTreeMap, path::Path, sync::Arc, time::Duration};

use kubewake_config::{
    RegexPattern,
    file_log::{
        FileCompression as CompressionSetting, FileHeader, FileOrdering, FileSort, FileSortKind, LongLineBehavior,
        MultilinePattern, OperatorGraph, StartPosition, TextEncoding as EncodingSetting, TextTemplate,
        TruncateBehavior,
        operator::{ContainerFormat as ContainerSetting, ContainerRuntime},
    },
    model::FileLogReceiver,
};
use kubewake_log_files::{
    FileCompression, FileLimits, GlobPattern, LinkPolicy, LogFilesSettings, OnTruncate, OrderingCriteria, SortKind,
    SortRule, StartAt,
};
use kubewake_log_lines::{
    BlankTrimming, BodyParsing, ContainerFormat, ContainerSettings, DockerBodies, LineFraming, LinePattern,
    OversizeBehavior, PlainSettings, RecordEnvelope, RecordSettings, RequestLimits, TextEncoding,
};

use kubewake_log_operators::{ContainerOnly, EntryTemplate};
use regex::Regex;

use super::{file_names::FileNames, line_decoder::LineFormat, pod_path::PodPath};
use crate::components::BuildError;

/// A request ends with the record that reaches one of these: large enough that it costs little beside its records,
/// small enough that many logs share the memory of a pipeline.
const MAX_REQUEST_BYTES: usize = 512 << 10;
const MAX_REQUEST_RECORDS: usize = 8192;

/// How often positions are stored while they change: a second with the default of `poll_interval`.
const POLLS_PER_CHECKPOINT: u32 = 5;
const MIN_CHECKPOINT_INTERVAL: Duration = Duration::from_millis(50);
const MAX_CHECKPOINT_INTERVAL: Duration = Duration::from_secs(1);

/// Everything that the thread that reads needs to know.
#[derive(Clone, Debug)]
pub(super) struct ReadSettings {
    pub(super) files: LogFilesSettings,
    pub(super) format: LineFormat,
    pub(super) path: RecordPath,
    /// `None`: never.
    pub(super) flush_after: Option<Duration>,
    /// Attributes of every record.
    attributes: Vec<(String, String)>,
    /// Attributes of every resource.
    resource: Vec<(String, String)>,
    file: FileNames,
    /// Whether the resource gets what the path of a container's log says.
    adds_pod: bool,
}

/// How records become OTLP.
#[derive(Clone, Debug)]
pub(super) enum RecordPath {
    /// At once, as nothing is done with them.
    Lines(RecordSettings),
    Operators(Arc<OperatorSettings>),
}

/// What records pass.
#[derive(Debug)]
pub(super) struct OperatorSettings {
    pub(super) graph: OperatorGraph,
    pub(super) template: EntryTemplate,
    pub(super) header: Option<FileHeader>,
    pub(super) file: FileNames,
    pub(super) adds_record_number: bool,
    pub(super) adds_record_offset: bool,
}

impl ReadSettings {
    /// # Errors
    ///
    /// If a setting is not supported.
    pub(super) fn new(settings: &FileLogReceiver) -> Result<Self, BuildError> {
        let file = FileNames(settings.file_attributes);
        let template = EntryTemplate::new(&settings.attributes, &settings.resource);
        let is_same_for_all = template.is_constant() && settings.header.is_none();
        let container = ContainerOnly::from_graph(&settings.operators).filter(|_| is_same_for_all);
        let is_plain = settings.operators.operators.is_empty() && is_same_for_all;
        let (format, path) = match &container {
            Some(container) => (
                LineFormat::Container(container_settings(settings, &container.format)?),
                RecordPath::Lines(record_settings(settings, container.keeps_stream, container.keeps_tags)),
            ),
            None if is_plain => (
                LineFormat::Plain(plain_settings(settings)?),
                RecordPath::Lines(record_settings(settings, true, false)),
            ),
            None => (
                LineFormat::Plain(plain_settings(settings)?),
                RecordPath::Operators(operators(settings, template, file)?),
            ),
        };
        let own = container.iter();
        let attributes = constants(&settings.attributes).chain(own.clone().flat_map(|c| c.attributes.clone()));
        let resource = constants(&settings.resource).chain(own.flat_map(|c| c.resource.clone()));
        Ok(Self {
            files: files_settings(settings)?,
            format,
            path,
            flush_after: settings.force_flush_period,
            attributes: attributes.collect(),
            resource: resource.collect(),
            file,
            adds_pod: container.as_ref().is_some_and(|container| container.format.adds_metadata),
        })
    }

    pub(super) fn request_limits() -> RequestLimits {
        RequestLimits { max_bytes: MAX_REQUEST_BYTES, max_records: MAX_REQUEST_RECORDS }
    }

    /// What the records of a log have in common.
    pub(super) fn envelope(&self, path: &Path) -> RecordEnvelope {
        let pod = PodPath::parse(path).filter(|_| self.adds_pod);
        let pod = pod.map(|pod| pod.resource_attributes()).into_iter().flatten();
        let own = self.resource.iter().map(|(key, value)| (key.as_str(), value.as_str()));
        let resource: Vec<(&str, &str)> = own.chain(pod).collect();
        let mut envelope = RecordEnvelope::from_resource_attributes(resource);
        for (key, value) in &self.attributes {
            envelope.add_record_attribute(key, value);
        }
        for (key, value) in self.file.attributes(path) {
            envelope.add_record_attribute(key, &value);
        }
        envelope
    }
}

fn unsupported(what: &str) -> BuildError {
    BuildError(format!("failed to read log files: `{what}` is not supported"))
}

/// Texts that are the same for all records.
fn constants(templates: &BTreeMap<String, TextTemplate>) -> impl Iterator<Item = (String, String)> {
    templates.iter().filter_map(|(key, template)| Some((key.clone(), template.as_text()?.to_owned())))
}

fn record_settings(settings: &FileLogReceiver, adds_stream: bool, adds_tags: bool) -> RecordSettings {
    RecordSettings {
        adds_stream,
        adds_tags,
        adds_record_number: settings.file_attributes.record_number,
        adds_record_offset: settings.file_attributes.record_offset,
        parsing: body_parsing(settings),
    }
}

fn operators(
    settings: &FileLogReceiver,
    template: EntryTemplate,
    file: FileNames,
) -> Result<Arc<OperatorSettings>, BuildError> {
    if settings.body_parsing.json {
        return Err(unsupported("body_parsing` together with these `operators"));
    }
    if settings.joins_stack_traces {
        return Err(unsupported("join_stack_traces` together with these `operators"));
    }
    Ok(Arc::new(OperatorSettings {
        graph: settings.operators.clone(),
        template,
        header: settings.header.clone(),
        file,
        adds_record_number: settings.file_attributes.record_number,
        adds_record_offset: settings.file_attributes.record_offset,
    }))
}

fn oversize(settings: &FileLogReceiver) -> OversizeBehavior {
    match settings.max_log_size_behavior {
        LongLineBehavior::Split => OversizeBehavior::Split,
        LongLineBehavior::Truncate => OversizeBehavior::Truncate,
    }
}

fn body_parsing(settings: &FileLogReceiver) -> BodyParsing {
    let parsing = &settings.body_parsing;
    BodyParsing {
        parses_json: parsing.json,
        moves_message: parsing.message,
        moves_severity: parsing.severity,
        moves_trace_context: parsing.trace_context,
        keeps_original: parsing.keep_original,
    }
}

fn trimming(settings: &FileLogReceiver) -> BlankTrimming {
    BlankTrimming {
        removes_leading: !settings.preserve_leading_whitespaces,
        removes_trailing: !settings.preserve_trailing_whitespaces,
    }
}

fn container_settings(
    settings: &FileLogReceiver,
    container: &ContainerSetting,
) -> Result<ContainerSettings, BuildError> {
    if settings.multiline.is_some() {
        return Err(unsupported("multiline` together with the operator `container"));
    }
    if !matches!(settings.encoding, EncodingSetting::Utf8 | EncodingSetting::Utf8Raw) {
        return Err(unsupported("encoding` together with the operator `container"));
    }
    let format = match container.runtime {
        None => ContainerFormat::Auto,
        Some(ContainerRuntime::Docker) => ContainerFormat::Docker,
        Some(ContainerRuntime::Crio | ContainerRuntime::Containerd) => ContainerFormat::Cri,
    };
    Ok(ContainerSettings {
        format,
        docker: if settings.joins_stack_traces { DockerBodies::Joined } else { DockerBodies::AsWritten },
        max_record_bytes: container.max_log_size,
        oversize: oversize(settings),
        // The blanks at the start of a line belong to its content.
        trimming: BlankTrimming { removes_leading: false, ..trimming(settings) },
        joins_stack_traces: settings.joins_stack_traces,
    })
}

fn plain_settings(settings: &FileLogReceiver) -> Result<PlainSettings, BuildError> {
    let encoding = match settings.encoding {
        EncodingSetting::Utf8 => TextEncoding::Utf8,
        EncodingSetting::Utf8Raw => TextEncoding::RawUtf8,
        EncodingSetting::Nop => TextEncoding::Nop,
        EncodingSetting::Utf16Le => TextEncoding::Utf16Le,
        EncodingSetting::Utf16Be => TextEncoding::Utf16Be,
        EncodingSetting::Named(name) => TextEncoding::from_name(name).ok_or_else(|| unsupported("encoding"))?,
    };
    let framing = match &settings.multiline {
        None => LineFraming::LineFeed,
        Some(MultilinePattern::LineStart { pattern, omit }) => {
            LineFraming::Start(LinePattern::from_regex(pattern.regex().clone(), *omit))
        }
        Some(MultilinePattern::LineEnd { pattern, omit }) => {
            LineFraming::End(LinePattern::from_regex(pattern.regex().clone(), *omit))
        }
    };
    Ok(PlainSettings {
        encoding,
        framing,
        max_record_bytes: settings.max_log_size,
        oversize: oversize(settings),
        trimming: trimming(settings),
    })
}

fn files_settings(settings: &FileLogReceiver) -> Result<LogFilesSettings, BuildError> {
    let mut files = LogFilesSettings::new(patterns("include", &settings.include)?);
    files.exclude = patterns("exclude", &settings.exclude)?;
    files.start_at = match settings.start_at {
        StartPosition::Beginning => StartAt::Beginning,
        StartPosition::End => StartAt::End,
    };
    files.poll_interval = settings.poll_interval;
    // Who polls more often than usual wants fresher positions, too.
    files.checkpoint_interval =
        (settings.poll_interval * POLLS_PER_CHECKPOINT).clamp(MIN_CHECKPOINT_INTERVAL, MAX_CHECKPOINT_INTERVAL);
    files.fingerprint_size = settings.fingerprint_size;
    files.exclude_older_than = settings.exclude_older_than;
    files.delete_after_read = settings.delete_after_read;
    files.ordering = settings.ordering.as_ref().map(ordering).transpose()?;
    files.compression = match settings.compression {
        CompressionSetting::None => FileCompression::None,
        CompressionSetting::Gzip => FileCompression::Gzip,
        CompressionSetting::Auto => FileCompression::Auto,
    };
    files.on_truncate = match settings.on_truncate {
        TruncateBehavior::Ignore => OnTruncate::Ignore,
        TruncateBehavior::ReadWholeFile => OnTruncate::ReadWholeFile,
        TruncateBehavior::ReadNew => OnTruncate::ReadNew,
    };
    files.links = match &settings.link_directories {
        None => LinkPolicy::Follow,
        Some(directories) if directories.is_empty() => LinkPolicy::Refuse,
        Some(directories) => LinkPolicy::Into(directories.clone()),
    };
    files.limits = FileLimits { open_files: settings.max_concurrent_files, ..FileLimits::default() };
    Ok(files)
}

fn ordering(settings: &FileOrdering) -> Result<OrderingCriteria, BuildError> {
    let compile = |pattern: &RegexPattern| {
        Regex::new(pattern.regex().as_str()).map_err(|_| {
            unsupported("ordering_criteria` with an expression that matches bytes which are no text in `regex")
        })
    };
    let rule = |sort: &FileSort| {
        let kind = match &sort.kind {
            FileSortKind::Numeric { group } => SortKind::Numeric { key: group.clone() },
            FileSortKind::Alphabetical { group } => SortKind::Alphabetical { key: group.clone() },
            FileSortKind::Timestamp { group, layout } => {
                SortKind::Timestamp { key: group.clone(), layout: layout.text.clone() }
            }
            FileSortKind::ModificationTime => SortKind::ModificationTime,
        };
        SortRule { kind, ascending: sort.ascending }
    };
    Ok(OrderingCriteria {
        regex: settings.regex.as_ref().map(compile).transpose()?,
        group_by: settings.group_by.as_ref().map(compile).transpose()?,
        top_n: settings.top_n.map_or(usize::MAX, |count| usize::try_from(count).unwrap_or(usize::MAX)),
        sort_by: settings.sort_by.iter().map(rule).collect(),
    })
}

fn patterns(field: &str, texts: &[String]) -> Result<Vec<GlobPattern>, BuildError> {
    let parse = |text: &String| {
        GlobPattern::parse(text).map_err(|error| BuildError(format!("failed to read `{field}`: {error}")))
    };
    texts.iter().map(parse).collect()
}
