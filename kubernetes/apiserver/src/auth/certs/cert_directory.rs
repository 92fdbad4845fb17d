//! Certificates in a directory.

use std::path::Path;

use jiff::{SignedDuration, Timestamp};
use kubewake_runtime::tls::crypto_provider;
use rcgen::{Issuer, KeyPair};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime, pem::PemObject};
use webpki::{EndEntityCert, KeyUsage, anchor_from_trusted_cert};

use super::{
    CertificateAuthority, CertificatePair, ServerCertificateError, ServerCertificates, SubjectAltNames, ca_params,
    secret_files, tls,
};
use crate::auth::user::MASTERS_GROUP;

/// The remaining validity below which a certificate is reissued.
const RENEW_BEFORE: SignedDuration = SignedDuration::from_hours(30 * 24);

pub(super) fn load_or_generate(
    directory: &Path,
    subjects: &SubjectAltNames,
    now: Timestamp,
) -> Result<ServerCertificates, ServerCertificateError> {
    let authority = load_or_generate_authority(directory, now)?;
    let good_until = now + RENEW_BEFORE;
    let is_server =
        |pair: &CertificatePair| is_still_valid(pair, &authority, KeyUsage::server_auth(), good_until, Some(subjects));
    let is_client =
        |pair: &CertificatePair| is_still_valid(pair, &authority, KeyUsage::client_auth(), good_until, None);
    let server = keep_or_issue(directory, "apiserver", is_server, || authority.server(subjects, now))?;
    let admin =
        keep_or_issue(directory, "admin", is_client, || authority.client("kubernetes-admin", &[MASTERS_GROUP], now))?;
    Ok(ServerCertificates { authority, server, admin })
}

fn load_or_generate_authority(
    directory: &Path,
    now: Timestamp,
) -> Result<CertificateAuthority, ServerCertificateError> {
    let shown = || directory.display().to_string();
    match load(directory, "ca")? {
        (Some(chain), Some(key)) => {
            let pair = CertificatePair { chain, key };
            let damaged = |file: &str, what| ServerCertificateError::Damaged {
                path: directory.join(file).display().to_string(),
                what,
            };
            // The cause is omitted: these errors contain bytes of the key.
            let key = KeyPair::from_pem(&pair.key).map_err(|_| damaged("ca.key", "no private key in PEM"))?;
            // The issuer is built from fixed parameters, so the certificate must match them.
            let ours = ca_params(now).self_signed(&key)?;
            let theirs = certificate(&pair.chain).ok_or_else(|| damaged("ca.crt", "no certificate in PEM"))?;
            if !same_subject_and_key(ours.der(), &theirs) {
                return Err(ServerCertificateError::Foreign { directory: shown() });
            }
            Ok(CertificateAuthority { issuer: Issuer::new(ca_params(now), key), pair })
        }
        (None, None) => {
            let authority = CertificateAuthority::generate(now)?;
            store(directory, "ca", &authority.pair)?;
            Ok(authority)
        }
        _ => Err(ServerCertificateError::Half { directory: shown() }),
    }
}

fn keep_or_issue(
    directory: &Path,
    name: &str,
    is_good: impl Fn(&CertificatePair) -> bool,
    make: impl FnOnce() -> Result<CertificatePair, ServerCertificateError>,
) -> Result<CertificatePair, ServerCertificateError> {
    if let (Some(chain), Some(key)) = load(directory, name)? {
        let pair = CertificatePair { chain, key };
        if is_good(&pair) {
            return Ok(pair);
        }
    }
    let pair = make()?;
    store(directory, name, &pair)?;
    Ok(pair)
}

fn load(directory: &Path, name: &str) -> Result<(Option<String>, Option<String>), ServerCertificateError> {
    let read = |ending: &str| {
        let path = directory.join(format!("{name}.{ending}"));
        secret_files::read(&path)
            .map_err(|source| ServerCertificateError::Read { path: path.display().to_string(), source })
    };
    let pair = (read("crt")?, read("key")?);
    if pair.1.is_some() {
        secret_files::warn_if_shared(&directory.join(format!("{name}.key")));
    }
    Ok(pair)
}

fn store(directory: &Path, name: &str, pair: &CertificatePair) -> Result<(), ServerCertificateError> {
    for (ending, text, private) in [("key", &pair.key, true), ("crt", &pair.chain, false)] {
        let path = directory.join(format!("{name}.{ending}"));
        secret_files::write(&path, text, private)
            .map_err(|source| ServerCertificateError::Write { path: path.display().to_string(), source })?;
    }
    Ok(())
}

/// Whether a certificate matches its key, is signed by the CA, is still valid at that time, and covers the
/// names.
fn is_still_valid(
    pair: &CertificatePair,
    authority: &CertificateAuthority,
    usage: KeyUsage,
    then: Timestamp,
    subjects: Option<&SubjectAltNames>,
) -> bool {
    let good = || {
        let ca = certificate(authority.certificate())?;
        let der = certificate(&pair.chain)?;
        let parsed = EndEntityCert::try_from(&der).ok()?;
        let time = UnixTime::since_unix_epoch(std::time::Duration::try_from(then.as_duration()).ok()?);
        let (anchors, algorithms) =
            ([anchor_from_trusted_cert(&ca).ok()?], crypto_provider().signature_verification_algorithms);
        parsed.verify_for_usage(algorithms.all, &anchors, &[], time, usage, None, None).ok()?;
        tls::certified_key(pair).ok()?;
        let (names, addresses) = subjects.map(SubjectAltNames::with_defaults).unwrap_or_default();
        let names = names.into_iter().map(|name| ServerName::try_from(name).ok());
        let mut all = names.chain(addresses.into_iter().map(|address| Some(ServerName::from(address))));
        all.all(|name| name.is_some_and(|name| parsed.verify_is_valid_for_subject_name(&name).is_ok())).then_some(())
    };
    good().is_some()
}

fn certificate(pem: &str) -> Option<CertificateDer<'static>> {
    CertificateDer::from_pem_slice(pem.as_bytes()).ok()
}

fn same_subject_and_key(ours: &CertificateDer<'_>, theirs: &CertificateDer<'_>) -> bool {
    let (Ok(ours), Ok(theirs)) = (EndEntityCert::try_from(ours), EndEntityCert::try_from(theirs)) else { return false };
    ours.subject() == theirs.subject() && ours.subject_public_key_info() == theirs.subject_public_key_info()
}
