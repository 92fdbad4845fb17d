//! `file_storage`.

use std::path::PathBuf;

use crate::{
    component::{ComponentSettings, ExtensionSettings},
    decode::{Cursor, DecodeReport, FieldReader, scalar},
    encode::YamlMap,
    yaml::NodeValue,
};

/// `file_storage`: the directory in which components keep what they need after a restart.
///
/// The Collector has a database in it, and so settings for how the database is kept small. Here each component writes
/// small files of its own, and replaces them as a whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileStorage {
    /// `directory`
    pub directory: PathBuf,
    /// `create_directory`: with these permissions, if it does not exist.
    pub create_directory: Option<u32>,
}

impl Default for FileStorage {
    fn default() -> Self {
        Self { directory: "/var/lib/otelcol/file_storage".into(), create_directory: None }
    }
}

/// `directory_permissions` by default.
const DEFAULT_PERMISSIONS: u32 = 0o750;

impl ComponentSettings for FileStorage {
    fn decode(at: &Cursor<'_>, report: &DecodeReport) -> Option<Self> {
        let default = Self::default();
        let mut fields = FieldReader::new(at, report);
        let directory = fields.path("directory").unwrap_or(default.directory);
        let creates = fields.flag("create_directory");
        let permissions = fields.get_or("directory_permissions", DEFAULT_PERMISSIONS, permissions);
        fields.accept_without_effect(&["timeout"], scalar::nanoseconds);
        // Files are always written to the disk before they count, and one that cannot be read is replaced.
        fields.accept_without_effect(&["fsync", "recreate"], scalar::boolean);
        fields.accept_without_effect(&["max_size"], |at, report| scalar::integer_in_range(at, report, 0, i64::MAX));
        if let Some(at) = fields.find("compaction") {
            read_compaction(&at, report);
        }
        fields.finish();
        Some(Self { directory, create_directory: creates.then_some(permissions) })
    }

    fn encode(&self) -> YamlMap {
        let default = Self::default().directory;
        let map = YamlMap::default().with_changed("directory", self.directory.as_path(), default.as_path());
        match self.create_directory {
            Some(mode) => map
                .with_field("create_directory", true)
                .with_field("directory_permissions", format!("{mode:04o}").as_str()),
            None => map,
        }
    }

    fn public_fields() -> &'static [&'static str] {
        &["directory"]
    }
}

impl ExtensionSettings for FileStorage {
    fn keeps_state(&self) -> bool {
        true
    }
}

/// `compaction`, which has no purpose without a database.
fn read_compaction(at: &Cursor<'_>, report: &DecodeReport) {
    let mut fields = FieldReader::new(at, report);
    fields.accept_without_effect(&["on_start", "on_rebound", "cleanup_on_start"], scalar::boolean);
    fields.accept_without_effect(&["directory"], scalar::text);
    fields.accept_without_effect(&["check_interval"], scalar::nanoseconds);
    fields.accept_without_effect(
        &["rebound_needed_threshold_mib", "rebound_trigger_threshold_mib", "max_transaction_size"],
        |at, report| scalar::integer_in_range(at, report, 0, i64::MAX),
    );
    fields.finish();
}

/// `directory_permissions`: an octal number in quotes.
fn permissions(at: &Cursor<'_>, report: &DecodeReport) -> Option<u32> {
    let parsed = match &at.node.value {
        NodeValue::String(text) => u32::from_str_radix(text, 8).ok().filter(|mode| *mode <= 0o777),
        _ => None,
    };
    match parsed {
        Some(_) => report.mark_public(at),
        None => {
            let help = "write an octal number in quotes, such as \"0750\"";
            report.error(at, "`directory_permissions` must be permissions of a directory", Some(help.into()));
        }
    }
    parsed
}

#[cfg(test)]
mod tests {
    use crate::{FixedSources, load, model::ExtensionConfig};

    fn document(extension: &str) -> String {
        format!(
            "
receivers: {{otlp: {{protocols: {{grpc: }}}}}}
exporters: {{debug: }}
extensions: {{file_storage: {extension}}}
service: {{extensions: [file_storage], pipelines: {{traces: {{receivers: [otlp], exporters: [debug]}}}}}}"
        )
    }

    #[test]
    fn directory_is_created_with_permissions_when_asked_for() {
        let text =
            document("{directory: /var/lib/x, create_directory: true, directory_permissions: '0700', timeout: 1s}");
        let loaded = load(&text, &FixedSources::new()).unwrap();
        let extensions: Vec<_> = loaded.document.extensions.into_values().collect();
        let [ExtensionConfig::FileStorage(storage)] = extensions.as_slice() else { panic!("{extensions:?}") };
        assert_eq!((storage.directory.to_str(), storage.create_directory), (Some("/var/lib/x"), Some(0o700)));
    }

    #[test]
    fn permissions_that_are_not_octal_are_refused() {
        let text = document("{directory: /x, directory_permissions: '0999'}");
        let errors = load(&text, &FixedSources::new()).unwrap_err().to_string();
        assert!(errors.contains("permissions of a directory"), "{errors}");
    }
}
