//! `file`.

use std::time::Duration;

use crate::{
    decode::{cursor::Cursor, fields::Fields, report::Report, scalar},
    model::{Exporter, FileExporter, FileFormat, Rotation},
};

/// `file`
pub(crate) fn file(at: &Cursor<'_>, report: &Report) -> Option<Exporter> {
    let formats = [("json", FileFormat::Json), ("proto", FileFormat::Proto)];
    let mut fields = Fields::of(at, report);
    let path = fields.text("path");
    if path.is_none() {
        fields.require("path", "the exporter needs a `path`", None);
    }
    let flush = fields.get("flush_interval", scalar::duration).filter(|interval| !interval.is_zero());
    let exporter = FileExporter {
        path: path.unwrap_or_default().into(),
        rotation: fields.find_even_empty("rotation").map(|at| rotation(&at, report)),
        format: fields.get_or("format", FileFormat::Json, |at, report| scalar::keyword(at, report, &formats)),
        append: fields.flag("append"),
        flush_interval: flush.unwrap_or(Duration::from_secs(1)),
    };
    if exporter.append && exporter.rotation.is_some() {
        report.error(
            &fields.place("append"),
            "`append` and `rotation` cannot both be set",
            Some("keep one of the two".into()),
        );
    }
    fields.unsupported(&[
        "encoding",
        "compression",
        "compression_params",
        "group_by",
        "create_directory",
        "directory_permissions",
    ]);
    fields.finish();
    Some(Exporter::File(exporter))
}

fn rotation(at: &Cursor<'_>, report: &Report) -> Rotation {
    let default = Rotation::default();
    let mut fields = Fields::of(at, report);
    let rotation = Rotation {
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
