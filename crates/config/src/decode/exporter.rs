//! Exporters.

mod balancing;
mod file;
mod grpc;
mod http;
mod sending;

pub(crate) use balancing::load_balancing;
pub(crate) use file::file;
pub(crate) use grpc::grpc;
pub(crate) use http::http;

use super::{cursor::Cursor, field_reader::FieldReader, report::DecodeReport, scalar};
use crate::model::{DebugExporter, DebugVerbosity, NopExporter};

pub(crate) fn debug(at: &Cursor<'_>, report: &DecodeReport) -> Option<DebugExporter> {
    const VERBOSITY: [(&str, DebugVerbosity); 4] = [
        ("basic", DebugVerbosity::Basic),
        ("normal", DebugVerbosity::Normal),
        ("detailed", DebugVerbosity::Detailed),
        ("json", DebugVerbosity::Json),
    ];
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

pub(crate) fn nop(at: &Cursor<'_>, report: &DecodeReport) -> Option<NopExporter> {
    FieldReader::new(at, report).finish();
    Some(NopExporter)
}
