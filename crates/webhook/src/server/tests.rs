//! A stop while a call is in flight, on a paused clock.

use std::collections::BTreeSet;

use axum::routing::get;
use jiff::Timestamp;
use rustls::{
    ClientConfig, RootCertStore,
    pki_types::{CertificateDer, ServerName, pem::PemObject as _},
};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    sync::Notify,
    time::Instant,
};
use tokio_rustls::{TlsConnector, client};

use super::*;
use crate::certificates::{CertificateResolver, CertificateRing, CertificateTerms};

/// A server with one call in flight, which takes this long. The clock is paused.
async fn call_in_flight(takes: Duration) -> (WebhookServer, client::TlsStream<TcpStream>) {
    let names = BTreeSet::from(["localhost".to_owned()]);
    // TLS verification uses the real clock.
    let ring = CertificateRing::default().renew_if_due(&names, Timestamp::now(), CertificateTerms::default());
    let ring = ring.unwrap().unwrap();
    let resolver = Arc::new(CertificateResolver::default());
    resolver.set_certificate(&ring.generations()[0]).unwrap();
    let arrived = Arc::new(Notify::new());
    let handler_arrived = Arc::clone(&arrived);
    let slow = move || async move {
        handler_arrived.notify_one();
        tokio::time::sleep(takes).await;
        "done"
    };
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let router = Router::new().route("/", get(slow));
    let server = WebhookServer::start(listener, resolver.config().unwrap(), router).unwrap();

    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(ring.bundle().as_bytes()).unwrap()).unwrap();
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
    let config = config.with_root_certificates(roots).with_no_client_auth();
    let stream = TcpStream::connect(server.address()).await.unwrap();
    let name = ServerName::try_from("localhost").unwrap();
    let mut stream = TlsConnector::from(Arc::new(config)).connect(name, stream).await.unwrap();
    stream.write_all(b"GET / HTTP/1.1\r\nhost: localhost\r\n\r\n").await.unwrap();
    arrived.notified().await;
    tokio::time::pause();
    (server, stream)
}

/// All that the client still gets, until the connection ends in any way.
async fn read_response(mut stream: client::TlsStream<TcpStream>) -> String {
    let mut response = Vec::new();
    let _ = stream.read_to_end(&mut response).await;
    String::from_utf8(response).unwrap()
}

#[tokio::test]
async fn call_in_flight_at_a_stop_has_the_whole_call_timeout() {
    let call_timeout = Duration::from_secs(5);
    let (server, stream) = call_in_flight(call_timeout).await;
    let (response, ()) = tokio::join!(read_response(stream), server.stop(call_timeout));
    assert!(response.starts_with("HTTP/1.1 200 ") && response.ends_with("done"), "{response}");
}

#[tokio::test]
async fn call_that_outlasts_its_timeout_is_aborted_a_second_later() {
    let call_timeout = Duration::from_secs(5);
    let (server, stream) = call_in_flight(Duration::from_secs(60)).await;
    let stopped_at = Instant::now();
    let (response, ()) = tokio::join!(read_response(stream), server.stop(call_timeout));
    let elapsed = stopped_at.elapsed();
    assert_eq!(response, "");
    assert!((call_timeout + DRAIN_MARGIN..call_timeout + DRAIN_MARGIN * 2).contains(&elapsed), "{elapsed:?}");
}
