//! Settings that servers and clients share: TLS, compression, keepalive.

use std::{path::PathBuf, time::Duration};

use crate::SecretString;

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

/// How a body is compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CompressionType {
    None,
    Gzip,
    Zstd,
    /// Snappy: framed on HTTP, and on gRPC as grpc-go's users register it.
    Snappy,
    /// zlib (`zlib` and `deflate` name the same bytes in the Collector).
    Zlib,
    /// LZ4 frames.
    Lz4,
}

/// gRPC `keepalive` of a server; a zero duration means "never".
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct ServerKeepalive {
    /// A connection without calls for this long is closed.
    pub max_connection_idle: Option<Duration>,
    /// A connection of this age is told to go away.
    pub max_connection_age: Option<Duration>,
    /// How long its calls may then still take.
    pub max_connection_age_grace: Option<Duration>,
    /// Ping the client after this long without a sign of it.
    pub time: Option<Duration>,
    /// Close the connection if the ping stays unanswered this long.
    pub timeout: Option<Duration>,
}

/// gRPC `keepalive` of a client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientKeepalive {
    /// Ping the server after this long without a sign of it.
    pub time: Duration,
    /// Close the connection if the ping stays unanswered this long.
    pub timeout: Duration,
    /// Ping even when no call is under way.
    pub permit_without_stream: bool,
}
