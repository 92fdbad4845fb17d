//! `oauth2client`.

use std::path::PathBuf;

use crate::{
    component::{ComponentSettings, ExtensionSettings},
    decode::{ConnectionSide, Cursor, DecodeReport, extension},
    model::OAuth2Client,
};

impl ComponentSettings for OAuth2Client {
    fn decode(at: &Cursor<'_>, report: &DecodeReport) -> Option<Self> {
        extension::oauth2_client(at, report)
    }

    fn files(&self) -> Vec<PathBuf> {
        let own = self.client_id_file.iter().chain(&self.client_secret_file).cloned();
        own.chain(self.tls.files()).collect()
    }
}

impl ExtensionSettings for OAuth2Client {
    fn authenticates(&self, side: ConnectionSide) -> bool {
        side == ConnectionSide::Client
    }
}
