//! `bearertokenauth`.

use std::path::PathBuf;

use crate::{
    component::{ComponentSettings, ExtensionSettings},
    decode::{ConnectionSide, Cursor, DecodeReport, extension},
    model::BearerTokenAuth,
};

impl ComponentSettings for BearerTokenAuth {
    fn decode(at: &Cursor<'_>, report: &DecodeReport) -> Option<Self> {
        extension::bearer_token_auth(at, report)
    }

    fn files(&self) -> Vec<PathBuf> {
        self.file.iter().cloned().collect()
    }
}

impl ExtensionSettings for BearerTokenAuth {
    /// A client sends the token, and a server compares it.
    fn authenticates(&self, _: ConnectionSide) -> bool {
        true
    }
}
