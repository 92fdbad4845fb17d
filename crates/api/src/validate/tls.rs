//! Certificates and keys.

use jiff::{SignedDuration, Timestamp};
use rustls::{
    Error, RootCertStore,
    crypto::aws_lc_rs,
    pki_types::{
        CertificateDer, PrivateKeyDer,
        pem::{Error as PemError, PemObject},
    },
    sign::CertifiedKey,
};
use x509_parser::prelude::{FromDer as _, X509Certificate};

use super::context::{MAX_PEM_BYTES, ResolvedText, ValidationContext};
use crate::{
    ConditionReason,
    v1alpha1::{self, ValueType},
    valid_pipeline::{DocumentText, ValidTls},
};

/// Status and admission warn about a certificate this long before it expires.
pub(crate) const EXPIRY_WARNING_PERIOD: SignedDuration = SignedDuration::from_hours(14 * 24);

/// Validates `tls`. The outer `None` means a problem or an unknown value, the inner one that there are no
/// settings.
pub(super) fn tls(
    check: &mut ValidationContext<'_>,
    path: &str,
    field: &str,
    given: Option<&v1alpha1::TlsOptions>,
    secure: Option<bool>,
) -> Option<Option<ValidTls>> {
    let insecure = secure == Some(false);
    let Some(given) = given else {
        return Some(insecure.then(|| ValidTls { insecure, ..ValidTls::default() }));
    };
    check_consistency(check, path, given, secure);
    let ca = given.ca.as_ref().map(|value| authorities(check, path, field, value));
    let pair = match (&given.cert, &given.key) {
        (Some(cert), Some(key)) => Some(self::pair(check, path, field, cert, key)),
        (None, None) => None,
        _ => {
            check.refuse(path, ConditionReason::TlsInvalid, "set both `cert` and `key`, or neither");
            Some(None)
        }
    };
    if let Some(name) = &given.server_name_override
        && !name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._:".contains(&byte))
    {
        let message = "has characters that are not allowed in a server name";
        check.refuse(format!("{path}.serverNameOverride"), ConditionReason::TlsInvalid, message);
    }
    let all_or_nothing = |given: Option<Option<DocumentText>>| match given {
        Some(piece) => piece.map(Some),
        None => Some(None),
    };
    Some(Some(ValidTls {
        insecure: insecure || given.insecure,
        insecure_skip_verify: given.insecure_skip_verify,
        ca: all_or_nothing(ca)?,
        pair: match pair {
            Some(pair) => Some(pair?),
            None => None,
        },
        server_name_override: given.server_name_override.clone(),
    }))
}

/// Refuses settings that contradict each other.
fn check_consistency(
    check: &mut ValidationContext<'_>,
    path: &str,
    given: &v1alpha1::TlsOptions,
    secure: Option<bool>,
) {
    let certificates = given.ca.is_some() || given.cert.is_some() || given.key.is_some();
    if given.insecure && secure == Some(true) {
        let message = "disables TLS, but the endpoint begins with https://: change one of the two";
        check.refuse(format!("{path}.insecure"), ConditionReason::TlsInvalid, message);
    }
    if certificates && (given.insecure || secure == Some(false)) {
        let message = "has certificates, but TLS is disabled: remove `insecure` or http://, or the certificates";
        check.refuse(path, ConditionReason::TlsInvalid, message);
    }
    if given.insecure_skip_verify {
        let message = "skips verification of the server certificate: set `ca` to the certificate authority instead";
        check.warn(format!("{path}.insecureSkipVerify"), ConditionReason::TlsInvalid, message);
    }
}

fn authorities(check: &mut ValidationContext<'_>, path: &str, field: &str, value: &ValueType) -> Option<DocumentText> {
    let path = format!("{path}.ca");
    let ResolvedText { text, revision } = check.any_text(&path, value, MAX_PEM_BYTES)?;
    let certificates = certificates(check, &path, &text)?;
    let mut store = RootCertStore::empty();
    let mut periods = Vec::new();
    for (index, certificate) in certificates.iter().enumerate() {
        match (store.add(certificate.clone()), ValidityPeriod::from_certificate(certificate)) {
            (Ok(()), Some(period)) => periods.push(period),
            _ => check.refuse(
                &path,
                ConditionReason::TlsInvalid,
                format!("certificate number {} is not a valid certificate authority", index + 1),
            ),
        }
    }
    if periods.len() < certificates.len() {
        return None;
    }
    check_bundle(check, &path, &periods);
    Some(check.secret_text(&format!("{field}.ca"), text, revision.as_deref()))
}

/// Checks a bundle, in which one valid authority is enough.
fn check_bundle(check: &mut ValidationContext<'_>, path: &str, periods: &[ValidityPeriod]) {
    let now = check.now;
    if periods.iter().any(|period| period.holds(now)) {
        for period in periods.iter().filter(|period| period.holds(now)) {
            warn_expires_soon(check, path, period, "an authority");
        }
        let expired = periods.iter().filter(|period| !period.holds(now)).count();
        if expired > 0 {
            let message = format!("{expired} of {} certificates are not valid now", periods.len());
            check.warn(path, ConditionReason::CertificateExpired, message);
        }
    } else if let Some(period) = periods.first() {
        refuse_period(check, path, period, "the authority");
    }
}

