use super::*;

fn endpoint(text: &str) -> HostPort {
    HostPort::parse(text, 443).unwrap()
}

#[test]
fn an_endpoint_is_a_host_and_a_port() {
    for (text, host, port) in [
        ("backend:4317", "backend", 4317),
        ("backend.example", "backend.example", 443),
        ("127.0.0.1:1", "127.0.0.1", 1),
        ("[::1]:4317", "::1", 4317),
        ("[::1]", "::1", 443),
        ("user:secret@backend:4317", "backend", 4317),
    ] {
        let endpoint = endpoint(text);
        assert_eq!((endpoint.host(), endpoint.port()), (host, port), "{text}");
        assert_eq!(endpoint.dial_uri().port_u16(), Some(port));
    }
    for bad in ["", ":4317", "a b:1", "backend:99999", "backend:x", "secret@:1", "/path"] {
        let problem = HostPort::parse(bad, 443).unwrap_err().0;
        assert!(!problem.contains("secret"), "{problem}");
    }
}

#[test]
fn a_server_name_comes_from_a_name_an_address_or_an_authority() {
    for (text, name) in [
        ("backend.test", "backend.test"),
        ("backend.test:443", "backend.test"),
        ("127.0.0.1", "127.0.0.1"),
        ("127.0.0.1:443", "127.0.0.1"),
        ("::1", "::1"),
        ("[::1]:443", "::1"),
    ] {
        assert_eq!(server_name(text).unwrap().to_str(), name, "{text}");
    }
    assert!(server_name("not a name").is_err());
}

