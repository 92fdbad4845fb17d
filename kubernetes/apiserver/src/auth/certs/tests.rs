use std::{os::unix::fs::PermissionsExt, sync::Arc};

use kubewake_runtime::tls::client_builder;
use rustls::{
    ClientConfig, ClientConnection, RootCertStore, ServerConnection,
    pki_types::{CertificateDer, PrivateKeyDer, ServerName, pem::PemObject},
};

use super::{
    tls::{ServingCertificate, server_config},
    *,
};
use crate::auth::{
    kubeconfig::{ClientCredentials, Kubeconfig},
    x509,
};

fn now() -> Timestamp {
    Timestamp::now()
}

fn server(certs: &ServerCertificates) -> Arc<rustls::ServerConfig> {
    server_config(ServingCertificate::new(&certs.server).unwrap(), [certs.authority.certificate()]).unwrap()
}

fn client(ca: &str, pair: Option<&CertificatePair>) -> Arc<ClientConfig> {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(ca.as_bytes()).unwrap()).unwrap();
    let builder = client_builder().unwrap();
    let builder = builder.with_root_certificates(roots);
    let mut config = match pair {
        None => builder.with_no_client_auth(),
        Some(pair) => {
            let chain = vec![CertificateDer::from_pem_slice(pair.chain.as_bytes()).unwrap()];
            builder.with_client_auth_cert(chain, PrivateKeyDer::from_pem_slice(pair.key.as_bytes()).unwrap()).unwrap()
        }
    };
    config.alpn_protocols = vec![b"h2".to_vec()];
    Arc::new(config)
}

/// A handshake in memory, which returns the user that the server sees.
fn handshake(
    server: Arc<rustls::ServerConfig>,
    client: Arc<ClientConfig>,
    name: &str,
) -> Result<Option<String>, rustls::Error> {
    let mut client = ClientConnection::new(client, ServerName::try_from(name.to_owned()).unwrap())?;
    let mut server = ServerConnection::new(server)?;
    while client.is_handshaking() || server.is_handshaking() {
        let mut bytes = Vec::new();
        while client.wants_write() {
            client.write_tls(&mut bytes).unwrap();
        }
        let mut rest = &bytes[..];
        while !rest.is_empty() {
            server.read_tls(&mut rest).unwrap();
            server.process_new_packets()?;
        }
        let mut bytes = Vec::new();
        while server.wants_write() {
            server.write_tls(&mut bytes).unwrap();
        }
        let mut rest = &bytes[..];
        while !rest.is_empty() {
            client.read_tls(&mut rest).unwrap();
            client.process_new_packets()?;
        }
    }
    assert_eq!(server.alpn_protocol(), Some(&b"h2"[..]));
    Ok(server
        .peer_certificates()
        .and_then(|chain| x509::user_from_certificate(chain.first()?))
        .map(|user| user.name.to_string()))
}

#[test]
fn the_administrator_is_known_and_in_masters() {
    let certs = ServerCertificates::generate(&SubjectAltNames::default(), now()).unwrap();
    let config = client(certs.authority.certificate(), Some(&certs.admin));
    for name in ["localhost", "127.0.0.1", "::1", "kubernetes.default.svc"] {
        assert_eq!(
            handshake(server(&certs), Arc::clone(&config), name).unwrap(),
            Some("kubernetes-admin".into()),
            "{name}"
        );
    }
    let der = CertificateDer::from_pem_slice(certs.admin.chain.as_bytes()).unwrap();
    assert!(x509::user_from_certificate(&der).unwrap().is_in(MASTERS_GROUP));
}

