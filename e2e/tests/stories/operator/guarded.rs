//! Backends that ask who sends, as pipelines know them.

use std::net::SocketAddr;

use kubewake_e2e::{
    ClusterUnderTest, CollectorProcess, ConfigBuilder, OperatorCluster, SinkProcess, TestAuthority,
    certificate::CertifiedIdentity, grpc_to,
};

/// Where the cluster reaches them, with these settings.
fn doors(settings: &str) -> String {
    let at = ClusterUnderTest::any_port();
    format!("{{protocols: {{grpc: {{endpoint: \"{at}\", {settings}}}, http: {{endpoint: \"{at}\", {settings}}}}}}}")
}

/// A backend that takes what these people send, `name:password` each, and keeps it in the sink.
pub(super) fn by_password(sink: &SinkProcess, people: &[&str]) -> CollectorProcess {
    let people = people.join("\\n");
    let config = ConfigBuilder::exporting_to("otlp", grpc_to(sink.address()))
        .extension("basicauth", format!("{{htpasswd: {{inline: \"{people}\"}}}}"))
        .receiver("otlp", doors("auth: {authenticator: basicauth}"));
    CollectorProcess::with_config(config).start()
}

/// A backend that takes what those send who have a certificate of the authority, and keeps it in the sink.
pub(super) fn by_certificate(sink: &SinkProcess, authority: &TestAuthority) -> CollectorProcess {
    let server = authority.sign("server");
    let tls = "tls: {cert_file: \"${env:DIR}/server.pem\", key_file: \"${env:DIR}/server.key\", client_ca_file: \"${env:DIR}/ca.pem\"}";
    let config = ConfigBuilder::exporting_to("otlp", grpc_to(sink.address())).receiver("otlp", doors(tls));
    let files = CollectorProcess::with_config(config).file("server.pem", server.cert).file("server.key", server.key);
    files.file("ca.pem", authority.pem()).start()
}

/// A TracePipeline that shows the password of the Secret `backend`, whoever that says it is.
pub(super) fn with_password(operated: &OperatorCluster, name: &str, backend: SocketAddr) -> String {
    let value = |key: &str| value(operated, key);
    format!(
        "apiVersion: telemetry.kubewake.io/v1alpha1
kind: TracePipeline
metadata: {{name: {name}}}
spec:
  output:
    otlp:
      endpoint: {{value: \"http://{backend}\"}}
      authentication: {{basic: {{user: {}, password: {}}}}}
",
        value("user"),
        value("password")
    )
}

/// A TracePipeline that shows the certificate of the Secret `backend`.
pub(super) fn with_certificate(operated: &OperatorCluster, name: &str, backend: SocketAddr) -> String {
    let value = |key: &str| value(operated, key);
    format!(
        "apiVersion: telemetry.kubewake.io/v1alpha1
kind: TracePipeline
metadata: {{name: {name}}}
spec:
  output:
    otlp:
      endpoint: {{value: \"https://{backend}\"}}
      tls: {{ca: {}, cert: {}, key: {}}}
",
        value("ca.crt"),
        value("tls.crt"),
        value("tls.key")
    )
}

/// A value that stands in the Secret `backend`.
pub(super) fn value(operated: &OperatorCluster, key: &str) -> String {
    let namespace = operated.kubectl.namespace();
    format!("{{valueFrom: {{secretKeyRef: {{name: backend, namespace: {namespace}, key: {key}}}}}}}")
}

/// The Secret with who sends.
pub(super) fn password(user: &str, password: &str) -> String {
    secret(&format!("{{user: {user}, password: {password}}}"))
}

/// The Secret with the certificate of who sends.
pub(super) fn certificate(authority: &TestAuthority, identity: &CertifiedIdentity) -> String {
    let data = serde_json::json!({"ca.crt": authority.pem(), "tls.crt": identity.cert, "tls.key": identity.key});
    secret(&data.to_string())
}

fn secret(data: &str) -> String {
    format!("apiVersion: v1\nkind: Secret\nmetadata: {{name: backend}}\nstringData: {data}\n")
}
