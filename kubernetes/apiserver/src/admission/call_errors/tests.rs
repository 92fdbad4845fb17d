use super::*;

#[test]
fn a_bad_status_is_said_as_client_go_says_it() {
    assert_eq!(
        status_error(500, None),
        "an error on the server (\"unknown\") has prevented the request from succeeding"
    );
    assert_eq!(
        status_error(502, Some(" oops\n")),
        "an error on the server (\"oops\") has prevented the request from succeeding"
    );
    assert_eq!(status_error(404, Some("404 page not found")), "the server could not find the requested resource");
    assert_eq!(status_error(403, Some("no")), "no");
    assert_eq!(
        status_error(418, None),
        "the server responded with the status code 418 but did not return more information"
    );
}

#[test]
fn a_broken_connection_is_said_as_go_says_it() {
    let address = DialAddress::Tcp("::1".into(), 9);
    let said = |kind: io::ErrorKind| io_error(&io::Error::from(kind), &address);
    assert_eq!(said(io::ErrorKind::ConnectionRefused), "dial tcp [::1]:9: connect: connection refused");
    assert_eq!(said(io::ErrorKind::TimedOut), "dial tcp [::1]:9: i/o timeout");
    assert_eq!(said(io::ErrorKind::UnexpectedEof), "EOF");
    let unknown = rustls::Error::InvalidCertificate(rustls::CertificateError::UnknownIssuer);
    let said = io_error(&io::Error::new(io::ErrorKind::InvalidData, unknown), &address);
    assert_eq!(said, "tls: failed to verify certificate: x509: certificate signed by unknown authority");
}
