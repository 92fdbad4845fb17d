//! `tls` of servers and clients.

use std::{path::PathBuf, time::Duration};

use crate::{
    SecretString,
    decode::{Cursor, DecodeReport, FieldReader, scalar},
    encode::{self, YamlMap},
};

/// The source of a certificate or a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PemSource {
    /// A file, read again when it changes.
    File(PathBuf),
    /// Text in the document itself.
    Inline(SecretString),
}

/// A certificate with its key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyPair {
    /// The certificate chain, leaf first.
    pub cert: PemSource,
    pub key: PemSource,
}

impl PemSource {
    /// The file, if it is one.
    fn file(&self) -> Option<PathBuf> {
        match self {
            Self::File(path) => Some(path.clone()),
            Self::Inline(_) => None,
        }
    }
}

impl KeyPair {
    fn files(&self) -> impl Iterator<Item = PathBuf> + use<> {
        [self.cert.file(), self.key.file()].into_iter().flatten()
    }
}

impl ServerTls {
    /// The files that it is read from.
    pub fn files(&self) -> Vec<PathBuf> {
        self.identity.files().chain(self.client_ca.as_ref().and_then(PemSource::file)).collect()
    }
}

impl ClientTls {
    /// The files that it is read from.
    pub fn files(&self) -> Vec<PathBuf> {
        let identity = self.identity.iter().flat_map(KeyPair::files);
        identity.chain(self.ca.as_ref().and_then(PemSource::file)).collect()
    }
}

/// A supported version of TLS.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum TlsVersion {
    /// 1.2, the Collector's default minimum.
    #[default]
    V1_2,
    /// 1.3
    V1_3,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerTls {
    pub identity: KeyPair,
    /// `client_ca_file`: the authority that must have signed clients' certificates.
    pub client_ca: Option<PemSource>,
    pub min_version: TlsVersion,
    /// `reload_interval`: how often files are checked even if no change was noticed.
    pub reload_interval: Option<Duration>,
}

#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct ClientTls {
    /// `insecure`: no TLS at all, unless the endpoint says `https`.
    pub insecure: bool,
    /// `insecure_skip_verify`: TLS, but the server's certificate is not checked.
    pub insecure_skip_verify: bool,
    pub server_name_override: Option<String>,
    /// `ca_file` or `ca_pem`; the system's roots if absent.
    pub ca: Option<PemSource>,
    /// `include_system_ca_certs_pool`: the system's roots as well as `ca`.
    pub include_system_roots: bool,
    /// `cert_file` and `key_file` (or `_pem`).
    pub identity: Option<KeyPair>,
    pub min_version: TlsVersion,
    pub reload_interval: Option<Duration>,
}

/// `tls` of a server. As in the Collector, an empty section means no TLS, and any other needs a certificate and
/// its key.
pub(crate) fn server(at: &Cursor<'_>, report: &DecodeReport) -> Option<ServerTls> {
    let mut fields = FieldReader::new(at, report);
    let enabled = fields.enabled();
    let before = report.errors();
    let common = CommonTls::read(&mut fields);
    let client_ca = fields.path("client_ca_file").map(PemSource::File);
    fields.accept_without_effect(&["client_ca_file_reload"], scalar::boolean);
    for name in ["ca_file", "ca_pem"] {
        if fields.has(name) {
            let help = "a server verifies clients against `client_ca_file`".to_owned();
            report.warning(&fields.cursor_at(name), format!("`{name}` has no effect on a server"), help);
        }
    }
    if enabled && common.identity.is_none() && report.errors() == before {
        fields.require("cert_file", "`tls` of a server needs a certificate and its key", Some(IDENTITY_HELP.into()));
    }
    fields.finish();
    let identity = common.identity.filter(|_| enabled)?;
    Some(ServerTls { identity, client_ca, min_version: common.min_version, reload_interval: common.reload_interval })
}

pub(crate) fn client(at: &Cursor<'_>, report: &DecodeReport) -> Option<ClientTls> {
    let mut fields = FieldReader::new(at, report);
    let common = CommonTls::read(&mut fields);
    let mut insecure = fields.flag("insecure");
    if insecure && common.ca.is_some() {
        insecure = false;
        let message = "`insecure` has no effect beside a certificate authority: TLS is used";
        report.warning(&fields.cursor_at("insecure"), message, None);
    }
    let tls = ClientTls {
        insecure,
        insecure_skip_verify: fields.flag("insecure_skip_verify"),
        server_name_override: fields.text("server_name_override"),
        ca: common.ca,
        include_system_roots: common.include_system_roots,
        identity: common.identity,
        min_version: common.min_version,
        reload_interval: common.reload_interval,
    };
    fields.finish();
    Some(tls)
}

const IDENTITY_HELP: &str = "set `cert_file` and `key_file`, or `cert_pem` and `key_pem`";

struct CommonTls {
    ca: Option<PemSource>,
    include_system_roots: bool,
    identity: Option<KeyPair>,
    min_version: TlsVersion,
    reload_interval: Option<std::time::Duration>,
}