#[test]
fn an_explanation_names_each_cause_once() {
    #[derive(Debug, thiserror::Error)]
    #[error("client error (Connect)")]
    struct Outer(#[source] ConnectError);

    let handshake = std::io::Error::other("unknown issuer");
    let error = Outer(ConnectError::Tls(handshake));
    assert_eq!(error_chain(&error), "TLS handshake failed: unknown issuer");
    assert_eq!(error_chain(&std::io::Error::other("alone")), "alone");
}

#[test]
fn a_fault_of_tls_says_who_can_mend_it() {
    use rustls::{AlertDescription, CertificateError, Error, InvalidMessage};

    use crate::core::TlsFault;

    let of = |error: Error| tls_fault(&ConnectError::Tls(std::io::Error::new(std::io::ErrorKind::InvalidData, error)));
    let certificate = |why| of(Error::InvalidCertificate(why));
    assert_eq!(certificate(CertificateError::UnknownIssuer), Some(TlsFault::UnknownAuthority));
    assert_eq!(certificate(CertificateError::Expired), Some(TlsFault::Expired));
    assert_eq!(certificate(CertificateError::NotValidForName), Some(TlsFault::WrongName));
    assert_eq!(certificate(CertificateError::Revoked), Some(TlsFault::InvalidCertificate));
    assert_eq!(of(Error::AlertReceived(AlertDescription::CertificateRequired)), Some(TlsFault::CertificateWanted));
    assert_eq!(of(Error::AlertReceived(AlertDescription::HandshakeFailure)), Some(TlsFault::Refused));
    assert_eq!(of(Error::InvalidMessage(InvalidMessage::InvalidContentType)), Some(TlsFault::NoTls));
    let hung_up = || std::io::Error::from(std::io::ErrorKind::UnexpectedEof);
    assert_eq!(tls_fault(&ConnectError::Tls(hung_up())), Some(TlsFault::Refused));
    assert_eq!(tls_fault(&ConnectError::HungUp(hung_up())), Some(TlsFault::PerhapsNoTls));
    assert_eq!(tls_fault(&ConnectError::Tcp(Box::new(std::io::Error::other("no route")))), None);
}

#[test]
fn who_asked_for_a_certificate_and_goes_away_wants_one() {
    use rustls::{AlertDescription, Error};

    use crate::core::TlsFault;

    let trusting = ClientTls { insecure_skip_verify: true, ..ClientTls::default() };
    let config = tls::client_config(&trusting, &[]).unwrap().unwrap();
    let refusal = || {
        let alert = Error::AlertReceived(AlertDescription::HandshakeFailure);
        std::io::Error::new(std::io::ErrorKind::InvalidData, alert)
    };
    let reset = || std::io::Error::from(std::io::ErrorKind::ConnectionReset);
    let lost = std::io::Error::other("HTTP has lost the cause");
    let word = HandshakeHint::default();
    let wanted = Some(TlsFault::CertificateWanted);
    let asked = word.with_cert_request_recorder(config);
    assert_eq!(word.tls_fault(&ConnectError::Tls(refusal())), Some(TlsFault::Refused));
    word.record_tls_error(&reset());
    assert_eq!(word.tls_fault(&lost), None, "there are many reasons");

    assert!(asked.client_auth_cert_resolver.resolve(&[], &[]).is_none());
    assert_eq!(word.tls_fault(&ConnectError::Tls(refusal())), wanted, "in the handshake");
    for error in [refusal(), reset()] {
        word.record_tls_error(&error);
        assert_eq!(word.tls_fault(&lost), wanted, "behind it");
    }
    word.reset();
    assert_eq!(word.tls_fault(&lost), None, "that was another connection");
    asked.client_auth_cert_resolver.resolve(&[], &[]);
    word.reset();
    assert_eq!(word.tls_fault(&ConnectError::Tls(refusal())), Some(TlsFault::Refused), "it went on without");
}

#[tokio::test]
async fn whoever_speaks_without_tls_is_not_suspected_of_wanting_it() {
    use crate::core::TlsFault;
    use tokio::io::AsyncWriteExt;

    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let first = HandshakeHint::default();
    for (words, suspected) in [(&b""[..], Some(TlsFault::PerhapsWanted)), (b"HTTP/1.1 200 OK", None)] {
        let client = tokio::net::TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        let (mut server, _) = listener.accept().await.unwrap();
        server.write_all(words).await.unwrap();
        drop(server);
        std::future::poll_fn(|cx| first.poll_first_bytes(&client, cx)).await.unwrap();
        assert_eq!(first.tls_fault(&std::io::Error::other("HTTP has lost the cause")), suspected);
    }
}

#[tokio::test]
async fn why_there_is_no_connection_is_told_apart() {
    use std::io::{Error, ErrorKind};

    use crate::core::{BackendStatus, ConnectFault, TlsFault};

    let closed = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    // The C library refuses a label of more than 63 bytes itself: no name server is asked.
    let nameless = format!("{}.example:4317", "a".repeat(64));
    for (to, expected) in [(closed.to_string(), ConnectFault::Refused), (nameless, ConnectFault::NameNotFound)] {
        let client = http_client(DestinationConnector::new(&endpoint(&to), None));
        let error = client.get(Uri::from_static("http://backend/")).await.unwrap_err();
        assert_eq!(backend_status(&error, None), Some(BackendStatus::Connect(expected)), "{error:?}");
    }

    #[derive(Debug, thiserror::Error)]
    #[error("{0}")]
    struct Inner(&'static str, #[source] Error);
    let of = |words, error| backend_status(&ConnectError::Tcp(Box::new(Inner(words, error))), None);
    let tcp = |kind: ErrorKind| of("tcp connect error", Error::from(kind));
    assert_eq!(tcp(ErrorKind::TimedOut), Some(BackendStatus::Connect(ConnectFault::Timeout)));
    assert_eq!(tcp(ErrorKind::NetworkUnreachable), Some(BackendStatus::Connect(ConnectFault::Unreachable)));
    assert_eq!(tcp(ErrorKind::Other), None);
    for words in ["Temporary failure in name resolution", "Try again"] {
        let error = Error::other(format!("failed to lookup address information: {words}"));
        assert_eq!(of("dns error", error), Some(BackendStatus::Connect(ConnectFault::DnsFailed)), "{words}");
    }
    assert_eq!(backend_status(&Error::from(ErrorKind::ConnectionRefused), None), None, "it was there, and broke later");
    let tls = Some(TlsFault::Expired);
    assert_eq!(backend_status(&Error::other("any"), tls), Some(BackendStatus::Tls(TlsFault::Expired)));
}
