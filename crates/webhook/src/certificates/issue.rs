//! Issues an authority and the one certificate that it signs.

use std::{collections::BTreeSet, net::IpAddr, time::Duration};

use jiff::{SignedDuration, Timestamp};
use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose, SanType,
};

use super::CertificateGeneration;

/// Certificates are valid from one hour earlier, for API servers whose clock is behind.
const BACKDATE_DURATION: SignedDuration = SignedDuration::from_hours(1);

/// The reason why no certificate was issued.
#[derive(Debug, thiserror::Error)]
pub enum CertificateIssueError {
    /// A name is not valid in a certificate.
    #[error("{name:?} is not a valid name in a certificate, use a host name or an IP address")]
    Name {
        /// The invalid name.
        name: String,
        /// The error of the library.
        source: rcgen::Error,
    },
    /// The library failed.
    #[error("failed to generate a certificate")]
    Generate(#[from] rcgen::Error),
}

/// Issues a generation. The title distinguishes the authorities of one webhook: verifiers look them up by it.
pub(super) fn issue_generation(
    names: &BTreeSet<String>,
    title: &str,
    made: Timestamp,
    expires: Timestamp,
) -> Result<CertificateGeneration, CertificateIssueError> {
    let mut authority = certificate_params(title, made, expires);
    authority.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    authority.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature];
    let authority_key = KeyPair::generate()?;
    let signed = authority.self_signed(&authority_key)?;

    let mut leaf = certificate_params("webhook", made, expires);
    leaf.subject_alt_names = names.iter().map(|name| subject_alternative_name(name)).collect::<Result<_, _>>()?;
    leaf.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    leaf.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    leaf.use_authority_key_identifier_extension = true;
    let key = KeyPair::generate()?;
    let certificate = leaf.signed_by(&key, &Issuer::new(authority, authority_key))?;
    Ok(CertificateGeneration {
        authority: signed.pem(),
        certificate: certificate.pem(),
        key: key.serialize_pem(),
        names: names.clone(),
        issued_at: made,
        expires_at: expires,
    })
}

fn certificate_params(name: &str, made: Timestamp, expires: Timestamp) -> CertificateParams {
    let mut params = CertificateParams::default();
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, name);
    let since_epoch = |time: Timestamp| Duration::from_secs(time.as_second().max(0).unsigned_abs());
    let epoch = rcgen::date_time_ymd(1970, 1, 1);
    params.not_before = epoch + since_epoch(made.saturating_sub(BACKDATE_DURATION).unwrap_or(made));
    params.not_after = epoch + since_epoch(expires);
    params
}

fn subject_alternative_name(name: &str) -> Result<SanType, CertificateIssueError> {
    match name.parse::<IpAddr>() {
        Ok(address) => Ok(SanType::IpAddress(address)),
        Err(_) => match name.try_into() {
            Ok(text) => Ok(SanType::DnsName(text)),
            Err(source) => Err(CertificateIssueError::Name { name: name.to_owned(), source }),
        },
    }
}
