//! The file of `--tracing-config-file`: the destination of spans, and their sampling.
//!
//! It contains a `TracingConfiguration` of `apiserver.config.k8s.io` (v1alpha1, v1beta1 or v1) or KEP-647's own
//! `OpenTelemetryClientConfiguration`, in YAML or JSON. Decoding is strict. A document with only
//! kube-apiserver's fields is validated with kube-apiserver's rules and messages; `protocol`, `tls`,
//! `trustedGroups` and `headers` are extensions.
//!
//! Guaranteed: all errors are reported at once, each with its path; messages contain no secrets. Not done: a
//! DNS server in `dns://server/name` is ignored; the system's resolver is used.

mod endpoint;
mod fields;
mod read;

use std::{
    fmt, fs, io,
    path::{Path, PathBuf},
};

use http::HeaderMap;

pub use self::endpoint::TracingEndpoint;
use crate::client::TlsClientConfig;

/// The validated content of the file.
#[derive(Clone, Debug)]
pub struct TracingConfiguration {
    pub destination: TracingDestination,
    pub protocol: TracingProtocol,
    /// TLS to the collector; plain text without it.
    pub tls: Option<TracingTlsFiles>,
    /// The sampling rate of root spans, per million; other spans follow their parent.
    pub ratio_per_million: u32,
    /// The groups whose trace context is trusted, if the file names them.
    pub trusted_groups: Option<Vec<String>>,
    /// Whether authentication starts no trace of its own where the caller has one.
    pub joined_authentication: bool,
    /// Headers of every batch. Their values are secret.
    pub headers: HeaderMap,
}

/// The destination of spans; each variant has its own egress.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TracingDestination {
    /// An address on the network of the control plane, which is dialled directly.
    Direct(TracingEndpoint),
    /// A Service of the cluster, which is resolved for every connection.
    Service { namespace: String, name: String, port: u16 },
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TracingProtocol {
    #[default]
    Grpc,
    HttpProtobuf,
}

/// The files of the trusted CA and of the client certificate.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TracingTlsFiles {
    /// The CAs of the collector; the system's roots without it.
    pub ca: Option<PathBuf>,
    pub certificate: Option<PathBuf>,
    pub key: Option<PathBuf>,
    /// The name in the collector's certificate, if it is not that of the address.
    pub server_name: Option<String>,
}

/// A file that cannot be used, with all its errors.
#[derive(Debug, thiserror::Error)]
pub enum TracingConfigError {
    #[error("unable to read tracing configuration from {path:?}")]
    Read { path: PathBuf, source: io::Error },
    #[error("{}", ErrorList(.0))]
    Invalid(Vec<String>),
}

struct ErrorList<'a>(&'a [String]);

/// A single error on the same line, several on lines of their own.
impl fmt::Display for ErrorList<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            [one] => f.write_str(one),
            all => {
                write!(f, "{} errors in the tracing configuration:", all.len())?;
                all.iter().try_for_each(|error| write!(f, "\n  {error}"))
            }
        }
    }
}

impl TracingProtocol {
    /// The default port of OTLP.
    pub fn port(self) -> u16 {
        match self {
            TracingProtocol::Grpc => 4317,
            TracingProtocol::HttpProtobuf => 4318,
        }
    }
}

impl TracingConfiguration {
    /// Reads the file and, for TLS, the files that it names, which are relative to it.
    ///
    /// # Errors
    /// If a file cannot be read or used.
    pub fn load(path: &Path) -> Result<(Self, Option<TlsClientConfig>), TracingConfigError> {
        let text = fs::read(path).map_err(|source| TracingConfigError::Read { path: path.to_owned(), source })?;
        let mut config = Self::parse(&text)?;
        if let (Some(tls), Some(folder)) = (&mut config.tls, path.parent()) {
            for file in [&mut tls.ca, &mut tls.certificate, &mut tls.key].into_iter().flatten() {
                *file = folder.join(&*file);
            }
        }
        let trust = config.trust().map_err(TracingConfigError::Invalid)?;
        Ok((config, trust))
    }

    /// Parses the text of the file.
    ///
    /// # Errors
    /// If it is invalid.
    pub fn parse(text: &[u8]) -> Result<Self, TracingConfigError> {
        read::parse_config(text).map_err(TracingConfigError::Invalid)
    }

    pub fn files(&self) -> impl Iterator<Item = &PathBuf> {
        self.tls.iter().flat_map(|tls| [&tls.ca, &tls.certificate, &tls.key]).flatten()
    }

    /// The host name, for requests and for the certificate.
    pub fn authority(&self) -> String {
        match &self.destination {
            TracingDestination::Direct(endpoint) => endpoint.authority.clone(),
            TracingDestination::Service { namespace, name, port } => format!("{name}.{namespace}.svc:{port}"),
        }
    }

    fn trust(&self) -> Result<Option<TlsClientConfig>, Vec<String>> {
        let Some(tls) = &self.tls else { return Ok(None) };
        let mut wrong = Vec::new();
        let mut read = |field: &str, path: &Option<PathBuf>| -> Option<Vec<u8>> {
            let path = path.as_ref()?;
            fs::read(path).map_err(|error| wrong.push(format!("tls.{field}: {}: {error}", path.display()))).ok()
        };
        let ca = read("caFile", &tls.ca);
        let identity = read("certFile", &tls.certificate).zip(read("keyFile", &tls.key));
        if !wrong.is_empty() {
            return Err(wrong);
        }
        let identity = identity.as_ref().map(|(certificate, key)| (certificate.as_slice(), key.as_slice()));
        let alpn: &[&[u8]] = if self.protocol == TracingProtocol::Grpc { &[b"h2"] } else { &[b"h2", b"http/1.1"] };
        let authority = self.authority();
        let name = tls.server_name.as_deref().unwrap_or_else(|| endpoint::host(&authority));
        TlsClientConfig::new(ca.as_deref(), name, identity, alpn)
            .map(Some)
            .map_err(|error| vec![format!("tls: {error}")])
    }
}

#[cfg(test)]
mod tests;
