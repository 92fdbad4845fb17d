//! Certificates in a directory.

use std::path::Path;

use jiff::{SignedDuration, Timestamp};
use rcgen::{Issuer, KeyPair};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime, pem::PemObject};
use webpki::{EndEntityCert, KeyUsage, anchor_from_trusted_cert};

use super::{Authority, Certs, Error, Pair, Subjects, ca_params, files, tls};
use crate::auth::user::MASTERS;

/// A certificate that is not good for this long any more is made anew.
const RENEW_BEFORE: SignedDuration = SignedDuration::from_hours(30 * 24);

pub(super) fn certs(directory: &Path, subjects: &Subjects, now: Timestamp) -> Result<Certs, Error> {
    let authority = authority(directory, now)?;
    let good_until = now + RENEW_BEFORE;
    let is_server = |pair: &Pair| is_good(pair, &authority, KeyUsage::server_auth(), good_until, Some(subjects));
    let is_client = |pair: &Pair| is_good(pair, &authority, KeyUsage::client_auth(), good_until, None);
    let server = keep_or_make(directory, "apiserver", is_server, || authority.server(subjects, now))?;
    let admin = keep_or_make(directory, "admin", is_client, || authority.client("kubernetes-admin", &[MASTERS], now))?;
    Ok(Certs { authority, server, admin })
}

fn authority(directory: &Path, now: Timestamp) -> Result<Authority, Error> {
    let shown = || directory.display().to_string();
    match load(directory, "ca")? {
        (Some(chain), Some(key)) => {
            let pair = Pair { chain, key };
            let damaged = |file: &str, what| Error::Damaged { path: directory.join(file).display().to_string(), what };
            // Why is not told: these errors show bytes of the key.
            let key = KeyPair::from_pem(&pair.key).map_err(|_| damaged("ca.key", "no private key in PEM"))?;
            // The issuer is built from what we always write, so the certificate must say the same.
            let ours = ca_params(now).self_signed(&key)?;
            let theirs = certificate(&pair.chain).ok_or_else(|| damaged("ca.crt", "no certificate in PEM"))?;
            if !same_subject_and_key(ours.der(), &theirs) {
                return Err(Error::Foreign { directory: shown() });
            }
            Ok(Authority { issuer: Issuer::new(ca_params(now), key), pair })
        }
        (None, None) => {
            let authority = Authority::generate(now)?;
            store(directory, "ca", &authority.pair)?;
            Ok(authority)
        }
        _ => Err(Error::Half { directory: shown() }),
    }
}

fn keep_or_make(
    directory: &Path,
    name: &str,
    is_good: impl Fn(&Pair) -> bool,
    make: impl FnOnce() -> Result<Pair, Error>,
) -> Result<Pair, Error> {
    if let (Some(chain), Some(key)) = load(directory, name)? {
        let pair = Pair { chain, key };
        if is_good(&pair) {
            return Ok(pair);
        }
    }
    let pair = make()?;
    store(directory, name, &pair)?;
    Ok(pair)
}

fn load(directory: &Path, name: &str) -> Result<(Option<String>, Option<String>), Error> {
    let read = |ending: &str| {
        let path = directory.join(format!("{name}.{ending}"));
        files::read(&path).map_err(|source| Error::Read { path: path.display().to_string(), source })
    };
    let pair = (read("crt")?, read("key")?);
    if pair.1.is_some() {
        files::warn_if_shared(&directory.join(format!("{name}.key")));
    }
    Ok(pair)
}

fn store(directory: &Path, name: &str, pair: &Pair) -> Result<(), Error> {
    for (ending, text, private) in [("key", &pair.key, true), ("crt", &pair.chain, false)] {
        let path = directory.join(format!("{name}.{ending}"));
        files::write(&path, text, private)
            .map_err(|source| Error::Write { path: path.display().to_string(), source })?;
    }
    Ok(())
}

/// Whether a certificate belongs to its key, is signed by the CA, will still be valid then, and covers the names.
fn is_good(pair: &Pair, authority: &Authority, usage: KeyUsage, then: Timestamp, subjects: Option<&Subjects>) -> bool {
    let good = || {
        let (ca, der) = (certificate(authority.certificate())?, certificate(&pair.chain)?);
        let parsed = EndEntityCert::try_from(&der).ok()?;
        let time = UnixTime::since_unix_epoch(std::time::Duration::try_from(then.as_duration()).ok()?);
        let (anchors, algorithms) =
            ([anchor_from_trusted_cert(&ca).ok()?], tls::provider().signature_verification_algorithms);
        parsed.verify_for_usage(algorithms.all, &anchors, &[], time, usage, None, None).ok()?;
        tls::certified(pair).ok()?;
        let (names, addresses) = subjects.map(Subjects::all).unwrap_or_default();
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
