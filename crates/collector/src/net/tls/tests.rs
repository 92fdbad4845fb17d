use std::fs;

use kubewake_config::{SecretString, model::ClientTls};
use rustls::pki_types::ServerName;
use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};
use tokio_rustls::{TlsAcceptor, TlsConnector};

use super::*;
use crate::net::testing::Authority;

/// Runs a handshake between a client and a server with these settings, and returns the client's error.
async fn meet(client: &ClientTls, server: &ServerTls, name: &str) -> Result<(), String> {
    let client = client_config(client, &[b"h2"]).unwrap().unwrap();
    let server = server_config(server, &[b"h2", b"http/1.1"]).unwrap();
    let (near, far) = duplex(64 << 10);
    let serving = tokio::spawn(async move {
        let mut stream = TlsAcceptor::from(server).accept(far).await?;
        stream.write_all(b"hello").await?;
        stream.shutdown().await
    });
    let name = ServerName::try_from(name.to_owned()).unwrap();
    let hello = async {
        let mut stream = TlsConnector::from(client).connect(name, near).await?;
        assert_eq!(stream.get_ref().1.alpn_protocol(), Some(&b"h2"[..]));
        let mut hello = [0; 5];
        stream.read_exact(&mut hello).await
    };
    let result = hello.await.map(drop).map_err(|error| error.to_string());
    let _ = serving.await.unwrap();
    result
}

fn trusting(ca: &Authority) -> ClientTls {
    ClientTls { ca: Some(ca.root()), ..ClientTls::default() }
}

#[tokio::test]
async fn a_private_root_is_trusted_and_no_other() {
    let ours = Authority::new();
    let theirs = Authority::new();
    meet(&trusting(&ours), &ours.server("backend.test"), "backend.test").await.unwrap();
    let error = meet(&trusting(&theirs), &ours.server("backend.test"), "backend.test").await.unwrap_err();
    assert!(error.contains("certificate"), "{error}");
    let error = meet(&trusting(&ours), &ours.server("backend.test"), "other.test").await.unwrap_err();
    assert!(error.contains("other.test"), "{error}");
    // The system's roots do not contain it either.
    let system = ClientTls { include_system_roots: true, ..trusting(&theirs) };
    meet(&system, &ours.server("backend.test"), "backend.test").await.unwrap_err();
}

#[tokio::test]
async fn without_verification_any_certificate_will_do() {
    let client = ClientTls { insecure_skip_verify: true, ..ClientTls::default() };
    for min_version in [TlsVersion::V1_2, TlsVersion::V1_3] {
        let server = ServerTls { min_version, ..Authority::new().server("backend.test") };
        meet(&client, &server, "other.test").await.unwrap();
    }
}

#[tokio::test]
async fn clients_must_show_a_certificate_where_a_client_ca_is_set() {
    let ours = Authority::new();
    let theirs = Authority::new();
    let server = ServerTls { client_ca: Some(ours.root()), ..ours.server("backend.test") };
    let with = |identity| ClientTls { identity, ..trusting(&ours) };
    meet(&with(Some(ours.issue("client.test"))), &server, "backend.test").await.unwrap();
    meet(&with(None), &server, "backend.test").await.unwrap_err();
    meet(&with(Some(theirs.issue("client.test"))), &server, "backend.test").await.unwrap_err();
}

#[tokio::test]
async fn a_version_below_the_minimum_is_refused() {
    let ca = Authority::new();
    let client = ClientTls { min_version: TlsVersion::V1_3, ..trusting(&ca) };
    meet(&client, &ca.server("backend.test"), "backend.test").await.unwrap();

    let old = ServerConfig::builder_with_provider(crypto_provider())
        .with_protocol_versions(&[&TLS12])
        .unwrap()
        .with_no_client_auth();
    let (chain, key) = pem::read_key_pair(&ca.issue("backend.test")).unwrap();
    let old = Arc::new(old.with_single_cert(chain, key).unwrap());
    let (near, far) = duplex(64 << 10);
    tokio::spawn(async move { TlsAcceptor::from(old).accept(far).await.map(drop) });
    let connector = TlsConnector::from(client_config(&client, &[]).unwrap().unwrap());
    connector.connect(ServerName::try_from("backend.test").unwrap(), near).await.unwrap_err();
}

#[test]
fn insecure_means_no_tls_unless_a_root_is_named() {
    let insecure = ClientTls { insecure: true, ..ClientTls::default() };
    assert!(client_config(&insecure, &[]).unwrap().is_none());
    let rooted = ClientTls { ca: Some(Authority::new().root()), ..insecure };
    assert!(client_config(&rooted, &[]).unwrap().is_some());
}

#[test]
fn files_are_read_anew_each_time() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let write = |pair: &KeyPair| {
        for (name, source) in [("tls.crt", &pair.cert), ("tls.key", &pair.key)] {
            let PemSource::Inline(text) = source else { panic!("issued inline") };
            fs::write(path(name), text.reveal()).unwrap();
        }
    };
    let ca = Authority::new();
    let tls = ServerTls {
        identity: KeyPair { cert: PemSource::File(path("tls.crt")), key: PemSource::File(path("tls.key")) },
        ..ca.server("backend.test")
    };
    let problem = || server_config(&tls, &[]).err().unwrap().0;
    assert!(problem().contains("tls.crt: No such file"), "{}", problem());
    write(&ca.issue("backend.test"));
    server_config(&tls, &[]).unwrap();
    fs::write(path("tls.key"), "nothing").unwrap();
    assert!(problem().contains("tls.key contains no unencrypted PEM private key"), "{}", problem());
}

#[test]
fn a_certificate_and_another_key_do_not_go_together() {
    let ca = Authority::new();
    let mixed = KeyPair { cert: ca.issue("a.test").cert, key: ca.issue("b.test").key };
    let server = ServerTls { identity: mixed.clone(), ..ca.server("a.test") };
    assert!(server_config(&server, &[]).err().unwrap().0.contains("cannot be used together"));
    let client = ClientTls { identity: Some(mixed), ..trusting(&ca) };
    assert!(client_config(&client, &[]).err().unwrap().0.contains("cannot be used together"));
}

#[test]
fn errors_say_what_is_wrong_and_repeat_nothing() {
    let ca = Authority::new();
    let inline = |text: &str| PemSource::Inline(SecretString::new(text));
    for (key, words) in [
        ("hunter2", "no unencrypted PEM private key"),
        ("-----BEGIN PRIVATE KEY-----\nhunter2\n", "does not end"),
        ("-----BEGIN PRIVATE KEY hunter2\n", "invalid first line"),
        ("-----BEGIN PRIVATE KEY-----\nhunter2!\n-----END PRIVATE KEY-----\n", "base64"),
        ("-----BEGIN PRIVATE KEY-----\naHVudGVyMg==\n-----END PRIVATE KEY-----\n", "cannot be used together"),
        ("-----BEGIN ENCRYPTED PRIVATE KEY-----\naHVudGVyMg==\n-----END ENCRYPTED PRIVATE KEY-----\n", "encrypted"),
    ] {
        let identity = KeyPair { key: inline(key), ..ca.issue("a.test") };
        let problem = server_config(&ServerTls { identity, ..ca.server("a.test") }, &[]).err().unwrap().0;
        assert!(problem.contains(words), "{problem}");
        assert!(!problem.contains("hunter2") && !problem.contains("aHVudGVyMg"), "{problem}");
    }
    let no_root = ClientTls { ca: Some(inline("hunter2")), ..ClientTls::default() };
    assert!(client_config(&no_root, &[]).err().unwrap().0.contains("contains no PEM certificate"));
}
