//! `basicauth`.

use std::path::PathBuf;

use crate::{
    ConfigText, SecretString,
    component::{ComponentSettings, ExtensionSettings},
    decode::{ConnectionSide, Cursor, DecodeReport, FieldReader, scalar},
    encode::YamlMap,
};

/// `basicauth`: `htpasswd` for servers, `client_auth` for clients; exactly one of them.
#[derive(Clone, Debug, PartialEq)]
pub enum BasicAuth {
    Server(Htpasswd),
    Client(BasicClientCredentials),
}

#[derive(Clone, Debug, PartialEq, Default)]
pub struct Htpasswd {
    pub file: Option<PathBuf>,
    /// `inline`; its entries win over the file's.
    pub inline: Option<SecretString>,
}

/// `client_auth`; a file wins over text.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct BasicClientCredentials {
    pub username: ConfigText,
    pub username_file: Option<PathBuf>,
    pub password: SecretString,
    pub password_file: Option<PathBuf>,
}

impl ComponentSettings for BasicAuth {
    fn decode(at: &Cursor<'_>, report: &DecodeReport) -> Option<Self> {
        let mut fields = FieldReader::new(at, report);
        let server = fields.find_even_empty("htpasswd").map(|at| htpasswd(&at, report));
        let client = fields.find_even_empty("client_auth").map(|at| client_auth(&at, report));
        let auth = match (server, client) {
            (Some(server), None) => Some(BasicAuth::Server(server)),
            (None, Some(client)) => Some(BasicAuth::Client(client)),
            (Some(_), Some(_)) => {
                let help = "use two extensions, one with `htpasswd` for servers and one with `client_auth` for clients";
                let place = fields.cursor_at("client_auth");
                report.error(&place, "`htpasswd` and `client_auth` cannot both be set", Some(help.into()));
                None
            }
            (None, None) => {
                let help = "set `htpasswd` for a server, or `client_auth` for a client";
                fields.require("htpasswd", "the extension has no credentials", Some(help.into()));
                None
            }
        };
        fields.finish();
        auth
    }

    fn encode(&self) -> YamlMap {
        match self {
            Self::Server(htpasswd) => YamlMap::default().with_field("htpasswd", htpasswd.encode()),
            Self::Client(client) => YamlMap::default().with_field("client_auth", client.encode()),
        }
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

fn htpasswd(at: &Cursor<'_>, report: &DecodeReport) -> Htpasswd {
    let mut fields = FieldReader::new(at, report);
    let htpasswd = Htpasswd {
        file: fields.path("file"),
        inline: fields.get("inline", scalar::secret).filter(|text: &SecretString| !text.is_empty()),
    };
    if htpasswd.file.is_none() && htpasswd.inline.is_none() && !fields.failed("inline") {
        fields.require("file", "the extension has no credentials", Some("set `file` or `inline`".into()));
    }
    fields.finish();
    htpasswd
}

fn client_auth(at: &Cursor<'_>, report: &DecodeReport) -> BasicClientCredentials {
    let mut fields = FieldReader::new(at, report);
    let credentials = BasicClientCredentials {
        username: fields.text("username").unwrap_or_default().into(),
        username_file: fields.path("username_file"),
        password: fields.get("password", scalar::secret).unwrap_or_default(),
        password_file: fields.path("password_file"),
    };
    let named = !credentials.username.is_empty() || credentials.username_file.is_some();
    if !named && !fields.failed("username_file") {
        fields.require("username", "the extension has no user name", Some("set `username` or `username_file`".into()));
    }
    fields.finish();
    credentials
}

impl Htpasswd {
    fn encode(&self) -> YamlMap {
        YamlMap::default().with_optional("file", self.file.as_deref()).with_optional("inline", self.inline.as_ref())
    }
}

impl BasicClientCredentials {
    fn encode(&self) -> YamlMap {
        YamlMap::default()
            .with_optional("username", Some(&self.username).filter(|text| !text.is_empty()))
            .with_optional("username_file", self.username_file.as_deref())
            .with_optional("password", Some(&self.password).filter(|text| !text.is_empty()))
            .with_optional("password_file", self.password_file.as_deref())
    }
}
