//! `basicauth`.

use std::path::PathBuf;

use crate::{
    component::{ComponentSettings, ExtensionSettings},
    decode::{ConnectionSide, Cursor, DecodeReport, extension},
    model::BasicAuth,
};

impl ComponentSettings for BasicAuth {
    fn decode(at: &Cursor<'_>, report: &DecodeReport) -> Option<Self> {
        extension::basic_auth(at, report)
    }

    fn files(&self) -> Vec<PathBuf> {
        match self {
            Self::Server(htpasswd) => htpasswd.file.iter().cloned().collect(),
            Self::Client(client) => client.username_file.iter().chain(&client.password_file).cloned().collect(),
        }
    }
}

impl ExtensionSettings for BasicAuth {
    fn authenticates(&self, side: ConnectionSide) -> bool {
        match self {
            Self::Server(_) => side == ConnectionSide::Server,
            Self::Client(_) => side == ConnectionSide::Client,
        }
    }
}
