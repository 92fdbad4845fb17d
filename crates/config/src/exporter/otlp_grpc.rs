//! `otlp`, `otlp_grpc`.

use std::path::PathBuf;

use kubewake_otlp::Signal;

use crate::{
    ComponentId,
    component::{ComponentSettings, ExporterSettings},
    decode::{Cursor, DecodeReport, exporter},
    model::OtlpGrpcExporter,
};

impl ComponentSettings for OtlpGrpcExporter {
    fn decode(at: &Cursor<'_>, report: &DecodeReport) -> Option<Self> {
        exporter::grpc(at, report)
    }

    fn files(&self) -> Vec<PathBuf> {
        self.tls.files()
    }

    fn auth_extension_ids(&self) -> Vec<&ComponentId> {
        self.auth.iter().collect()
    }
}

impl ExporterSettings for OtlpGrpcExporter {
    fn signals(&self) -> &'static [Signal] {
        &Signal::ALL
    }
}