fn pair(
    check: &mut ValidationContext<'_>,
    path: &str,
    field: &str,
    cert: &ValueType,
    key: &ValueType,
) -> Option<(DocumentText, DocumentText)> {
    let cert_path = format!("{path}.cert");
    let key_path = format!("{path}.key");
    if key.value.is_some() {
        let message = "is readable by everyone who can read the resource: reference a Secret instead";
        check.warn(&key_path, ConditionReason::TlsInvalid, message);
    }
    let cert = check.any_text(&cert_path, cert, MAX_PEM_BYTES);
    let key = check.any_text(&key_path, key, MAX_PEM_BYTES);
    let chain = cert.as_ref().and_then(|known| certificates(check, &cert_path, &known.text));
    let private = key.as_ref().and_then(|known| private_key(check, &key_path, &known.text));
    // Certificates that cannot be read are reported once.
    let chain = chain.filter(|chain| chain_holds(check, &cert_path, chain));
    if let (Some(chain), Some(private)) = (chain, private) {
        match CertifiedKey::from_der(chain, private, &aws_lc_rs::default_provider()) {
            Ok(_) => {}
            Err(Error::InconsistentKeys(_)) => {
                check.refuse(path, ConditionReason::TlsInvalid, "`cert` and `key` do not match");
            }
            Err(Error::InvalidCertificate(_)) => {
                let message = "is not a usable certificate: it is damaged, or not of X.509 version 3";
                check.refuse(&cert_path, ConditionReason::TlsInvalid, message);
            }
            Err(_) => check.refuse(&key_path, ConditionReason::TlsInvalid, "is damaged, or of an unsupported type"),
        }
    }
    let cert = cert?;
    let key = key?;
    let hide = |part: &str, known: ResolvedText| {
        check.secret_text(&format!("{field}.{part}"), known.text, known.revision.as_deref())
    };
    Some((hide("cert", cert), hide("key", key)))
}

/// Checks that all certificates of a chain are valid now. Returns whether they can be read.
fn chain_holds(check: &mut ValidationContext<'_>, path: &str, chain: &[CertificateDer<'static>]) -> bool {
    for certificate in chain {
        let Some(period) = ValidityPeriod::from_certificate(certificate) else {
            check.refuse(path, ConditionReason::TlsInvalid, "contains data that is not an X.509 certificate");
            return false;
        };
        if period.holds(check.now) {
            warn_expires_soon(check, path, &period, "the certificate");
        } else {
            refuse_period(check, path, &period, "the certificate");
        }
    }
    true
}

fn certificates(check: &mut ValidationContext<'_>, path: &str, text: &str) -> Option<Vec<CertificateDer<'static>>> {
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(text.as_bytes()).collect();
    let message = match found {
        Ok(found) if !found.is_empty() => return Some(found),
        Ok(_) => "contains no certificate in PEM, which begins with -----BEGIN CERTIFICATE-----",
        Err(error) => describe_pem_error(&error),
    };
    check.refuse(path, ConditionReason::TlsInvalid, message);
    None
}

fn private_key(check: &mut ValidationContext<'_>, path: &str, text: &str) -> Option<PrivateKeyDer<'static>> {
    let message = match PrivateKeyDer::from_pem_slice(text.as_bytes()) {
        Ok(key) => return Some(key),
        Err(PemError::NoItemsFound) => "contains no private key in PEM, or only an encrypted one",
        Err(error) => describe_pem_error(&error),
    };
    check.refuse(path, ConditionReason::TlsInvalid, message);
    None
}

/// The parser's own message may repeat a line, which may be part of a key.
fn describe_pem_error(error: &PemError) -> &'static str {
    match error {
        PemError::MissingSectionEnd { .. } => "has a PEM section that does not end",
        PemError::IllegalSectionStart { .. } => "has a PEM section with an invalid start",
        PemError::Base64Decode(_) => "has a PEM section that is not valid base64",
        PemError::SectionTooLarge => "has a PEM section that is too large",
        _ => "is not valid PEM",
    }
}

struct ValidityPeriod {
    from: Timestamp,
    until: Timestamp,
}

impl ValidityPeriod {
    fn from_certificate(certificate: &CertificateDer<'_>) -> Option<Self> {
        let (_, parsed) = X509Certificate::from_der(certificate).ok()?;
        let validity = parsed.validity();
        let bounded = |seconds: i64| match Timestamp::from_second(seconds) {
            Ok(time) => time,
            // Authorities without expiry use the year 9999 or later.
            Err(_) if seconds > 0 => Timestamp::MAX,
            Err(_) => Timestamp::MIN,
        };
        let from = validity.not_before.timestamp();
        let until = validity.not_after.timestamp();
        Some(Self { from: bounded(from), until: bounded(until) })
    }

    fn holds(&self, now: Timestamp) -> bool {
        self.from <= now && now <= self.until
    }
}

fn refuse_period(check: &mut ValidationContext<'_>, path: &str, period: &ValidityPeriod, what: &str) {
    let message = if period.from > check.now {
        format!("{what} is not valid before {}", period.from)
    } else {
        format!("{what} expired at {}", period.until)
    };
    check.refuse(path, ConditionReason::CertificateExpired, message);
}

fn warn_expires_soon(check: &mut ValidationContext<'_>, path: &str, period: &ValidityPeriod, what: &str) {
    let earlier = check.expires.map_or(period.until, |expires| expires.min(period.until));
    check.expires = Some(earlier);
    if check.now.checked_add(EXPIRY_WARNING_PERIOD).is_ok_and(|limit| period.until <= limit) {
        check.warn(path, ConditionReason::CertificateExpiresSoon, format!("{what} expires at {}", period.until));
    }
}
