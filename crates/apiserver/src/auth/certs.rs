//! The server's certificates: its own CA, a serving certificate, an administrator's client certificate; or
//! given ones.
//!
//! Guaranteed: all keys are ECDSA P-256, generated in well under a millisecond; private keys in a directory are
//! readable only by their owner; certificates in a directory are reused while they are valid for another month
//! and cover the wanted names, and otherwise reissued by the same CA. Assumed: nobody else writes to the
//! directory.

use std::{fmt, io, net::IpAddr, path::Path};

use jiff::Timestamp;
use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose, SanType,
};

use super::user::MASTERS_GROUP;

mod cert_directory;
pub(super) mod secret_files;
pub mod tls;

/// The common name of the CA. Its certificates are identified by it, so it never changes.
const CA_COMMON_NAME: &str = "kubewake-ca";
/// The lifetimes of CA and certificates are those of kubeadm: ten years and one.
const CA_LIFETIME_DAYS: i64 = 3650;
const CERTIFICATE_LIFETIME_DAYS: i64 = 365;
/// Certificates are valid from the day before, for clients whose clock is behind.
const BACKDATED_DAYS: i64 = 1;

/// A certificate chain and its private key, both PEM. `Debug` does not show the key.
#[derive(Clone, PartialEq, Eq)]
pub struct CertificatePair {
    /// The certificate, followed by its issuers if there are any.
    pub chain: String,
    /// PKCS#8, PKCS#1 or SEC1.
    pub key: String,
}

/// The names and addresses of the server, beside the default ones.
#[derive(Clone, Debug, Default)]
pub struct SubjectAltNames {
    pub names: Vec<String>,
    pub addresses: Vec<IpAddr>,
}

pub struct CertificateAuthority {
    issuer: Issuer<'static, KeyPair>,
    pair: CertificatePair,
}

/// The certificates of a server, and that of its administrator.
#[derive(Debug)]
pub struct ServerCertificates {
    pub authority: CertificateAuthority,
    pub server: CertificatePair,
    /// The client certificate of `kubernetes-admin` in `system:masters`.
    pub admin: CertificatePair,
}

#[derive(Debug, thiserror::Error)]
pub enum ServerCertificateError {
    #[error("failed to generate a certificate")]
    Make(#[from] rcgen::Error),
    #[error("failed to read {path}")]
    Read { path: String, source: io::Error },
    #[error("failed to write {path}")]
    Write { path: String, source: io::Error },
    #[error("{directory} has only one of ca.crt and ca.key")]
    Half { directory: String },
    #[error(
        "failed to load {path}: it is damaged, or {what}; restore it from a backup, or remove ca.crt and ca.key beside it so \
         that new ones are generated: kubeconfigs that were written before are then no longer accepted"
    )]
    Damaged { path: String, what: &'static str },
    #[error("ca.crt in {directory} was not made by kubewake, or does not belong to ca.key")]
    Foreign { directory: String },
    #[error("no certificate in {what}")]
    NoCertificate { what: String },
    #[error("invalid PEM in {what}")]
    Pem { what: String, source: rustls::pki_types::pem::Error },
    #[error("the certificate or its key is invalid")]
    Tls(#[from] rustls::Error),
    #[error("the CA for client certificates is invalid")]
    Verifier(#[from] rustls::server::VerifierBuilderError),
}

impl ServerCertificates {
    pub fn generate(subjects: &SubjectAltNames, now: Timestamp) -> Result<Self, ServerCertificateError> {
        Self::signed_by(CertificateAuthority::generate(now)?, subjects, now)
    }

    /// The certificates in a directory, which is created and filled as needed: `ca`, `apiserver` and `admin`,
    /// each `.crt` and `.key`.
    pub fn load_or_generate(
        directory: &Path,
        subjects: &SubjectAltNames,
        now: Timestamp,
    ) -> Result<Self, ServerCertificateError> {
        cert_directory::load_or_generate(directory, subjects, now)
    }

    fn signed_by(
        authority: CertificateAuthority,
        subjects: &SubjectAltNames,
        now: Timestamp,
    ) -> Result<Self, ServerCertificateError> {
        let server = authority.server(subjects, now)?;
        let admin = authority.client("kubernetes-admin", &[MASTERS_GROUP], now)?;
        Ok(Self { authority, server, admin })
    }
}

impl CertificateAuthority {
    pub fn generate(now: Timestamp) -> Result<Self, ServerCertificateError> {
        let key = KeyPair::generate()?;
        let params = ca_params(now);
        let pair = CertificatePair { chain: params.self_signed(&key)?.pem(), key: key.serialize_pem() };
        Ok(Self { issuer: Issuer::new(params, key), pair })
    }

    /// The CA certificate that clients and servers trust.
    pub fn certificate(&self) -> &str {
        &self.pair.chain
    }

    /// Issues a client certificate for a user in groups.
    pub fn client(
        &self,
        user: &str,
        groups: &[&str],
        now: Timestamp,
    ) -> Result<CertificatePair, ServerCertificateError> {
        let mut params = leaf_params(user, ExtendedKeyUsagePurpose::ClientAuth, now);
        for group in groups {
            params.distinguished_name.push(DnType::OrganizationName, *group);
        }
        self.sign(&params)
    }

    /// Issues a serving certificate for these names and the default ones.
    pub fn server(
        &self,
        subjects: &SubjectAltNames,
        now: Timestamp,
    ) -> Result<CertificatePair, ServerCertificateError> {
        let mut params = leaf_params("kube-apiserver", ExtendedKeyUsagePurpose::ServerAuth, now);
        let (names, addresses) = subjects.with_defaults();
        for name in names {
            params.subject_alt_names.push(SanType::DnsName(name.try_into()?));
        }
        params.subject_alt_names.extend(addresses.into_iter().map(SanType::IpAddress));
        self.sign(&params)
    }

    fn sign(&self, params: &CertificateParams) -> Result<CertificatePair, ServerCertificateError> {
        let key = KeyPair::generate()?;
        let certificate = params.signed_by(&key, &self.issuer)?;
        Ok(CertificatePair { chain: certificate.pem(), key: key.serialize_pem() })
    }
}

impl SubjectAltNames {
    /// These names and addresses and the default ones, without duplicates.
    fn with_defaults(&self) -> (Vec<String>, Vec<IpAddr>) {
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

impl fmt::Debug for CertificatePair {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pair").field("chain", &self.chain).field("key", &"***").finish()
    }
}

impl fmt::Debug for CertificateAuthority {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Authority").field(&self.pair).finish()
    }
}

fn ca_params(now: Timestamp) -> CertificateParams {
    let mut params = certificate_params(CA_COMMON_NAME, CA_LIFETIME_DAYS, now);
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign, KeyUsagePurpose::DigitalSignature];
    params
}

fn leaf_params(name: &str, usage: ExtendedKeyUsagePurpose, now: Timestamp) -> CertificateParams {
    let mut params = certificate_params(name, CERTIFICATE_LIFETIME_DAYS, now);
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    params.extended_key_usages = vec![usage];
    params.use_authority_key_identifier_extension = true;
    params
}

fn certificate_params(name: &str, days: i64, now: Timestamp) -> CertificateParams {
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
