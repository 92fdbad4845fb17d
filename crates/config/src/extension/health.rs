//! `health_check`.

use std::path::PathBuf;

use crate::{
    component::{ComponentSettings, ExtensionSettings},
    decode::{Cursor, DecodeReport, extension},
    model::{HealthCheck, ServerTls},
};

impl ComponentSettings for HealthCheck {
    fn decode(at: &Cursor<'_>, report: &DecodeReport) -> Option<Self> {
        extension::health_check(at, report)
    }

    fn files(&self) -> Vec<PathBuf> {
        self.tls.as_ref().map(ServerTls::files).unwrap_or_default()
    }
}

impl ExtensionSettings for HealthCheck {}
