use rustls::pki_types::PrivateKeyDer;
use tokio::net::TcpListener;
use tokio_rustls::TlsConnector;

use super::*;

/// Far more than a handshake takes on a busy machine.
const TIME_LIMIT: Duration = Duration::from_secs(30);

fn server_config() -> Arc<ServerConfig> {
    let pair = rcgen::generate_simple_self_signed(["server.test".to_owned()]).unwrap();
    let key = PrivateKeyDer::try_from(pair.signing_key.serialize_der()).unwrap();
    let builder = server_builder().unwrap().with_no_client_auth();
    let mut config = builder.with_single_cert(vec![pair.cert.into()], key).unwrap();
    config.alpn_protocols = alpn_protocols(&[b"h2", b"http/1.1"]);
    Arc::new(config)
}

/// Accepts one connection, and returns the agreed protocol if the handshake succeeds.
async fn accept_one(limit: Duration) -> (SocketAddr, tokio::task::JoinHandle<Option<Vec<u8>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let task = tokio::spawn(async move {
        let (stream, peer) = listener.accept().await.unwrap();
        let stream = accept(stream, peer, server_config(), limit).await?;
        stream.get_ref().1.alpn_protocol().map(<[u8]>::to_vec)
    });
    (address, task)
}

#[tokio::test]
async fn unverified_client_accepts_a_certificate_for_another_name() {
    let (address, server) = accept_one(TIME_LIMIT).await;
    let builder = client_builder().unwrap().dangerous();
    let builder = builder.with_custom_certificate_verifier(unverified_server(crypto_provider()));
    let mut config = builder.with_no_client_auth();
    config.alpn_protocols = alpn_protocols(&[b"h2"]);
    let stream = TcpStream::connect(address).await.unwrap();
    let name = ServerName::try_from("other.test").unwrap();
    TlsConnector::from(Arc::new(config)).connect(name, stream).await.unwrap();
    assert_eq!(server.await.unwrap().as_deref(), Some(&b"h2"[..]));
}

#[tokio::test]
async fn handshake_fails_when_the_client_trusts_no_such_authority() {
    let (address, server) = accept_one(TIME_LIMIT).await;
    let config = client_builder().unwrap().with_root_certificates(rustls::RootCertStore::empty()).with_no_client_auth();
    let stream = TcpStream::connect(address).await.unwrap();
    let name = ServerName::try_from("server.test").unwrap();
    assert!(TlsConnector::from(Arc::new(config)).connect(name, stream).await.is_err());
    assert_eq!(server.await.unwrap(), None);
}

#[tokio::test]
async fn handshake_ends_at_its_deadline_when_the_client_is_silent() {
    let (address, server) = accept_one(Duration::from_millis(50)).await;
    let _silent = TcpStream::connect(address).await.unwrap();
    assert_eq!(timeout(TIME_LIMIT, server).await.expect("it ends").unwrap(), None);
}