impl CommonTls {
    fn read(fields: &mut FieldReader<'_, '_>) -> Self {
        let ca = pem(fields, "ca_file", "ca_pem");
        let cert = pem(fields, "cert_file", "cert_pem");
        let key = pem(fields, "key_file", "key_pem");
        let identity = match (cert, key) {
            (Some(cert), Some(key)) => Some(KeyPair { cert, key }),
            (None, None) => None,
            (Some(_), None) => report_half_key_pair(fields, "key_file", "the certificate has no key"),
            (None, Some(_)) => report_half_key_pair(fields, "cert_file", "the key has no certificate"),
        };
        fields.unsupported(&["cipher_suites", "curve_preferences", "include_insecure_cipher_suites", "tpm"]);
        let min_version = fields.get_or("min_version", TlsVersion::V1_2, min_version);
        max_version(fields, min_version);
        Self {
            ca,
            include_system_roots: fields.flag("include_system_ca_certs_pool"),
            identity,
            min_version,
            reload_interval: fields
                .get("reload_interval", scalar::loose_duration)
                .filter(|interval| !interval.is_zero()),
        }
    }
}

fn report_half_key_pair(fields: &FieldReader<'_, '_>, missing: &str, message: &str) -> Option<KeyPair> {
    fields.require(missing, message, Some(IDENTITY_HELP.into()));
    None
}

/// A certificate or key, from a file or from the document, but not both.
fn pem(fields: &mut FieldReader<'_, '_>, file: &'static str, inline: &'static str) -> Option<PemSource> {
    let path = fields.path(file);
    let text = fields.get(inline, scalar::secret).filter(|text: &SecretString| !text.is_empty());
    match (path, text) {
        (Some(_), Some(_)) => {
            let message = format!("`{file}` and `{inline}` cannot both be set");
            fields.report.error(&fields.cursor_at(inline), message, Some("keep one of the two".into()));
            None
        }
        (Some(path), None) => Some(PemSource::File(path)),
        (None, text) => text.map(PemSource::Inline),
    }
}

fn min_version(at: &Cursor<'_>, report: &DecodeReport) -> Option<TlsVersion> {
    let known =
        [("1.2", Some(TlsVersion::V1_2)), ("1.3", Some(TlsVersion::V1_3)), ("1.0", None), ("1.1", None), ("", None)];
    let version = scalar::keyword(at, report, &known)?;
    if version.is_none() && scalar::text(at, report).is_some_and(|text| !text.is_empty()) {
        report.warning(at, "TLS versions below 1.2 are not supported; the minimum is 1.2", None);
    }
    version
}

/// Newer versions cannot be disabled, so a maximum below the newest is refused rather than ignored.
fn max_version(fields: &mut FieldReader<'_, '_>, least: TlsVersion) {
    let Some(at) = fields.find("max_version") else { return };
    let known = [("1.3", None), ("", None), ("1.2", Some(TlsVersion::V1_2)), ("1.1", None), ("1.0", None)];
    let Some(most) = scalar::keyword(&at, fields.report, &known) else { return };
    let text = scalar::text(&at, fields.report).unwrap_or_default();
    if matches!(text.as_str(), "1.0" | "1.1") || most.is_some_and(|most| most < least) {
        fields.report.error(&at, "`min_version` is greater than `max_version`", None);
    } else if most.is_some() {
        let help = "remove `max_version`: TLS 1.3 is used with peers that support it";
        fields.report.error(&at, "`max_version` below 1.3 is not supported by this build", Some(help.into()));
    }
}

const MIN_VERSION_NAMES: [(&str, TlsVersion); 2] = [("1.2", TlsVersion::V1_2), ("1.3", TlsVersion::V1_3)];

/// Adds a certificate or a key, which has one field for a file and another one for text.
fn with_pem(map: YamlMap, file: &str, inline: &str, source: &PemSource) -> YamlMap {
    match source {
        PemSource::File(path) => map.with_field(file, path.as_path()),
        PemSource::Inline(text) => map.with_field(inline, text),
    }
}

impl KeyPair {
    fn add_to(&self, map: YamlMap) -> YamlMap {
        with_pem(with_pem(map, "cert_file", "cert_pem", &self.cert), "key_file", "key_pem", &self.key)
    }
}

fn with_common_fields(map: YamlMap, min_version: TlsVersion, reload_interval: Option<Duration>) -> YamlMap {
    let changed = Some(min_version).filter(|version| *version != TlsVersion::default());
    map.with_optional("min_version", changed.map(|version| encode::keyword(&MIN_VERSION_NAMES, &version)))
        .with_optional("reload_interval", reload_interval)
}

impl ServerTls {
    pub(crate) fn encode(&self) -> YamlMap {
        let mut map = self.identity.add_to(YamlMap::default());
        if let Some(client_ca) = &self.client_ca {
            map = with_pem(map, "client_ca_file", "client_ca_pem", client_ca);
        }
        with_common_fields(map, self.min_version, self.reload_interval)
    }
}

impl ClientTls {
    pub(crate) fn encode(&self) -> YamlMap {
        let mut map = YamlMap::default()
            .with_flag("insecure", self.insecure)
            .with_flag("insecure_skip_verify", self.insecure_skip_verify);
        if let Some(ca) = &self.ca {
            map = with_pem(map, "ca_file", "ca_pem", ca);
        }
        map = map.with_flag("include_system_ca_certs_pool", self.include_system_roots);
        if let Some(identity) = &self.identity {
            map = identity.add_to(map);
        }
        let map = with_common_fields(map, self.min_version, self.reload_interval);
        map.with_optional("server_name_override", self.server_name_override.as_deref())
    }
}
