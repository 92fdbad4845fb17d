//! The server's certificates: its own CA, a serving certificate, an administrator's client certificate; or given ones.
//!
//! Guaranteed: all keys are ECDSA P-256, made in well under a millisecond; a directory's private keys are files that only their owner can
//! read; certificates of a directory are used again while they are good for a month more and cover the wanted names, and made anew
//! otherwise, by the same CA. Assumed: nobody else writes to the directory.

use std::{fmt, io, net::IpAddr, path::Path};

use jiff::Timestamp;
use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose, SanType,
};

use super::user::MASTERS;

pub(super) mod files;
mod stored;
pub mod tls;

/// What the CA is called. Its certificates are told from others by it, so it never changes.
const CA_NAME: &str = "kubewake-ca";
/// A CA lives ten years and a certificate one, as kubeadm's do.
const CA_DAYS: i64 = 3650;
const DAYS: i64 = 365;
/// Certificates count from the day before, for clients whose clock is behind.
const BACKDATED_DAYS: i64 = 1;

/// A certificate chain and its private key, both PEM. `Debug` does not show the key.
#[derive(Clone, PartialEq, Eq)]
pub struct Pair {
    /// The certificate, then the ones that signed it if there are any.
    pub chain: String,
    /// PKCS#8, PKCS#1 or SEC1.
    pub key: String,
}

/// The names and addresses that the server is reached by, beside those that it always has.
#[derive(Clone, Debug, Default)]
pub struct Subjects {
    /// Host names.
    pub names: Vec<String>,
    /// Addresses.
    pub addresses: Vec<IpAddr>,
}

/// A CA that signs.
pub struct Authority {
    issuer: Issuer<'static, KeyPair>,
    pair: Pair,
}

/// Everything that a server needs to be reached over TLS, and an administrator to reach it.
#[derive(Debug)]
pub struct Certs {
    /// Signs the others.
    pub authority: Authority,
    /// The serving certificate.
    pub server: Pair,
    /// The client certificate of `kubernetes-admin` in `system:masters`.
    pub admin: Pair,
}

