//! Certificates of webhooks: what a registration believes, and what is shown.

use std::{sync::Arc, time::Duration};

use rustls::{
    ClientConfig, RootCertStore,
    pki_types::{CertificateDer, ServerName, pem::PemObject as _},
};
use tokio::{net::TcpStream, time::timeout};
use tokio_rustls::TlsConnector;
use x509_parser::prelude::{FromDer as _, X509Certificate};

use crate::output::number::duration;

/// From here, which may be far away from the cluster.
const PATIENCE: Duration = Duration::from_secs(3);
/// Webhooks renew with a third of the life left. With less than this part of it somebody does not.
const LATE: i64 = 5;

/// From when to when a certificate is good, in seconds since 1970.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Life {
    begins: i64,
    ends: i64,
}

/// What became of an attempt to call a webhook.
#[derive(Debug)]
pub(super) enum Call {
    /// It shows a certificate that the registration believes.
    Answered(Option<Life>),
    /// It answers, and an API server would not believe it.
    Untrusted(String),
    /// From here nobody answers.
    Unreachable(String),
}

impl Life {
    fn of(certificate: &CertificateDer<'_>) -> Option<Self> {
        let (_, certificate) = X509Certificate::from_der(certificate).ok()?;
        let validity = certificate.validity();
        Some(Self { begins: validity.not_before.timestamp(), ends: validity.not_after.timestamp() })
    }

    /// What is wrong with it now: not good, or soon not. None if nothing is.
    pub(super) fn trouble(self, now: i64) -> Option<(bool, String)> {
        let words = |seconds: i64| duration(u64::try_from(seconds).unwrap_or(0).saturating_mul(1_000_000_000));
        let left = self.ends.saturating_sub(now);
        match left {
            _ if now < self.begins => {
                Some((true, format!("it is good only in {}", words(self.begins.saturating_sub(now)))))
            }
            ..=0 => Some((true, format!("it has expired {} ago", words(left.saturating_neg())))),
            left if left < self.ends.saturating_sub(self.begins) / LATE => {
                Some((false, format!("it ends in {}, and should have been renewed by now", words(left))))
            }
            _ => None,
        }
    }

    /// For how long it is good still.
    pub(super) fn rest(self, now: i64) -> String {
        let left = u64::try_from(self.ends.saturating_sub(now)).unwrap_or(0);
        format!("good for {}", duration(left.saturating_mul(1_000_000_000)))
    }
}

/// The authorities of a registration, and the life of the one that lives longest.
pub(super) fn authorities(bundle: &[u8]) -> Result<(RootCertStore, Life), String> {
    let (mut store, mut longest) = (RootCertStore::empty(), None::<Life>);
    for (index, certificate) in CertificateDer::pem_slice_iter(bundle).enumerate() {
        let certificate = certificate.map_err(|_| format!("block {} of its caBundle is no PEM", index + 1))?;
        let life =
            Life::of(&certificate).ok_or_else(|| format!("block {} of its caBundle is no certificate", index + 1))?;
        store.add(certificate).map_err(|error| format!("block {} of its caBundle: {error}", index + 1))?;
        longest = Some(longest.filter(|longest| longest.ends >= life.ends).unwrap_or(life));
    }
    longest.map(|longest| (store, longest)).ok_or_else(|| "its caBundle is empty".to_owned())
}

/// Calls it as an API server would, as far as the handshake.
pub(super) async fn call(address: &str, name: &str, roots: RootCertStore) -> Call {
    let Ok(name) = ServerName::try_from(name.to_owned()) else {
        return Call::Untrusted(format!("{name:?} is no name"));
    };
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = match ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions() {
        Ok(builder) => builder.with_root_certificates(roots).with_no_client_auth(),
        Err(error) => return Call::Untrusted(error.to_string()),
    };
    let stream = match timeout(PATIENCE, TcpStream::connect(address)).await {
        Ok(Ok(stream)) => stream,
        Ok(Err(error)) => return Call::Unreachable(error.to_string()),
        Err(_) => return Call::Unreachable("no connection in time".to_owned()),
    };
    match timeout(PATIENCE, TlsConnector::from(Arc::new(config)).connect(name, stream)).await {
        Ok(Ok(stream)) => {
            let (_, connection) = stream.get_ref();
            Call::Answered(connection.peer_certificates().and_then(|shown| Life::of(shown.first()?)))
        }
        // What rustls has against it, and not what became of the connection.
        Ok(Err(error)) if error.kind() == std::io::ErrorKind::InvalidData => Call::Untrusted(error.to_string()),
        Ok(Err(error)) => Call::Unreachable(error.to_string()),
        Err(_) => Call::Unreachable("no handshake in time".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY: i64 = 86_400;

    #[test]
    fn a_certificate_that_nobody_renews_is_told_before_it_ends() {
        let life = Life { begins: 0, ends: 90 * DAY };
        assert_eq!(life.trouble(60 * DAY), None);
        assert_eq!(life.trouble(71 * DAY), None, "a renewal may be under way");
        assert!(matches!(life.trouble(75 * DAY), Some((false, words)) if words.contains("15 d")));
        assert!(matches!(life.trouble(91 * DAY), Some((true, words)) if words == "it has expired 1 d ago"));
        assert!(matches!(life.trouble(-DAY), Some((true, words)) if words == "it is good only in 1 d"));
        assert_eq!(life.rest(80 * DAY), "good for 10 d");
    }

    #[test]
    fn a_bundle_that_is_none_is_said_to_be() {
        let cases = [("", "its caBundle is empty"), ("no", "its caBundle is empty")];
        for (bundle, words) in cases {
            assert_eq!(authorities(bundle.as_bytes()).map(|_| ()).unwrap_err(), words);
        }
        let no_certificate = "-----BEGIN CERTIFICATE-----\naGVsbG8=\n-----END CERTIFICATE-----\n";
        assert_eq!(
            authorities(no_certificate.as_bytes()).map(|_| ()).unwrap_err(),
            "block 1 of its caBundle is no certificate"
        );
    }
}