#[test]
fn a_client_needs_no_certificate_but_brings_no_strangers() {
    let certs = ServerCertificates::generate(&SubjectAltNames::default(), now()).unwrap();
    let other = CertificateAuthority::generate(now()).unwrap();
    let ca = certs.authority.certificate();
    assert_eq!(handshake(server(&certs), client(ca, None), "localhost").unwrap(), None);
    let stranger = other.client("jane", &[MASTERS_GROUP], now()).unwrap();
    assert!(handshake(server(&certs), client(ca, Some(&stranger)), "localhost").is_err());
    // A serving certificate is not valid for clients.
    assert!(handshake(server(&certs), client(ca, Some(&certs.server)), "localhost").is_err());
}

#[test]
fn given_names_and_addresses_are_covered() {
    let subjects = SubjectAltNames {
        names: vec!["api.test".into(), "10.1.2.3".into()],
        addresses: vec![IpAddr::from([127, 0, 0, 9])],
    };
    let certs = ServerCertificates::generate(&subjects, now()).unwrap();
    let config = client(certs.authority.certificate(), None);
    for name in ["api.test", "10.1.2.3", "127.0.0.9"] {
        assert!(handshake(server(&certs), Arc::clone(&config), name).is_ok(), "{name}");
    }
    assert!(handshake(server(&certs), config, "other.test").is_err());
}

#[test]
fn a_serving_certificate_is_replaced_under_a_running_server() {
    let old = ServerCertificates::generate(&SubjectAltNames::default(), now()).unwrap();
    let new = ServerCertificates::generate(&SubjectAltNames::default(), now()).unwrap();
    let serving = ServingCertificate::new(&old.server).unwrap();
    let config = server_config(Arc::clone(&serving), [old.authority.certificate()]).unwrap();
    let trusting_new = client(new.authority.certificate(), None);
    assert!(handshake(Arc::clone(&config), Arc::clone(&trusting_new), "localhost").is_err());
    let mismatched = CertificatePair { chain: new.server.chain.clone(), key: old.server.key };
    assert!(serving.replace(&mismatched).is_err());
    serving.replace(&new.server).unwrap();
    assert!(handshake(config, trusting_new, "localhost").is_ok());
}

#[test]
fn a_directory_keeps_what_is_still_good() {
    let directory = tempfile::tempdir().unwrap();
    let load = |subjects: &SubjectAltNames, now| {
        ServerCertificates::load_or_generate(&directory.path().join("pki"), subjects, now).unwrap()
    };
    let first = load(&SubjectAltNames::default(), now());
    let again = load(&SubjectAltNames::default(), now());
    assert_eq!((&first.server, &first.admin), (&again.server, &again.admin));
    assert_eq!(first.authority.certificate(), again.authority.certificate());
    let named = load(&SubjectAltNames { names: vec!["api.test".into()], ..SubjectAltNames::default() }, now());
    assert!(named.server != first.server && named.admin == first.admin);
    let later = load(&SubjectAltNames::default(), now() + jiff::SignedDuration::from_hours(24 * 350));
    assert!(later.server != named.server && later.admin != first.admin);
    assert_eq!(first.authority.certificate(), later.authority.certificate());
    // Certificates of the CA in the files are valid for clients that trust the first one.
    let config = client(first.authority.certificate(), Some(&load(&SubjectAltNames::default(), now()).admin));
    assert!(handshake(server(&first), config, "localhost").unwrap().is_some());
}

#[test]
fn private_keys_are_private_and_foreign_cas_are_refused() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name);
    ServerCertificates::load_or_generate(directory.path(), &SubjectAltNames::default(), now()).unwrap();
    for (name, mode) in [("ca.key", 0o600), ("apiserver.key", 0o600), ("admin.key", 0o600), ("ca.crt", 0o644)] {
        assert_eq!(std::fs::metadata(path(name)).unwrap().permissions().mode() & 0o777, mode, "{name}");
    }
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 6);
    let other = CertificateAuthority::generate(now()).unwrap();
    std::fs::write(path("ca.crt"), other.certificate()).unwrap();
    let foreign =
        ServerCertificates::load_or_generate(directory.path(), &SubjectAltNames::default(), now()).unwrap_err();
    assert!(matches!(foreign, ServerCertificateError::Foreign { .. }));
    std::fs::remove_file(path("ca.crt")).unwrap();
    let half = ServerCertificates::load_or_generate(directory.path(), &SubjectAltNames::default(), now()).unwrap_err();
    assert!(matches!(half, ServerCertificateError::Half { .. }));
}