/// Why there are no certificates.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say it")]
pub enum Error {
    #[error("cannot make a certificate")]
    Make(#[from] rcgen::Error),
    #[error("cannot read {path}")]
    Read { path: String, source: io::Error },
    #[error("cannot write {path}")]
    Write { path: String, source: io::Error },
    #[error("{directory} has only one of ca.crt and ca.key")]
    Half { directory: String },
    #[error(
        "cannot use {path}: it is damaged, or {what}; restore it from a backup, or remove ca.crt and ca.key beside it so \
         that new ones are made: kubeconfigs that were made before are no longer accepted then"
    )]
    Damaged { path: String, what: &'static str },
    #[error("ca.crt in {directory} was not made by kubewake, or does not belong to ca.key")]
    Foreign { directory: String },
    #[error("no certificate in {what}")]
    NoCertificate { what: String },
    #[error("bad PEM in {what}")]
    Pem { what: String, source: rustls::pki_types::pem::Error },
    #[error("the certificate or its key cannot be used")]
    Tls(#[from] rustls::Error),
    #[error("the CA for client certificates cannot be used")]
    Verifier(#[from] rustls::server::VerifierBuilderError),
}

impl Certs {
    /// New ones, in memory.
    pub fn generate(subjects: &Subjects, now: Timestamp) -> Result<Self, Error> {
        Self::signed_by(Authority::generate(now)?, subjects, now)
    }

    /// Those of a directory, which is made and filled as needed: `ca`, `apiserver` and `admin`, each `.crt` and `.key`.
    pub fn in_directory(directory: &Path, subjects: &Subjects, now: Timestamp) -> Result<Self, Error> {
        stored::certs(directory, subjects, now)
    }

    fn signed_by(authority: Authority, subjects: &Subjects, now: Timestamp) -> Result<Self, Error> {
        let server = authority.server(subjects, now)?;
        let admin = authority.client("kubernetes-admin", &[MASTERS], now)?;
        Ok(Self { authority, server, admin })
    }
}

impl Authority {
    /// A new one.
    pub fn generate(now: Timestamp) -> Result<Self, Error> {
        let key = KeyPair::generate()?;
        let params = ca_params(now);
        let pair = Pair { chain: params.self_signed(&key)?.pem(), key: key.serialize_pem() };
        Ok(Self { issuer: Issuer::new(params, key), pair })
    }

    /// The certificate that clients and servers trust.
    pub fn certificate(&self) -> &str {
        &self.pair.chain
    }

    /// A client certificate: a user in groups.
    pub fn client(&self, user: &str, groups: &[&str], now: Timestamp) -> Result<Pair, Error> {
        let mut params = leaf_params(user, ExtendedKeyUsagePurpose::ClientAuth, now);
        for group in groups {
            params.distinguished_name.push(DnType::OrganizationName, *group);
        }
        self.sign(&params)
    }

    /// A serving certificate for these names and the ones that every API server has.
    pub fn server(&self, subjects: &Subjects, now: Timestamp) -> Result<Pair, Error> {
        let mut params = leaf_params("kube-apiserver", ExtendedKeyUsagePurpose::ServerAuth, now);
        let (names, addresses) = subjects.all();
        for name in names {
            params.subject_alt_names.push(SanType::DnsName(name.try_into()?));
        }
        params.subject_alt_names.extend(addresses.into_iter().map(SanType::IpAddress));
        self.sign(&params)
    }

    fn sign(&self, params: &CertificateParams) -> Result<Pair, Error> {
        let key = KeyPair::generate()?;
        let certificate = params.signed_by(&key, &self.issuer)?;
        Ok(Pair { chain: certificate.pem(), key: key.serialize_pem() })
    }
}

impl Subjects {
    /// These and the ones that every API server has, each once.
    fn all(&self) -> (Vec<String>, Vec<IpAddr>) {
        let fixed = ["localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc"];
        let fixed = fixed.into_iter().chain(["kubernetes.default.svc.cluster.local"]).map(str::to_owned);
        let mut names: Vec<String> = Vec::new();
        names.extend(fixed.chain(self.names.iter().cloned()).filter(|name| name.parse::<IpAddr>().is_err()));
        let given = self.names.iter().filter_map(|name| name.parse().ok()).chain(self.addresses.iter().copied());
        let local = [IpAddr::from([127, 0, 0, 1]), std::net::Ipv6Addr::LOCALHOST.into()];
        let mut addresses: Vec<IpAddr> = local.into_iter().chain(given).collect();
        let mut seen = std::collections::HashSet::new();
        names.retain(|name| seen.insert(name.clone()));
        let mut seen = std::collections::HashSet::new();
        addresses.retain(|address| seen.insert(*address));
        (names, addresses)
    }
}

impl fmt::Debug for Pair {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pair").field("chain", &self.chain).field("key", &"***").finish()
    }
}

impl fmt::Debug for Authority {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Authority").field(&self.pair).finish()
    }
}

fn ca_params(now: Timestamp) -> CertificateParams {
    let mut params = named(CA_NAME, CA_DAYS, now);
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign, KeyUsagePurpose::DigitalSignature];
    params
}

fn leaf_params(name: &str, usage: ExtendedKeyUsagePurpose, now: Timestamp) -> CertificateParams {
    let mut params = named(name, DAYS, now);
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    params.extended_key_usages = vec![usage];
    params.use_authority_key_identifier_extension = true;
    params
}

fn named(name: &str, days: i64, now: Timestamp) -> CertificateParams {
    let mut params = CertificateParams::default();
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, name);
    let today = now.to_zoned(jiff::tz::TimeZone::UTC).date();
    let day = |days: i64| {
        let date = today.saturating_add(jiff::Span::new().days(days));
        rcgen::date_time_ymd(date.year().into(), date.month().unsigned_abs(), date.day().unsigned_abs())
    };
    params.not_before = day(-BACKDATED_DAYS);
    params.not_after = day(days);
    params
}

#[cfg(test)]
mod tests;
