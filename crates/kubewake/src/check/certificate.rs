//! Certificates of webhooks: the CA bundle of a registration, and the certificate that the webhook serves.

use std::{sync::Arc, time::Duration};

use kubewake_runtime::tls;
use rustls::{
    RootCertStore,
    pki_types::{CertificateDer, ServerName, pem::PemObject as _},
};
use tokio::{net::TcpStream, time::timeout};
use tokio_rustls::TlsConnector;
use x509_parser::prelude::{FromDer as _, X509Certificate};

use crate::output::units::format_duration;

/// Generous, because the cluster may be far away.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(3);
/// Webhooks renew with a third of the lifetime left. With less than this fraction, renewal is overdue.
const OVERDUE_RENEWAL_DIVISOR: i64 = 5;

/// The validity period of a certificate, in seconds since 1970.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct CertificateValidity {
    begins: i64,
    ends: i64,
}

/// The outcome of a TLS handshake with a webhook.
#[derive(Debug)]
pub(super) enum HandshakeOutcome {
    /// The registration's authorities verify the certificate.
    Answered(Option<CertificateValidity>),
    /// An API server would reject the certificate.
    Untrusted(String),
    Unreachable(String),
}

impl CertificateValidity {
    fn from_certificate(certificate: &CertificateDer<'_>) -> Option<Self> {
        let (_, certificate) = X509Certificate::from_der(certificate).ok()?;
        let validity = certificate.validity();
        Some(Self { begins: validity.not_before.timestamp(), ends: validity.not_after.timestamp() })
    }

    /// Why the certificate is not valid (true) or soon will not be (false). None if it is valid.
    pub(super) fn find_problem(self, now: i64) -> Option<(bool, String)> {
        let words = |seconds: i64| format_duration(u64::try_from(seconds).unwrap_or(0).saturating_mul(1_000_000_000));
        let left = self.ends.saturating_sub(now);
        match left {
            _ if now < self.begins => {
                Some((true, format!("the certificate becomes valid in {}", words(self.begins.saturating_sub(now)))))
            }
            ..=0 => Some((true, format!("the certificate expired {} ago", words(left.saturating_neg())))),
            left if left < self.ends.saturating_sub(self.begins) / OVERDUE_RENEWAL_DIVISOR => {
                Some((false, format!("the certificate expires in {}, and its renewal is overdue", words(left))))
            }
            _ => None,
        }
    }

    /// The remaining lifetime as text.
    pub(super) fn describe_remaining(self, now: i64) -> String {
        let left = u64::try_from(self.ends.saturating_sub(now)).unwrap_or(0);
        format!("valid for {}", format_duration(left.saturating_mul(1_000_000_000)))
    }
}

/// The authorities in a registration, and the validity of the one that expires last.
pub(super) fn parse_ca_bundle(bundle: &[u8]) -> Result<(RootCertStore, CertificateValidity), String> {
    let mut store = RootCertStore::empty();
    let mut longest = None::<CertificateValidity>;
    for (index, certificate) in CertificateDer::pem_slice_iter(bundle).enumerate() {
        let certificate = certificate.map_err(|_| format!("block {} of the caBundle is not PEM", index + 1))?;
        let life = CertificateValidity::from_certificate(&certificate)
            .ok_or_else(|| format!("block {} of the caBundle is not a certificate", index + 1))?;
        store.add(certificate).map_err(|error| format!("block {} of the caBundle: {error}", index + 1))?;
        longest = Some(longest.filter(|longest| longest.ends >= life.ends).unwrap_or(life));
    }
    longest.map(|longest| (store, longest)).ok_or_else(|| "the caBundle is empty".to_owned())
}

/// Connects as an API server would, up to the end of the handshake.
pub(super) async fn attempt_handshake(address: &str, name: &str, roots: RootCertStore) -> HandshakeOutcome {
    let Ok(name) = ServerName::try_from(name.to_owned()) else {
        return HandshakeOutcome::Untrusted(format!("invalid server name {name:?}"));
    };
    let config = match tls::client_builder() {
        Ok(builder) => builder.with_root_certificates(roots).with_no_client_auth(),
        Err(error) => return HandshakeOutcome::Untrusted(error.to_string()),
    };
    let stream = match timeout(HANDSHAKE_TIMEOUT, TcpStream::connect(address)).await {
        Ok(Ok(stream)) => stream,
        Ok(Err(error)) => return HandshakeOutcome::Unreachable(error.to_string()),
        Err(_) => return HandshakeOutcome::Unreachable("timed out while connecting".to_owned()),
    };
    match timeout(HANDSHAKE_TIMEOUT, TlsConnector::from(Arc::new(config)).connect(name, stream)).await {
        Ok(Ok(stream)) => {
            let (_, connection) = stream.get_ref();
            HandshakeOutcome::Answered(
                connection.peer_certificates().and_then(|shown| CertificateValidity::from_certificate(shown.first()?)),
            )
        }
        // An error of the certificate, as opposed to one of the connection.
        Ok(Err(error)) if error.kind() == std::io::ErrorKind::InvalidData => {
            HandshakeOutcome::Untrusted(error.to_string())
        }
        Ok(Err(error)) => HandshakeOutcome::Unreachable(error.to_string()),
        Err(_) => HandshakeOutcome::Unreachable("timed out during the TLS handshake".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY: i64 = 86_400;

    #[test]
    fn a_certificate_that_nobody_renews_is_told_before_it_ends() {
        let life = CertificateValidity { begins: 0, ends: 90 * DAY };
        assert_eq!(life.find_problem(60 * DAY), None);
        assert_eq!(life.find_problem(71 * DAY), None, "a renewal may be under way");
        assert!(matches!(life.find_problem(75 * DAY), Some((false, words)) if words.contains("15 d")));
        assert!(
            matches!(life.find_problem(91 * DAY), Some((true, words)) if words == "the certificate expired 1 d ago")
        );
        assert!(
            matches!(life.find_problem(-DAY), Some((true, words)) if words == "the certificate becomes valid in 1 d")
        );
        assert_eq!(life.describe_remaining(80 * DAY), "valid for 10 d");
    }

    #[test]
    fn a_bundle_that_is_none_is_said_to_be() {
        let cases = [("", "the caBundle is empty"), ("no", "the caBundle is empty")];
        for (bundle, words) in cases {
            assert_eq!(parse_ca_bundle(bundle.as_bytes()).map(|_| ()).unwrap_err(), words);
        }
        let no_certificate = "-----BEGIN CERTIFICATE-----\naGVsbG8=\n-----END CERTIFICATE-----\n";
        assert_eq!(
            parse_ca_bundle(no_certificate.as_bytes()).map(|_| ()).unwrap_err(),
            "block 1 of the caBundle is not a certificate"
        );
    }
}
