use std::fs;

use proptest::prelude::*;

use super::*;
use crate::client::DialAddress;

fn document(body: &str) -> String {
    format!("apiVersion: apiserver.config.k8s.io/v1\nkind: TracingConfiguration\n{body}")
}

fn client_document(body: &str) -> String {
    format!("apiVersion: apiserver.config.k8s.io/v1alpha1\nkind: OpenTelemetryClientConfiguration\n{body}")
}

fn parse(text: &str) -> TracingConfiguration {
    TracingConfiguration::parse(text.as_bytes()).unwrap()
}

fn errors(text: &str) -> Vec<String> {
    match TracingConfiguration::parse(text.as_bytes()) {
        Err(TracingConfigError::Invalid(errors)) => errors,
        other => panic!("{other:?}"),
    }
}

fn endpoint(text: &str) -> TracingEndpoint {
    match parse(&document(&format!("endpoint: {text:?}"))).destination {
        TracingDestination::Direct(endpoint) => endpoint,
        service => panic!("{service:?}"),
    }
}

fn tcp(host: &str, port: u16) -> DialAddress {
    DialAddress::Tcp(host.to_owned(), port)
}

#[test]
fn every_version_is_read_in_yaml_and_json() {
    for version in ["v1alpha1", "v1beta1", "v1"] {
        let yaml =
            document("endpoint: 127.0.0.1:1\nsamplingRatePerMillion: 12345").replace("/v1\n", &format!("/{version}\n"));
        let config = parse(&yaml);
        assert_eq!(config.ratio_per_million, 12345);
        assert_eq!((config.protocol, config.tls), (TracingProtocol::Grpc, None));
    }
    let json = r#"{"kind":"TracingConfiguration","apiVersion":"apiserver.config.k8s.io/v1","endpoint":"a:1"}"#;
    assert_eq!(parse(json).authority(), "a:1");
}

#[test]
fn what_is_not_said_is_as_in_kube_apiserver() {
    let config = parse(&document(""));
    assert_eq!(config.authority(), "localhost:4317");
    assert_eq!((config.ratio_per_million, config.trusted_groups, config.headers.len()), (0, None, 0));
    assert_eq!(parse(&document("endpoint: ''")).authority(), "localhost:4317");
}

#[test]
fn endpoints_have_many_forms() {
    for (text, address) in [
        ("host:1", tcp("host", 1)),
        ("dns:///host:1", tcp("host", 1)),
        ("dns://host:1", tcp("host", 1)),
        ("dns://server/host:1", tcp("host", 1)),
        ("[::1]:5", tcp("::1", 5)),
        ("host", tcp("host", 4317)),
        (":7", tcp("localhost", 7)),
        ("unix:///run/otlp.sock", DialAddress::Unix("/run/otlp.sock".into())),
        ("unix:/run/otlp.sock", DialAddress::Unix("/run/otlp.sock".into())),
        ("unix-abstract:otlp", DialAddress::Abstract("otlp".into())),
        ("unix-abstract://otlp", DialAddress::Abstract("otlp".into())),
    ] {
        assert_eq!(endpoint(text).address, address, "{text}");
    }
    assert_eq!(endpoint("[::1]:5").authority, "[::1]:5");
    assert_eq!(endpoint("unix:///x").authority, "localhost");
}

