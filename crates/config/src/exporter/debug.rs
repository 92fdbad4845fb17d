//! `debug`.

use kubewake_otlp::Signal;

use crate::{
    component::{ComponentSettings, ExporterSettings},
    decode::{Cursor, DecodeReport, FieldReader, scalar},
    encode::{self, YamlMap},
};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum DebugVerbosity {
    /// One line for each batch.
    #[default]
    Basic,
    /// One line for each record.
    Normal,
    Detailed,
    /// One JSON object for each record, on standard output. Ours.
    Json,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DebugExporter {
    pub verbosity: DebugVerbosity,
    /// `sampling_initial`: this many messages in each second are shown,
    pub sampling_initial: u32,
    /// `sampling_thereafter`: and then one in this many (0: none).
    pub sampling_thereafter: u32,
}

impl Default for DebugExporter {
    fn default() -> Self {
        Self { verbosity: DebugVerbosity::Basic, sampling_initial: 2, sampling_thereafter: 1 }
    }
}

const VERBOSITY: [(&str, DebugVerbosity); 4] = [
    ("basic", DebugVerbosity::Basic),
    ("normal", DebugVerbosity::Normal),
    ("detailed", DebugVerbosity::Detailed),
    ("json", DebugVerbosity::Json),
];

impl ComponentSettings for DebugExporter {
    fn decode(at: &Cursor<'_>, report: &DecodeReport) -> Option<Self> {
        let default = DebugExporter::default();
        let mut fields = FieldReader::new(at, report);
        let exporter = DebugExporter {
            verbosity: fields
                .get_or("verbosity", default.verbosity, |at, report| scalar::keyword_any_case(at, report, &VERBOSITY)),
            sampling_initial: fields.get_or("sampling_initial", default.sampling_initial, scalar::u32),
            sampling_thereafter: fields.get_or("sampling_thereafter", default.sampling_thereafter, scalar::u32),
        };
        let internal = fields.get_or("use_internal_logger", true, scalar::boolean);
        output_paths(&mut fields, internal);
        fields.unsupported(&["sending_queue"]);
        fields.finish();
        Some(exporter)
    }

    fn encode(&self) -> YamlMap {
        let default = Self::default();
        let verbosity = |exporter: &Self| encode::keyword(&VERBOSITY, &exporter.verbosity);
        YamlMap::default()
            .with_changed("verbosity", verbosity(self), verbosity(&default))
            .with_changed("sampling_initial", self.sampling_initial, default.sampling_initial)
            .with_changed("sampling_thereafter", self.sampling_thereafter, default.sampling_thereafter)
    }
}

impl ExporterSettings for DebugExporter {
    fn signals(&self) -> &'static [Signal] {
        &Signal::ALL
    }
}

fn output_paths(fields: &mut FieldReader<'_, '_>, internal: bool) {
    let Some(at) = fields.find("output_paths") else { return };
    let Some(paths) = scalar::texts(&at, fields.report) else { return };
    if internal {
        let help = "set `use_internal_logger: false`, or remove it";
        fields.report.error(&at, "`output_paths` cannot be set while `use_internal_logger` is true", Some(help.into()));
    } else if paths.is_empty() {
        fields.report.error(&at, "`output_paths` must not be empty", None);
    } else if paths != ["stdout"] {
        fields.report.warning(&at, "`output_paths` has no effect: the exporter writes to the output of the logs", None);
    }
}