#[test]
fn a_kubeconfig_holds_everything_and_shows_no_secret() {
    let certs = ServerCertificates::generate(&SubjectAltNames::default(), now()).unwrap();
    let config = Kubeconfig {
        name: "kubewake".into(),
        server: "https://127.0.0.1:6443".into(),
        certificate_authority: Some(certs.authority.certificate().into()),
        credentials: ClientCredentials::Certificate(certs.admin.clone()),
    };
    let yaml = config.to_yaml();
    for part in ["server: \"https://127.0.0.1:6443\"", "client-key-data: ", "current-context: \"kubewake\""] {
        assert!(yaml.contains(part), "{part}");
    }
    assert!(!format!("{config:?} {certs:?}").contains("PRIVATE KEY"));
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("deep/kubeconfig");
    config.write(&path).unwrap();
    assert_eq!(std::fs::read_to_string(&path).unwrap(), yaml);
    assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
}

#[test]
fn given_certificates_are_checked_when_they_are_read() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name);
    let certs = ServerCertificates::load_or_generate(directory.path(), &SubjectAltNames::default(), now()).unwrap();
    assert_eq!(CertificatePair::load(&path("apiserver.crt"), &path("apiserver.key")).unwrap(), certs.server);
    assert!(matches!(
        CertificatePair::load(&path("apiserver.crt"), &path("admin.key")),
        Err(ServerCertificateError::Tls(_))
    ));
    assert!(matches!(
        CertificatePair::load(&path("apiserver.key"), &path("apiserver.key")),
        Err(ServerCertificateError::NoCertificate { .. })
    ));
    assert!(matches!(
        CertificatePair::load(&path("none"), &path("apiserver.key")),
        Err(ServerCertificateError::NoCertificate { .. })
    ));
}

#[test]
fn a_place_below_a_file_is_told_plainly() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let refused = secret_files::write(&file.path().join("kubeconfig"), "text", true).unwrap_err();
    assert_eq!(refused.to_string(), format!("{:?} is not a directory", file.path()));
}

/// An error and its causes.
fn told(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(Some(error), |error| error.source());
    causes.map(ToString::to_string).collect::<Vec<_>>().join(": ")
}

#[test]
fn damaged_key_is_named_and_not_shown() {
    let now = Timestamp::now();
    for file in ["ca.key", "ca.crt"] {
        let dir = tempfile::tempdir().unwrap();
        ServerCertificates::load_or_generate(dir.path(), &SubjectAltNames::default(), now).unwrap();
        let path = dir.path().join(file);
        let text = std::fs::read_to_string(&path).unwrap();
        for damaged in [&text[..text.len() / 2], "garbage", &text.replace(['A', 'e', 'M'], "!")] {
            std::fs::write(&path, damaged).unwrap();
            let error =
                told(&ServerCertificates::load_or_generate(dir.path(), &SubjectAltNames::default(), now).unwrap_err());
            assert!(error.contains(path.to_str().unwrap()) && error.contains("backup"), "{error}");
            assert!(!error.contains('['), "no bytes: {error}");
        }
    }
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("service-account.key");
    crate::auth::tokens::keys::SigningKey::load_or_generate(&path).unwrap();
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, &text[..text.len() / 2]).unwrap();
    let error = told(&crate::auth::tokens::keys::SigningKey::load_or_generate(&path).err().unwrap());
    assert!(error.contains(path.to_str().unwrap()) && error.contains("backup"), "{error}");
    assert!(!error.contains('['), "no bytes: {error}");
}
