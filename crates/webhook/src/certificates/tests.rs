//! The rules of a ring, and certificates as a client verifies them.

use std::sync::Arc;

use rustls::{
    ClientConfig, RootCertStore,
    client::{WebPkiServerVerifier, danger::ServerCertVerifier as _},
    pki_types::{CertificateDer, ServerName, UnixTime, pem::PemObject as _},
};

use super::*;

fn names(names: &[&str]) -> BTreeSet<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_second(1_800_000_000 + seconds).unwrap()
}

/// Ninety seconds, so that the next generation is issued after sixty.
fn terms() -> CertificateTerms {
    CertificateTerms::new(Duration::from_secs(90)).unwrap()
}

fn ring(names: &BTreeSet<String>, seconds: i64) -> CertificateRing {
    CertificateRing::default().renew_if_due(names, at(seconds), terms()).unwrap().unwrap()
}

/// Whether a client that trusts this bundle accepts the served certificate.
fn is_believed(bundle: &str, shown: &CertificateGeneration, name: &str, now: Timestamp) -> bool {
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let mut roots = RootCertStore::empty();
    CertificateDer::pem_slice_iter(bundle.as_bytes()).for_each(|root| roots.add(root.unwrap()).unwrap());
    let verifier = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider).build().unwrap();
    let certificate = CertificateDer::from_pem_slice(shown.certificate.as_bytes()).unwrap();
    let time = UnixTime::since_unix_epoch(Duration::from_secs(now.as_second().unsigned_abs()));
    let name = ServerName::try_from(name.to_owned()).unwrap();
    verifier.verify_server_cert(&certificate, &[], &name, &[], time).is_ok()
}

#[test]
fn a_lifetime_has_limits() {
    assert!(CertificateTerms::new(Duration::from_secs(9)).is_err());
    assert!(CertificateTerms::new(Duration::from_secs(11 * 365 * 24 * 3600)).is_err());
    assert_eq!(CertificateTerms::default().lead(), SignedDuration::from_mins(10));
    assert_eq!(CertificateTerms::new(Duration::from_secs(12)).unwrap().lead(), SignedDuration::from_secs(1));
}

#[test]
fn a_certificate_is_believed_by_its_names_for_as_long_as_it_lives() {
    let names = names(&["hook.ns.svc", "127.0.0.1"]);
    let ring = ring(&names, 0);
    let shown = ring.serving_generation(&names, at(0), |_| false).unwrap();
    for name in ["hook.ns.svc", "127.0.0.1"] {
        assert!(is_believed(&ring.bundle(), shown, name, at(0)));
        assert!(is_believed(&ring.bundle(), shown, name, at(-3000)), "for a clock that is behind");
        assert!(!is_believed(&ring.bundle(), shown, name, at(91)));
    }
    assert!(!is_believed(&ring.bundle(), shown, "other.ns.svc", at(0)));
    let other = self::ring(&names, 0);
    assert!(!is_believed(&other.bundle(), shown, "127.0.0.1", at(0)), "another authority");
}

#[test]
fn names_that_no_certificate_can_have_are_told() {
    let made = CertificateRing::default().renew_if_due(&names(&["naïve"]), at(0), terms());
    assert!(made.unwrap_err().to_string().contains("naïve"));
}

#[test]
fn a_ring_is_renewed_with_a_third_of_its_life_left_and_never_shows_what_nobody_knows() {
    let names = names(&["localhost"]);
    let first = ring(&names, 0);
    assert_eq!(first.next_due(&names, at(1)), at(60));
    assert_eq!(first.renew_if_due(&names, at(59), terms()).unwrap(), None);
    let second = first.renew_if_due(&names, at(60), terms()).unwrap().unwrap();
    let [old, new] = second.generations() else { panic!("{second:?}") };
    assert_eq!(second.bundle(), format!("{}{}", old.authority(), new.authority()));
    assert_eq!(second.serving_generation(&names, at(60), |_| false), Some(old), "the new one is not known yet");
    assert_eq!(second.serving_generation(&names, at(60), |one| one == new), Some(new));
    assert_eq!(second.serving_generation(&names, at(90), |_| false), Some(new), "there is no other");
    assert_eq!(second.next_due(&names, at(60)), at(90));
    let third = second.renew_if_due(&names, at(90), terms()).unwrap().unwrap();
    assert_eq!(third.generations(), std::slice::from_ref(new));
}

#[test]
fn another_name_is_shown_at_once_and_two_names_do_not_fight() {
    let one = names(&["a"]);
    let other = names(&["b"]);
    let ring = ring(&one, 0).renew_if_due(&other, at(1), terms()).unwrap().unwrap();
    assert_eq!(ring.generations().len(), 2);
    assert_eq!(ring.serving_generation(&other, at(1), |_| false), ring.generations().last());
    assert_eq!(ring.renew_if_due(&one, at(1), terms()).unwrap(), None);
    assert_eq!(ring.renew_if_due(&other, at(1), terms()).unwrap(), None);
}

#[test]
fn a_ring_stays_small() {
    let mut ring = CertificateRing::default();
    for name in ["a", "b", "c", "d", "e", "f"] {
        ring = ring.renew_if_due(&names(&[name]), at(0), terms()).unwrap().unwrap();
    }
    assert_eq!(ring.generations().len(), MAX_GENERATIONS);
}

#[test]
fn the_key_is_not_shown() {
    let ring = ring(&names(&["a"]), 0);
    assert!(!format!("{ring:?}").contains("PRIVATE"));
}

#[tokio::test]
async fn what_is_shown_changes_while_connections_come() {
    let names = names(&["localhost"]);
    // TLS verification uses the real clock.
    let made = || {
        CertificateRing::default().renew_if_due(&names, Timestamp::now(), CertificateTerms::default()).unwrap().unwrap()
    };
    let first = made();
    let second = made();
    let serving = Arc::new(CertificateResolver::default());
    let acceptor = tokio_rustls::TlsAcceptor::from(serving.config().unwrap());
    for ring in [&first, &second] {
        serving.set_certificate(&ring.generations()[0]).unwrap();
        let (client, server) = tokio::io::duplex(1 << 16);
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from_pem_slice(ring.bundle().as_bytes()).unwrap()).unwrap();
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let config = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
        let config = config.with_root_certificates(roots).with_no_client_auth();
        let connector = tokio_rustls::TlsConnector::from(Arc::new(config));
        let name = ServerName::try_from("localhost").unwrap();
        let (accepted, connected) = tokio::join!(acceptor.accept(server), connector.connect(name, client));
        let accepted = accepted.is_ok();
        let connected = connected.map(drop).map_err(|error| error.to_string());
        assert!(accepted && connected.is_ok(), "{connected:?}");
    }
}
