//! `bearertokenauth`.

use std::path::PathBuf;

use crate::{
    SecretString,
    component::{ComponentSettings, ExtensionSettings},
    decode::{ConnectionSide, Cursor, DecodeReport, FieldReader, scalar},
    encode::YamlMap,
    network,
};

#[derive(Clone, Debug, PartialEq)]
pub struct BearerTokenAuth {
    pub header: String,
    pub scheme: String,
    /// `token` and `tokens`: a client sends the first, a server takes any.
    pub tokens: Vec<SecretString>,
    /// `filename`, one token a line; wins over text and is read again when it changes.
    pub file: Option<PathBuf>,
}

const DEFAULT_HEADER: &str = "Authorization";
const DEFAULT_SCHEME: &str = "Bearer";

impl BearerTokenAuth {
    /// A client that sends `token`.
    pub fn with_token(token: SecretString) -> Self {
        Self { header: DEFAULT_HEADER.into(), scheme: DEFAULT_SCHEME.into(), tokens: vec![token], file: None }
    }
}

impl ComponentSettings for BearerTokenAuth {
    fn decode(at: &Cursor<'_>, report: &DecodeReport) -> Option<Self> {
        let mut fields = FieldReader::new(at, report);
        let one = fields.get("token", token).filter(|token| !token.is_empty());
        let many = fields.get("tokens", tokens).unwrap_or_default();
        let file = fields.path("filename");
        let none = one.is_none() && many.is_empty() && file.is_none();
        if one.is_some() && !many.is_empty() {
            let place = fields.cursor_at("tokens");
            report.error(&place, "`token` and `tokens` cannot both be set", Some("keep one of the two".into()));
        } else if none && !fields.failed("tokens") && !fields.failed("filename") {
            fields.require("token", "the extension has no token", Some("set `token`, `tokens` or `filename`".into()));
        }
        let auth = BearerTokenAuth {
            header: fields.get_or("header", DEFAULT_HEADER.into(), scalar::text),
            scheme: fields.get_or("scheme", DEFAULT_SCHEME.into(), scalar::text),
            tokens: if many.is_empty() { one.into_iter().collect() } else { many },
            file,
        };
        fields.finish();
        Some(auth)
    }

    fn encode(&self) -> YamlMap {
        let map = match self.tokens.as_slice() {
            [token] => YamlMap::default().with_field("token", token),
            tokens => YamlMap::default().with_list("tokens", tokens),
        };
        map.with_optional("filename", self.file.as_deref())
            .with_changed("header", self.header.as_str(), DEFAULT_HEADER)
            .with_changed("scheme", self.scheme.as_str(), DEFAULT_SCHEME)
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

fn token(at: &Cursor<'_>, report: &DecodeReport) -> Option<SecretString> {
    scalar::secret(at, report).filter(|token| network::check_header_value(at, report, token))
}

fn tokens(at: &Cursor<'_>, report: &DecodeReport) -> Option<Vec<SecretString>> {
    match at.items() {
        Some(items) => Some(items.filter_map(|item| token(&item, report)).collect()),
        None => scalar::wrong_type(at, report, "a list", None),
    }
}
