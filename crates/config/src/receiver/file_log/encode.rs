//! Writes the settings of `file_log`.

use std::{collections::BTreeMap, path::PathBuf};

use super::{
    COMPRESSIONS, FileAttributes, FileHeader, FileLogReceiver, MultilinePattern, START_POSITIONS, TRUNCATE_BEHAVIORS,
    TextTemplate, lines::LONG_LINE_BEHAVIORS,
};
use crate::encode::{YamlMap, YamlValue, keyword};

pub(super) fn settings(receiver: &FileLogReceiver) -> YamlMap {
    let default = FileLogReceiver::default();
    let flush = |receiver: &FileLogReceiver| receiver.force_flush_period.unwrap_or_default();
    let start = |receiver: &FileLogReceiver| keyword(&START_POSITIONS, &receiver.start_at);
    let long_lines = |receiver: &FileLogReceiver| keyword(&LONG_LINE_BEHAVIORS, &receiver.max_log_size_behavior);
    let truncated = |receiver: &FileLogReceiver| keyword(&TRUNCATE_BEHAVIORS, &receiver.on_truncate);
    let ordering = receiver.ordering.as_ref().and_then(|ordering| ordering.written.encode());
    let map = YamlMap::default()
        .with_list("include", &receiver.include)
        .with_list("exclude", &receiver.exclude)
        .with_optional("exclude_older_than", receiver.exclude_older_than)
        .with_optional("ordering_criteria", ordering)
        .with_changed("start_at", start(receiver), start(&default))
        .with_changed("poll_interval", receiver.poll_interval, default.poll_interval)
        .with_changed("fingerprint_size", receiver.fingerprint_size, default.fingerprint_size)
        .with_changed("max_log_size", receiver.max_log_size, default.max_log_size)
        .with_changed("max_log_size_behavior", long_lines(receiver), long_lines(&default))
        .with_changed("max_concurrent_files", receiver.max_concurrent_files, default.max_concurrent_files)
        .with_changed("encoding", receiver.encoding.name(), default.encoding.name())
        .with_optional("multiline", receiver.multiline.as_ref().map(MultilinePattern::encode))
        .with_changed("force_flush_period", flush(receiver), flush(&default))
        .with_flag("preserve_leading_whitespaces", receiver.preserve_leading_whitespaces)
        .with_flag("preserve_trailing_whitespaces", receiver.preserve_trailing_whitespaces);
    file_attributes(map, receiver.file_attributes)
        .with_optional("storage", receiver.storage.as_ref())
        .with_text("compression", keyword(&COMPRESSIONS, &receiver.compression))
        .with_flag("delete_after_read", receiver.delete_after_read)
        .with_changed("on_truncate", truncated(receiver), truncated(&default))
        .with_optional("header", receiver.header.as_ref().map(FileHeader::encode))
        .with_section("attributes", templates(&receiver.attributes))
        .with_section("resource", templates(&receiver.resource))
        .with_optional("operators", receiver.operators.written.encode())
        .with_section("body_parsing", receiver.body_parsing.encode())
        .with_flag("join_stack_traces", receiver.joins_stack_traces)
        .with_optional("link_directories", receiver.link_directories.as_deref().map(directories))
}

fn file_attributes(map: YamlMap, attributes: FileAttributes) -> YamlMap {
    map.with_changed("include_file_name", attributes.name, FileAttributes::default().name)
        .with_flag("include_file_path", attributes.path)
        .with_flag("include_file_name_resolved", attributes.name_resolved)
        .with_flag("include_file_path_resolved", attributes.path_resolved)
        .with_flag("include_file_owner_name", attributes.owner_name)
        .with_flag("include_file_owner_group_name", attributes.owner_group_name)
        .with_flag("include_file_permissions", attributes.permissions)
        .with_flag("include_file_record_number", attributes.record_number)
        .with_flag("include_file_record_offset", attributes.record_offset)
}

fn directories(directories: &[PathBuf]) -> YamlValue {
    YamlValue::List(directories.iter().map(|directory| directory.as_path().into()).collect())
}

fn templates(templates: &BTreeMap<String, TextTemplate>) -> YamlMap {
    templates.iter().map(|(name, template)| (name, YamlValue::from(&template.to_text()))).collect()
}
