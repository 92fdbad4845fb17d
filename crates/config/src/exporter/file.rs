//! `file`.

use std::{path::PathBuf, time::Duration};

use kubewake_otlp::Signal;

use crate::{
    component::{ComponentSettings, ExporterSettings},
    decode::{Cursor, DecodeReport, FieldReader, scalar},
    encode::{self, YamlMap},
};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum FileFormat {
    /// One OTLP JSON document a line.
    #[default]
    Json,
    /// Each request as a big-endian length of 4 bytes and its protobuf.
    Proto,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileExporter {
    pub path: PathBuf,
    pub rotation: Option<RotationConfig>,
    pub format: FileFormat,
    /// `append`: keep what is there; without it the file is emptied at the start.
    pub append: bool,
    pub flush_interval: Duration,
    pub zstd: bool,
    pub create_directory: Option<u32>,
    /// `group_by`; `None` unless it is enabled.
    pub group_by: Option<GroupBy>,
}

/// `group_by`: a file for each value of an attribute.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupBy {
    /// `resource_attribute`: its value stands in the path instead of `*`.
    pub resource_attribute: String,
    /// `max_open_files`, at least one.
    pub max_open_files: u32,
}

impl Default for GroupBy {
    fn default() -> Self {
        Self { resource_attribute: "fileexporter.path_segment".into(), max_open_files: 100 }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RotationConfig {
    /// `max_megabytes`: a file of this size is closed and renamed.
    pub max_megabytes: u32,
    /// `max_days`: renamed files older than this are removed; zero: never.
    pub max_days: u32,
    /// `max_backups`: only so many renamed files are kept; zero: all.
    pub max_backups: u32,
    /// `localtime` in the names of renamed files, instead of UTC.
    pub localtime: bool,
}

impl Default for RotationConfig {
    fn default() -> Self {
        Self { max_megabytes: 100, max_days: 0, max_backups: 100, localtime: false }
    }
}

const FORMATS: [(&str, FileFormat); 2] = [("json", FileFormat::Json), ("proto", FileFormat::Proto)];
const DEFAULT_FLUSH_INTERVAL: Duration = Duration::from_secs(1);

impl ComponentSettings for FileExporter {
    fn decode(at: &Cursor<'_>, report: &DecodeReport) -> Option<Self> {
        let mut fields = FieldReader::new(at, report);
        let path = fields.path("path");
        if path.is_none() {
            fields.require("path", "the exporter needs a `path`", None);
        }
        let flush = fields.get("flush_interval", scalar::duration).filter(|interval| !interval.is_zero());
        let exporter = FileExporter {
            path: path.unwrap_or_default(),
            rotation: fields.find_even_empty("rotation").map(|at| rotation(&at, report)),
            format: fields.get_or("format", FileFormat::Json, |at, report| scalar::keyword(at, report, &FORMATS)),
            append: fields.flag("append"),
            flush_interval: flush.unwrap_or(DEFAULT_FLUSH_INTERVAL),
            zstd: fields
                .get_or("compression", false, |at, report| scalar::keyword(at, report, &[("", false), ("zstd", true)])),
            create_directory: directory(&mut fields),
            group_by: fields.get("group_by", group_by).flatten(),
        };
        check_combinations(&exporter, &fields);
        fields.unsupported(&["encoding", "compression_params"]);
        fields.finish();
        Some(exporter)
    }

    fn encode(&self) -> YamlMap {
        let map = YamlMap::default()
            .with_field("path", self.path.as_path())
            .with_optional("rotation", self.rotation.as_ref().map(RotationConfig::encode))
            .with_changed("format", encode::keyword(&FORMATS, &self.format), "json")
            .with_flag("append", self.append)
            .with_changed("flush_interval", self.flush_interval, DEFAULT_FLUSH_INTERVAL)
            .with_optional("compression", self.zstd.then_some("zstd"))
            .with_optional("group_by", self.group_by.as_ref().map(GroupBy::encode));
        match self.create_directory {
            Some(mode) => map
                .with_field("create_directory", true)
                .with_field("directory_permissions", format!("{mode:04o}").as_str()),
            None => map,
        }
    }
}

impl ExporterSettings for FileExporter {
    fn signals(&self) -> &'static [Signal] {
        &Signal::ALL
    }
}

/// The default permissions of new directories, as in the Collector.
const DEFAULT_DIRECTORY_MODE: u32 = 0o755;

/// Refuses settings that contradict each other.
fn check_combinations(exporter: &FileExporter, fields: &FieldReader<'_, '_>) {
    for (other, set) in [("rotation", exporter.rotation.is_some()), ("compression", exporter.zstd)] {
        if exporter.append && set {
            let message = format!("`append` and `{other}` cannot both be set");
            fields.report.error(&fields.cursor_at("append"), message, Some("keep one of the two".into()));
        }
    }
    let path = exporter.path.to_string_lossy();
    let stars = path.matches('*').count();
    if exporter.group_by.is_some() && !path.is_empty() && (stars != 1 || path.starts_with('*')) {
        let message = "with `group_by` the `path` must contain one `*` and must not begin with it";
        let help = "write a path such as /data/*.json: the value of the attribute replaces the `*`";
        fields.report.error(&fields.cursor_at("path"), message, Some(help.into()));
    }
}

/// The permissions of new directories, if they are created.
fn directory(fields: &mut FieldReader<'_, '_>) -> Option<u32> {
    let create = fields.flag("create_directory");
    let given = fields.text("directory_permissions").filter(|text| !text.is_empty());
    let place = fields.cursor_at("directory_permissions");
    let refuse = |message: &str, help: &str| fields.report.error(&place, message, Some(help.to_owned()));
    match given.as_deref() {
        Some(_) if !create => {
            refuse("`directory_permissions` without `create_directory` has no effect", "set `create_directory: true`");
            None
        }
        Some(text) => {
            let bits = u32::from_str_radix(text, 8).ok().filter(|bits| bits & 0o777 == *bits);
            if bits.is_none() {
                refuse(
                    "`directory_permissions` are not valid permissions",
                    "write the permissions in octal, such as \"0755\"",
                );
            }
            bits
        }
        None => create.then_some(DEFAULT_DIRECTORY_MODE),
    }
}

fn group_by(at: &Cursor<'_>, report: &DecodeReport) -> Option<Option<GroupBy>> {
    let default = GroupBy::default();
    let mut fields = FieldReader::new(at, report);
    let enabled = fields.flag("enabled");
    let group = GroupBy {
        resource_attribute: fields.get_or("resource_attribute", default.resource_attribute, scalar::text),
        max_open_files: fields.get_or("max_open_files", default.max_open_files, scalar::u32),
    };
    if enabled && group.resource_attribute.is_empty() {
        report.error(&fields.cursor_at("resource_attribute"), "the `resource_attribute` is empty", None);
    }
    if enabled && group.max_open_files == 0 {
        report.error(&fields.cursor_at("max_open_files"), "`max_open_files` must be at least 1", None);
    }
    fields.finish();
    Some(enabled.then_some(group))
}

fn rotation(at: &Cursor<'_>, report: &DecodeReport) -> RotationConfig {
    let default = RotationConfig::default();
    let mut fields = FieldReader::new(at, report);
    let rotation = RotationConfig {
        max_megabytes: fields
            .get("max_megabytes", scalar::u32)
            .filter(|size| *size > 0)
            .unwrap_or(default.max_megabytes),
        max_days: fields.get_or("max_days", default.max_days, scalar::u32),
        max_backups: fields.get_or("max_backups", default.max_backups, scalar::u32),
        localtime: fields.flag("localtime"),
    };
    fields.finish();
    rotation
}

impl GroupBy {
    fn encode(&self) -> YamlMap {
        let default = Self::default();
        YamlMap::default()
            .with_field("enabled", true)
            .with_changed("resource_attribute", &self.resource_attribute, &default.resource_attribute)
            .with_changed("max_open_files", self.max_open_files, default.max_open_files)
    }
}

impl RotationConfig {
    fn encode(&self) -> YamlMap {
        let default = Self::default();
        YamlMap::default()
            .with_changed("max_megabytes", self.max_megabytes, default.max_megabytes)
            .with_changed("max_days", self.max_days, default.max_days)
            .with_changed("max_backups", self.max_backups, default.max_backups)
            .with_flag("localtime", self.localtime)
    }
}