#[test]
fn what_kube_apiserver_refuses_is_refused_in_its_words() {
    let options =
        "Options are none, dns, unix, or unix-abstract.  See https://github.com/grpc/grpc/blob/master/doc/naming.md";
    assert_eq!(
        errors(&document("endpoint: http://localhost:4317\nsamplingRatePerMillion: -1")),
        [
            r#"samplingRatePerMillion: Invalid value: -1: sampling rate must be positive"#.to_owned(),
            format!(r#"endpoint: Invalid value: "http://localhost:4317": unsupported scheme: http.  {options}"#),
        ]
    );
    assert_eq!(
        errors(&document("endpoint: localhost:x\nsamplingRatePerMillion: 1000001")),
        [
            "samplingRatePerMillion: Invalid value: 1000001: sampling rate per million must be less than or equal to one million",
            r#"endpoint: Invalid value: "dns://localhost:x": parse "dns://localhost:x": invalid port ":x" after host"#,
        ]
    );
}

#[test]
fn decoding_is_strict_and_finds_everything_at_once() {
    let text = document(
        "tls: {caPath: x}\nendpoint: a:1\nendpoint: b:1\nurl: c\nsamplingRatePerMillion: many\nprotocol: thrift",
    );
    let undecodable = "unable to decode tracing configuration data:";
    assert_eq!(
        errors(&text),
        [
            format!(
                r#"{undecodable} strict decoding error: line 5: key "endpoint" already set in map, unknown field "tls.caPath", unknown field "url""#
            ),
            r#"protocol: Unsupported value: "thrift": supported values: "grpc", "http/protobuf""#.to_owned(),
            format!(
                "{undecodable} json: cannot unmarshal string into Go struct field TracingConfiguration.samplingRatePerMillion of type int32"
            ),
        ]
    );
    let twice =
        r#"{"kind":"TracingConfiguration","apiVersion":"apiserver.config.k8s.io/v1","endpoint":"a","endpoint":"b"}"#;
    assert_eq!(errors(twice), [format!(r#"{undecodable} strict decoding error: duplicate field "endpoint""#)]);
}

#[test]
fn other_kinds_and_texts_are_no_configuration() {
    let one = |text: &str| errors(text).join("|");
    let refused = one("apiVersion: apps/v1\nkind: DaemonSet\nmetadata: {name: agent}");
    let start =
        r#"unable to decode tracing configuration data: no kind "DaemonSet" is registered for version "apps/v1""#;
    assert!(refused.starts_with(start), "{refused}");
    for (text, part) in [
        ("", "Object 'Kind' is missing"),
        ("kind: TracingConfiguration", "Object 'apiVersion' is missing"),
        ("kind: TracingConfiguration\napiVersion: apiserver.config.k8s.io/v2", "is registered for version"),
        ("[1]", "holds no object"),
        ("{", "unexpected end of JSON input"),
        ("a: [", "yaml:"),
    ] {
        assert!(one(text).contains(part), "{text}: {}", one(text));
    }
}

#[test]
fn the_keps_own_document_names_a_url_or_a_service() {
    let url = |text: &str| parse(&client_document(&format!("url: {text}")));
    assert_eq!(url("http://127.0.0.1:4317").tls, None);
    assert_eq!(url("localhost:4317").authority(), "localhost:4317");
    let secured = url("https://collector");
    assert_eq!((secured.authority().as_str(), secured.tls), ("collector:4317", Some(TracingTlsFiles::default())));
    let service = parse(&client_document("service: {namespace: observability, name: collector, port: 5317}"));
    assert_eq!(service.authority(), "collector.observability.svc:5317");
    let default = parse(&client_document("service: {namespace: o, name: c}\nprotocol: http/protobuf"));
    assert_eq!(default.authority(), "c.o.svc:4318");
}

#[test]
fn a_url_and_a_service_exclude_each_other() {
    assert_eq!(errors(&client_document("")), ["url: Required value: exactly one of url or service is required"]);
    assert_eq!(
        errors(&client_document("url: a:1\nservice: {name: c, port: 0, path: x}")),
        [
            r#"unable to decode tracing configuration data: strict decoding error: unknown field "service.path""#,
            "service: Forbidden: exactly one of url or service is required",
            "service.namespace: Required value",
            "service.port: Invalid value: 0: must be between 1 and 65535, inclusive",
        ]
    );
    let unknown = errors(&client_document("endpoint: a:1\nurl: a:1")).join("");
    assert!(unknown.contains(r#"unknown field "endpoint""#));
}

#[test]
fn otlp_over_http_has_paths_and_ports_of_its_own() {
    let of = |body: &str| match parse(&document(&format!("protocol: http/protobuf\n{body}"))).destination {
        TracingDestination::Direct(endpoint) => endpoint,
        service => panic!("{service:?}"),
    };
    assert_eq!((of("endpoint: host").address, of("endpoint: host").path.as_str()), (tcp("host", 4318), "/v1/traces"));
    assert_eq!(of("endpoint: https://host/otlp/v1/traces").path, "/otlp/v1/traces");
    assert!(of("endpoint: https://host").https);
    let refused = errors(&document("protocol: grpc\nendpoint: http://host/path"));
    assert_eq!(refused, [r#"endpoint: Invalid value: "http://host/path": a path is for protocol http/protobuf only"#]);
}

#[test]
fn tls_may_be_asked_for_and_forbidden_but_not_both() {
    let tls = |body: &str| parse(&document(&format!("tls: {body}"))).tls;
    assert_eq!(tls("{}"), Some(TracingTlsFiles::default()));
    assert_eq!(tls("{insecure: true}"), None);
    assert_eq!(tls("{serverName: x, caFile: ca}").unwrap().server_name.as_deref(), Some("x"));
    assert_eq!(
        errors(&document("tls: {insecure: true, caFile: ca, certFile: crt}")),
        [
            "tls.keyFile: Required value: certFile and keyFile must be set together",
            "tls.caFile: Forbidden: may not be set together with insecure",
            "tls.certFile: Forbidden: may not be set together with insecure",
        ]
    );
    let both = errors(&client_document("url: https://x\ntls: {insecure: true}"));
    assert_eq!(both, ["tls.insecure: Forbidden: must not be set for an https endpoint"]);
}

#[test]
fn headers_are_checked_and_never_shown() {
    assert!(
        !parse(&document("")).joined_authentication
            && parse(&document("authenticationRoots: false")).joined_authentication
    );
    let config = parse(&document("headers: {Authorization: Bearer s3cret}\ntrustedGroups: [a, b]"));
    assert_eq!(config.trusted_groups, Some(vec!["a".to_owned(), "b".to_owned()]));
    assert_eq!(config.headers["authorization"], "Bearer s3cret");
    assert!(!format!("{config:?}").contains("s3cret"));
    let refused = errors(&document("headers: {'a b': x, Content-Type: x, c: \"s3cret\\n\"}"));
    assert_eq!(
        refused,
        [
            "headers[Content-Type]: Forbidden: this header is set by the exporter",
            "headers[a b]: Forbidden: invalid header name",
            "headers[c]: Forbidden: invalid header value",
        ]
    );
}

#[test]
fn files_are_beside_the_document_and_all_that_are_missing_are_told() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("tracing.yaml");
    fs::write(&path, document("tls: {caFile: ca.pem, certFile: crt.pem, keyFile: key.pem}")).unwrap();
    let error = TracingConfiguration::load(&path).unwrap_err().to_string();
    for field in ["tls.caFile", "tls.certFile", "tls.keyFile"] {
        assert!(error.contains(field) && error.contains(folder.path().to_str().unwrap()), "{error}");
    }
    fs::write(&path, document("tls: {caFile: ca.pem}")).unwrap();
    fs::write(folder.path().join("ca.pem"), "no PEM").unwrap();
    assert_eq!(TracingConfiguration::load(&path).unwrap_err().to_string(), "tls: the CA bundle is not valid PEM");
    let absent = TracingConfiguration::load(&folder.path().join("absent")).unwrap_err().to_string();
    assert!(absent.starts_with("unable to read tracing configuration from"), "{absent}");
}

proptest! {
    #[test]
    fn no_text_makes_it_panic(text in "\\PC{0,80}") {
        let _ = TracingConfiguration::parse(text.as_bytes());
        let _ = TracingConfiguration::parse(document(&format!("endpoint: {text:?}")).as_bytes());
        let _ = TracingConfiguration::parse(client_document(&format!("url: {text:?}")).as_bytes());
    }
}
