//! Makes an authority and the one certificate that it signs.

use std::{collections::BTreeSet, net::IpAddr, time::Duration};

use jiff::{SignedDuration, Timestamp};
use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose, SanType,
};

use super::Generation;

/// Certificates count from an hour before, for API servers whose clock is behind.
const BACKDATED: SignedDuration = SignedDuration::from_hours(1);

/// Why there is no certificate.
#[derive(Debug, thiserror::Error)]
pub enum MakeError {
    /// A name that no certificate can have.
    #[error("{name:?} cannot be in a certificate: it must be a host name or an address")]
    Name {
        /// Which.
        name: String,
        /// Why.
        source: rcgen::Error,
    },
    /// The library refuses.
    #[error("cannot make a certificate")]
    Make(#[from] rcgen::Error),
}

/// The title tells authorities of one webhook apart: a verifier looks for it first.
pub(super) fn generation(
    names: &BTreeSet<String>,
    title: &str,
    made: Timestamp,
    expires: Timestamp,
) -> Result<Generation, MakeError> {
    let mut authority = params(title, made, expires);
    authority.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    authority.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature];
    let authority_key = KeyPair::generate()?;
    let signed = authority.self_signed(&authority_key)?;

    let mut leaf = params("webhook", made, expires);
    leaf.subject_alt_names = names.iter().map(|name| alternative(name)).collect::<Result<_, _>>()?;
    leaf.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    leaf.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    leaf.use_authority_key_identifier_extension = true;
    let key = KeyPair::generate()?;
    let certificate = leaf.signed_by(&key, &Issuer::new(authority, authority_key))?;
    Ok(Generation {
        authority: signed.pem(),
        certificate: certificate.pem(),
        key: key.serialize_pem(),
        names: names.clone(),
        made,
        expires,
    })
}

fn params(name: &str, made: Timestamp, expires: Timestamp) -> CertificateParams {
    let mut params = CertificateParams::default();
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, name);
    let since_epoch = |time: Timestamp| Duration::from_secs(time.as_second().max(0).unsigned_abs());
    let epoch = rcgen::date_time_ymd(1970, 1, 1);
    params.not_before = epoch + since_epoch(made.saturating_sub(BACKDATED).unwrap_or(made));
    params.not_after = epoch + since_epoch(expires);
    params
}

fn alternative(name: &str) -> Result<SanType, MakeError> {
    match name.parse::<IpAddr>() {
        Ok(address) => Ok(SanType::IpAddress(address)),
        Err(_) => match name.try_into() {
            Ok(text) => Ok(SanType::DnsName(text)),
            Err(source) => Err(MakeError::Name { name: name.to_owned(), source }),
        },
    }
}
