//! The file of `--tracing-config-file`: where spans go, and which.
//!
//! It holds a `TracingConfiguration` of `apiserver.config.k8s.io` (v1alpha1, v1beta1 or v1) or KEP-647's own
//! `OpenTelemetryClientConfiguration`, in YAML or JSON. Decoding is strict. A document with kube-apiserver's fields alone is judged as
//! kube-apiserver judges it, in its words; `protocol`, `tls`, `trustedGroups` and `headers` go beyond it.
//!
//! Guaranteed: whatever is wrong is found at once, each error with its path; nothing of what is secret is in a message. Not done:
//! the DNS server that `dns://server/name` may name is not asked, the system's resolver is.

mod endpoint;
mod fields;
mod read;

use std::{
    fmt, fs, io,
    path::{Path, PathBuf},
};

use http::HeaderMap;

pub use self::endpoint::Endpoint;
use crate::client::Trust;

/// What the file says, checked.
#[derive(Clone, Debug)]
pub struct Config {
    /// Where spans go.
    pub destination: Destination,
    /// How they are sent.
    pub protocol: Protocol,
    /// TLS on the way; plain text without it.
    pub tls: Option<Tls>,
    /// So many of a million roots are sampled; others follow their parent.
    pub ratio_per_million: u32,
    /// The groups whose trace goes on here, where the file names them.
    pub trusted_groups: Option<Vec<String>>,
    /// Whether authentication leaves no trace of its own where the caller has one.
    pub joined_authentication: bool,
    /// Sent with every batch. Their values are secret.
    pub headers: HeaderMap,
}

/// Where spans go: each way is its own egress.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Destination {
    /// On the network of the control plane: dialled as it is.
    Direct(Endpoint),
    /// A Service of the cluster: looked up whenever a connection is made.
    Service {
        /// Its namespace.
        namespace: String,
        /// Its name.
        name: String,
        /// Its port.
        port: u16,
    },
}

/// How spans are sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names are OTLP's own")]
pub enum Protocol {
    #[default]
    Grpc,
    HttpProtobuf,
}

/// Whom to believe, and who to be.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tls {
    /// The CAs of the collector; the system's without it.
    pub ca: Option<PathBuf>,
    /// Our certificate.
    pub certificate: Option<PathBuf>,
    /// And its key.
    pub key: Option<PathBuf>,
    /// The name that the collector's certificate must have, if it is not the one in the address.
    pub server_name: Option<String>,
}

/// A file that cannot be used, and everything that is wrong with it.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say it")]
pub enum Error {
    #[error("unable to read tracing configuration from {path:?}")]
    Read { path: PathBuf, source: io::Error },
    #[error("{}", Listed(.0))]
    Invalid(Vec<String>),
}

struct Listed<'a>(&'a [String]);

/// One on its line, several on lines of their own.
impl fmt::Display for Listed<'_> {
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

impl Protocol {
    /// The port that OTLP has for it.
    pub fn port(self) -> u16 {
        match self {
            Protocol::Grpc => 4317,
            Protocol::HttpProtobuf => 4318,
        }
    }
}

impl Config {
    /// Reads the file and, for TLS, those that it names, which are relative to it.
    ///
    /// # Errors
    /// If it cannot be read or used.
    pub fn load(path: &Path) -> Result<(Self, Option<Trust>), Error> {
        let text = fs::read(path).map_err(|source| Error::Read { path: path.to_owned(), source })?;
        let mut config = Self::parse(&text)?;
        if let (Some(tls), Some(folder)) = (&mut config.tls, path.parent()) {
            for file in [&mut tls.ca, &mut tls.certificate, &mut tls.key].into_iter().flatten() {
                *file = folder.join(&*file);
            }
        }
        let trust = config.trust().map_err(Error::Invalid)?;
        Ok((config, trust))
    }

    /// Reads the text of the file.
    ///
    /// # Errors
    /// If it cannot be used.
    pub fn parse(text: &[u8]) -> Result<Self, Error> {
        read::config(text).map_err(Error::Invalid)
    }

    /// The files that it names.
    pub fn files(&self) -> impl Iterator<Item = &PathBuf> {
        self.tls.iter().flat_map(|tls| [&tls.ca, &tls.certificate, &tls.key]).flatten()
    }

    /// The name that is asked for: in requests, and of a certificate.
    pub fn authority(&self) -> String {
        match &self.destination {
            Destination::Direct(endpoint) => endpoint.authority.clone(),
            Destination::Service { namespace, name, port } => format!("{name}.{namespace}.svc:{port}"),
        }
    }

    fn trust(&self) -> Result<Option<Trust>, Vec<String>> {
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
        let alpn: &[&[u8]] = if self.protocol == Protocol::Grpc { &[b"h2"] } else { &[b"h2", b"http/1.1"] };
        let authority = self.authority();
        let name = tls.server_name.as_deref().unwrap_or_else(|| endpoint::host(&authority));
        Trust::new(ca.as_deref(), name, identity, alpn).map(Some).map_err(|error| vec![format!("tls: {error}")])
    }
}

#[cfg(test)]
mod tests;
